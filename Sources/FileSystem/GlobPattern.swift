/// A pattern over paths below a container, as in `.gitignore`: `*` and `?` stay within a name, `[a-z]` is a set,
/// `**` is any number of directories, and `\` takes the next character as it is. A pattern without a `/` (but for a
/// last one) matches at any depth; one that ends in `/` matches directories only.
///
/// What is not well formed (a set without its end, a `\` with nothing behind) matches nothing, as with git.
package struct GlobPattern: Hashable, Sendable, CustomStringConvertible {
  /// The pattern as it was written.
  package let description: String
  private let parts: [Part]
  private let directoriesOnly: Bool

  private enum Part: Hashable {
    case anyDepth
    case name([GlobToken])
  }

  /// A pattern from text; an empty one matches nothing.
  package init(_ text: String) {
    description = text
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
    // At the end it needs something below; in the middle it may stand for nothing.
    if parts.last == .anyDepth { parts.append(.name([.anyBytes])) }
    if !isAnchored { parts.insert(.anyDepth, at: 0) }
    self.parts = parts
  }

  /// Whether the text has anything that a pattern gives a meaning to, and is well formed.
  package static func isPattern(_ text: String) -> Bool {
    text.contains { "*?[".contains($0) } && GlobToken.names(of: Array(text.utf8)) != nil
  }

  /// The one path that a text means, with what `\` takes as it is; nil for a pattern, and for what is no well-formed one.
  package static func literal(_ text: String) -> String? {
    guard text.contains(where: { "*?[".contains($0) }) else { return text }
    guard let names = GlobToken.names(of: Array(text.utf8)) else {
      // A bracket alone is a name's own.
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

  /// A text of which ``literal(_:)`` gives a path again.
  package static func escaped(_ path: String) -> String {
    guard path.contains(where: { "*?[".contains($0) }) else { return path }
    return path.reduce(into: "") { $0 += ("*?[\\".contains($1) ? "\\" : "") + String($1) }
  }

  /// Whether a path matches; what is below a directory that matches does not match by itself.
  package func matches(_ path: ContainerPath, isDirectory: Bool = false) -> Bool {
    matches(components: path.components, isDirectory: isDirectory)
  }

  /// The same for a path that is split already: for one of many patterns.
  package func matches(components: [[UInt8]], isDirectory: Bool) -> Bool {
    if parts.isEmpty || (directoriesOnly && !isDirectory) { return false }
    return Self.matches(components, parts, isAny: { $0 == .anyDepth }, Self.nameMatches)
  }

  /// Whether something below a directory could match.
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
}
