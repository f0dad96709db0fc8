/// A pattern for paths below a container, as in `.gitignore`: `*` and `?` match within a name, `[a-z]` is a set, `**` matches
/// any number of directories, and `\` escapes the next character. A pattern without a `/` (except at its end) matches at
/// any depth; one that ends in `/` matches directories only.
///
/// A malformed pattern (an unclosed set, a `\` at the end) matches nothing, as in git.
package struct GlobPattern: Hashable, Sendable, CustomStringConvertible {
  package let description: String
  /// Whether it is a line of a list that begins with `!`: what it matches is not in the list.
  package let isNegated: Bool
  private let parts: [Part]
  private let directoriesOnly: Bool

  private enum Part: Hashable {
    case anyDepth
    case name([GlobToken])
  }

  /// An empty pattern matches nothing.
  ///
  /// - Parameter line: how the pattern is written in a list; nil for its text.
  package init(_ text: String, line: String? = nil, isNegated: Bool = false) {
    (description, self.isNegated) = (line ?? text, isNegated)
    var bytes = Array(text.utf8)
    directoriesOnly = bytes.last == UInt8(ascii: "/")
    if directoriesOnly { bytes.removeLast() }
    let isAnchored = bytes.contains(UInt8(ascii: "/"))
    if bytes.first == UInt8(ascii: "/") { bytes.removeFirst() }
    guard let names = GlobToken.names(of: bytes), names.allSatisfy({ !$0.isEmpty }) else {
      parts = []
      return
    }
    var parts: [Part] = names.map { tokens in
      isAnchored && tokens.count > 1 && tokens.allSatisfy { $0 == .anyBytes } ? .anyDepth : .name(tokens)
    }
    // `**` at the end needs a name below; elsewhere it may match no directory.
    if parts.last == .anyDepth { parts.append(.name([.anyBytes])) }
    if !isAnchored { parts.insert(.anyDepth, at: 0) }
    self.parts = parts
  }

  /// Whether the text is well formed and has wildcards.
  package static func isPattern(_ text: String) -> Bool {
    text.contains { "*?[".contains($0) } && GlobToken.names(of: Array(text.utf8)) != nil
  }

  /// The one path that a text names, without its escapes; nil for a pattern and for a malformed text.
  package static func literal(_ text: String) -> String? {
    guard text.contains(where: { "*?[".contains($0) }) else { return text }
    guard let names = GlobToken.names(of: Array(text.utf8)) else {
      // An unclosed bracket is part of the name.
      return text.contains { "*?".contains($0) } ? nil : text
    }
    var bytes: [UInt8] = []
    for (index, tokens) in names.enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: "/")) }
      for token in tokens {
        guard case .byte(let byte) = token else { return nil }
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The text for which ``literal(_:)`` returns the path.
  package static func escaped(_ path: String) -> String {
    guard path.contains(where: { "*?[".contains($0) }) else { return path }
    return path.reduce(into: "") { $0 += ("*?[\\".contains($1) ? "\\" : "") + String($1) }
  }

  /// Whether a path matches. Paths below a matching directory do not match by themselves.
  package func matches(_ path: ContainerPath, isDirectory: Bool = false) -> Bool {
    matches(components: path.components, isDirectory: isDirectory)
  }

  /// The same for the components of a path, when it is compared with many patterns.
  package func matches(components: [[UInt8]], isDirectory: Bool) -> Bool {
    if parts.isEmpty || (directoriesOnly && !isDirectory) { return false }
    return Self.matches(components, parts, isAny: { $0 == .anyDepth }, Self.nameMatches)
  }

  /// Whether a path below a directory could match.
  package func mayMatch(below directory: ContainerPath) -> Bool {
    var rest = parts[...]
    for name in directory.components {
      guard let part = rest.popFirst() else { return false }
      if part == .anyDepth { return true }
      guard Self.nameMatches(name, part) else { return false }
    }
    return !rest.isEmpty
  }

  private static func nameMatches(_ name: [UInt8], _ part: Part) -> Bool {
    guard case .name(let tokens) = part else { return false }
    return matches(name, tokens, isAny: { $0 == .anyBytes }) { byte, token in token.matches(byte) }
  }

  /// Matches items against tokens, some of which match any number of items. Retrying only the last of these is enough, and
  /// keeps many stars from taking exponential time.
  private static func matches<Item, Token>(
    _ items: [Item], _ tokens: [Token], isAny: (Token) -> Bool, _ matchesOne: (Item, Token) -> Bool
  ) -> Bool {
    var (item, token) = (0, 0)
    var retry: (item: Int, token: Int)?
    while item < items.count {
      if token < tokens.count, isAny(tokens[token]) {
        retry = (item, token)
        token += 1
      } else if token < tokens.count, matchesOne(items[item], tokens[token]) {
        (item, token) = (item + 1, token + 1)
      } else if let last = retry {
        retry = (last.item + 1, last.token)
        (item, token) = (last.item + 1, last.token + 1)
      } else {
        return false
      }
    }
    return tokens[token...].allSatisfy(isAny)
  }
}

