import Formats
import GRDB

/// What tells which row of a table is which.
struct TableKey {
  /// What both sides know a row by.
  struct Shared {
    /// The columns.
    var columns: [String]
    /// Whether both sides have an index of these that compares by bytes.
    var isIndexed: Bool
    /// The column that is the rowid, when that is the key.
    var rowid: String?
  }

  /// The columns that hold values of their own, in the table's order.
  let columns: [String]
  /// The declared key; empty when there is none, or when it may be null in rows.
  private let declared: [String]
  /// How the declared key is indexed: each column's type and collation. Nil when it is the rowid.
  private let index: [String]?
  /// A name of the rowid that no column has.
  private let rowid: String?
  private let isVirtual: Bool

  init(_ table: String, _ schema: String, _ db: Database) throws {
    let rows = try Row.fetchAll(
      db, sql: "SELECT name, pk, type FROM pragma_table_info(?, ?)", arguments: [table, schema])
    let names: [String] = rows.map { $0["name"] }
    let key: [String] = rows.filter { ($0["pk"] as Int) > 0 }.sorted { ($0["pk"] as Int) < ($1["pk"] as Int) }
      .map {
        $0["name"]
      }
    let kind = try Row.fetchOne(
      db, sql: "SELECT type, wr FROM pragma_table_list(?) WHERE schema = ?", arguments: [table, schema])
    let hasRowid = (kind?["wr"] as Int?) != 1
    columns = names
    isVirtual = kind?["type"] == "virtual"
    let taken = Set(names.map { $0.lowercased() })
    rowid = hasRowid ? ["rowid", "_rowid_", "oid"].first { !taken.contains($0) } : nil
    let indexName = try String.fetchOne(
      db, sql: "SELECT name FROM pragma_index_list(?, ?) WHERE origin = 'pk'", arguments: [table, schema])
    let listed = try indexName.map { name in
      try Row.fetchAll(
        db, sql: "SELECT name, coll FROM pragma_index_xinfo(?, ?) WHERE key = 1", arguments: [name, schema]
      ).map { row in
        let type: String? = rows.first { (row["name"] as String?)?.isExactly($0["name"]) == true }?["type"]
        return "\((type ?? "").uppercased()) \((row["coll"] as String? ?? "").uppercased())"
      }
    }
    // SQLite's own table of counters says nothing of a key.
    index = table == "sqlite_sequence" ? ["none"] : listed
    if table == "sqlite_sequence" {
      declared = ["name"]
    } else if hasRowid, listed != nil, !key.isEmpty {
      // SQLite lets null stand in a key, more than once.
      let isNull = key.map { "\(quoted($0)) IS NULL" }.joined(separator: " OR ")
      let hasNull =
        try Bool.fetchOne(
          db, sql: "SELECT EXISTS (SELECT 1 FROM \(schema).\(quoted(table)) WHERE \(isNull))") ?? true
      declared = hasNull ? [] : key
    } else {
      declared = key
    }
  }

  /// The declared key where both have the same one, else the rowid; nil when nothing tells rows apart.
  static func shared(_ old: TableKey, _ new: TableKey) throws -> Shared? {
    if !new.declared.isEmpty, new.declared.allSatisfy({ old.columns.containsExactly($0) }),
      !old.declared.isEmpty,
      Set(old.declared.map { ExactText($0) }) == Set(new.declared.map { ExactText($0) })
    {
      let isIndexed =
        old.index == new.index && old.declared.elementsEqual(new.declared) { $0.isExactly($1) }
        && new.index?.allSatisfy { $0.hasSuffix(" BINARY") } != false
      return Shared(columns: new.declared, isIndexed: isIndexed, rowid: nil)
    }
    guard let rowid = new.rowid, old.rowid == rowid else { return nil }
    return Shared(columns: [rowid], isIndexed: !old.isVirtual && !new.isVirtual, rowid: rowid)
  }
}
