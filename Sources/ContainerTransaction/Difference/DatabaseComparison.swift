import AppContainer
import GRDB

/// Compares two database files: definitions by name, rows by primary key. SQLite does the work, so that no table
/// is held in memory.
struct DatabaseComparison {
  /// Paths of two closed database files in a private directory.
  let before, after: String

  struct Result {
    var schema: [ContainerDifference.SchemaObject]
    var tables: [ContainerDifference.Table]
  }

  func run() throws -> Result {
    do {
      let queue = try DatabaseQueue(path: after)
      defer { try? queue.close() }
      return try queue.writeWithoutTransaction { db in
        try db.execute(sql: "ATTACH ? AS before", arguments: [before])
        let (old, new) = (try objects(db, "before"), try objects(db, "main"))
        let tables = new.keys.filter { new[$0]?.isTable == true && old[$0]?.isTable == true }
        return Result(
          schema: Self.schema(old, new), tables: try tables.sorted().compactMap { try compare($0.name, db) })
      }
    } catch let error as DatabaseError {
      throw ContainerError.database("cannot compare the database with what it was", after, error)
    }
  }

  // MARK: Definitions

  private struct Name: Hashable, Comparable {
    var kind, name: String
    static func < (left: Name, right: Name) -> Bool { (left.kind, left.name) < (right.kind, right.name) }
  }

  private struct Object {
    var sql: String?
    var isTable: Bool
  }

  private func objects(_ db: Database, _ schema: String) throws -> [Name: Object] {
    let rows = try Row.fetchAll(
      db,
      sql: "SELECT type, name, sql FROM \(schema).sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
    var objects: [Name: Object] = [:]
    for row in rows {
      let sql: String? = row["sql"]
      let isVirtual = sql?.lowercased().hasPrefix("create virtual") ?? false
      objects[Name(kind: row["type"], name: row["name"])] = Object(
        sql: sql, isTable: row["type"] == "table" && !isVirtual)
    }
    return objects
  }

  private static func schema(_ old: [Name: Object], _ new: [Name: Object]) -> [ContainerDifference
    .SchemaObject]
  {
    Set(old.keys).union(new.keys).sorted().compactMap { name in
      let (before, after) = (old[name], new[name])
      if before != nil, after != nil, before?.sql == after?.sql { return nil }
      return .init(
        kind: name.kind, name: name.name, change: before == nil ? .added : after == nil ? .removed : .changed,
        before: before?.sql, after: after?.sql)
    }
  }

  // MARK: Rows

  private func compare(_ table: String, _ db: Database) throws -> ContainerDifference.Table? {
    let new = try columns(table, "main", db)
    let old = try columns(table, "before", db)
    let shared = new.filter { column in old.contains { $0.name == column.name } }.map(\.name)
    // Without a primary key of its own, a table's rows are known by their rowid.
    let declared = new.filter { $0.key > 0 }.sorted { $0.key < $1.key }.map(\.name)
    var key = declared
    let quoted = "\"\(table.replacing("\"", with: "\"\""))\""
    func count(_ sql: String) throws -> Int { try Int.fetchOne(db, sql: sql) ?? 0 }
    if declared.isEmpty || !declared.allSatisfy(shared.contains) {
      guard try hasRowid(table, "main", db), try hasRowid(table, "before", db) else {
        // Nothing tells which row is which.
        return .init(
          name: table, added: try count("SELECT count(*) FROM main.\(quoted)"),
          removed: try count("SELECT count(*) FROM before.\(quoted)"), changed: 0)
      }
      key = ["rowid"]
    }
    // By bytes: a column's own collation may be the app's and unknown here, and takes different texts for equal.
    let join = key.map { "n.\(quote($0)) COLLATE BINARY IS o.\(quote($0))" }.joined(separator: " AND ")
    func missing(_ from: String, _ other: String, _ a: String, _ b: String) -> String {
      """
      SELECT count(*) FROM \(from).\(quoted) \(a)
      WHERE NOT EXISTS (SELECT 1 FROM \(other).\(quoted) \(b) WHERE \(join))
      """
    }
    let values = shared.filter { !key.contains($0) }
    let differs = values.map { "n.\(quote($0)) COLLATE BINARY IS NOT o.\(quote($0))" }.joined(
      separator: " OR ")
    let result = ContainerDifference.Table(
      name: table, added: try count(missing("main", "before", "n", "o")),
      removed: try count(missing("before", "main", "o", "n")),
      changed: values.isEmpty
        ? 0
        : try count(
          "SELECT count(*) FROM main.\(quoted) n JOIN before.\(quoted) o ON \(join) WHERE \(differs)"))
    return result.added + result.removed + result.changed == 0 ? nil : result
  }

  private func hasRowid(_ table: String, _ schema: String, _ db: Database) throws -> Bool {
    try Bool.fetchOne(
      db, sql: "SELECT wr = 0 FROM pragma_table_list(?) WHERE schema = ?", arguments: [table, schema]) ?? true
  }

  private struct Column {
    var name: String
    var key: Int
  }

  private func columns(_ table: String, _ schema: String, _ db: Database) throws -> [Column] {
    try Row.fetchAll(db, sql: "SELECT name, pk FROM pragma_table_info(?, ?)", arguments: [table, schema])
      .map { Column(name: $0["name"], key: $0["pk"]) }
  }

  private func quote(_ name: String) -> String {
    name == "rowid" ? name : "\"\(name.replacing("\"", with: "\"\""))\""
  }
}
