import DrydockErrors

/// A JSON pointer (RFC 6901): the way to a value inside of another, such as `/notes/0/title`.
package struct JSONPointer: Sendable, CustomStringConvertible {
  /// Keys and indexes from the top, without escapes; none is the whole value.
  package var tokens: [String]

  /// A pointer from its parts.
  package init(tokens: [String]) { self.tokens = tokens }

  /// Reads a pointer: empty, or each token after a `/`, where `~1` is a slash in a key and `~0` a tilde.
  ///
  /// - Throws: ``DrydockError`` with code `malformed`.
  package init(_ text: String) throws {
    // Bytes: with an accent behind it a slash would be another character.
    let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard text.isEmpty || parts.first?.isEmpty == true else {
      throw DrydockError(
        .malformed, "`\(text)` is no JSON pointer: it starts with `/`, or is empty for the whole value")
    }
    tokens = try parts.dropFirst().map { part in
      guard let token = Self.unescaped(part) else {
        throw DrydockError(
          .malformed, "`\(text)` is no JSON pointer: after `~` stands 0 (a tilde) or 1 (a slash)")
      }
      return token
    }
  }

  private static func unescaped(_ part: some Sequence<UInt8>) -> String? {
    var token: [UInt8] = []
    var rest = part.makeIterator()
    while let byte = rest.next() {
      guard byte == UInt8(ascii: "~") else {
        token.append(byte)
        continue
      }
      switch rest.next() {
      case UInt8(ascii: "0"): token.append(UInt8(ascii: "~"))
      case UInt8(ascii: "1"): token.append(UInt8(ascii: "/"))
      default: return nil
      }
    }
    return String(decoding: token, as: UTF8.self)
  }

  /// The index that a token means in an array.
  ///
  /// - Returns: nil when it means none: it is no decimal number, or starts with a zero.
  package static func index(_ token: String) -> Int? {
    guard !token.isEmpty, token.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
      token == "0" || !token.hasPrefix("0")
    else { return nil }
    return Int(token)
  }

  /// As it is written.
  package var description: String {
    var bytes: [UInt8] = []
    for token in tokens {
      bytes.append(UInt8(ascii: "/"))
      for byte in token.utf8 {
        switch byte {
        case UInt8(ascii: "~"): bytes += "~0".utf8
        case UInt8(ascii: "/"): bytes += "~1".utf8
        default: bytes.append(byte)
        }
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

extension JSONPointer: Hashable {
  /// Token by token, in every scalar.
  package static func == (left: Self, right: Self) -> Bool { left.exact == right.exact }

  /// See `Hashable`.
  package func hash(into hasher: inout Hasher) { hasher.combine(exact) }

  private var exact: [ExactText] { tokens.map { ExactText($0) } }
}
