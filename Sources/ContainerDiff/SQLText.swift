/// SQL taken apart into names, texts, comments and signs, which together are the same text again.
package struct SQLText {
  package struct Token {
    package enum Kind {
      case word, quotedName, text, comment, space, sign
    }

    package var kind: Kind
    /// A name or a text without its quotes; for other tokens, the source text.
    package var content: String
    /// As it is in the SQL.
    package var source: String

    package var isName: Bool { kind == .word || kind == .quotedName }
    /// Whether it is neither white space nor a comment.
    package var counts: Bool { kind != .space && kind != .comment }

    package func isWord(_ word: String) -> Bool { kind == .word && content.uppercased() == word }
    package func isSign(_ sign: String) -> Bool { kind == .sign && content == sign }
  }

  package private(set) var tokens: [Token] = []
  private let bytes: [UInt8]
  private var index = 0

  package init(_ sql: some StringProtocol) {
    bytes = Array(sql.utf8)
    while index < bytes.count { tokens.append(next()) }
  }

  private mutating func next() -> Token {
    let rest = bytes[index...]
    switch bytes[index] {
    case UInt8(ascii: "'"): return quoted("'", .text)
    case UInt8(ascii: "\""): return quoted("\"", .quotedName)
    case UInt8(ascii: "`"): return quoted("`", .quotedName)
    case UInt8(ascii: "["):
      let source = take(rest.firstIndex(of: UInt8(ascii: "]")).map { $0 + 1 - index } ?? rest.count)
      return Token(kind: .quotedName, content: String(source.dropFirst().dropLast()), source: source)
    case UInt8(ascii: "-") where rest.starts(with: "--".utf8):
      return token(.comment, (rest.firstIndex(of: 0x0A) ?? bytes.count) - index)
    case UInt8(ascii: "/") where rest.starts(with: "/*".utf8):
      var end = index + 2
      while end < bytes.count, !bytes[end...].starts(with: "*/".utf8) { end += 1 }
      return token(.comment, min(end + 2, bytes.count) - index)
    case let byte where Self.isSpace(byte): return token(.space, rest.prefix(while: Self.isSpace).count)
    case let byte where Self.isWord(byte): return token(.word, rest.prefix(while: Self.isWord).count)
    default: return token(.sign, 1)
    }
  }

  private mutating func token(_ kind: Token.Kind, _ count: Int) -> Token {
    let source = take(count)
    return Token(kind: kind, content: source, source: source)
  }

  private mutating func quoted(_ quote: String, _ kind: Token.Kind) -> Token {
    let mark = bytes[index]
    var end = index + 1
    while end < bytes.count {
      if bytes[end] == mark {
        guard end + 1 < bytes.count, bytes[end + 1] == mark else { break }
        end += 1
      }
      end += 1
    }
    let content = String(decoding: bytes[(index + 1)..<min(end, bytes.count)], as: UTF8.self)
    let source = take(min(end + 1, bytes.count) - index)
    return Token(kind: kind, content: content.replacing(quote + quote, with: quote), source: source)
  }

  private mutating func take(_ count: Int) -> String {
    defer { index += count }
    return String(decoding: bytes[index..<(index + count)], as: UTF8.self)
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

  private static func isWord(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "_") || byte == UInt8(ascii: "$") || byte >= 0x80 || (byte >= 0x30 && byte <= 0x39)
      || (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A)
  }

  /// The first word, in capitals; comments are skipped.
  package var firstWord: String {
    tokens.first(where: \.counts).flatMap { $0.isName ? $0.content.uppercased() : nil } ?? ""
  }

  /// Tokens as text without comments and white space.
  package static func words(_ tokens: [Token]) -> String {
    tokens.filter(\.counts).map(\.source).joined(separator: " ")
  }
}

