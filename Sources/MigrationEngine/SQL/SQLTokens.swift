/// One token of SQL text. Comments and white space are skipped.
struct SQLToken {
  enum Kind {
    /// A bare word or number.
    case word
    case name
    case string
    /// One character of anything else.
    case sign
  }

  let kind: Kind
  /// The number of open parentheses.
  let depth: Int
  /// Its bytes in the text.
  let range: Range<Int>
  fileprivate let source: [UInt8]

  /// Without its quotes.
  var text: String {
    guard isQuoted else { return String(decoding: source[range], as: UTF8.self) }
    let closing = SQLTokens.closing(source[range.lowerBound])
    var content = source[range].dropFirst()
    if content.last == closing { content.removeLast() }
    let text = String(decoding: content, as: UTF8.self)
    let quote = String(UnicodeScalar(closing))
    // A doubled quote is an escaped one.
    return content.contains(closing) ? text.replacing(quote + quote, with: quote) : text
  }

  var isQuoted: Bool { kind == .name || kind == .string }

  /// Whether it is this keyword, given in capitals.
  func isWord(_ word: String) -> Bool {
    kind == .word && range.count == word.utf8.count && text.uppercased() == word
  }

  func isSign(_ sign: UnicodeScalar) -> Bool {
    kind == .sign && source[range.lowerBound] == UInt8(ascii: sign)
  }

  static func all(in sql: String) -> [SQLToken] { Array(SQLTokens(Array(sql.utf8))) }
}

/// The tokens of SQL text from a byte on.
struct SQLTokens: Sequence, IteratorProtocol {
  private let bytes: [UInt8]
  private var index: Int
  private var depth = 0
  private var lineComments: Set<Int> = []

  /// Where the comments to the end of a line start: not inside of a block comment or a quoted text.
  static func lineComments(in bytes: [UInt8]) -> Set<Int> {
    var tokens = SQLTokens(bytes)
    while tokens.next() != nil {}
    return tokens.lineComments
  }

  init(_ bytes: [UInt8], from start: Int = 0) { (self.bytes, index) = (bytes, start) }

  mutating func next() -> SQLToken? {
    skipSpace()
    guard index < bytes.count else { return nil }
    let start = index
    let byte = bytes[index]
    index += 1
    switch byte {
    case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "`"), UInt8(ascii: "["):
      let closing = Self.closing(byte)
      while index < bytes.count {
        index += 1
        guard bytes[index - 1] == closing else { continue }
        guard byte == closing, index < bytes.count, bytes[index] == closing else { break }
        index += 1
      }
      return token(byte == UInt8(ascii: "'") ? .string : .name, from: start)
    case _ where Self.isWord(byte):
      while index < bytes.count, Self.isWord(bytes[index]) { index += 1 }
      return token(.word, from: start)
    default:
      let token = token(.sign, from: start)
      if byte == UInt8(ascii: "(") { depth += 1 } else if byte == UInt8(ascii: ")") { depth -= 1 }
      return token
    }
  }

  private func token(_ kind: SQLToken.Kind, from start: Int) -> SQLToken {
    SQLToken(kind: kind, depth: depth, range: start..<index, source: bytes)
  }

  private mutating func skipSpace() {
    while index < bytes.count {
      let next = index + 1 < bytes.count ? bytes[index + 1] : 0
      switch (bytes[index], next) {
      case (0...0x20, _): index += 1
      case (UInt8(ascii: "-"), UInt8(ascii: "-")):
        lineComments.insert(index)
        index = bytes[index...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
      case (UInt8(ascii: "/"), UInt8(ascii: "*")):
        index += 3
        while index < bytes.count,
          !(bytes[index] == UInt8(ascii: "/") && bytes[index - 1] == UInt8(ascii: "*"))
        {
          index += 1
        }
        index = Swift.min(index + 1, bytes.count)
      default: return
      }
    }
  }

  fileprivate static func closing(_ quote: UInt8) -> UInt8 {
    quote == UInt8(ascii: "[") ? UInt8(ascii: "]") : quote
  }

  /// Whether a byte can be part of a bare word.
  private static func isWord(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "_") || byte == UInt8(ascii: "$") || (0x30...0x39).contains(byte)
      || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte >= 0x80
  }
}

/// What the words of one statement say: only for asking for a reason before all rows change, never for safety.
struct SQLStatement {
  /// The first words of statements that only read and write rows.
  static let verbsOfRows: Set<String> = ["INSERT", "REPLACE", "UPDATE", "DELETE", "SELECT", "VALUES", "WITH"]

  private let tokens: [SQLToken]
  /// The bare words, in capitals.
  private let words: [String]

  init(_ sql: String) {
    tokens = SQLToken.all(in: sql)
    words = tokens.filter { $0.kind == .word }.map { $0.text.uppercased() }
  }

