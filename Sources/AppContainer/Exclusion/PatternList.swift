import FileSystem

/// Patterns as the lines of a `.gitignore`: the last one that matches a path decides, and one with `!` in front takes
/// back what those before it said. Spaces at the end count only behind a `\`; empty lines and lines that start with
/// `#` say nothing (`\!` and `\#` start a name).
package struct PatternList: Sendable, Equatable {
  private struct Line: Sendable, Equatable {
    var text: String
    var pattern: GlobPattern
    var isNegated: Bool
  }

  private let lines: [Line]

  /// What a list says of one path, leaving aside what it says of the directories above.
  package enum Verdict: Sendable, Equatable {
    /// The pattern that matches, as it was written.
    case matched(String)
    /// The pattern with `!`.
    case negated(String)
    /// No line matches.
    case silent
  }

  /// A list from lines.
  package init(_ texts: [String]) {
    lines = texts.compactMap { text in
      var bytes = Self.trimmed(Array(text.utf8))
      guard let first = bytes.first, first != UInt8(ascii: "#") else { return nil }
      let isNegated = first == UInt8(ascii: "!")
      if isNegated { bytes.removeFirst() }
      return Line(
        text: text, pattern: GlobPattern(String(decoding: bytes, as: UTF8.self)), isNegated: isNegated)
    }
  }

  private init(lines: [Line]) { self.lines = lines }

  /// A list with another one's lines behind its own, which therefore decide.
  package func adding(_ other: PatternList) -> PatternList { PatternList(lines: lines + other.lines) }

  /// Whether it has no pattern.
  package var isEmpty: Bool { lines.isEmpty }

  /// What it says of a path.
  package func verdict(of path: ContainerPath, isDirectory: Bool) -> Verdict {
    if lines.isEmpty { return .silent }
    let components = path.components
    let last = lines.last { $0.pattern.matches(components: components, isDirectory: isDirectory) }
    guard let line = last else { return .silent }
    return line.isNegated ? .negated(line.text) : .matched(line.text)
  }

  /// Whether something below a directory could match.
  package func mayMatch(below directory: ContainerPath) -> Bool {
    lines.contains { !$0.isNegated && $0.pattern.mayMatch(below: directory) }
  }

  private static func trimmed(_ bytes: [UInt8]) -> [UInt8] {
    var end = 0
    var index = 0
    while index < bytes.count {
      if bytes[index] == UInt8(ascii: "\\") {
        guard index + 1 < bytes.count else { return bytes }
        index += 2
        end = index
      } else {
        index += 1
        if bytes[index - 1] != UInt8(ascii: " ") { end = index }
      }
    }
    return Array(bytes[..<end])
  }
}

extension PatternList: ExpressibleByArrayLiteral {
  /// A list in source code.
  package init(arrayLiteral texts: String...) { self.init(texts) }
}
