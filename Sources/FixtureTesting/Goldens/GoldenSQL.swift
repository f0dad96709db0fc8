import AppContainer
import Foundation
import GRDB

/// A database as SQL: its schema by name, its rows by key. The same content gives the same text.
struct GoldenSQL {
  /// The path of a closed database file.
  let path: String

  init(_ path: String) { self.path = path }

  /// Statements, one in each line but for those that have lines of their own.
  func lines() throws -> [String] {
    do {
      var configuration = GRDB.Configuration()
      configuration.prepareDatabase { try $0.execute(sql: "PRAGMA trusted_schema=OFF") }
      let queue = try DatabaseQueue(path: path, configuration: configuration)
      defer { try? queue.close() }
      return try queue.writeWithoutTransaction { try lines($0) }
    } catch let error as DatabaseError {
      throw ContainerError.database("cannot write the database down", path, error)
    }
  }

  private func lines(_ db: Database) throws -> [String] {
    let encoding = try String.fetchOne(db, sql: "PRAGMA encoding") ?? "UTF-8"
    var lines = encoding == "UTF-8" ? [] : ["PRAGMA encoding = '\(encoding)';"]
    lines.append("BEGIN;")
    for name in ["application_id", "user_version"] {
      let value = try Int.fetchOne(db, sql: "PRAGMA \(name)") ?? 0
      if value != 0 { lines.append("PRAGMA \(name) = \(value);") }
    }
    let objects = try Row.fetchAll(
      db,
      sql: """
        SELECT s.type AS kind, s.name AS name, s.sql AS sql, t.type AS form FROM sqlite_schema s
        LEFT JOIN pragma_table_list t ON t.schema = 'main' AND t.name = s.name
        WHERE s.sql IS NOT NULL AND s.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND t.type IS NOT 'shadow'
        ORDER BY s.name
        """)
    for object in objects where object["kind"] == "table" {
      lines.append("\(object["sql"] as String);")
      lines += try rows(of: object["name"], isVirtual: object["form"] == "virtual", encoding, db)
    }
    if try Bool.fetchOne(db, sql: "SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_sequence'") == true
    {
      lines.append("DELETE FROM sqlite_sequence;")
      lines += try rows(of: "sqlite_sequence", isVirtual: false, encoding, db)
    }
    // Behind the rows: indexes are made faster then, and triggers do not see them.
    for kind in ["index", "view", "trigger"] {
      for object in objects where object["kind"] == kind { lines.append("\(object["sql"] as String);") }
    }
    return lines + ["COMMIT;"]
  }

  private func rows(of table: String, isVirtual: Bool, _ encoding: String, _ db: Database) throws -> [String]
  {
    let info = try Row.fetchAll(
      db, sql: "SELECT name, pk, type FROM pragma_table_info(?)", arguments: [table])
    let columns: [String] = info.map { $0["name"] }
    let key: [String] = info.filter { ($0["pk"] as Int) > 0 }.sorted { ($0["pk"] as Int) < ($1["pk"] as Int) }
      .map {
        $0["name"]
      }
    let hasRowid =
      try Bool.fetchOne(db, sql: "SELECT wr = 0 FROM pragma_table_list WHERE name = ?", arguments: [table])
      ?? true
    let name = quoted(table)
    // By what a comparison knows a row by: the key, unless there is none or it may be null.
    let isNull = key.map { "\(quoted($0)) IS NULL" }.joined(separator: " OR ")
    let hasNull =
      try hasRowid && !key.isEmpty
      && Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM \(name) WHERE \(isNull))") == true
    var names = columns.map(quoted)
    let taken = Set(columns.map { $0.lowercased() })
    if hasRowid, key.isEmpty || hasNull, table != "sqlite_sequence",
      let rowid = ["rowid", "_rowid_", "oid"].first(where: { !taken.contains($0) })
    {
      names.insert(rowid, at: 0)
    }
    let isKeyed = names.count == columns.count && !key.isEmpty
    let order = isKeyed ? key.map { "\(quoted($0)) COLLATE BINARY" } : names.map { "\($0) COLLATE BINARY" }
    let list = names.flatMap { name in
      [
        "typeof(\(name))",
        "CASE WHEN typeof(\(name)) = 'text' THEN CAST(\(name) AS BLOB) ELSE quote(\(name)) END",
      ]
    }
    let sql =
      "SELECT \(list.joined(separator: ", ")) FROM \(name) ORDER BY \(order.joined(separator: ", "))"
    var lines: [String] = []
    let cursor: RowCursor
    do {
      cursor = try Row.fetchCursor(db, sql: sql)
    } catch let error as DatabaseError where isVirtual {
      return ["-- the rows of \(name) cannot be read: \(error.plainMessage)"]
    }
    while let row = try cursor.next() {
      let values = names.indices.map { literal(row, $0 * 2, encoding) }.joined(separator: ", ")
      lines.append("INSERT INTO \(name) (\(names.joined(separator: ", "))) VALUES (\(values));")
    }
    return lines
  }

  private func literal(_ row: Row, _ at: Int, _ encoding: String) -> String {
    switch row[at] as String {
    case "text":
      let bytes = [UInt8](row[at + 1] as Data)
      if encoding == "UTF-8", let text = String(validating: bytes, as: UTF8.self), !bytes.contains(0) {
        return "'\(text.replacing("'", with: "''"))'"
      }
      return "CAST(x'\(bytes.map { String(format: "%02x", $0) }.joined())' AS TEXT)"
    case "real":
      let text: String = row[at + 1]
      return text == "Inf" ? "9e999" : text == "-Inf" ? "-9e999" : text
    default: return row[at + 1]
    }
  }

  private func quoted(_ name: String) -> String { "\"\(name.replacing("\"", with: "\"\""))\"" }
}