  /// Whether the statement creates, changes or drops tables and other parts of a schema.
  var definesSchema: Bool { words.first.map(["CREATE", "ALTER", "DROP"].contains) ?? false }

  /// Whether it begins or ends a transaction or a savepoint.
  var isAboutTransactions: Bool {
    words.first.map(["BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE"].contains) ?? false
  }

  /// Whether it creates a table that is not temporary.
  var createsTable: Bool {
    words.starts(with: ["CREATE", "TABLE"]) || createsVirtualTable
  }

  /// The verb whose statements run the trigger that this one creates.
  var triggeringVerb: String? {
    words.drop { $0 != "TRIGGER" }.first(where: ["INSERT", "UPDATE", "DELETE"].contains)
  }

  var createsVirtualTable: Bool { words.starts(with: ["CREATE", "VIRTUAL", "TABLE"]) }

  /// Whether it changes a schema with `IF EXISTS` or `IF NOT EXISTS`.
  var asksForExistence: Bool { definesSchema && words.prefix(6).contains("EXISTS") }

  var dropsView: Bool { words.starts(with: ["DROP", "VIEW"]) }

  /// Whether it is about the permission to write the table of the schema.
  var namesWritableSchema: Bool { words.contains("WRITABLE_SCHEMA") }

  /// Whether it drops a table or a column.
  var drops: Bool {
    words.starts(with: ["DROP", "TABLE"])
      || (words.starts(with: ["ALTER", "TABLE"]) && words.contains("DROP"))
  }

  /// Words that an expression follows.
  private static let beforeExpressions: Set<String> = [
    "SELECT", "DISTINCT", "ALL", "SET", "WHERE", "AND", "OR", "NOT", "WHEN", "THEN", "ELSE", "CASE", "BY",
    "HAVING", "RETURNING", "LIKE", "GLOB", "REGEXP", "BETWEEN", "IS", "IN", "LIMIT", "OFFSET",
  ]
  /// Words before a parenthesis that are not functions.
  private static let keywords: Set<String> = beforeExpressions.union([
    "VALUES", "CAST", "RAISE", "EXISTS", "OVER", "FILTER", "USING", "AS", "ON", "FROM", "JOIN", "MATCH",
    "ESCAPE", "MATERIALIZED", "CONFLICT", "PARTITION", "UNION", "EXCEPT", "INTERSECT",
  ])

  /// The functions that a statement on rows calls. A name of a table or column before a parenthesis is not one.
  var calls: [String] {
    let isWith = words.first == "WITH"
    return tokens.indices.dropFirst().compactMap { index in
      let (token, previous) = (tokens[index], tokens[index - 1])
      guard token.kind == .word, index + 1 < tokens.count, tokens[index + 1].isSign("("),
        !Self.keywords.contains(token.text.uppercased())
      else { return nil }
      // In a WITH, `, name (column) AS` is a table.
      if isWith, token.depth == 0, previous.isSign(",") { return nil }
      let isInExpression =
        switch previous.kind {
        case .word: Self.beforeExpressions.contains(previous.text.uppercased())
        case .sign: !previous.isSign(")") && !previous.isSign(".")
        case .name, .string: false
        }
      return isInExpression ? token.text : nil
    }
  }

  /// How the statement changes all rows, such as `DELETE without WHERE`; nil when it does not.
  var lossOfAllRows: String? {
    if let verb = verbWithoutWhere { return "\(verb) without WHERE" }
    guard let verb = words.first(where: { $0 == "DELETE" || $0 == "UPDATE" }), !words.contains("INSERT"),
      whereIsConstant
    else { return nil }
    return "\(verb) with a WHERE that names no column"
  }

  private var verbWithoutWhere: String? {
    guard !words.contains("WHERE"), let verb = words.first else { return nil }
    if verb == "DELETE" || verb == "UPDATE" { return verb }
    guard verb == "WITH", !words.contains("INSERT") else { return nil }
    return words.first { $0 == "DELETE" || $0 == "UPDATE" }
  }

  private static let constants: Set<String> = [
    "TRUE", "FALSE", "NULL", "NOT", "AND", "OR", "IS", "IN", "BETWEEN", "LIKE", "GLOB", "ISNULL", "NOTNULL",
  ]

  /// Whether the statement's own WHERE has only literals, such as `WHERE 1`.
  private var whereIsConstant: Bool {
    guard let start = tokens.lastIndex(where: { $0.depth == 0 && $0.isWord("WHERE") }) else { return false }
    let condition = tokens[(start + 1)...].prefix { token in
      token.depth > 0 || !["RETURNING", "ORDER", "LIMIT"].contains(where: token.isWord)
    }
    return condition.allSatisfy { token in
      switch token.kind {
      case .string, .sign: return true
      case .name: return false
      case .word:
        let isNumber = token.text.utf8.first.map { (0x30...0x39).contains($0) } ?? false
        return isNumber || Self.constants.contains(token.text.uppercased())
      }
    }
  }
}
