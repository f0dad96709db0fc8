import AppFrameworks
import AppStores
import Formats
import GRDB

/// Changes the tables of a Core Data store as Core Data lays them out: `Z` and the name in capitals for tables and columns,
/// `Z_FOK_` for the order in a relationship, `Z_<number><RELATIONSHIP>` for many-to-many relationships.
struct CoreDataSchema {
  let db: Database
  private(set) var entities: CoreDataEntities
  private(set) var notes: [String] = []

  init(_ db: Database) throws {
    self.db = db
    entities = try CoreDataEntities(db)
  }

  // MARK: Names

  /// - Throws: ``StepFailure`` for an unknown entity, or one without a table.
  func entity(_ name: String) throws -> (entity: CoreDataEntities.Entity, table: String) {
    guard let entity = entities.named(name), !entity.isInternal else {
      throw StepFailure(
        "the store has no entity `\(name)`; "
          + NearestWord.hint(for: name, among: entities.names.sorted()))
    }
    guard let table = entities.root(of: entity).flatMap(entities.table(of:)) else {
      throw StepFailure("the entity \(name) has no table: the store is corrupt")
    }
    return (entity, table)
  }

  static func column(_ property: String) -> String { "Z" + property.uppercased() }

  func columns(of table: String) throws -> [(name: String, type: String)] {
    try Row.fetchAll(db, sql: "SELECT name, type FROM pragma_table_info(?)", arguments: [table]).map {
      (String.fromDatabaseValue($0[0]) ?? "", String.fromDatabaseValue($0[1]) ?? "")
    }
  }

  /// The columns of a property: its value, the order in a relationship, and relationships that share the name.
  ///
  /// - Throws: ``StepFailure`` when there is none, or it cannot be known which one it is.
  func columns(of property: String, in table: String, entity: String) throws -> [String] {
    let name = property.uppercased()
    let all = try columns(of: table).map(\.name)
    let found = all.filter { column in
      let number = CoreDataNumberedName(column, prefix: "Z")
      return column == "Z" + name || column == "Z_FOK_" + name || number?.rest == "_" + name
    }
    guard found.contains("Z" + name) else {
      let known = all.filter { $0.hasPrefix("Z") && !$0.hasPrefix("Z_") }.map { $0.dropFirst().lowercased() }
      throw StepFailure(
        "the entity \(entity) has no attribute `\(property)`: the table \(table) has no column Z\(name); "
          + NearestWord.hint(for: property.lowercased(), among: known))
    }
    // Entities that share a table may have attributes of the same name; Core Data numbers their columns.
    if all.contains(where: { $0.hasPrefix("Z" + name) && Int($0.dropFirst(name.count + 1)) != nil }) {
      throw StepFailure(
        "the table \(table) has a numbered column beside Z\(name), so that it is unknown which of them is `\(property)` "
          + "of \(entity): use `sql` with `core-data`")
    }
    return found
  }

  /// The rows of an entity and of those that inherit from it, as a condition.
  func condition(for entity: CoreDataEntities.Entity) -> String {
    "Z_ENT IN (" + entities.family(of: entity).sorted().map(String.init).joined(separator: ", ") + ")"
  }

  // MARK: Columns

  mutating func rename(property: String, to new: String, of name: String) throws {
    let (_, table) = try entity(name)
    let old = property.uppercased()
    var renamed: [String: String] = [:]
    for column in try columns(of: property, in: table, entity: name) {
      renamed[column] = column.dropLast(old.count) + new.uppercased()
    }
    let taken = try columns(of: table).map(\.name)
    for target in renamed.values where renamed[target] == nil && taken.contains(target) {
      throw StepFailure("the entity \(name) has an attribute `\(new)` already (column \(target))")
    }
    try rename(columns: renamed, of: table)
  }

