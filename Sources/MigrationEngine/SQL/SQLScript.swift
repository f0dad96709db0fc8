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
      } else if let end = comment(at: index) {
        index = end
      } else {
        break
      }
    }
    return index
  }

  /// The end of the comment that starts at an offset; nil when none does.
  private func comment(at offset: Int) -> Int? {
    if bytes[offset...].starts(with: "--".utf8) {
      return bytes[offset...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
    }
    guard bytes[offset...].starts(with: "/*".utf8) else { return nil }
    var index = offset + 2
    while index < bytes.count, !bytes[index...].starts(with: "*/".utf8) { index += 1 }
    return min(index + 2, bytes.count)
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

  /// The statements without running them, each with its text, and where its first word is. Where one ends is told by
  /// the rule of SQLite's `sqlite3_complete`: a trigger has semicolons inside, and ends with `; END;`.
  func statements() -> [(text: String, offset: Int)] {
    var found: [(text: String, offset: Int)] = []
    var start = word(from: 0)
    while start < bytes.count {
      var index = semicolon(from: start)
      if isTrigger(start) {
        var last = index
        while index < bytes.count, !isEnd(from: last + 1, to: index) {
          last = index
          index = semicolon(from: index + 1)
        }
      }
      let text = String(decoding: bytes[start..<min(index + 1, bytes.count)], as: UTF8.self)
      found.append((text, start))
      start = word(from: index)
    }
    return found
  }

  private func isTrigger(_ start: Int) -> Bool {
    let words = SQLWords(String(decoding: bytes[start..<min(start + 200, bytes.count)], as: UTF8.self))
    return words.makesTrigger
  }

  /// Whether there is nothing but `END` between two semicolons.
  private func isEnd(from: Int, to end: Int) -> Bool {
    let start = word(from: from)
    guard start + 3 <= end, word(from: start + 3) >= end else { return false }
    return String(decoding: bytes[start..<start + 3], as: UTF8.self).uppercased() == "END"
  }

  /// The next semicolon that is not in a text, a quoted name or a comment; the end without one.
  private func semicolon(from offset: Int) -> Int {
    var index = offset
    while index < bytes.count {
      switch bytes[index] {
      case UInt8(ascii: ";"): return index
      case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "`"): index = end(bytes[index], after: index)
      case UInt8(ascii: "["): index = end(UInt8(ascii: "]"), after: index)
      case UInt8(ascii: "-"), UInt8(ascii: "/"): index = comment(at: index) ?? index + 1
      default: index += 1
      }
    }
    return index
  }

  private func end(_ closing: UInt8, after start: Int) -> Int {
    (bytes[(start + 1)...].firstIndex(of: closing) ?? bytes.count - 1) + 1
  }
}
