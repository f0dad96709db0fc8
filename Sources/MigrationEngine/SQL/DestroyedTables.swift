/// What the statements of one step do to tables, followed through renames: which tables they destroy data of, and where
/// the rows of a dropped table went. Told by their words alone, for messages and for `drydock test`; never for safety.
struct DestroyedTables {
  private struct Table {
    /// The names before and after the step, in lower case; nil for none.
    var before, after: String?
    var isDropped = false
    var isDeletedFrom = false
    /// Whether a statement on it needs a reason.
    var needsReason = false
    /// Every name that it has had.
    var names: Set<String>
    /// The tables whose rows were copied into it.
    var sources: Set<Int> = []
  }

  private var tables: [Table] = []
  /// The statements that need a reason, by where they are.
  private var needing: [(offset: Int, table: Int)] = []

  init(_ script: SQLScript) {
    for statement in script.statements() { add(statement.text, statement.offset) }
  }

  // MARK: What is announced

  /// What a reason announces. A text is for the only table that needs one, or that rows are deleted from.
  func announced(by reason: DestructiveReason) -> AnnouncedLoss.Tables {
    let named: [Int]
    switch reason {
    case .text:
      let needed = tables.indices.filter { tables[$0].before != nil && tables[$0].needsReason }
      let deleted = tables.indices.filter { tables[$0].before != nil && tables[$0].isDeletedFrom }
      let candidates = needed.isEmpty ? deleted : needed
      guard candidates.count == 1 else {
        return AnnouncedLoss.Tables(unclear: candidates.compactMap { tables[$0].before }.sorted())
      }
      named = candidates
    case .tables(let reasons):
      named = tables.indices.filter { !tables[$0].names.isDisjoint(with: reasons.keys) }
    }
    var result = AnnouncedLoss.Tables()
    if case .tables(let reasons) = reason { for name in reasons.keys { result.fates[name] = .deleted } }
    for index in named {
      guard let name = tables[index].before else { continue }
      result.fates[name] = tables[index].isDropped ? .dropped(successors: successors(of: index)) : .deleted
    }
    return result
  }

  private func successors(of source: Int) -> Set<String> {
    Set(tables.filter { $0.sources.contains(source) }.compactMap(\.after))
  }

  /// The first statement that destroys data of a table that the reasons do not name.
  func unnamed(in reasons: [String: String]) -> (offset: Int, table: String)? {
    for (offset, index) in needing where tables[index].names.isDisjoint(with: reasons.keys) {
      if let name = tables[index].before { return (offset, name) }
    }
    return nil
  }

  // MARK: Following the statements

  private mutating func add(_ sql: String, _ offset: Int) {
    // Most statements of a long script put rows in, and copy none.
    if Self.putsValuesIn(sql) { return }
    let tokens = SQLToken.all(in: sql)
    guard let first = tokens.first, !first.isQuoted else { return }
    switch first.text.uppercased() {
    case "CREATE": create(tokens)
    case "DROP" where tokens.count > 1 && tokens[1].isWord("TABLE"):
      guard let table = table(tokens, after: 1) else { return }
      tables[table].isDropped = true
      need(table, offset)
      tables[table].after = nil
    case "ALTER": alter(tokens, offset)
    case "INSERT", "REPLACE": insert(tokens)
    case "DELETE", "UPDATE", "WITH":
      guard let verb = Self.verb(in: tokens) else { return }
      if tokens[verb].isWord("INSERT") || tokens[verb].isWord("REPLACE") {
        return insert(Array(tokens[verb...]), reading: tokens)
      }
      guard let table = table(tokens, after: verb) else { return }
      if tokens[verb].isWord("DELETE") { tables[table].isDeletedFrom = true }
      if SQLWords(sql).lossOfAllRows != nil { need(table, offset) }
    default: break
    }
  }

  private static func putsValuesIn(_ sql: String) -> Bool {
    let bytes = sql.utf8
    let verb = bytes.prefix(7).map { $0 | 0x20 }
    guard verb.starts(with: "insert".utf8) || verb == Array("replace".utf8) else { return false }
    var matched = 0
    let word = Array("select".utf8)
    for byte in bytes {
      let folded = byte | 0x20
      matched = folded == word[matched] ? matched + 1 : folded == word[0] ? 1 : 0
      if matched == word.count { return false }
    }
    return true
  }