  mutating func add(_ attribute: CoreDataAttribute, to name: String) throws {
    let (entity, table) = try entity(name)
    let column = Self.column(attribute.name)
    guard try !columns(of: table).contains(where: { $0.name == column }) else {
      throw StepFailure(
        "the table \(table) has a column \(column) already: an attribute of \(name), or of an entity that "
          + "shares the table, has this name")
    }
    try db.execute(
      sql: "ALTER TABLE \(quotedIdentifier(table)) ADD COLUMN \(column) \(attribute.type.columnType)")
    guard let value = attribute.value else { return }
    try db.execute(
      sql: "UPDATE \(quotedIdentifier(table)) SET \(column) = ? WHERE \(condition(for: entity))",
      arguments: [value])
  }

  mutating func drop(_ attribute: CoreDataAttribute, of name: String) throws {
    let (_, table) = try entity(name)
    let column = Self.column(attribute.name)
    guard try columns(of: table).contains(where: { $0.name == column }) else {
      return notes.append("the entity \(name) has no attribute `\(attribute.name)` any more")
    }
    let count = try Int.fetchOne(
      db,
      sql: "SELECT count(*) FROM \(quotedIdentifier(table)) WHERE \(column) IS NOT ?",
      arguments: [attribute.value])
    if let count, count > 0 {
      notes.append("\(name).\(attribute.name): lost values other than the default: \(count)")
    }
    try db.execute(sql: "ALTER TABLE \(quotedIdentifier(table)) DROP COLUMN \(column)")
  }

  // MARK: Entities

  mutating func rename(entity name: String, to new: String) throws {
    let (entity, table) = try entity(name)
    try requireRegularNumbers()
    guard entities.named(new) == nil else {
      throw StepFailure("the store has an entity `\(new)` already")
    }
    try db.execute(
      sql: "UPDATE Z_PRIMARYKEY SET Z_NAME = ? WHERE Z_ENT = ?", arguments: [new, entity.number])
    if entity.parent == 0, Self.column(new) != table {
      let target = Self.column(new)
      try requireFree(table: target)
      try rename(table: table, to: target)
    }
    for index in try String.fetchAll(
      db, sql: "SELECT name FROM sqlite_schema WHERE type = 'index' AND name LIKE ? ESCAPE '\\'",
      arguments: ["Z\\_\(name)\\_%"])
    where index.hasPrefix("Z_\(name)_") {
      try rename(index: index, to: "Z_\(new)_" + index.dropFirst("Z_\(name)_".count))
    }
    try renumber()
  }

  mutating func add(_ new: CoreDataNewEntity) throws {
    try requireRegularNumbers()
    guard entities.named(new.name) == nil else {
      throw StepFailure("the store has an entity `\(new.name)` already")
    }
    let parent = try new.parent.map { try entity($0) }
    // A number for now; they all change below.
    let number = (entities.ofApp.map(\.number).max() ?? 0) + 1
    if parent == nil {
      let table = Self.column(new.name)
      try requireFree(table: table)
      try db.execute(
        sql: "CREATE TABLE \(quotedIdentifier(table)) ( \(new.columns.joined(separator: ", ")) )")
      for relationship in new.relationships {
        let column = Self.column(relationship)
        try db.execute(
          sql: """
            CREATE INDEX \(quotedIdentifier("\(table)_\(column)_INDEX")) ON \(quotedIdentifier(table)) (\(column))
            """)
      }
    }
    try db.execute(
      sql: "INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (?, ?, ?, 0)",
      arguments: [number, new.name, parent?.entity.number ?? 0])
    entities = try CoreDataEntities(db)
    if let table = parent?.table {
      for attribute in new.attributes { try add(attribute, to: new.name) }
      let index = "\(table)_Z_ENT_INDEX"
      try db.execute(
        sql: "CREATE INDEX IF NOT EXISTS \(quotedIdentifier(index)) ON \(quotedIdentifier(table)) (Z_ENT)")
    }
    try renumber()
  }

