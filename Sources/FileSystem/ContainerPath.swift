import Cryptography
import DrydockErrors

/// A path below a container's root.
///
/// Names are bytes: file systems allow names that are not UTF-8, and a backup must restore them. A path is relative and has
/// no empty, `.` or `..` component and no NUL; the empty path is the root.
public struct ContainerPath: Sendable {
  /// The path's bytes, components separated by `/`.
  package let bytes: [UInt8]

  /// The container itself.
  public static let root = ContainerPath(unchecked: [])

  package init(unchecked bytes: [UInt8]) { self.bytes = bytes }

  /// A path of one component, from a name in a directory listing.
  package init(name: [UInt8]) { bytes = name }

  /// A path from bytes; a trailing `/` is dropped.
  ///
  /// - Throws: ``DrydockError`` with code `badPath` when it is absolute or has an invalid component.
  package init(bytes: some Sequence<UInt8>) throws {
    var bytes = Array(bytes)
    if bytes.count > 1, bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
    guard !bytes.isEmpty else {
      self = .root
      return
    }
    for component in bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
      guard Self.isName(component) else {
        throw DrydockError(
          .badPath, "not a path below a container; write it relative to the root, without `.` or `..`",
          path: Self.printable(bytes))
      }
    }
    self.bytes = bytes
  }

  /// A path in a container, such as `Documents/notes.txt`.
  public init(_ text: String) throws { try self.init(bytes: text.utf8) }

  private static func isName(_ component: ArraySlice<UInt8>) -> Bool {
    !component.isEmpty && !component.contains(0) && !component.elementsEqual(".".utf8)
      && !component.elementsEqual("..".utf8)
  }

  // MARK: Parts

  /// Whether it is the container itself.
  public var isRoot: Bool { bytes.isEmpty }

  /// The names, from the root inwards; they need not be UTF-8.
  public var components: [[UInt8]] { bytes.split(separator: UInt8(ascii: "/")).map(Array.init) }

  /// The last name; empty for the root.
  package var name: [UInt8] { Array(nameBytes) }

  package var nameBytes: ArraySlice<UInt8> {
    guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else { return bytes[...] }
    return bytes[(slash + 1)...]
  }

  /// The last name as text, other bytes replaced.
  public var nameString: String { String(decoding: name, as: UTF8.self) }

  /// The directory it is in; the root's parent is the root.
  public var parent: ContainerPath {
    guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else { return .root }
    return ContainerPath(unchecked: Array(bytes[..<slash]))
  }

  /// All directories above it, the nearest first, the root last.
  package var ancestors: [ContainerPath] {
    var result: [ContainerPath] = []
    var path = self
    while !path.isRoot {
      path = path.parent
      result.append(path)
    }
    return result
  }

  /// The directory and the name of a path of the file system.
  package static func split(_ path: String) throws -> (directory: String, name: ContainerPath) {
    guard let slash = path.lastIndex(of: "/") else { return (".", try ContainerPath(path)) }
    let directory = slash == path.startIndex ? "/" : String(path[..<slash])
    return (directory, try ContainerPath(String(path[path.index(after: slash)...])))
  }

  /// Whether it is strictly below another path.
  public func isInside(_ other: ContainerPath) -> Bool {
    if other.isRoot { return !isRoot }
    return bytes.count > other.bytes.count && bytes[other.bytes.count] == UInt8(ascii: "/")
      && bytes.starts(with: other.bytes)
  }

  /// The path below `target` that corresponds to this one, which is `source` or inside it, below `source`.
  package func rebased(from source: ContainerPath, to target: ContainerPath) -> ContainerPath {
    if self == source { return target }
    let rest = source.isRoot ? bytes[...] : bytes[(source.bytes.count + 1)...]
    return target.appending(unchecked: rest)
  }

  /// A child by name. Throws ``DrydockError`` (`badPath`) for an invalid name.
  public func appending(_ name: String) throws -> ContainerPath {
    try ContainerPath(bytes: isRoot ? Array(name.utf8) : bytes + [UInt8(ascii: "/")] + Array(name.utf8))
  }

  /// A child by a name in a directory listing.
  package func appending(name: [UInt8]) -> ContainerPath { appending(unchecked: name) }

  package func appending(unchecked name: some Collection<UInt8>) -> ContainerPath {
    guard !isRoot else { return ContainerPath(unchecked: Array(name)) }
    var joined = bytes
    joined.reserveCapacity(bytes.count + 1 + name.count)
    joined.append(UInt8(ascii: "/"))
    joined.append(contentsOf: name)
    return ContainerPath(unchecked: joined)
  }

  /// The sibling whose name is this one's with a suffix, such as `-wal`.
  package func withSuffix(_ suffix: String) -> ContainerPath {
    ContainerPath(unchecked: bytes + Array(suffix.utf8))
  }

  /// The bytes of a name or link for one line of output. Bytes that are not text, break the line, or change the direction
  /// of text are escaped.
  package static func printable(_ bytes: [UInt8]) -> String {
    if let text = String(validating: bytes, as: UTF8.self),
      !text.unicodeScalars.contains(where: isUnprintable)
    {
      return text
    }
    return bytes.map { byte in
      (32..<127).contains(byte) ? String(UnicodeScalar(byte)) : "\\x" + [byte].hex
    }.joined()
  }

  /// Control characters, line breaks, and characters that change the direction of text.
  private static func isUnprintable(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0..<32, 0x7f..<0xa0, 0x61c, 0x200e...0x200f, 0x2028...0x202e, 0x2066...0x2069: true
    default: false
    }
  }
}

extension ContainerPath: Hashable, Comparable, CustomStringConvertible {
  /// By bytes, with a directory before its contents.
  public static func < (left: Self, right: Self) -> Bool {
    let slash = UInt8(ascii: "/")
    for (a, b) in zip(left.bytes, right.bytes) where a != b {
      // A separator sorts below every name byte, so that a directory's contents follow it immediately.
      return a == slash || (b != slash && a < b)
    }
    return left.bytes.count < right.bytes.count
  }

  /// The path as text, bytes that are not UTF-8 as `\xNN`; `.` for the root.
  public var description: String { isRoot ? "." : Self.printable(bytes) }
}

extension ContainerPath: ExpressibleByStringLiteral {
  /// A path in source code. An invalid one is a programming error.
  public init(stringLiteral text: String) {
    guard let path = try? ContainerPath(text) else { preconditionFailure("invalid path literal: \(text)") }
    self = path
  }
}

extension ContainerPath: Codable {
  /// Text, or `{"bytes": [...]}` for a path that is not UTF-8.
  public init(from decoder: any Decoder) throws {
    if let text = try? decoder.singleValueContainer().decode(String.self) {
      try self.init(text)
    } else {
      try self.init(bytes: decoder.container(keyedBy: CodingKeys.self).decode([UInt8].self, forKey: .bytes))
    }
  }

  private enum CodingKeys: CodingKey { case bytes }

  public func encode(to encoder: any Encoder) throws {
    if let text = String(validating: bytes, as: UTF8.self) {
      try text.encode(to: encoder)
    } else {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(bytes, forKey: .bytes)
    }
  }
}
