import FileSystem

/// Looks at every byte of a fixture, and at every name, for what must not be there.
struct CaptureScan {
  private let replacements: Replacements
  private let kept: PatternIndex

  /// - Parameter kept: names that may stay, whatever is in them.
  init(_ replacements: Replacements, keeping kept: Set<String>) {
    self.replacements = replacements
    self.kept = PatternIndex(kept.map { PatternIndex.Pattern(bytes: Array($0.utf8)) })
  }

  /// Where something was found, for people.
  func problems(in root: Directory) throws -> [String] {
    var problems: [String] = []
    try root.walk { entry in
      if let found = leftBehind(in: entry.name.bytes).first {
        problems.append(
          "a name in the fixture contains \(text(found.origin)); leave the file out")
      }
      switch entry.status.type {
      case .file:
        let bytes = try root.contents(entry.path, limit: 1 << 30)
        for (offset, origin) in leftBehind(in: bytes).prefix(3) {
          let line = bytes[..<offset].count { $0 == UInt8(ascii: "\n") } + 1
          let advice =
            origin.isSecret
            ? "replace the file, or leave it out"
            : "if it is the app's own word, keep it, else leave the file out"
          problems.append("\(shown(entry.path)):\(line): still contains \(text(origin)); \(advice)")
        }
      case .symbolicLink:
        if let found = leftBehind(in: try root.linkTarget(entry.path)).first {
          problems.append(
            "\(shown(entry.path)): the link's target contains \(text(found.origin)); leave it out"
          )
        }
      default: break
      }
      return .into
    }
    return problems
  }

  private func leftBehind(in bytes: [UInt8]) -> [(offset: Int, origin: Replacements.Origin)] {
    let found = replacements.found(in: bytes)
    if found.isEmpty { return [] }
    let kept = kept.matches(in: bytes, includesShort: true).map(\.range)
    return found.filter { match in
      !kept.contains { $0.lowerBound <= match.range.lowerBound && $0.upperBound >= match.range.upperBound }
    }.map { ($0.range.lowerBound, $0.origin) }
  }

  private func text(_ origin: Replacements.Origin) -> String {
    let source = replacements.replacing(in: origin.source) ?? origin.source
    return "\(origin.isSecret ? "a secret" : "a value") of \(source)"
  }

  private func shown(_ path: ContainerPath) -> String {
    replacements.replacing(in: path.description) ?? path.description
  }
}
