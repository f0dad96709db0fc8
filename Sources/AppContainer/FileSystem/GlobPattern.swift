/// A pattern over paths below a container, as in `.gitignore`: `*` and `?` stay within a name, `[a-z]` is a set,
/// `**` is any number of directories. A pattern without a `/` (but for a last one) matches at any depth; one
/// that ends in `/` matches directories only.
public struct GlobPattern: Hashable, Sendable, CustomStringConvertible {
  /// The pattern as it was written.
  public let description: String
  private let parts: [Part]
  private let directoriesOnly: Bool

  private enum Part: Hashable {
    case anyDepth
    case name([Token])
  }

  private enum Token: Hashable {
    case byte(UInt8)
    case anyByte
    case anyBytes
    case oneOf([ClosedRange<UInt8>], negated: Bool)
  }

  /// A pattern from text; an empty one matches nothing.
  public init(_ text: String) {
    description = text
    var bytes = Array(text.utf8)
    directoriesOnly = bytes.last == UInt8(ascii: "/")
    if directoriesOnly { bytes.removeLast() }
    let names = bytes.split(separator: UInt8(ascii: "/"))
    var parts = names.map { $0.elementsEqual("**".utf8) ? Part.anyDepth : .name(Self.tokens($0)) }
    // At the end it needs something below; in the middle it may stand for nothing.
    if parts.last == .anyDepth { parts.append(.name([.anyBytes])) }
    let isAnchored = bytes.contains(UInt8(ascii: "/"))
    if !isAnchored && !parts.isEmpty { parts.insert(.anyDepth, at: 0) }
    self.parts = parts
  }

  /// Whether the text has anything that a pattern gives a meaning to.
  public static func isPattern(_ text: String) -> Bool { text.contains { "*?[".contains($0) } }

  /// Whether a path matches; what is below a directory that matches does not match by itself.
  public func matches(_ path: ContainerPath, isDirectory: Bool = false) -> Bool {
    if parts.isEmpty || (directoriesOnly && !isDirectory) { return false }
    return Self.matches(path.components, parts, isAny: { $0 == .anyDepth }) { name, part in
      guard case .name(let tokens) = part else { return false }
      return Self.matches(name, tokens, isAny: { $0 == .anyBytes }, Self.byteMatches)
    }
  }

  /// Matches items against tokens of which some stand for any number of items. Only the last such token is ever
  /// tried again, which is enough, and keeps many stars from taking exponential time.
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

  private static func byteMatches(_ byte: UInt8, _ token: Token) -> Bool {
    switch token {
    case .byte(let own): byte == own
    case .anyByte: true
    case .anyBytes: false
    case .oneOf(let ranges, let negated): ranges.contains { $0.contains(byte) } != negated
    }
  }

  // MARK: Reading

  private static func tokens(_ text: ArraySlice<UInt8>) -> [Token] {
    var tokens: [Token] = []
    var rest = text
    while let first = rest.popFirst() {
      switch first {
      case UInt8(ascii: "*"): tokens.append(.anyBytes)
      case UInt8(ascii: "?"): tokens.append(.anyByte)
      case UInt8(ascii: "["):
        // The first byte of a set may be its closing bracket; one that is not closed stands for itself.
        let start = rest.first.map { "!^".utf8.contains($0) } ?? false ? rest.dropFirst() : rest
        guard let end = start.dropFirst().firstIndex(of: UInt8(ascii: "]")) else { fallthrough }
        tokens.append(.oneOf(ranges(start[..<end]), negated: start.startIndex != rest.startIndex))
        rest = rest[(end + 1)...]
      default: tokens.append(.byte(first))
      }
    }
    return tokens
  }

  private static func ranges(_ set: ArraySlice<UInt8>) -> [ClosedRange<UInt8>] {
    var ranges: [ClosedRange<UInt8>] = []
    var rest = set
    while let first = rest.popFirst() {
      if rest.count > 1, rest.first == UInt8(ascii: "-"), let last = rest.dropFirst().first {
        if first <= last { ranges.append(first...last) }
        rest = rest.dropFirst(2)
      } else {
        ranges.append(first...first)
      }
    }
    return ranges
  }
}
