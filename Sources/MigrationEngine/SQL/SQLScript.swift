import AppContainer

/// SQL text with its place in a file.
struct SQLScript: Sendable {
  /// The text, UTF-8.
  let bytes: [UInt8]
  let file: String
  /// The line of the file that the text starts in.
  let firstLine: Int

  init(text: String, file: String, firstLine: Int) {
    bytes = Array(text.utf8)
    self.file = file
    self.firstLine = firstLine
  }

  /// Whether there is nothing but white space, comments and semicolons.
  var isBlank: Bool { word(from: 0) == bytes.count }

  /// The first word at or after an offset: past white space, semicolons and comments.
  func word(from offset: Int) -> Int {
    var index = offset
    while index < bytes.count {
      if Self.isSeparator(bytes[index]) {
        index += 1
      } else if bytes[index...].starts(with: "--".utf8) {
        index = bytes[index...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
      } else if bytes[index...].starts(with: "/*".utf8) {
        index += 2
        while index < bytes.count, !bytes[index...].starts(with: "*/".utf8) { index += 1 }
        index = min(index + 2, bytes.count)
      } else {
        break
      }
    }
    return index
  }

  static func isSeparator(_ byte: UInt8) -> Bool { byte <= 0x20 || byte == UInt8(ascii: ";") }

  /// The place of the first word at or after an offset, so that an error points at the statement and not at the
  /// remark above it.
  func position(at offset: Int) -> YAMLPosition {
    let before = bytes.prefix(word(from: offset))
    let line = firstLine + before.count { $0 == UInt8(ascii: "\n") }
    let lineStart = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
    let column = String(decoding: before[lineStart...], as: UTF8.self).unicodeScalars.count + 1
    return YAMLPosition(file: file, line: line, column: column)
  }
}
