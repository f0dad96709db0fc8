import AppContainer

/// The SQL of a schema as it is shown: texts in it, such as a column's default value, are hidden when they look like
/// secrets, and so are remarks.
struct ShownSQL {
  /// The SQL for people.
  private(set) var text = ""

  private let bytes: [UInt8]
  private let redactor: Redactor
  private var index = 0
  /// For each parenthesis that is open, the first word since it or since the last comma: a column's name.
  private var names: [String?]

  /// - Parameter name: the column that the SQL is about, when it is about one.
  init(_ sql: String, named name: String? = nil, _ redactor: Redactor) {
    (bytes, self.redactor, names) = (Array(sql.utf8), redactor, [name])
    while index < bytes.count { step() }
  }

  private mutating func step() {
    switch bytes[index] {
    case UInt8(ascii: "'"): literal()
    case UInt8(ascii: "("):
      names.append(nil)
      take(1)
    case UInt8(ascii: ")"):
      if names.count > 1 { names.removeLast() }
      take(1)
    case UInt8(ascii: ","):
      names[names.count - 1] = nil
      take(1)
    case UInt8(ascii: "\""), UInt8(ascii: "`"):
      let start = index + 1
      let length = quoted(by: bytes[index])
      name(String(decoding: bytes[start..<max(start, index + length - 1)], as: UTF8.self))
      take(length)
    case UInt8(ascii: "-") where bytes[index...].starts(with: "--".utf8):
      remark((bytes[index...].firstIndex(of: 0x0A) ?? bytes.count) - index)
    case UInt8(ascii: "/") where bytes[index...].starts(with: "/*".utf8):
      var end = index + 2
      while end < bytes.count, !bytes[end...].starts(with: "*/".utf8) { end += 1 }
      remark(min(end + 2, bytes.count) - index)
    case let byte where Self.isWord(byte):
      let word = bytes[index...].prefix(while: Self.isWord)
      name(String(decoding: word, as: UTF8.self))
      take(word.count)
    default: take(1)
    }
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "_") || byte >= 0x80 || (byte >= 0x30 && byte <= 0x39)
      || (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A)
  }

  private mutating func name(_ word: String) {
    if names[names.count - 1] == nil { names[names.count - 1] = word }
  }

  private mutating func take(_ count: Int) {
    text += String(decoding: bytes[index..<(index + count)], as: UTF8.self)
    index += count
  }

  /// The length of what is quoted from the index on, with its quotes; a doubled one stands for itself.
  private func quoted(by quote: UInt8) -> Int {
    var end = index + 1
    while end < bytes.count {
      if bytes[end] == quote {
        if end + 1 < bytes.count, bytes[end + 1] == quote { end += 1 } else { return end + 1 - index }
      }
      end += 1
    }
    return bytes.count - index
  }

  private mutating func literal() {
    let length = quoted(by: UInt8(ascii: "'"))
    let content = String(decoding: bytes[(index + 1)..<max(index + 1, index + length - 1)], as: UTF8.self)
      .replacing("''", with: "'")
    let name = SecretName(names.compactMap { $0 }.last ?? "")
    guard SecretPattern.isSecret(.string(content), named: name) else { return take(length) }
    text += redactor.shown(secret: content)
    index += length
  }

  private mutating func remark(_ length: Int) {
    let content = String(decoding: bytes[index..<(index + length)], as: UTF8.self)
    // The marks that end a remark would end the line that a secret stands on.
    let words = content.drop { "-/* ".contains($0) }
    let plain = words.hasSuffix("*/") ? words.dropLast(2) : words
    guard SecretPattern.isSecret(text: String(plain)) else { return take(length) }
    text += "/* \(redactor.shown(secret: content)) */"
    index += length
  }
}
