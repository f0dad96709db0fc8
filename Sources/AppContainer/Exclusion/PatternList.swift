import FileSystem

/// Patterns as in a `.gitignore`: the last one that matches a path decides, and `!` negates a pattern. Spaces at the end count
/// only after a `\`; empty lines and lines that start with `#` are ignored (`\!` and `\#` start a name).
package struct PatternList: Sendable, Equatable {
  private struct Line: Sendable, Equatable {
    var text: String
    var pattern: GlobPattern
    var isNegated: Bool
  }

  private let lines: [Line]

  /// The result for a path, regardless of the directories above.
  package enum Verdict: Sendable, Equatable {
    /// The matching pattern, as written.
    case matched(String)
    /// The matching pattern with `!`.
    case negated(String)
    case silent
  }

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

  /// A list with the lines of another one, which take precedence.
  package func adding(_ other: PatternList) -> PatternList { PatternList(lines: lines + other.lines) }

  package func verdict(of path: ContainerPath, isDirectory: Bool) -> Verdict {
    if lines.isEmpty { return .silent }
    let components = path.components
    let last = lines.last { $0.pattern.matches(components: components, isDirectory: isDirectory) }
    guard let line = last else { return .silent }
    return line.isNegated ? .negated(line.text) : .matched(line.text)
  }

  /// The patterns, as written, and those that match a path, whichever of them counts.
  package var texts: [String] { lines.map(\.text) }

  package func texts(matching path: ContainerPath, isDirectory: Bool) -> [String] {
    lines.filter { $0.pattern.matches(components: path.components, isDirectory: isDirectory) }.map(\.text)
  }

  /// Whether a path below a directory could match.
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
  package init(arrayLiteral texts: String...) { self.init(texts) }
}