  mutating func remove(_ new: CoreDataNewEntity) throws {
    let (entity, table) = try entity(new.name)
    guard entities.family(of: entity).count == 1 else {
      throw StepFailure("other entities inherit from \(new.name): remove them first")
    }
    let rows = try Int.fetchOne(
      db, sql: "SELECT count(*) FROM \(quotedIdentifier(table)) WHERE \(condition(for: entity))")
    if let rows, rows > 0 { notes.append("\(new.name): lost rows: \(rows)") }
    if entity.parent == 0 {
      try db.execute(sql: "DROP TABLE \(quotedIdentifier(table))")
    } else {
      for attribute in new.attributes { try drop(attribute, of: new.name) }
      try db.execute(sql: "DELETE FROM \(quotedIdentifier(table)) WHERE \(condition(for: entity))")
      if let root = entities.root(of: entity), entities.family(of: root).count == 2 {
        try db.execute(sql: "DROP INDEX IF EXISTS \(quotedIdentifier("\(table)_Z_ENT_INDEX"))")
      }
    }
    try db.execute(sql: "DELETE FROM Z_PRIMARYKEY WHERE Z_ENT = ?", arguments: [entity.number])
    try renumber()
  }

  private func requireFree(table: String) throws {
    guard try db.tableExists(table) else { return }
    throw StepFailure("the store has a table \(table) already")
  }

  // MARK: Renaming

  mutating func rename(table: String, to new: String) throws {
    try db.execute(
      sql: "ALTER TABLE \(quotedIdentifier(table)) RENAME TO \(quotedIdentifier(new))")
    try renameIndexes(of: new, from: table, columns: [:])
  }

  /// Renames columns, which may exchange their names.
  mutating func rename(columns: [String: String], of table: String) throws {
    let changed = columns.filter { $0.key != $0.value }.sorted { $0.key < $1.key }
    func rename(_ old: String, _ new: String) throws {
      let names = [table, old, new].map(quotedIdentifier)
      try db.execute(sql: "ALTER TABLE \(names[0]) RENAME COLUMN \(names[1]) TO \(names[2])")
    }
    for (number, pair) in changed.enumerated() { try rename(pair.key, "drydock_\(number)") }
    for (number, pair) in changed.enumerated() { try rename("drydock_\(number)", pair.value) }
    try renameIndexes(of: table, from: table, columns: columns)
  }

  /// Gives the indexes `<TABLE>_<COLUMN>_INDEX` of a renamed table or of renamed columns their names.
  ///
  /// - Parameter columns: new names by old ones.
  mutating func renameIndexes(of table: String, from old: String, columns renamed: [String: String]) throws {
    let originals = try columns(of: table).map { column in
      (renamed.first { $0.value == column.name }?.key ?? column.name, column.name)
    }
    let indexes = try String.fetchAll(
      db, sql: "SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL",
      arguments: [table])
    let targets = Dictionary(
      originals.map { ("\(old)_\($0.0)_INDEX", "\(table)_\($0.1)_INDEX") }, uniquingKeysWith: { a, _ in a })
    let changed = indexes.compactMap { name in targets[name].map { (name, $0) } }.filter { $0 != $1 }
    for (number, pair) in changed.enumerated() { try rename(index: pair.0, to: "drydock_\(number)") }
    for (number, pair) in changed.enumerated() { try rename(index: "drydock_\(number)", to: pair.1) }
  }

  /// SQLite cannot rename an index: it is created again from its statement.
  private mutating func rename(index: String, to new: String) throws {
    let sql = try String.fetchOne(
      db, sql: "SELECT sql FROM sqlite_schema WHERE type = 'index' AND name = ?", arguments: [index])
    let starts = ["CREATE INDEX ", "CREATE UNIQUE INDEX "].flatMap { verb in
      [index, quotedIdentifier(index)].map { (start: verb + $0 + " ", verb: verb) }
    }
    guard let sql, let found = starts.first(where: { sql.hasPrefix($0.start) }) else {
      return notes.append("the index \(index) keeps its name")
    }
    try db.execute(sql: "DROP INDEX \(quotedIdentifier(index))")
    try db.execute(definition: found.verb + quotedIdentifier(new) + " " + sql.dropFirst(found.start.count))
  }

  mutating func reload() throws { entities = try CoreDataEntities(db) }
}

