import AppStores
import Formats

extension [SQLToken] {
  /// The names beside each text, by the index of its token: what it is compared with or assigned to, such as `token` in
  /// `token <> 'x'`, `SET token = 'x'` and `token IN ('x', 'y')`, and its alias, as in `'x' AS token`. A call does not
  /// count: `typeof(token) = 'text'` is not about the value. Nor do patterns of `GLOB` and paths in JSON.
  package func namesBesideTexts() -> [Int: [String]] {
    let counted = indices.filter { self[$0].counts }
    func token(_ at: Int) -> SQLToken? { counted.indices.contains(at) ? self[counted[at]] : nil }
    func isOperator(_ at: Int) -> Bool {
      guard let found = token(at) else { return false }
      return ["=", "<", ">", "!"].contains(where: found.isSign)
        || ["IS", "NOT", "LIKE"].contains(where: found.isWord)
    }
    func name(endingAt at: Int) -> String? {
      let isCollation = token(at - 1)?.isWord("COLLATE") == true
      return token(isCollation ? at - 2 : at).flatMap { $0.isName ? $0.text : nil }
    }
    var list: String?
    var result: [Int: [String]] = [:]
    for (at, index) in counted.enumerated() where self[index].kind == .string {
      // A blob, `x'6162'`.
      if index > 0, self[index - 1].isWord("X") { continue }
      if token(at - 1)?.isSign("(") == true, token(at - 2)?.isWord("IN") == true {
        list = name(endingAt: token(at - 3)?.isWord("NOT") == true ? at - 4 : at - 3)
      } else if token(at - 1)?.isSign(",") != true || token(at - 2)?.kind != .string {
        list = nil
      }
      var (left, right) = (at - 1, at + 1)
      while isOperator(left) { left -= 1 }
      while isOperator(right) { right += 1 }
      if token(right)?.isWord("AS") == true { right += 1 }
      while token(right + 1)?.isSign(".") == true { right += 2 }
      let isCall = token(right + 1)?.isSign("(") == true
      let names: [String?] = [
        list, left < at - 1 ? name(endingAt: left) : nil, isCall ? nil : name(endingAt: right),
      ]
      result[index] = names.compactMap { $0 }
    }
    return result
  }
}

/// A `CREATE TABLE` statement: what is before its columns, the columns and constraints, and what is behind them.
package struct TableSQL {
  private(set) var head: [SQLToken] = []
  /// Empty for any other statement.
  private(set) var parts: [[SQLToken]] = []
  private(set) var tail: [SQLToken] = []

  package init(_ tokens: [SQLToken]) {
    guard tokens.first?.isWord("CREATE") == true, tokens.prefix(3).contains(where: { $0.isWord("TABLE") }),
      let open = tokens.firstIndex(where: { $0.isSign("(") })
    else { return }
    let (parts, end) = SQLToken.list(tokens[open...])
    (head, self.parts, tail) = (Array(tokens[..<open]), parts, Array(tokens[end...]))
  }

  package var columns: [(name: String, definition: [SQLToken])] {
    parts.compactMap { part in
      guard let first = part.first, first.isName || first.kind == .string, !Self.isConstraint(part) else {
        return nil
      }
      return (first.text, Array(part.dropFirst()))
    }
  }

  package var isVirtual: Bool { head.contains { $0.isWord("VIRTUAL") } }

  /// The statement with its columns and constraints in the order of their text; nil for anything but a plain table.
  package var unordered: String? {
    if parts.isEmpty || isVirtual { return nil }
    return ([SQLToken.words(head)] + parts.map(SQLToken.words).sorted() + [SQLToken.words(tail)]).joined(
      separator: "\n")
  }

  private static func isConstraint(_ part: [SQLToken]) -> Bool {
    ["CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"].contains { part.first?.isWord($0) == true }
  }
}

extension SQLToken {
  /// Tokens as text without comments and white space.
  package static func words(_ tokens: [SQLToken]) -> String {
    tokens.filter(\.counts).map(\.source).joined(separator: " ")
  }

  /// The elements of a list in parentheses that begins here, and the index behind it.
  static func list(_ tokens: ArraySlice<SQLToken>) -> (elements: [[SQLToken]], end: Int) {
    var elements: [[SQLToken]] = [[]]
    var depth = 0
    for index in tokens.indices {
      let token = tokens[index]
      if token.isSign("(") { depth += 1 } else if token.isSign(")") { depth -= 1 }
      if depth == 0 { return (elements, index + 1) }
      if depth == 1, token.isSign(",") {
        elements.append([])
      } else if depth > 1 || index > tokens.startIndex {
        elements[elements.count - 1].append(token)
      }
    }
    return (elements, tokens.endIndex)
  }
}

