/// The bare words of one statement, without comments, strings and quoted names: only for the courtesy of asking
/// for a reason before all rows change, never for safety.
struct SQLWords {
  /// The first words of statements that only read and write rows.
  static let verbsOfRows: Set<String> = ["INSERT", "REPLACE", "UPDATE", "DELETE", "SELECT", "VALUES", "WITH"]

  private struct Token {
    /// In capitals; empty for a quoted name.
    let word: String
    /// How many parentheses are open.
    let depth: Int
    /// The word as it is written.
    let source: String
    /// The sign between the token before and this one; 0 when there is none.
    let sign: UInt8
    /// Whether a parenthesis follows.
    var isCalled = false
  }
  private var tokens: [Token] = []
  private var words: [String] = []

  init(_ sql: String) {
    let scalars = Array(sql.utf8)
    var (index, depth, sign): (Int, Int, UInt8) = (0, 0, 0)
    func add(_ word: String) {
      tokens.append(Token(word: word.uppercased(), depth: depth, source: word, sign: sign))
      sign = 0
    }
    func end(_ closing: UInt8, from start: Int) -> Int {
      var index = start
      while index < scalars.count, scalars[index] != closing { index += 1 }
      return min(index + 1, scalars.count)
    }
    func starts(_ text: StaticString) -> Bool {
      index + 1 < scalars.count && scalars[index] == text.utf8Start[0]
        && scalars[index + 1] == text.utf8Start[1]
    }
    while index < scalars.count {
      let byte = scalars[index]
      if Self.isWord(byte) {
        let start = index
        while index < scalars.count, Self.isWord(scalars[index]) { index += 1 }
        add(String(decoding: scalars[start..<index], as: UTF8.self))
        continue
      }
      switch byte {
      case ...0x20: index += 1
      case UInt8(ascii: "'"):
        sign = byte
        index = end(byte, from: index + 1)
      case UInt8(ascii: "\""), UInt8(ascii: "`"), UInt8(ascii: "["):
        add("")
        index = end(byte == UInt8(ascii: "[") ? UInt8(ascii: "]") : byte, from: index + 1)
      case UInt8(ascii: "-") where starts("--"): index = end(0x0A, from: index)
      case UInt8(ascii: "/") where starts("/*"):
        index += 2
        while index < scalars.count, !starts("*/") { index += 1 }
        index += 2
      case UInt8(ascii: "("):
        if sign == 0, !tokens.isEmpty { tokens[tokens.count - 1].isCalled = true }
        (index, depth, sign) = (index + 1, depth + 1, byte)
      case UInt8(ascii: ")"): (index, depth, sign) = (index + 1, depth - 1, byte)
      default: (index, sign) = (index + 1, byte)
      }
    }
    words = tokens.map(\.word).filter { !$0.isEmpty }
  }

  static func isWord(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "_") || (byte >= 0x30 && byte <= 0x39)
      || (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A)
      || byte >= 0x80
  }

  /// Whether the statement makes, changes or removes tables and their like.
  var definesSchema: Bool { words.first.map(["CREATE", "ALTER", "DROP"].contains) ?? false }

  /// Whether it begins or ends a transaction or a part of one.
  var isAboutTransactions: Bool {
    words.first.map(["BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE"].contains) ?? false
  }

  /// Whether it makes a trigger, inside of which are statements.
  var makesTrigger: Bool {
    words.first == "CREATE" && words.dropFirst().first { !["TEMP", "TEMPORARY"].contains($0) } == "TRIGGER"
  }

  /// Whether it makes a table that lasts.
  var makesTable: Bool {
    words.starts(with: ["CREATE", "TABLE"]) || words.starts(with: ["CREATE", "VIRTUAL", "TABLE"])
  }

  /// Whether it is such a one with `IF EXISTS` or `IF NOT EXISTS`.
  var asksForExistence: Bool { definesSchema && words.prefix(6).contains("EXISTS") }

  /// Whether it drops a table or a column.
  var drops: Bool {
    words.starts(with: ["DROP", "TABLE"])
      || (words.starts(with: ["ALTER", "TABLE"]) && words.contains("DROP"))
  }

  /// After these words an expression begins.
  private static let beforeExpressions: Set<String> = [
    "SELECT", "DISTINCT", "ALL", "SET", "WHERE", "AND", "OR", "NOT", "WHEN", "THEN", "ELSE", "CASE", "BY",
    "HAVING",
    "RETURNING", "LIKE", "GLOB", "REGEXP", "BETWEEN", "IS", "IN", "LIMIT", "OFFSET",
  ]
  /// What a parenthesis follows and is no function.
  private static let keywords: Set<String> = beforeExpressions.union([
    "VALUES", "CAST", "RAISE", "EXISTS", "OVER", "FILTER", "USING", "AS", "ON", "FROM", "JOIN", "MATCH",
    "ESCAPE",
    "MATERIALIZED", "CONFLICT", "PARTITION", "UNION", "EXCEPT", "INTERSECT",
  ])

  /// The functions that a statement on rows calls, as far as its words tell: names of tables and columns have a
  /// parenthesis behind them, too.
  var calls: [String] {
    let isWith = words.first == "WITH"
    return tokens.indices.dropFirst().compactMap { index in
      let token = tokens[index]
      guard token.isCalled, !token.word.isEmpty, !Self.keywords.contains(token.word) else { return nil }
      // In a WITH, `, name (column) AS` is a table.
      if isWith, token.depth == 0, token.sign == UInt8(ascii: ",") { return nil }
      let isInExpression =
        token.sign == 0
        ? Self.beforeExpressions.contains(tokens[index - 1].word)
        : !")'.".utf8.contains(token.sign)
      return isInExpression ? token.source : nil
    }
  }

  /// How the statement is about all rows, such as `DELETE without WHERE`; nil when it is not.
  var lossOfAllRows: String? {
    if let verb = verbWithoutWhere { return "\(verb) without WHERE" }
    guard let verb = words.first(where: { $0 == "DELETE" || $0 == "UPDATE" }), !words.contains("INSERT"),
      whereIsConstant
    else { return nil }
    return "\(verb) with a WHERE that names no column"
  }

  /// `DELETE` or `UPDATE`, when the statement is one and says nowhere which rows.
  private var verbWithoutWhere: String? {
    guard !words.contains("WHERE"), let verb = words.first else { return nil }
    if verb == "DELETE" || verb == "UPDATE" { return verb }
    guard verb == "WITH", !words.contains("INSERT") else { return nil }
    return words.first { $0 == "DELETE" || $0 == "UPDATE" }
  }

  private static let constants: Set<String> = [
    "TRUE", "FALSE", "NULL", "NOT", "AND", "OR", "IS", "IN", "BETWEEN", "LIKE", "GLOB", "ISNULL", "NOTNULL",
  ]

  /// Whether the WHERE of the statement itself has literals only, such as `WHERE 1`.
  private var whereIsConstant: Bool {
    guard let start = tokens.lastIndex(where: { $0.depth == 0 && $0.word == "WHERE" }) else { return false }
    let condition = tokens[(start + 1)...].prefix { token in
      token.depth > 0 || !["RETURNING", "ORDER", "LIMIT"].contains(token.word)
    }
    return condition.allSatisfy { token in
      guard let first = token.word.utf8.first else { return false }
      return (first >= 0x30 && first <= 0x39) || Self.constants.contains(token.word)
    }
  }
}
