import Formats

/// What the statements of a step, or of several, do to tables, through renames: the tables whose data they destroy, and the
/// tables that the rows of a dropped one were copied to. Found by words alone, for messages and `drydock test`; never for safety.
struct DestroyedTables {
  private struct Table {
    /// The names before and after the step, in lower case; nil for none.
    var before, after: String?
    var isDropped = false
    var isDeletedFrom = false
    var needsReason = false
    /// The columns that are dropped, by the names that they had before; a renamed one by its new name.
    var droppedColumns: Set<String> = [], renamedColumns: [String: String] = [:]
    /// Whether a statement destroys more than these columns.
    var losesRows = false
    var names: Set<String>
    /// The tables whose rows were copied into it.
    var sources: Set<Int> = []
  }

  private var tables: [Table] = []
  /// The statements that need a reason, by where they are.
  private var needing: [(offset: Int, table: Int)] = []

  init(_ script: SQLScript? = nil) {
    if let script { add(script) }
  }

  mutating func add(_ script: SQLScript) {
    for statement in script.statements() { add(statement) }
  }

  /// The loss that a reason announces. A text is for the only table that needs a reason, or that rows are deleted from.
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
    if case .tables(let reasons) = reason { for name in reasons.keys { result.outcomes[name] = .deleted } }
    for index in named {
      guard let name = tables[index].before else { continue }
      let table = tables[index]
      result.outcomes[name] =
        if table.isDropped {
          .dropped(successors: Set(copies(of: index).compactMap(\.after)))
        } else if table.losesRows || table.isDeletedFrom || table.droppedColumns.isEmpty {
          .deleted
        } else {
          .columns(table.droppedColumns)
        }
    }
    for index in tables.indices {
      guard let name = tables[index].before else { continue }
      result.names[name] = copies(of: index).reduce(tables[index].names) { $0.union($1.names) }
    }
    return result
  }

  private func copies(of source: Int) -> [Table] { tables.filter { $0.sources.contains(source) } }

  /// The first statement that destroys data of a table without a reason.
  func unnamed(in reasons: [String: String]) -> (offset: Int, table: String)? {
    for (offset, index) in needing where tables[index].names.isDisjoint(with: reasons.keys) {
      if let name = tables[index].before { return (offset, name) }
    }
    return nil
  }

  private mutating func add(_ statement: SQLStatement) {
    let (tokens, offset) = (SQLToken.all(in: statement.text), statement.offset)
    guard let first = tokens.first, first.kind == .word else { return }
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
      if statement.lossOfAllRows != nil {
        tables[table].losesRows = true
        need(table, offset)
      }
    default: break
    }
  }

  private mutating func need(_ table: Int, _ offset: Int) {
    // A table that the step itself created has no data of the user.
    guard tables[table].before != nil else { return }
    tables[table].needsReason = true
    needing.append((offset, table))
  }

  private mutating func create(_ tokens: [SQLToken]) {
    guard let word = tokens.prefix(3).firstIndex(where: { $0.isWord("TABLE") }),
      let (name, end) = Self.name(tokens, after: word)
    else { return }
    // With `IF NOT EXISTS` it may exist already.
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
    let words = rest.dropFirst().drop { $0.isWord("COLUMN") }.map { $0.text.lowercased() }
    if verb.isWord("DROP") {
      if let column = words.first {
        tables[table].droppedColumns.insert(tables[table].renamedColumns[column] ?? column)
      }
      need(table, offset)
    }
    guard verb.isWord("RENAME"), words.count > 1 else { return }
    if rest.dropFirst().first?.isWord("TO") == true {
      tables[table].after = words[1]
      tables[table].names.insert(words[1])
    } else if words.count > 2, words[1] == "to" {
      tables[table].renamedColumns[words[2]] = tables[table].renamedColumns[words[0]] ?? words[0]
    }
  }

  private mutating func insert(_ tokens: [SQLToken], reading: [SQLToken]? = nil) {
    guard let into = tokens.prefix(4).firstIndex(where: { $0.isWord("INTO") }),
      let (name, end) = Self.name(tokens, after: into)
    else { return }
    copy(from: reading?[...] ?? tokens[end...], into: table(named: name))
  }

  /// Adds the tables that a query reads to the sources of a table.
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

  /// The verb of the statement, after the tables of a `WITH`.
  private static func verb(in tokens: [SQLToken]) -> Int? {
    tokens.firstIndex { token in
      token.depth == 0 && ["DELETE", "UPDATE", "INSERT", "REPLACE"].contains(where: token.isWord)
    }
  }

  /// The table's name after a word, without its schema, and the index of the token after it.
  private static func name(_ tokens: [SQLToken], after index: Int) -> (name: String, end: Int)? {
    var at = index + 1
    let passed = ["IF", "NOT", "EXISTS", "FROM", "OR", "ROLLBACK", "ABORT", "REPLACE", "FAIL", "IGNORE"]
    while at < tokens.count, passed.contains(where: { tokens[at].isWord($0) }) { at += 1 }
    if at + 2 < tokens.count, tokens[at + 1].isSign(".") { at += 2 }
    guard at < tokens.count, !tokens[at].isSign("(") else { return nil }
    return (tokens[at].text.lowercased(), at + 1)
  }
}

