import FileSystem

/// Patterns as in a `.gitignore`: the last one that matches a path decides, and `!` negates a pattern. Spaces at the end count
/// only after a `\`; empty lines and lines that start with `#` are ignored (`\!` and `\#` start a name).
package struct PatternList: Sendable, Equatable {
  private let patterns: [GlobPattern]

  package init(_ lines: [String]) {
    patterns = lines.compactMap { line in
      var bytes = Self.trimmed(Array(line.utf8))
      guard let first = bytes.first, first != UInt8(ascii: "#") else { return nil }
      let isNegated = first == UInt8(ascii: "!")
      if isNegated { bytes.removeFirst() }
      return GlobPattern(String(decoding: bytes, as: UTF8.self), line: line, isNegated: isNegated)
    }
  }

  /// The pattern that decides about a path, regardless of the directories above; nil when none matches.
  package func decisive(for path: ContainerPath, isDirectory: Bool) -> GlobPattern? {
    if patterns.isEmpty { return nil }
    let components = path.components
    return patterns.last { $0.matches(components: components, isDirectory: isDirectory) }
  }

  /// Whether a path is in the list, regardless of the directories above.
  package func contains(_ path: ContainerPath, isDirectory: Bool) -> Bool {
    decisive(for: path, isDirectory: isDirectory)?.isNegated == false
  }

  /// The patterns, as written, and those that match a path, whichever of them counts.
  package var texts: [String] { patterns.map(\.description) }

  package func texts(matching path: ContainerPath, isDirectory: Bool) -> [String] {
    patterns.filter { $0.matches(path, isDirectory: isDirectory) }.map(\.description)
  }

  /// Whether a path below a directory could match.
  package func mayMatch(below directory: ContainerPath) -> Bool {
    patterns.contains { !$0.isNegated && $0.mayMatch(below: directory) }
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
