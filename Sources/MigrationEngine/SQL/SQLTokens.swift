/// One word, name or sign of a statement.
struct SQLToken: Equatable {
  /// Without its quotes.
  var text: String
  var isQuoted: Bool

  /// Whether it is this keyword, given in capitals.
  func isWord(_ word: String) -> Bool { !isQuoted && text.uppercased() == word }

  /// The tokens of a statement; comments and white space are left out, texts and quoted names are both quoted.
  static func all(in sql: String) -> [SQLToken] {
    let bytes = Array(sql.utf8)
    var tokens: [SQLToken] = []
    var index = 0
    func text(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }
    func isNext(_ byte: UInt8) -> Bool { index + 1 < bytes.count && bytes[index + 1] == byte }
    while index < bytes.count {
      let start = index
      let byte = bytes[index]
      switch byte {
      case 0...0x20: index += 1
      case UInt8(ascii: "-") where isNext(UInt8(ascii: "-")):
        while index < bytes.count, bytes[index] != 0x0A { index += 1 }
      case UInt8(ascii: "/") where isNext(UInt8(ascii: "*")):
        index += 2
        while index + 1 < bytes.count, !(bytes[index] == 0x2A && bytes[index + 1] == 0x2F) { index += 1 }
        index += 2
      case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "`"), UInt8(ascii: "["):
        let closing = byte == UInt8(ascii: "[") ? UInt8(ascii: "]") : byte
        var content: [UInt8] = []
        index += 1
        while index < bytes.count {
          if bytes[index] == closing {
            // A doubled quote stands for itself.
            guard byte == closing, isNext(closing) else { break }
            index += 1
          }
          content.append(bytes[index])
          index += 1
        }
        index += 1
        tokens.append(SQLToken(text: String(decoding: content, as: UTF8.self), isQuoted: true))
      case _ where isWord(byte):
        while index < bytes.count, isWord(bytes[index]) { index += 1 }
        tokens.append(SQLToken(text: text(start..<index), isQuoted: false))
      default:
        index += 1
        tokens.append(SQLToken(text: text(start..<index), isQuoted: false))
      }
    }
    return tokens
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "_") || byte == UInt8(ascii: "$") || (0x30...0x39).contains(byte)
      || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte >= 0x80
  }
}