extension Migration {
  /// What the `sql` steps on any of these databases announce together, by the names that tables have before the first of them.
  package func announcedLoss(in databases: Set<String>) -> AnnouncedLoss.Tables {
    var destroyed = DestroyedTables()
    var reasons: [String: String] = [:]
    for case .sql(let sql) in steps.map(\.operation.kind) where databases.contains(sql.database.name) {
      destroyed.add(sql.up)
      guard let reason = sql.destructive, case .tables(let tables) = sql.announcedLoss else { continue }
      for name in tables.outcomes.keys { reasons[name] = reason.text }
    }
    return destroyed.announced(by: .tables(reasons))
  }
}

/// Why an `sql` step may destroy data: one reason for its only table, or one for each table.
enum DestructiveReason: Sendable, Equatable {
  case text(String)
  /// By the table's name in lower case.
  case tables([String: String])

  var text: String {
    switch self {
    case .text(let text): text
    case .tables(let reasons):
      reasons.sorted { $0.key < $1.key }.map { "\($0): \($1)" }.joined(separator: "; ")
    }
  }

  init(_ text: String, at position: YAMLPosition) throws {
    guard !text.isEmpty else { throw position.error("`destructive` says why: give a reason") }
    self = .text(text)
  }

  /// Decodes the argument `destructive` of an `sql` step, or the directive: one reason, or one for each table.
  init(_ node: YAMLNode) throws {
    guard node.mapping != nil else {
      self = try Self(node.text("`destructive`"), at: node.position)
      return
    }
    self = .tables(try node.reasons("the tables whose data is destroyed: {trip: rebuilt}"))
  }
}

extension YAMLNode {
  /// Decodes reasons by name.
  ///
  /// - Parameters:
  ///   - shape: what they are for, such as `triggers: {NAME: why}`.
  ///   - asWritten: whether the names stay as they are; else they are in lower case.
  func reasons(_ shape: String, asWritten: Bool = false) throws -> [String: String] {
    guard let pairs = mapping?.pairs, !pairs.isEmpty else { throw position.error("name \(shape)") }
    return try pairs.reduce(into: [:]) { reasons, pair in
      let reason = try pair.value.text("the reason for `\(pair.key.source)`")
      if reason.isEmpty { throw pair.value.position.error("give a reason for `\(pair.key.source)`") }
      reasons[asWritten ? pair.key.source : pair.key.source.lowercased()] = reason
    }
  }
}

/// The data that a step says it destroys, for comparing row counts.
package enum AnnouncedLoss: Sendable, Hashable {
  case nothing
  /// It removes whole files, settings or items.
  case everything
  /// It removes what matches a pattern, which is not meant for a database.
  case matches
  /// It destroys data of these tables only.
  case tables(Tables)

  /// What becomes of tables whose rows are followed; nil when none are, since all that the step names is removed.
  package var followed: Tables? {
    switch self {
    case .everything, .matches: nil
    case .nothing: Tables()
    case .tables(let tables): tables
    }
  }

  /// Tables by name, in lower case.
  package struct Tables: Sendable, Hashable {
    /// What happens to a table's rows.
    package enum Outcome: Sendable, Hashable {
      case deleted
      /// The table is dropped, after its rows may have been copied to others.
      case dropped(successors: Set<String>)
      /// Only these columns are.
      case columns(Set<String>)
    }

    package internal(set) var outcomes: [String: Outcome] = [:]
    /// What else a table is called meanwhile, and the tables that its rows are copied to.
    package internal(set) var names: [String: Set<String>] = [:]
    /// The tables that a reason without a name could mean, where there are several.
    package internal(set) var unclear: [String] = []

    package init() {}

    init(unclear: [String]) { self.unclear = unclear }
  }
}
