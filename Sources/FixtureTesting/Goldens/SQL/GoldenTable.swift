import ContainerDiff
import GRDB

/// A table as a golden writes it: the columns of each row, and the order of the rows.
struct GoldenTable {
  let name: String
  /// What is written of a row, in this order; the rowid first where nothing else tells rows apart.
  private(set) var columns: [String]
  /// What the rows are sorted by: indices of columns.
  private(set) var order: [Int]
  /// Whether the first column is the rowid, and not one of the table's own.
  private(set) var hasRowid: Bool

  init(_ table: String, _ db: Database) throws {
    name = table
    let info = try Row.fetchAll(
      db, sql: "SELECT name, pk FROM pragma_table_info(?) ORDER BY cid", arguments: [table])
    let own: [String] = info.map { $0["name"] }
    let key: [String] = info.filter { ($0["pk"] as Int) > 0 }.sorted { ($0["pk"] as Int) < ($1["pk"] as Int) }
      .map { $0["name"] }
    let keepsRowid =
      try Bool.fetchOne(db, sql: "SELECT wr = 0 FROM pragma_table_list WHERE name = ?", arguments: [table])
      ?? true
    // By what a comparison knows a row by: the key, unless there is none or it may be null.
    let isNull = key.map { "\(quoted($0)) IS NULL" }.joined(separator: " OR ")
    let hasNull =
      try keepsRowid && !key.isEmpty
      && Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM \(quoted(table)) WHERE \(isNull))") == true
    let taken = Set(own.map { $0.lowercased() })
    let rowid =
      keepsRowid && (key.isEmpty || hasNull) && table != "sqlite_sequence"
      ? ["rowid", "_rowid_", "oid"].first { !taken.contains($0) } : nil
    columns = (rowid.map { [$0] } ?? []) + own
    hasRowid = rowid != nil
    order = rowid == nil && !key.isEmpty ? key.compactMap(own.firstIndex) : Array(columns.indices)
  }

  /// The same table without its rowids, where they are others in each run.
  func withoutRowid() -> GoldenTable {
    guard hasRowid else { return self }
    var table = self
    table.columns.removeFirst()
    (table.order, table.hasRowid) = (Array(table.columns.indices), false)
    return table
  }

  /// Visits the rows in their order.
  ///
  /// - Throws: `DatabaseError`, also for a virtual table whose module is not here.
  func rows(_ db: Database, _ body: ([GoldenValue]) throws -> Void) throws {
    let list = columns.flatMap { GoldenValue.selection(quoted($0)) }
    let order = order.map { "\(quoted(columns[$0])) COLLATE BINARY" }
    let cursor = try Row.fetchCursor(
      db,
      sql:
        "SELECT \(list.joined(separator: ", ")) FROM \(quoted(name)) ORDER BY \(order.joined(separator: ", "))"
    )
    while let row = try cursor.next() {
      try body(columns.indices.map { GoldenValue(row, $0 * 2) })
    }
  }

  /// A row as a statement.
  func insert(_ row: [GoldenValue], _ encoding: TextEncoding) -> String {
    // The rowid is no name of the table's, and looks like none.
    let names = columns.indices.map { hasRowid && $0 == 0 ? columns[0] : quoted(columns[$0]) }
    let values = row.map { $0.literal(encoding) }
    return
      "INSERT INTO \(quoted(name)) (\(names.joined(separator: ", "))) VALUES (\(values.joined(separator: ", ")));"
  }
}
