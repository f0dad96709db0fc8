/// One token of SQL text. Comments and white space are skipped.
struct SQLToken {
  enum Kind {
    /// A bare word or number.
    case word
    /// A quoted name.
    case name
    /// A string literal.
    case string
    /// One character of anything else.
    case sign
  }

  let kind: Kind
  /// Without its quotes.
  let text: String
  /// The number of open parentheses.
  let depth: Int
  /// Its bytes in the text.
  let range: Range<Int>

  var isQuoted: Bool { kind == .name || kind == .string }

  /// Whether it is this keyword, given in capitals.
  func isWord(_ word: String) -> Bool { kind == .word && text.uppercased() == word }

  func isSign(_ sign: String) -> Bool { kind == .sign && text == sign }

  static func all(in sql: String) -> [SQLToken] { all(in: Array(sql.utf8)) }

  static func all(in bytes: [UInt8]) -> [SQLToken] {
    var tokens: [SQLToken] = []
    var (index, depth) = (0, 0)
    func isNext(_ byte: UInt8) -> Bool { index + 1 < bytes.count && bytes[index + 1] == byte }
    func add(_ kind: Kind, _ text: some Collection<UInt8>, from start: Int) {
      tokens.append(
        SQLToken(
          kind: kind, text: String(decoding: text, as: UTF8.self), depth: depth,
          range: start..<min(index, bytes.count)))
    }
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
            // A doubled quote is an escaped one.
            guard byte == closing, isNext(closing) else { break }
            index += 1
          }
          content.append(bytes[index])
          index += 1
        }
        index += 1
        add(byte == UInt8(ascii: "'") ? .string : .name, content, from: start)
      case _ where isWord(byte):
        while index < bytes.count, isWord(bytes[index]) { index += 1 }
        add(.word, bytes[start..<index], from: start)
      default:
        index += 1
        add(.sign, CollectionOfOne(byte), from: start)
        if byte == UInt8(ascii: "(") { depth += 1 } else if byte == UInt8(ascii: ")") { depth -= 1 }
      }
    }
    return tokens
  }

  /// Whether a byte can be part of a bare word.
  static func isWord(_ byte: UInt8) -> Bool {
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

  /// Whether it creates a trigger, which contains statements.
  var createsTrigger: Bool {
    words.first == "CREATE" && words.dropFirst().first { !["TEMP", "TEMPORARY"].contains($0) } == "TRIGGER"
  }

  /// Whether it creates a table that is not temporary.
  var createsTable: Bool {
    words.starts(with: ["CREATE", "TABLE"]) || words.starts(with: ["CREATE", "VIRTUAL", "TABLE"])
  }

  /// Whether it changes a schema with `IF EXISTS` or `IF NOT EXISTS`.
  var asksForExistence: Bool { definesSchema && words.prefix(6).contains("EXISTS") }

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
        case .sign: previous.text != ")" && previous.text != "."
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
