import AppStores
import GRDB

/// The numbers of entities. Core Data derives them from the model: depth first, entities in the order of their names, one
/// before those that inherit from it. Its own migrations renumber a store, so that a step must, too.
extension CoreDataSchema {
  /// The number that each entity of the app has by its name; nil when entities inherit from each other.
  private func regularNumbers() -> [Int64: Int64]? {
    var numbers: [Int64: Int64] = [:]
    func visit(_ parent: Int64) {
      let children = entities.ofApp.filter { $0.parent == parent && numbers[$0.number] == nil }
      for entity in children.sorted(by: { $0.name.utf16.lexicographicallyPrecedes($1.name.utf16) }) {
        numbers[entity.number] = Int64(numbers.count + 1)
        visit(entity.number)
      }
    }
    visit(0)
    return numbers.count == entities.ofApp.count ? numbers : nil
  }

  /// - Throws: ``StepFailure`` for a store whose entities are numbered in another way, or that CloudKit mirrors.
  func requireRegularNumbers() throws {
    guard let numbers = regularNumbers(), numbers.allSatisfy({ $0.key == $0.value }) else {
      throw StepFailure(
        message:
          "the entities of the store are not numbered in the order of their names, as Core Data numbers them: migrate it "
          + "with the app itself")
    }
  }

  /// Numbers the entities again, wherever their numbers are: in rows, in `Z_PRIMARYKEY`, in the persistent history, and in the
  /// names of many-to-many relationships.
  mutating func renumber() throws {
    try reload()
    guard let all = regularNumbers() else { throw StepFailure(message: "entities inherit from each other") }
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
