import GRDB

/// A reference of a table's rows to those of another, or of the same.
struct ForeignKey {
  /// The columns, and those of the table that they refer to.
  var columns: [String], parent: String, parentColumns: [String]

  /// The declared ones of a table.
  static func of(_ table: String, in db: Database) throws -> [ForeignKey] {
    let rows = try Row.fetchAll(
      db,
      sql:
        "SELECT id, \"table\" AS parent, \"from\" AS child, \"to\" AS target FROM pragma_foreign_key_list(?) ORDER BY id, seq",
      arguments: [table])
    var keys: [Int: ForeignKey] = [:]
    for row in rows {
      keys[row["id"], default: ForeignKey(columns: [], parent: row["parent"], parentColumns: [])].columns
        .append(row["child"])
      if let target: String = row["target"] { keys[row["id"]]?.parentColumns.append(target) }
    }
    return try keys.sorted { $0.key < $1.key }.map { _, key in
      var key = key
      if key.parentColumns.isEmpty {
        // Without names the parent's key is meant.
        key.parentColumns = try String.fetchAll(
          db, sql: "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", arguments: [key.parent])
      }
      return key
    }
  }
}