extension SQLText {
  /// The names beside each text, by the index of its token: what it is compared with or assigned to, such as `token` in
  /// `token <> 'x'`, `SET token = 'x'` and `token IN ('x', 'y')`, and its alias, as in `'x' AS token`. A call does not
  /// count: `typeof(token) = 'text'` is not about the value. Nor do patterns of `GLOB` and paths in JSON.
  package func namesBesideTexts() -> [Int: [String]] {
    let counted = tokens.indices.filter { tokens[$0].counts }
    func token(_ at: Int) -> Token? { counted.indices.contains(at) ? tokens[counted[at]] : nil }
    func isOperator(_ at: Int) -> Bool {
      guard let found = token(at) else { return false }
      return ["=", "<", ">", "!"].contains { found.isSign($0) }
        || ["IS", "NOT", "LIKE"].contains { found.isWord($0) }
    }
    func name(endingAt at: Int) -> String? {
      let isCollation = token(at - 1)?.isWord("COLLATE") == true
      return token(isCollation ? at - 2 : at).flatMap { $0.isName ? $0.content : nil }
    }
    var list: String?
    var result: [Int: [String]] = [:]
    for (at, index) in counted.enumerated() where tokens[index].kind == .text {
      // A blob, `x'6162'`.
      if index > 0, tokens[index - 1].isWord("X") { continue }
      if token(at - 1)?.isSign("(") == true, token(at - 2)?.isWord("IN") == true {
        list = name(endingAt: token(at - 3)?.isWord("NOT") == true ? at - 4 : at - 3)
      } else if token(at - 1)?.isSign(",") != true || token(at - 2)?.kind != .text {
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
  private(set) var head: [SQLText.Token] = []
  /// Empty for any other statement.
  private(set) var parts: [[SQLText.Token]] = []
  private(set) var tail: [SQLText.Token] = []

  package init(_ tokens: [SQLText.Token]) {
    guard tokens.first?.isWord("CREATE") == true, tokens.prefix(3).contains(where: { $0.isWord("TABLE") }),
      let open = tokens.firstIndex(where: { $0.isSign("(") })
    else { return }
    let (parts, end) = SQLText.list(tokens[open...])
    (head, self.parts, tail) = (Array(tokens[..<open]), parts, Array(tokens[end...]))
  }

  package var columns: [(name: String, definition: [SQLText.Token])] {
    parts.compactMap { part in
      guard let first = part.first, first.isName || first.kind == .text, !Self.isConstraint(part) else {
        return nil
      }
      return (first.content, Array(part.dropFirst()))
    }
  }

  package var isVirtual: Bool { head.contains { $0.isWord("VIRTUAL") } }

  /// The statement with its columns and constraints in the order of their text; nil for anything but a plain table.
  package var unordered: String? {
    if parts.isEmpty || isVirtual { return nil }
    return ([SQLText.words(head)] + parts.map(SQLText.words).sorted() + [SQLText.words(tail)]).joined(
      separator: "\n")
  }

  private static func isConstraint(_ part: [SQLText.Token]) -> Bool {
    ["CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"].contains { part.first?.isWord($0) == true }
  }
}

extension SQLText {
  /// The elements of a list in parentheses that begins here, and the index behind it.
  static func list(_ tokens: ArraySlice<Token>) -> (elements: [[Token]], end: Int) {
    var elements: [[Token]] = [[]]
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

extension SQLText {
  /// The tokens of a definition, the same for definitions that differ only in white space, comments and the quotes of
  /// names: where SQLite renames a table, it writes the name in quotes.
  ///
  /// Quotes are left out only where they make no difference. In a definition of a table or index, which SQLite checks,
  /// that is around names that are no keywords: `"null"` is a text or a name, and `null` a value. Views and triggers
  /// are not checked, so that `"open"` may be a column or a text there; only names of tables are.
  ///
  /// - Parameter kind: `table`, `index`, `view` or `trigger`.
  package static func definition(_ sql: String, kind: String) -> [Token] {
    let tokens = SQLText(sql).tokens.filter(\.counts)
    if tokens.prefix(3).contains(where: { $0.isWord("VIRTUAL") }) { return virtualTable(tokens) }
    let isChecked = kind == "table" || kind == "index"
    // The first `ON` of an index or a trigger names its table; another one is a condition.
    let on = kind == "index" || kind == "trigger" ? tokens.firstIndex { $0.isWord("ON") } : nil
    return tokens.indices.map { index in
      var token = tokens[index]
      if isTable(index, in: tokens) || index > 0 && on == index - 1 {
        if token.isName { token.source = inQuotes(token.content) }
      } else if token.kind == .quotedName, isChecked {
        token.source = isPlain(token.content) ? token.content : inQuotes(token.content)
      }
      return token
    }
  }

  /// The arguments of a virtual table are text that its module reads. SQLite's own modules take a name or a text with any quotes
  /// or none; for others quotes may make a difference.
  private static func virtualTable(_ tokens: [Token]) -> [Token] {
    let using = tokens.firstIndex { $0.isWord("USING") } ?? tokens.endIndex
    let isKnown = tokens.dropFirst(using + 1).first.map { modules.contains($0.content.lowercased()) } ?? false
    return tokens.enumerated().map { index, token in
      var token = token
      if token.isName || token.kind == .text, index < using + 2 || isKnown {
        token.source = inQuotes(token.content)
      }
      return token
    }
  }

  private static let modules: Set = [
    "fts3", "fts4", "fts4aux", "fts5", "fts5vocab", "rtree", "rtree_i32", "geopoly",
  ]

  /// Whether a name can only be that of a table, index, view or trigger, or one of its columns, never a text.
  private static func isTable(_ index: Int, in tokens: [Token]) -> Bool {
    let (token, previous) = (tokens[index], index > 0 ? tokens[index - 1] : nil)
    let next = index + 1 < tokens.count ? tokens[index + 1] : nil
    if previous?.isSign(".") == true || next?.isSign(".") == true {
      // `1.5` is a number.
      return token.kind == .quotedName || !startsWithDigit(token.content)
    }
    guard let previous, previous.kind == .word else { return false }
    switch previous.content.uppercased() {
    // `IS DISTINCT FROM` is an operator.
    case "FROM": return index < 2 || !tokens[index - 2].isWord("DISTINCT")
    case "UPDATE": return !["OF", "ON", "OR"].contains { token.isWord($0) }
    case "TABLE", "INDEX", "VIEW", "TRIGGER", "JOIN", "INTO", "REFERENCES": return true
    default: return false
    }
  }

  private static func inQuotes(_ name: String) -> String { "\"\(name.replacing("\"", with: "\"\""))\"" }

  private static func startsWithDigit(_ name: String) -> Bool {
    name.utf8.first.map { (0x30...0x39).contains($0) } ?? true
  }

  /// Whether a name is the same without its quotes.
  private static func isPlain(_ name: String) -> Bool {
    if startsWithDigit(name) || !name.utf8.allSatisfy(isWord) { return false }
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
