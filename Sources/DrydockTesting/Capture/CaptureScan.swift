import FileSystem

/// Searches every byte and every name of a fixture for what must not be in it.
struct CaptureScan {
  private let replacements: Replacements
  private let kept: PatternIndex

  /// - Parameter kept: names that may stay, whatever they contain.
  init(_ replacements: Replacements, keeping kept: [String]) {
    self.replacements = replacements
    self.kept = PatternIndex(kept.map { PatternIndex.Pattern(bytes: Array($0.utf8)) })
  }

  /// What was found, with its place and the remedy.
  func problems(in root: Directory) throws -> [String] {
    var problems: [String] = []
    try root.walk { entry in
      let path = replacements.replacing(in: entry.path.description) ?? entry.path.description
      for original in found(in: entry.name.bytes).map(\.original).prefix(1) {
        problems.append("a name in the fixture contains \(text(original)); leave the file out")
      }
      switch entry.status.type {
      case .file:
        let bytes = try root.contents(entry.path, limit: 1 << 30)
        for (range, original) in found(in: bytes).prefix(3) {
          let line = bytes[..<range.lowerBound].count { $0 == UInt8(ascii: "\n") } + 1
          problems.append(
            "\(path):\(line): still contains \(text(original)); if it is the app's own word, keep it, "
              + "else replace the file, or leave it out")
        }
      case .symbolicLink:
        for original in found(in: try root.linkTarget(entry.path)).map(\.original).prefix(1) {
          problems.append("\(path): the link's target contains \(text(original)); leave it out")
        }
      default: break
      }
      return .into
    }
    return problems
  }

  /// The originals in bytes, except inside a kept name.
  private func found(in bytes: [UInt8]) -> [(range: Range<Int>, original: Original)] {
    let found = replacements.found(in: bytes)
    if found.isEmpty { return [] }
    let kept = kept.matches(in: bytes, includesShort: true).map(\.range)
    return found.filter { match in !kept.contains { $0.clamped(to: match.range) == match.range } }
  }

  private func text(_ original: Original) -> String {
    let source = replacements.replacing(in: original.source) ?? original.source
    return "\(original.kind) of \(source)"
  }
}
