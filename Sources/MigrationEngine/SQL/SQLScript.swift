import Formats

/// SQL text with its place in a file.
struct SQLScript: Sendable {
  /// The text, UTF-8.
  let bytes: [UInt8]
  let file: String
  /// The line of the file that the text starts in.
  let firstLine: Int

  init(bytes: [UInt8], file: String, firstLine: Int) {
    self.bytes = bytes
    self.file = file
    self.firstLine = firstLine
  }

  init(text: String, file: String, firstLine: Int) {
    self.init(bytes: Array(text.utf8), file: file, firstLine: firstLine)
  }

  /// Whether it consists of white space, comments and semicolons.
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
    guard offset + 1 < bytes.count else { return nil }
    switch (bytes[offset], bytes[offset + 1]) {
    case (UInt8(ascii: "-"), UInt8(ascii: "-")):
      return bytes[offset...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
    case (UInt8(ascii: "/"), UInt8(ascii: "*")):
      var index = offset + 2
      while index + 1 < bytes.count,
        bytes[index] != UInt8(ascii: "*") || bytes[index + 1] != UInt8(ascii: "/")
      {
        index += 1
      }
      return min(index + 2, bytes.count)
    default: return nil
    }
  }

  static func isSeparator(_ byte: UInt8) -> Bool { byte <= 0x20 || byte == UInt8(ascii: ";") }

  /// The place of the first word at or after an offset, so that an error points at the statement and not at the comment
  /// above it. For many places use ``SQLPlaces``.
  func position(at offset: Int) -> YAMLPosition {
    var places = SQLPlaces(self)
    return places.position(at: offset)
  }

  /// All statements.
  func statements() -> [SQLStatementText] {
    var (found, offset): ([SQLStatementText], Int) = ([], 0)
    while let statement = statement(from: offset) {
      found.append(statement)
      offset = statement.end
    }
    return found
  }

  /// The first statement at or after an offset; nil when there is none. Its end follows the rule of SQLite's
  /// `sqlite3_complete`: a trigger contains semicolons, and ends with `; END;`.
  func statement(from offset: Int) -> SQLStatementText? {
    let start = word(from: offset)
    guard start < bytes.count else { return nil }
    var index = semicolon(from: start)
    if isTrigger(start) {
      var last = index
      while index < bytes.count, !isEnd(from: last + 1, to: index) {
        last = index
        index = semicolon(from: index + 1)
      }
    }
    let end = min(index + 1, bytes.count)
    return SQLStatementText(
      text: String(decoding: bytes[start..<end], as: UTF8.self), offset: start, end: end,
      verb: verb(at: start))
  }

  /// The word at an offset, in capitals; at most 16 characters.
  private func verb(at offset: Int) -> String {
    var end = offset
    while end < bytes.count, end - offset < 16, SQLToken.isWord(bytes[end]) { end += 1 }
    return String(decoding: bytes[offset..<end], as: UTF8.self).uppercased()
  }

  private func isTrigger(_ start: Int) -> Bool {
    guard bytes[start] | 0x20 == UInt8(ascii: "c") else { return false }
    return SQLStatement(String(decoding: bytes[start..<min(start + 200, bytes.count)], as: UTF8.self))
      .createsTrigger
  }

  /// Whether only `END` is between two semicolons.
  private func isEnd(from: Int, to end: Int) -> Bool {
    let start = word(from: from)
    guard start + 3 <= end, word(from: start + 3) >= end else { return false }
    return String(decoding: bytes[start..<start + 3], as: UTF8.self).uppercased() == "END"
  }

  /// The next semicolon outside of strings, quoted names and comments; the end without one.
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
    var index = start + 1
    while index < bytes.count, bytes[index] != closing { index += 1 }
    return min(index + 1, bytes.count)
  }
}

/// One statement of a script.
struct SQLStatementText {
  /// Its text, without comments before it.
  let text: String
  /// Where its first word is in the script, and where the next statement may start.
  let offset, end: Int
  /// Its first word, in capitals.
  let verb: String

  /// Whether it only reads and writes rows. Such a statement defines nothing and neither begins nor ends a transaction.
  var isAboutRows: Bool { SQLStatement.verbsOfRows.contains(verb) }
}

/// Finds lines and columns in a script; in one pass when the offsets are ascending.
struct SQLPlaces {
  private let script: SQLScript
  /// The offset up to which lines were counted, their number, and the start of the last one.
  private var (offset, line, lineStart) = (0, 0, 0)

  init(_ script: SQLScript) { self.script = script }

  /// The place of the first word at or after an offset.
  mutating func position(at wanted: Int) -> YAMLPosition {
    let word = script.word(from: wanted)
    if word < offset { (offset, line, lineStart) = (0, 0, 0) }
    script.bytes.withUnsafeBufferPointer { bytes in
      for index in offset..<word where bytes[index] == UInt8(ascii: "\n") {
        line += 1
        lineStart = index + 1
      }
    }
    offset = word
    let column = String(decoding: script.bytes[lineStart..<word], as: UTF8.self).unicodeScalars.count + 1
    return YAMLPosition(file: script.file, line: script.firstLine + line, column: column)
  }
}
