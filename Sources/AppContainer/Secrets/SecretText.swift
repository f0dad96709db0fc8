/// Recognizes secrets by their form, anywhere in a text: keys and tokens with a known beginning, JSON Web Tokens, PEM
/// blocks, passwords in URLs, values that are assigned to a secret's name, card and account numbers.
///
/// It looks at bytes, once from start to end: a text may be long, and anybody's.
struct SecretText {
  private let bytes: [UInt8]

  init(_ text: String) { bytes = Array(text.utf8) }

  /// Whether there is a secret in the text.
  static func isSecret(_ text: String) -> Bool {
    // Shorter than a social-security number and an assignment nothing is told by its form.
    text.utf8.count >= 8 && SecretText(text).isSecret
  }

  private var isSecret: Bool {
    var isWordStart = true
    for index in bytes.indices {
      let byte = bytes[index]
      switch byte {
      case UInt8(ascii: "-") where has("-----BEGIN ", at: index): return true
      case UInt8(ascii: ":") where isURLPassword(index) || isAssignment(index): return true
      case UInt8(ascii: "="), UInt8(ascii: ">"): if isAssignment(index) { return true }
      default: break
      }
      let isWord = Self.isWord(byte)
      if isWord && isWordStart {
        if SecretToken.begins(at: index, in: bytes) || isScheme(index) { return true }
        if SecretNumber.begins(at: index, in: bytes) { return true }
      }
      isWordStart = !isWord
    }
    return false
  }

  static func isWord(_ byte: UInt8) -> Bool {
    isDigit(byte) || (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A) || byte >= 0x80 || byte == UInt8(ascii: "_")
  }

  static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }

  private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

  private static func isSpace(_ byte: UInt8) -> Bool { byte <= 0x20 }

  private func has(_ text: StaticString, at index: Int) -> Bool {
    text.withUTF8Buffer { bytes[index...].starts(with: $0) }
  }

  // MARK: HTTP

  /// `Bearer …` and `Basic …`, as they stand in a header; not a bearer of news.
  private func isScheme(_ index: Int) -> Bool {
    let length: Int
    switch bytes[index] | 0x20 {
    case UInt8(ascii: "b"):
      let word = bytes[index...].prefix(6).map { $0 | 0x20 }
      length = word.starts(with: "bearer".utf8) ? 6 : word.starts(with: "basic".utf8) ? 5 : 0
    default: return false
    }
    let start = index + length
    guard length > 0, start < bytes.count, bytes[start] == 0x20 else { return false }
    let value = bytes[start...].drop { $0 == 0x20 }.prefix { SecretToken.isTokenByte($0) }
    return value.count >= 8 && (value.contains(where: Self.isDigit) || value.count >= 20)
  }

  /// `user:password@` behind `://`; the index is that of the first colon.
  private func isURLPassword(_ index: Int) -> Bool {
    guard has("://", at: index) else { return false }
    let authority = bytes[(index + 3)...].prefix { byte in
      !Self.isSpace(byte) && !"/?#\"'<>".utf8.contains(byte)
    }
    guard let at = authority.lastIndex(of: UInt8(ascii: "@")),
      let colon = authority[..<at].firstIndex(of: UInt8(ascii: ":"))
    else { return false }
    return at > colon + 1
  }

  // MARK: Assignments

  private static let longestName = 60

  /// `password=…`, `"token": "…"`, `Authorization: …`, `<secret>…`: a secret's name before the sign at an index, and a
  /// value behind it.
  private func isAssignment(_ index: Int) -> Bool {
    var name = bytes[max(0, index - Self.longestName)..<index]
    while let last = name.last, last == 0x20 || "\"'\\]".utf8.contains(last) { name.removeLast() }
    let isQuoted = name.endIndex < index && bytes[index - 1] != 0x20
    let word = name.reversed().prefix {
      Self.isWord($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".")
    }
    guard word.count > 1, word.count < Self.longestName else { return false }
    let judged = SecretName(String(decoding: word.reversed(), as: UTF8.self))
    guard judged > .plain else { return false }
    if isQuoted, judged == .secret, opensDocument(behind: index) { return true }
    guard let value = value(behind: index) else { return false }
    let start = name.endIndex - word.count
    switch bytes[index] {
    case UInt8(ascii: ":") where !isQuoted:
      // In prose a colon says little: it has to be a line of its own with one word behind.
      let header = String(decoding: word.reversed(), as: UTF8.self).lowercased()
      guard isLineStart(start), !value.isSpaced || Self.headers.contains(header) else { return false }
    case UInt8(ascii: ">"):
      guard start > 0, bytes[start - 1] == UInt8(ascii: "<") else { return false }
    default: break
    }
    return SecretPattern.isSecret(leaf: .string(value.text), name: judged, looksInside: false)
  }

  /// Headers of HTTP whose values have spaces.
  private static let headers: Set<String> = [
    "authorization", "proxy-authorization", "cookie", "set-cookie",
  ]

  /// What marks a line as an item, a quote or a remark may stand before.
  private func isLineStart(_ index: Int) -> Bool {
    guard let before = bytes[..<index].last(where: { !Self.isBlank($0) && !"-*#/>|".utf8.contains($0) })
    else { return true }
    return before == 0x0A || before == 0x0D
  }

  /// Whether a list or an object follows, of JSON that was cut or damaged.
  private func opensDocument(behind index: Int) -> Bool {
    let next = bytes[(index + 1)...].first { !Self.isSpace($0) }
    return next == UInt8(ascii: "{") || next == UInt8(ascii: "[")
  }

  private struct Value {
    var text: String
    /// Whether more words follow in the line.
    var isSpaced: Bool
  }

  private func value(behind index: Int) -> Value? {
    var start = index + 1
    while start < bytes.count, bytes[start] == 0x20 { start += 1 }
    while start < bytes.count, "\"'\\".utf8.contains(bytes[start]) { start += 1 }
    var end = start
    while end < bytes.count, end - start < 4096, !Self.isSpace(bytes[end]),
      !"\"'\\&;,<>{}[]()".utf8.contains(bytes[end])
    { end += 1 }
    // `//` follows the colon of a URL's scheme.
    guard end - start >= 3, !bytes[start...].starts(with: "//".utf8) else { return nil }
    let next = bytes[end...].first { !Self.isBlank($0) }
    return Value(
      text: String(decoding: bytes[start..<end], as: UTF8.self),
      isSpaced: next != nil && next != 0x0A && next != 0x0D)
  }
}
