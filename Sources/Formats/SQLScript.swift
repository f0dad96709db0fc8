/// SQL text with its place in a file.
package struct SQLScript: Sendable {
  /// The text, UTF-8.
  package let bytes: [UInt8]
  package let file: String
  /// The line of the file that the text starts in.
  package let firstLine: Int

  package init(bytes: [UInt8], file: String, firstLine: Int) {
    self.bytes = bytes
    self.file = file
    self.firstLine = firstLine
  }

  package init(text: String, file: String, firstLine: Int) {
    self.init(bytes: Array(text.utf8), file: file, firstLine: firstLine)
  }

  /// The first NUL character, which SQLite would read as the end of the text.
  package var firstNUL: Int? { bytes.firstIndex(of: 0) }

  /// Whether it consists of white space, comments and semicolons.
  package var isBlank: Bool { word(from: 0) == bytes.count }

  /// Whether its statements may use or change the state of a connection.
  package var usesConnection: Bool { SQLTokens(bytes).useConnection }

  /// The first word at or after an offset: past white space, semicolons and comments.
  package func word(from offset: Int) -> Int {
    var tokens = SQLTokens(bytes, from: offset)
    while let token = tokens.next() {
      if !token.isSign(";") { return token.range.lowerBound }
    }
    return bytes.count
  }

  /// The place of the first word at or after an offset, so that an error points at the statement and not at the comment
  /// above it. For many places use ``SQLPlaces``.
  package func position(at offset: Int) -> YAMLPosition {
    var places = SQLPlaces(self)
    return places.position(at: offset)
  }

  package func statements() -> [SQLStatement] {
    var (found, offset): ([SQLStatement], Int) = ([], 0)
    while let statement = statement(from: offset) {
      found.append(statement)
      offset = statement.end
    }
    return found
  }

  /// The first statement at or after an offset; nil when there is none. Its end follows the rule of SQLite's
  /// `sqlite3_complete`: a trigger contains semicolons, and ends with `; END;`.
  package func statement(from offset: Int) -> SQLStatement? {
    var tokens = SQLTokens(bytes, from: offset)
    var next = tokens.next()
    while next?.isSign(";") == true { next = tokens.next() }
    guard let first = next else { return nil }
    guard first.isWord("CREATE") else { return statement(first, to: tokens.skipStatement()) }
    var (end, before, last) = (bytes.count, first, first)
    var head: [SQLToken]? = []
    var isTrigger = false
    while let token = tokens.next() {
      if let words = head {
        // Words between CREATE and TRIGGER.
        isTrigger = token.isWord("TRIGGER")
        let isTemporary = words.isEmpty && (token.isWord("TEMP") || token.isWord("TEMPORARY"))
        head = isTemporary ? [token] : nil
      }
      if token.isSign(";"), !isTrigger || (last.isWord("END") && before.isSign(";")) {
        end = token.range.upperBound
        break
      }
      (before, last) = (last, token)
    }
    return statement(first, to: end)
  }

  private func statement(_ first: SQLToken, to end: Int) -> SQLStatement {
    let start = first.range.lowerBound
    return SQLStatement(
      text: String(decoding: bytes[start..<end], as: UTF8.self), offset: start, end: end, first: first)
  }
}

/// Finds lines and columns in a script; in one pass when the offsets are ascending.
package struct SQLPlaces {
  private let script: SQLScript
  /// The offset up to which lines were counted, their number, and the start of the last one.
  private var (offset, line, lineStart) = (0, 0, 0)

  package init(_ script: SQLScript) { self.script = script }

  /// The place of the first word at or after an offset.
  package mutating func position(at wanted: Int) -> YAMLPosition {
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
