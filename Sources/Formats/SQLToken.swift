import DrydockErrors

/// A token of SQL text: a name, a text, a sign; also a comment or white space, where these are asked for. All of them
/// together are the text again.
package struct SQLToken: Sendable {
  package enum Kind: Sendable {
    /// A bare word or number.
    case word
    /// A name in quotes.
    case name
    case string
    case comment
    case space
    /// One character of anything else.
    case sign
  }

  package let kind: Kind
  /// The number of open parentheses.
  package let depth: Int
  /// Its bytes in the text.
  package let range: Range<Int>
  /// What is written in its place, if it was rewritten.
  package var rewritten: String?
  fileprivate let bytes: [UInt8]

  /// The tokens of a text.
  ///
  /// - Parameter withSpace: whether white space and comments are among them.
  package static func all(in sql: some StringProtocol, withSpace: Bool = false) -> [SQLToken] {
    Array(SQLTokens(Array(sql.utf8), withSpace: withSpace))
  }

  /// As it is in the SQL.
  package var source: String { rewritten ?? String(decoding: bytes[range], as: UTF8.self) }

  /// Without its quotes.
  package var text: String {
    guard isQuoted else { return String(decoding: bytes[range], as: UTF8.self) }
    let closing = SQLTokens.closing(bytes[range.lowerBound])
    var content = bytes[range].dropFirst()
    if content.last == closing { content.removeLast() }
    let text = String(decoding: content, as: UTF8.self)
    let quote = String(UnicodeScalar(closing))
    // A doubled quote is an escaped one.
    return content.contains(closing) ? text.replacing(quote + quote, with: quote) : text
  }

  package var isName: Bool { kind == .word || kind == .name }
  package var isQuoted: Bool { kind == .name || kind == .string }
  /// Whether it is neither white space nor a comment.
  package var counts: Bool { kind != .space && kind != .comment }

  /// Whether it is this keyword, given in capitals.
  package func isWord(_ word: String) -> Bool {
    guard kind == .word, range.count == word.utf8.count else { return false }
    return zip(bytes[range], word.utf8).allSatisfy { ($0.isLetter ? $0 & 0xDF : $0) == $1 }
  }

  package func isSign(_ sign: UnicodeScalar) -> Bool {
    kind == .sign && bytes[range.lowerBound] == UInt8(ascii: sign)
  }
}

/// The tokens of SQL text from a byte on.
package struct SQLTokens: Sequence, IteratorProtocol {
  private let bytes: [UInt8]
  private var index: Int
  private let withSpace: Bool
  private var depth = 0

  /// The lines whose first word begins a comment to the end of the line, unless that is inside of a block comment or a quoted
  /// text: their numbers from 1 on, and their bytes without the line feed.
  package static func commentLines(in bytes: [UInt8]) -> [(number: Int, line: Range<Int>)] {
    var (tokens, number, counted) = (SQLTokens(bytes), 1, 0)
    var lines: [(number: Int, line: Range<Int>)] = []
    while tokens.index < bytes.count {
      let start = tokens.index
      guard tokens.skip() == .comment, bytes[start] == UInt8(ascii: "-") else { continue }
      let before = bytes[..<start].lastIndex { $0 != 0x20 && $0 != 0x09 } ?? -1
      guard before < 0 || bytes[before] == UInt8(ascii: "\n") else { continue }
      for index in counted..<(before + 1) where bytes[index] == UInt8(ascii: "\n") { number += 1 }
      counted = before + 1
      lines.append((number, counted..<tokens.index))
    }
    return lines
  }

  /// Goes past the next semicolon, or to the end of the text.
  ///
  /// - Returns: where that is.
  mutating func skipStatement() -> Int {
    // Without tokens, each of which would hold the text: a script may have a million statements.
    while index < bytes.count {
      let start = index
      if skip() == .sign, bytes[start] == UInt8(ascii: ";") { break }
    }
    return index
  }

  package init(_ bytes: [UInt8], from start: Int = 0, withSpace: Bool = false) {
    (self.bytes, index, self.withSpace) = (bytes, start, withSpace)
  }

  package mutating func next() -> SQLToken? {
    while index < bytes.count {
      let start = index
      let kind = skip()
      if !withSpace, kind == .space || kind == .comment { continue }
      let token = SQLToken(kind: kind, depth: depth, range: start..<index, bytes: bytes)
      if token.isSign("(") { depth += 1 } else if token.isSign(")") { depth -= 1 }
      return token
    }
    return nil
  }

  /// Goes past a token.
  private mutating func skip() -> SQLToken.Kind {
    let byte = bytes[index]
    let next = index + 1 < bytes.count ? bytes[index + 1] : 0
    switch byte {
    case 0...0x20:
      while index < bytes.count, bytes[index] <= 0x20 { index += 1 }
      return .space
    case 0xEF where bytes[index...].starts(with: TextEncoding.mark):
      // Of a file that was appended to another one. Before a word it is white space for SQLite, too.
      index += TextEncoding.mark.count
      return .space
    case UInt8(ascii: "-") where next == UInt8(ascii: "-"):
      index = bytes[index...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
      return .comment
    case UInt8(ascii: "/") where next == UInt8(ascii: "*"):
      index += 3
      while index < bytes.count,
        !(bytes[index] == UInt8(ascii: "/") && bytes[index - 1] == UInt8(ascii: "*"))
      {
        index += 1
      }
      index = Swift.min(index + 1, bytes.count)
      return .comment
    case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "`"), UInt8(ascii: "["):
      index += 1
      let closing = Self.closing(byte)
      while index < bytes.count {
        index += 1
        guard bytes[index - 1] == closing else { continue }
        guard byte == closing, index < bytes.count, bytes[index] == closing else { break }
        index += 1
      }
      return byte == UInt8(ascii: "'") ? .string : .name
    case _ where Self.isWord(byte):
      while index < bytes.count, Self.isWord(bytes[index]) { index += 1 }
      return .word
    default:
      index += 1
      return .sign
    }
  }

  fileprivate static func closing(_ quote: UInt8) -> UInt8 {
    quote == UInt8(ascii: "[") ? UInt8(ascii: "]") : quote
  }

  /// Whether a byte can be part of a bare word.
  package static func isWord(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "_") || byte == UInt8(ascii: "$") || byte.isDigit || byte.isLetter || byte >= 0x80
  }
}

extension Sequence<SQLToken> {
  /// Whether statements may use or change the state of a connection, which a new one would not have: its settings, temporary
  /// tables and attached files, the statistics that it has read, and what it counts. By the words alone: a column or a text
  /// may have such a name.
  package var useConnection: Bool {
    var isSetting = false
    for token in self where token.kind != .sign {
      let word = token.text.uppercased()
      // These two are in the file.
      if isSetting, word != "USER_VERSION", word != "APPLICATION_ID" { return true }
      isSetting = word == "PRAGMA"
      if wordsOfConnections.contains(word) { return true }
    }
    return false
  }
}

private let wordsOfConnections: Set = [
  "TEMP", "TEMPORARY", "SQLITE_TEMP_SCHEMA", "SQLITE_TEMP_MASTER", "ATTACH", "DETACH", "ANALYZE", "CHANGES",
  "TOTAL_CHANGES", "LAST_INSERT_ROWID", "SQLITE_STAT1", "SQLITE_STAT4",
]
