import GRDB

/// A table, index, view or trigger of an app's database, as its schema says it.
struct SchemaObject {
  /// `table`, `index`, `view` or `trigger`.
  var kind: String
  var name: String
  /// The statement that made it.
  var sql: String
  var isVirtual: Bool

  /// All of a database, by name. What SQLite makes for itself, and the tables behind virtual ones, are left out.
  static func all(in db: Database) throws -> [SchemaObject] {
    try Row.fetchAll(
      db,
      sql: """
        SELECT s.type AS kind, s.name AS name, s.sql AS sql, t.type AS form FROM sqlite_schema s
        LEFT JOIN pragma_table_list t ON t.schema = 'main' AND t.name = s.name
        WHERE s.sql IS NOT NULL AND s.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND t.type IS NOT 'shadow'
        ORDER BY s.name
        """
    ).map { row in
      SchemaObject(
        kind: row["kind"], name: row["name"], sql: row["sql"], isVirtual: row["form"] as String? == "virtual")
    }
  }
}
