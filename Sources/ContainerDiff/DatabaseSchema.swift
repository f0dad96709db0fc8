import AppContainer
import Formats
import GRDB

/// What a database's schema has, by kind and name.
struct DatabaseSchema {
  private struct Name: Hashable, Comparable {
    var kind, name: ExactText
    static func < (left: Name, right: Name) -> Bool { (left.kind, left.name) < (right.kind, right.name) }
  }

  private struct Object {
    var sql: ExactText?
    var columns: [(name: String, text: String)] = []
  }

  private let schema: String
  private var objects: [Name: Object] = [:]
  /// What SQLite calls each table: `table`, `virtual`, `shadow`, `view`.
  private var types: [ExactText: String] = [:]

  init(_ db: Database, _ schema: String) throws {
    self.schema = schema
    for row in try Row.fetchAll(
      db, sql: "SELECT name, type FROM pragma_table_list WHERE schema = ?", arguments: [schema])
    {
      types[ExactText(row["name"])] = row["type"]
    }
    let rows = try Row.fetchAll(
      db,
      sql: "SELECT type, name, sql FROM \(schema).sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
    for row in rows {
      let name = Name(kind: ExactText(row["type"]), name: ExactText(row["name"]))
      // A virtual table makes its shadow tables itself.
      if types[name.name] == "shadow" { continue }
      var object = Object(sql: (row["sql"] as String?).map { ExactText($0) })
      if name.kind == "table", types[name.name] == "table" {
        object.columns = try columns(name.name.text, db)
      }
      objects[name] = object
    }
  }

  private func columns(_ table: String, _ db: Database) throws -> [(name: String, text: String)] {
    try Row.fetchAll(
      db, sql: "SELECT * FROM pragma_table_xinfo(?, ?)", arguments: [table, schema]
    ).map { row in
      let type: String = row["type"]
      var words = type.isEmpty ? [] : [type]
      if row["pk"] as Int > 0 { words.append("PRIMARY KEY") }
      if row["notnull"] as Int != 0 { words.append("NOT NULL") }
      if let value: String = row["dflt_value"] { words.append("DEFAULT \(value)") }
      if row["hidden"] as Int > 1 { words.append("GENERATED") }
      return (row["name"], words.isEmpty ? "(any type)" : words.joined(separator: " "))
    }
  }

  /// The tables whose rows are compared. A virtual table is read as itself, so that it does not matter how it is
  /// laid out; one that cannot be read (its module is not here) or that keeps no content, by its shadow tables.
  func comparedTables(_ db: Database) throws -> Set<ExactText> {
    var tables = Set(types.filter { $0.value == "table" && !$0.key.text.hasPrefix("sqlite_") }.keys)
    if types["sqlite_sequence"] != nil { tables.insert("sqlite_sequence") }
    for name in types.filter({ $0.value == "virtual" }).keys {
      if try keepsContent(name) && hasRow(db, "SELECT rowid, * FROM \(schema).\(quoted(name.text))") {
        tables.insert(name)
      } else if try !hasRow(db, "SELECT * FROM \(schema).\(quoted(name.text))") || !keepsContent(name) {
        tables.formUnion(
          types.filter { $0.key.text.utf8.starts(with: "\(name)_".utf8) && $0.value == "shadow" }.keys)
      }
    }
    return tables
  }

  /// Whether a table can be read and has a row. SQLite's general error is that of a module that is not here; what the disk
  /// says is thrown.
  private func hasRow(_ db: Database, _ sql: String) throws -> Bool {
    do {
      return try Row.fetchOne(db, sql: sql) != nil
    } catch let error as DatabaseError
      where [.SQLITE_ERROR, .SQLITE_CORRUPT, .SQLITE_AUTH, .SQLITE_CONSTRAINT].contains(error.resultCode)
    {
      return false
    }
  }

  /// Whether a full-text table holds the texts that it indexes.
  private func keepsContent(_ table: ExactText) -> Bool {
    let sql = objects[Name(kind: "table", name: table)]?.sql?.text ?? ""
    return sql.firstMatch(of: /content\s*=\s*(''|"")/.ignoresCase()) == nil
  }

  /// What is in one of two schemas only, or another in each.
  static func difference(
    _ old: DatabaseSchema, _ new: DatabaseSchema, _ redactor: Redactor
  ) -> [ContainerDifference.SchemaObject] {
    func shown(_ sql: ExactText?) -> String? { sql.map { ShownSQL($0.text, redactor).text } }
    return Set(old.objects.keys).union(new.objects.keys).sorted().compactMap { name in
      let (before, after) = (old.objects[name], new.objects[name])
      if before != nil, after != nil, before?.sql == after?.sql { return nil }
      var object = ContainerDifference.SchemaObject(
        kind: name.kind.text, name: name.name.text,
        change: before == nil ? .added : after == nil ? .removed : .changed,
        before: shown(before?.sql), after: shown(after?.sql))
      if let before, let after { object.columns = difference(before.columns, after.columns, redactor) }
      return object
    }
  }

  private static func difference(
    _ old: [(name: String, text: String)], _ new: [(name: String, text: String)], _ redactor: Redactor
  ) -> [ContainerDifference.Column] {
    func shown(_ column: (name: String, text: String)) -> String {
      ShownSQL(column.text, named: column.name, redactor).text
    }
    let removed = old.filter { column in !new.contains { $0.name.isExactly(column.name) } }.map {
      ContainerDifference.Column(name: $0.name, change: .removed, before: shown($0))
    }
    return removed
      + new.compactMap { column in
        let before = old.first { $0.name.isExactly(column.name) }
        if before?.text.isExactly(column.text) == true { return nil }
        return .init(
          name: column.name, change: before == nil ? .added : .changed, before: before.map(shown),
          after: shown(column))
      }
  }
}