extension SQLToken {
  /// The tokens of a definition, the same for definitions that differ only in white space, comments and the quotes of
  /// names: where SQLite renames a table, it writes the name in quotes.
  ///
  /// Quotes are left out only where they make no difference. In a definition of a table or index, which SQLite checks,
  /// that is around names that are no keywords: `"null"` is a text or a name, and `null` a value. Views and triggers
  /// are not checked, so that `"open"` may be a column or a text there; only names of tables are.
  ///
  /// - Parameter kind: `table`, `index`, `view` or `trigger`.
  package static func definition(_ sql: String, kind: String) -> [SQLToken] {
    let tokens = all(in: sql)
    if tokens.prefix(3).contains(where: { $0.isWord("VIRTUAL") }) { return virtualTable(tokens) }
    let isChecked = kind == "table" || kind == "index"
    // The first `ON` of an index or a trigger names its table; another one is a condition.
    let on = kind == "index" || kind == "trigger" ? tokens.firstIndex { $0.isWord("ON") } : nil
    return tokens.indices.map { index in
      var token = tokens[index]
      if isTable(index, in: tokens) || index > 0 && on == index - 1 {
        if token.isName { token.rewritten = quotedIdentifier(token.text) }
      } else if token.kind == .name, isChecked {
        token.rewritten = isPlain(token.text) ? token.text : quotedIdentifier(token.text)
      }
      return token
    }
  }

  /// The arguments of a virtual table are text that its module reads. SQLite's own modules take a name or a text with any quotes
  /// or none; for others quotes may make a difference.
  private static func virtualTable(_ tokens: [SQLToken]) -> [SQLToken] {
    let using = tokens.firstIndex { $0.isWord("USING") } ?? tokens.endIndex
    let isKnown = tokens.dropFirst(using + 1).first.map { modules.contains($0.text.lowercased()) } ?? false
    return tokens.enumerated().map { index, token in
      var token = token
      if token.isName || token.kind == .string, index < using + 2 || isKnown {
        token.rewritten = quotedIdentifier(token.text)
      }
      return token
    }
  }

  private static let modules: Set = [
    "fts3", "fts4", "fts4aux", "fts5", "fts5vocab", "rtree", "rtree_i32", "geopoly",
  ]

  /// Whether a name can only be that of a table, index, view or trigger, or one of its columns, never a text.
  private static func isTable(_ index: Int, in tokens: [SQLToken]) -> Bool {
    let (token, previous) = (tokens[index], index > 0 ? tokens[index - 1] : nil)
    let next = index + 1 < tokens.count ? tokens[index + 1] : nil
    if previous?.isSign(".") == true || next?.isSign(".") == true {
      // `1.5` is a number.
      return token.kind == .name || !startsWithDigit(token.text)
    }
    guard let previous, previous.kind == .word else { return false }
    switch previous.text.uppercased() {
    // `IS DISTINCT FROM` is an operator.
    case "FROM": return index < 2 || !tokens[index - 2].isWord("DISTINCT")
    case "UPDATE": return !["OF", "ON", "OR"].contains { token.isWord($0) }
    case "TABLE", "INDEX", "VIEW", "TRIGGER", "JOIN", "INTO", "REFERENCES": return true
    default: return false
    }
  }

  private static func startsWithDigit(_ name: String) -> Bool {
    name.utf8.first.map { (0x30...0x39).contains($0) } ?? true
  }

  /// Whether a name is the same without its quotes.
  private static func isPlain(_ name: String) -> Bool {
    if startsWithDigit(name) || !name.utf8.allSatisfy(SQLTokens.isWord) { return false }
    return !keywords.contains(name.uppercased())
  }

  /// SQLite's keywords, and the words that it takes for numbers.
  private static let keywords = Set(
    """
    TRUE FALSE ABORT ACTION ADD AFTER ALL ALTER ALWAYS ANALYZE AND AS ASC ATTACH AUTOINCREMENT BEFORE BEGIN BETWEEN BY
    CASCADE CASE CAST CHECK COLLATE COLUMN COMMIT CONFLICT CONSTRAINT CREATE CROSS CURRENT CURRENT_DATE CURRENT_TIME
    CURRENT_TIMESTAMP DATABASE DEFAULT DEFERRABLE DEFERRED DELETE DESC DETACH DISTINCT DO DROP EACH ELSE END ESCAPE
    EXCEPT EXCLUDE EXCLUSIVE EXISTS EXPLAIN FAIL FILTER FIRST FOLLOWING FOR FOREIGN FROM FULL GENERATED GLOB GROUP
    GROUPS HAVING IF IGNORE IMMEDIATE IN INDEX INDEXED INITIALLY INNER INSERT INSTEAD INTERSECT INTO IS ISNULL JOIN
    KEY LAST LEFT LIKE LIMIT MATCH MATERIALIZED NATURAL NO NOT NOTHING NOTNULL NULL NULLS OF OFFSET ON OR ORDER OTHERS
    OUTER OVER PARTITION PLAN PRAGMA PRECEDING PRIMARY QUERY RAISE RANGE RECURSIVE REFERENCES REGEXP REINDEX RELEASE
    RENAME REPLACE RESTRICT RETURNING RIGHT ROLLBACK ROW ROWS SAVEPOINT SELECT SET TABLE TEMP TEMPORARY THEN TIES TO
    TRANSACTION TRIGGER UNBOUNDED UNION UNIQUE UPDATE USING VACUUM VALUES VIEW VIRTUAL WHEN WHERE WINDOW WITH WITHIN
    WITHOUT
    """.split(whereSeparator: \.isWhitespace).map(String.init))
}