enum GlobToken: Hashable {
  case byte(UInt8)
  case anyByte
  case anyBytes
  case oneOf([ClosedRange<UInt8>], negated: Bool)

  /// Whether a byte matches. Not for ``anyBytes``.
  func matches(_ byte: UInt8) -> Bool {
    switch self {
    case .byte(let own): byte == own
    case .anyByte: true
    case .anyBytes: false
    case .oneOf(let ranges, let negated): ranges.contains { $0.contains(byte) } != negated
    }
  }

  /// The names of a pattern, split at its slashes; nil when it is malformed.
  static func names(of text: [UInt8]) -> [[GlobToken]]? {
    var names: [[GlobToken]] = [[]]
    var rest = text[...]
    while let first = rest.popFirst() {
      switch first {
      case UInt8(ascii: "/"): names.append([])
      case UInt8(ascii: "*"): names[names.count - 1].append(.anyBytes)
      case UInt8(ascii: "?"): names[names.count - 1].append(.anyByte)
      case UInt8(ascii: "["):
        guard let set = set(&rest) else { return nil }
        names[names.count - 1].append(set)
      case UInt8(ascii: "\\"):
        guard let escaped = rest.popFirst() else { return nil }
        if escaped == UInt8(ascii: "/") {
          names.append([])
        } else {
          names[names.count - 1].append(.byte(escaped))
        }
      default: names[names.count - 1].append(.byte(first))
      }
    }
    return names
  }

  // MARK: Sets

  /// Parses a set after its opening bracket. Its first byte may be a closing bracket.
  private static func set(_ rest: inout ArraySlice<UInt8>) -> GlobToken? {
    var ranges: [ClosedRange<UInt8>] = []
    let negated = rest.first.map { "!^".utf8.contains($0) } ?? false
    if negated { rest.removeFirst() }
    // The previous byte, when it can start a range.
    var start: UInt8?
    var isFirst = true
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "]"), !isFirst { return .oneOf(ranges, negated: negated) }
      isFirst = false
      if byte == UInt8(ascii: "\\") {
        guard let escaped = rest.popFirst() else { return nil }
        ranges.append(escaped...escaped)
        start = escaped
      } else if byte == UInt8(ascii: "-"), let first = start, let end = rest.first, end != UInt8(ascii: "]") {
        rest.removeFirst()
        var last = end
        if last == UInt8(ascii: "\\") {
          guard let escaped = rest.popFirst() else { return nil }
          last = escaped
        }
        if first <= last { ranges.append(first...last) }
        start = nil
      } else if byte == UInt8(ascii: "["), rest.first == UInt8(ascii: ":") {
        guard let end = rest.firstIndex(of: UInt8(ascii: "]")) else { return nil }
        let inside = rest[..<end].dropFirst()
        if inside.last == UInt8(ascii: ":") {
          guard let known = classes[String(decoding: inside.dropLast(), as: UTF8.self)] else { return nil }
          ranges += known
          rest = rest[(end + 1)...]
          start = nil
        } else {
          ranges.append(byte...byte)
          start = byte
        }
      } else {
        ranges.append(byte...byte)
        start = byte
      }
    }
    return nil
  }

  private static func range(_ first: Character, _ last: Character) -> ClosedRange<UInt8> {
    (first.asciiValue ?? 0)...(last.asciiValue ?? 0)
  }

  private static let classes: [String: [ClosedRange<UInt8>]] = {
    let (digit, upper, lower) = (range("0", "9"), range("A", "Z"), range("a", "z"))
    return [
      "alnum": [digit, upper, lower], "alpha": [upper, lower], "blank": [9...9, 32...32],
      "cntrl": [0...31, 127...127], "digit": [digit], "graph": [33...126], "lower": [lower],
      "print": [32...126],
      "punct": [33...47, 58...64, 91...96, 123...126], "space": [9...13, 32...32], "upper": [upper],
      "xdigit": [digit, range("A", "F"), range("a", "f")],
    ]
  }()
}
