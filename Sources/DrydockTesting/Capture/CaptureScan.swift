import FileSystem

extension Replacements {
  /// Searches every byte and every name of a fixture for what must not be in it.
  ///
  /// - Parameter kept: names that may stay, whatever they contain.
  /// - Returns: what was found, with its place and the remedy.
  func problems(in root: Directory, keeping kept: [String]) throws -> [String] {
    let kept = PatternIndex(kept.map { PatternIndex.Pattern(bytes: Array($0.utf8)) })
    /// The originals in bytes, except inside a kept name.
    func remaining(in bytes: [UInt8]) -> [(range: Range<Int>, original: Original)] {
      let found = found(in: bytes)
      if found.isEmpty { return [] }
      let kept = kept.matches(in: bytes, includesShort: true).map(\.range)
      return found.filter { match in !kept.contains { $0.clamped(to: match.range) == match.range } }
    }
    func shown(_ text: String) -> String { replacing(in: text) ?? text }
    func words(_ original: Original) -> String { "\(original.kind) of \(shown(original.source))" }

    var problems: [String] = []
    try root.walk { entry in
      let path = shown(entry.path.description)
      if let (_, original) = remaining(in: entry.name.bytes).first {
        problems.append("a name in the fixture contains \(words(original)); leave the file out")
      }
      switch entry.status.type {
      case .file:
        let bytes = try root.contents(entry.path, limit: 1 << 30)
        for (range, original) in remaining(in: bytes).prefix(3) {
          let line = bytes[..<range.lowerBound].count { $0 == UInt8(ascii: "\n") } + 1
          problems.append(
            "\(path):\(line): still contains \(words(original)); if it is the app's own word, keep it, "
              + "else replace the file, or leave it out")
        }
      case .symbolicLink:
        if let (_, original) = remaining(in: try root.linkTarget(entry.path)).first {
          problems.append("\(path): the link's target contains \(words(original)); leave it out")
        }
      default: break
      }
      return .into
    }
    return problems
  }
}
