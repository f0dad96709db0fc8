import DrydockErrors

/// One statement, and what its words say: only for asking for a reason before all rows change, never for safety.
package struct SQLStatement {
  /// The first words of statements that only read and write rows.
  private static let verbsOfRows: Set = [
    "INSERT", "REPLACE", "UPDATE", "DELETE", "SELECT", "VALUES", "WITH",
  ]

  /// Its text, without comments before it.
  package let text: String
  /// Where its first word is in the script, and where the next statement may start.
  package let offset, end: Int
  /// Its first word, in capitals.
  package let verb: String
  /// Whether it only reads and writes rows. Such a statement defines nothing and neither begins nor ends a transaction.
  package let isAboutRows: Bool

  package init(text: String, offset: Int, end: Int, first: SQLToken?) {
    (self.text, self.offset, self.end) = (text, offset, end)
    verb = first?.kind == .word ? String(first?.text.prefix(16) ?? "").uppercased() : ""
    isAboutRows = Self.verbsOfRows.contains(verb)
  }

  /// A statement that is in no script.
  package init(_ sql: String) {
    var tokens = SQLTokens(Array(sql.utf8))
    self.init(text: sql, offset: 0, end: sql.utf8.count, first: tokens.next())
  }

  private var tokens: [SQLToken] { SQLToken.all(in: text) }
  /// The bare words, in capitals.
  private var words: [String] { tokens.filter { $0.kind == .word }.map { $0.text.uppercased() } }

  /// Whether the statement creates, changes or drops tables and other parts of a schema.
  package var definesSchema: Bool { ["CREATE", "ALTER", "DROP"].contains(verb) }

  /// Whether it begins or ends a transaction or a savepoint.
  package var isAboutTransactions: Bool {
    ["BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE"].contains(verb)
  }

  /// Whether it creates a table that is not temporary.
  package var createsTable: Bool { words.starts(with: ["CREATE", "TABLE"]) || createsVirtualTable }

  /// The verb whose statements run the trigger that this one creates.
  package var triggeringVerb: String? {
    words.drop { $0 != "TRIGGER" }.first(where: ["INSERT", "UPDATE", "DELETE"].contains)
  }

  package var createsVirtualTable: Bool { words.starts(with: ["CREATE", "VIRTUAL", "TABLE"]) }

  /// Whether it changes a schema with `IF EXISTS` or `IF NOT EXISTS`.
  package var asksForExistence: Bool { definesSchema && words.prefix(6).contains("EXISTS") }

  package var dropsView: Bool { words.starts(with: ["DROP", "VIEW"]) }

  /// Whether it is about the permission to write the table of the schema.
  package var namesWritableSchema: Bool { words.contains("WRITABLE_SCHEMA") }

  /// Whether it drops a table or a column.
  package var drops: Bool {
    let words = words
    return words.starts(with: ["DROP", "TABLE"])
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
  package var calls: [String] {
    let (tokens, isWith) = (tokens, verb == "WITH")
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
        default: false
        }
      return isInExpression ? token.text : nil
    }
  }

  /// How the statement changes all rows, such as `DELETE without WHERE`; nil when it does not.
  package var lossOfAllRows: String? {
    let tokens = tokens
    let words = tokens.filter { $0.kind == .word }.map { $0.text.uppercased() }
    guard let changing = words.first(where: { $0 == "DELETE" || $0 == "UPDATE" }) else { return nil }
    if !words.contains("WHERE") {
      let isOwn = changing == verb || (verb == "WITH" && !words.contains("INSERT"))
      return isOwn ? "\(changing) without WHERE" : nil
    }
    guard !words.contains("INSERT"), Self.whereIsConstant(in: tokens) else { return nil }
    return "\(changing) with a WHERE that names no column"
  }

  private static let constants: Set<String> = [
    "TRUE", "FALSE", "NULL", "NOT", "AND", "OR", "IS", "IN", "BETWEEN", "LIKE", "GLOB", "ISNULL", "NOTNULL",
  ]

  /// Whether the statement's own WHERE has only literals, such as `WHERE 1`.
  private static func whereIsConstant(in tokens: [SQLToken]) -> Bool {
    guard let start = tokens.lastIndex(where: { $0.depth == 0 && $0.isWord("WHERE") }) else { return false }
    let condition = tokens[(start + 1)...].prefix { token in
      token.depth > 0 || !["RETURNING", "ORDER", "LIMIT"].contains(where: token.isWord)
    }
    return condition.allSatisfy { token in
      switch token.kind {
      case .name: return false
      case .word:
        let isNumber = token.text.utf8.first?.isDigit ?? false
        return isNumber || constants.contains(token.text.uppercased())
      default: return true
      }
    }
  }

  /// Whether it contains `load_extension`, in any case. Foundation's search would take a third of a long migration.
  package var mentionsExtensions: Bool {
    var text = text
    return text.withUTF8 { bytes in
      let name: StaticString = "load_extension"
      let length = name.utf8CodeUnitCount
      guard bytes.count >= length else { return false }
      // Its underscore is the rarest of its characters.
      for index in 4..<(bytes.count - length + 5) where bytes[index] == UInt8(ascii: "_") {
        let matches = (0..<length).allSatisfy {
          $0 == 4 || bytes[index - 4 + $0] | 0x20 == name.utf8Start[$0]
        }
        if matches { return true }
      }
      return false
    }
  }
}
