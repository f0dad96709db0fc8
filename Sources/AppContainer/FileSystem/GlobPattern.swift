/// A pattern over paths below a container, as in `.gitignore`: `*` and `?` stay within a name, `[a-z]` is a set,
/// `**` is any number of directories. A pattern without a `/` (but for a last one) matches at any depth; one
/// that ends in `/` matches directories only.
public struct GlobPattern: Hashable, Sendable, CustomStringConvertible {
  /// The pattern as it was written.
  public let description: String
  private let parts: [[UInt8]]
  private let directoriesOnly: Bool

  /// A pattern from text; an empty one matches nothing.
  public init(_ text: String) {
    description = text
    var bytes = Array(text.utf8)
    directoriesOnly = bytes.last == UInt8(ascii: "/")
    if directoriesOnly { bytes.removeLast() }
    let anchored = bytes.contains(UInt8(ascii: "/"))
    var parts = bytes.split(separator: UInt8(ascii: "/")).map(Array.init)
    if !anchored { parts.insert(Array("**".utf8), at: 0) }
    self.parts = parts
  }

  /// Whether the text has anything that a pattern gives a meaning to.
  public static func isPattern(_ text: String) -> Bool { text.contains { "*?[".contains($0) } }

  /// Whether a path matches; what is below a directory that matches does not match by itself.
  public func matches(_ path: ContainerPath, isDirectory: Bool = false) -> Bool {
    if parts.isEmpty || (directoriesOnly && !isDirectory) { return false }
    return matches(path.components[...], parts[...])
  }

  private func matches(_ names: ArraySlice<[UInt8]>, _ parts: ArraySlice<[UInt8]>) -> Bool {
    guard let part = parts.first else { return names.isEmpty }
    let rest = parts.dropFirst()
    if part.elementsEqual("**".utf8) {
      // At the end it needs something below; in the middle it may stand for nothing.
      if rest.isEmpty { return !names.isEmpty }
      return (0...names.count).contains { matches(names.dropFirst($0), rest) }
    }
    guard let name = names.first else { return false }
    return nameMatches(name[...], part[...]) && matches(names.dropFirst(), rest)
  }

  private func nameMatches(_ name: ArraySlice<UInt8>, _ pattern: ArraySlice<UInt8>) -> Bool {
    guard let first = pattern.first else { return name.isEmpty }
    switch first {
    case UInt8(ascii: "*"):
      return (0...name.count).contains { nameMatches(name.dropFirst($0), pattern.dropFirst()) }
    case UInt8(ascii: "?"):
      return !name.isEmpty && nameMatches(name.dropFirst(), pattern.dropFirst())
    case UInt8(ascii: "["):
      guard let (matched, rest) = setMatches(name.first, pattern.dropFirst()) else { break }
      return matched && nameMatches(name.dropFirst(), rest)
    default: break
    }
    return name.first == first && nameMatches(name.dropFirst(), pattern.dropFirst())
  }

  /// Nil when the bracket is not closed, and so stands for itself.
  private func setMatches(_ byte: UInt8?, _ body: ArraySlice<UInt8>) -> (Bool, ArraySlice<UInt8>)? {
    guard let end = body.dropFirst().firstIndex(of: UInt8(ascii: "]")) else { return nil }
    var set = body[..<end]
    let negated = set.first == UInt8(ascii: "!") || set.first == UInt8(ascii: "^")
    if negated { set = set.dropFirst() }
    guard let byte else { return (false, body[(end + 1)...]) }
    var found = false
    var index = set.startIndex
    while index < set.endIndex {
      if index + 2 < set.endIndex, set[index + 1] == UInt8(ascii: "-") {
        found = found || (set[index] <= set[index + 2] && (set[index]...set[index + 2]).contains(byte))
        index += 3
      } else {
        found = found || set[index] == byte
        index += 1
      }
    }
    return (found != negated, body[(end + 1)...])
  }
}
