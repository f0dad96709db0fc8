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
      if let source = leftBehind(in: entry.name.bytes).first {
        problems.append("a name in the fixture holds \(source.text); leave the file out with --drop")
      }
      switch entry.status.type {
      case .file:
        let bytes = try root.contents(entry.path, limit: 1 << 30)
        problems += leftBehind(in: bytes).prefix(3).map {
          "\(shown(entry.path)):\(line(of: $0.offset, in: bytes)): here is still \($0.text); \($0.advice)"
        }
      case .symbolicLink:
        if let source = leftBehind(in: try root.linkTarget(entry.path)).first {
          problems.append(
            "\(shown(entry.path)): the link's target holds \(source.text); leave it out with --drop")
        }
      default: break
      }
      return .into
    }
    return problems
  }

  private struct Finding {
    var offset: Int
    var text: String
    var advice: String
  }

  private func leftBehind(in bytes: [UInt8]) -> [Finding] {
    let found = replacements.found(in: bytes)
    if found.isEmpty { return [] }
    let kept = kept.matches(in: bytes, includesShort: true).map(\.range)
    return found.filter { match in
      !kept.contains { $0.lowerBound <= match.range.lowerBound && $0.upperBound >= match.range.upperBound }
    }.map { match in
      Finding(
        offset: match.range.lowerBound,
        text: "\(match.origin.isSecret ? "a secret" : "a value") of \(shown(match.origin.source))",
        advice: match.origin.isSecret
          ? "have the file made up with --replace-file, or leave it out with --drop"
          : "if it is a word of the app's or of the fixture's own, give it with --keep; else leave the file out with --drop"
      )
    }
  }

  private func shown(_ path: ContainerPath) -> String { shown(path.description) }
  private func shown(_ text: String) -> String { replacements.replacing(in: text) ?? text }

  private func line(of offset: Int, in bytes: [UInt8]) -> Int {
    bytes[..<offset].count { $0 == UInt8(ascii: "\n") } + 1
  }
}
