import DrydockErrors

/// A JSON pointer (RFC 6901), such as `/notes/0/title`.
package struct JSONPointer: Sendable, CustomStringConvertible {
  /// Keys and indexes from the top, without escapes; empty for the whole value.
  package var tokens: [String]

  package init(tokens: [String]) { self.tokens = tokens }

  /// Parses a pointer: empty, or each token after a `/`, where `~1` is a slash in a key and `~0` a tilde.
  package init(_ text: String) throws {
    // Bytes: a slash and a combining accent are one character.
    let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard text.isEmpty || parts.first?.isEmpty == true else {
      throw DrydockError(
        .malformed, "`\(text)` is not a JSON pointer: it starts with `/`, or is empty for the whole value")
    }
    tokens = try parts.dropFirst().map { part in
      guard let token = Self.unescaped(part) else {
        throw DrydockError(
          .malformed, "`\(text)` is not a JSON pointer: `~` is followed by 0 (a tilde) or 1 (a slash)")
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

  /// The array index of a token; nil when it is not a decimal number or has a leading zero.
  package static func index(_ token: String) -> Int? {
    guard !token.isEmpty, token.utf8.allSatisfy(\.isDigit),
      token == "0" || !token.hasPrefix("0")
    else { return nil }
    return Int(token)
  }

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
  package static func == (left: Self, right: Self) -> Bool { left.exact == right.exact }

  package func hash(into hasher: inout Hasher) { hasher.combine(exact) }

  private var exact: [ExactText] { tokens.map { ExactText($0) } }
}