  private mutating func need(_ table: Int, _ offset: Int) {
    // What the step itself made is nobody's data yet.
    guard tables[table].before != nil else { return }
    tables[table].needsReason = true
    needing.append((offset, table))
  }

  private mutating func create(_ tokens: [SQLToken]) {
    guard let word = tokens.prefix(3).firstIndex(where: { $0.isWord("TABLE") }),
      let (name, end) = Self.name(tokens, after: word)
    else { return }
    // With `IF NOT EXISTS` it may be there already.
    if tokens.contains(where: { $0.isWord("EXISTS") }), tables.contains(where: { $0.after == name }) {
      return
    }
    tables.append(Table(before: nil, after: name, names: [name]))
    copy(from: tokens[end...], into: tables.count - 1)
  }

  private mutating func alter(_ tokens: [SQLToken], _ offset: Int) {
    guard tokens.count > 1, tokens[1].isWord("TABLE"), let (name, end) = Self.name(tokens, after: 1) else {
      return
    }
    let table = table(named: name)
    let rest = tokens[end...]
    guard let verb = rest.first else { return }
    if verb.isWord("DROP") { need(table, offset) }
    if verb.isWord("RENAME"), rest.dropFirst().first?.isWord("TO") == true,
      let new = rest.dropFirst(2).first?.text.lowercased()
    {
      tables[table].after = new
      tables[table].names.insert(new)
    }
  }

  private mutating func insert(_ tokens: [SQLToken], reading: [SQLToken]? = nil) {
    guard let into = tokens.prefix(4).firstIndex(where: { $0.isWord("INTO") }),
      let (name, end) = Self.name(tokens, after: into)
    else { return }
    copy(from: reading?[...] ?? tokens[end...], into: table(named: name))
  }

  /// Notes which tables a query reads.
  private mutating func copy(from tokens: ArraySlice<SQLToken>, into target: Int) {
    for index in tokens.indices where tokens[index].isWord("FROM") || tokens[index].isWord("JOIN") {
      guard let (name, _) = Self.name(Array(tokens), after: index - tokens.startIndex) else { continue }
      let source = table(named: name)
      if source != target { tables[target].sources.insert(source) }
    }
  }

  private mutating func table(_ tokens: [SQLToken], after index: Int) -> Int? {
    Self.name(tokens, after: index).map { table(named: $0.name) }
  }

  private mutating func table(named name: String) -> Int {
    if let index = tables.lastIndex(where: { $0.after == name }) { return index }
    tables.append(Table(before: name, after: name, names: [name]))
    return tables.count - 1
  }

  /// The word that says what the statement does, past what a `WITH` names.
  private static func verb(in tokens: [SQLToken]) -> Int? {
    var depth = 0
    for (index, token) in tokens.enumerated() where !token.isQuoted {
      if token.text == "(" { depth += 1 } else if token.text == ")" { depth -= 1 }
      let isVerb = ["DELETE", "UPDATE", "INSERT", "REPLACE"].contains { token.isWord($0) }
      if depth == 0, isVerb { return index }
    }
    return nil
  }

  /// The name of a table behind a word, without its schema, and where what follows it begins.
  private static func name(_ tokens: [SQLToken], after index: Int) -> (name: String, end: Int)? {
    var at = index + 1
    let passed = ["IF", "NOT", "EXISTS", "FROM", "OR", "ROLLBACK", "ABORT", "REPLACE", "FAIL", "IGNORE"]
    while at < tokens.count, passed.contains(where: { tokens[at].isWord($0) }) { at += 1 }
    if at + 2 < tokens.count, tokens[at + 1] == SQLToken(text: ".", isQuoted: false) { at += 2 }
    guard at < tokens.count, tokens[at].isQuoted || tokens[at].text != "(" else { return nil }
    return (tokens[at].text.lowercased(), at + 1)
  }
}