/// The numbers of entities: Core Data's own migrations renumber a store, so that a step must, too.
extension CoreDataSchema {
  /// - Throws: ``StepFailure`` for a store whose entities are numbered in another way, or that CloudKit mirrors.
  func requireRegularNumbers() throws {
    guard let numbers = entities.regularNumbers, numbers.allSatisfy({ $0.key == $0.value }) else {
      throw StepFailure(
        "the entities of the store are not numbered in the order of their names, as Core Data numbers them: migrate it "
          + "with the app itself")
    }
  }

  /// Numbers the entities again, wherever their numbers are: in rows, in `Z_PRIMARYKEY`, in the persistent history, and in the
  /// names of many-to-many relationships.
  mutating func renumber() throws {
    try reload()
    guard let all = entities.regularNumbers else { throw StepFailure("entities inherit from each other") }
    let numbers = all.filter { $0.key != $0.value }
    if numbers.isEmpty { return }
    for (root, table) in entities.roots where !root.isInternal {
      try replace(numbers, in: "Z_ENT", of: table)
      let columns = try columns(of: table).compactMap { column in
        CoreDataNumberedName(column.name, prefix: "Z").map { (column.name, $0.renumbered(numbers)) }
      }
      try rename(columns: Dictionary(uniqueKeysWithValues: columns), of: table)
    }
    if try db.tableExists("ACHANGE") { try replace(numbers, in: "ZENTITY", of: "ACHANGE") }
    try renameJoinTables(numbers)
    try replace(numbers, in: "Z_SUPER", of: "Z_PRIMARYKEY")
    // In two steps, since numbers are unique.
    try replace(numbers.mapValues { -$0 }, in: "Z_ENT", of: "Z_PRIMARYKEY")
    try db.execute(sql: "UPDATE Z_PRIMARYKEY SET Z_ENT = -Z_ENT WHERE Z_ENT < 0")
    try reload()
  }

  private func replace(_ numbers: [Int64: Int64], in column: String, of table: String) throws {
    let sorted = numbers.sorted { $0.key < $1.key }
    let cases = sorted.map { "WHEN \($0.key) THEN \($0.value)" }.joined(separator: " ")
    let old = sorted.map { String($0.key) }.joined(separator: ", ")
    try db.execute(
      sql: """
        UPDATE \(quotedIdentifier(table)) SET \(column) = CASE \(column) \(cases) END WHERE \(column) IN (\(old))
        """)
  }

  /// The tables of many-to-many relationships, `Z_<number><RELATIONSHIP>`, and their columns
  /// `Z_<number><RELATIONSHIP>` and `Z_FOK_<number><RELATIONSHIP>`.
  private mutating func renameJoinTables(_ numbers: [Int64: Int64]) throws {
    let tables = try String.fetchAll(db, sql: "SELECT name FROM sqlite_schema WHERE type = 'table'")
    var renamed: [(old: String, new: String)] = []
    for table in tables {
      guard let name = CoreDataNumberedName(table, prefix: "Z_") else { continue }
      let columns = try columns(of: table).compactMap { column in
        let name = ["Z_FOK_", "Z_"].lazy.compactMap { CoreDataNumberedName(column.name, prefix: $0) }.first
        return name.map { (column.name, $0.renumbered(numbers)) }
      }
      guard columns.count >= 2 else { continue }
      try rename(columns: Dictionary(uniqueKeysWithValues: columns), of: table)
      if numbers[name.number] != nil { renamed.append((table, name.renumbered(numbers))) }
    }
    // Two tables may exchange their names.
    func renameTable(_ old: String, _ new: String) throws {
      try db.execute(sql: "ALTER TABLE \(quotedIdentifier(old)) RENAME TO \(quotedIdentifier(new))")
    }
    for (number, table) in renamed.enumerated() { try renameTable(table.old, "drydock_\(number)") }
    for (number, table) in renamed.enumerated() {
      try renameTable("drydock_\(number)", table.new)
      try renameIndexes(of: table.new, from: table.old, columns: [:])
    }
  }
}
