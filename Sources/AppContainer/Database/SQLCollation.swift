import DrydockErrors
import GRDB
import GRDBSQLite

/// The order that an app's collation has on its data, as one of SQLite's: `collations:` of `drydock.yaml`.
package enum SQLCollation: String, CaseIterable, Sendable {
  case binary, nocase, rtrim

  fileprivate func add(named name: String, to db: Database) {
    typealias Text = UnsafeRawPointer
    let compare: @convention(c) (UnsafeMutableRawPointer?, CInt, Text?, CInt, Text?) -> CInt =
      switch self {
      case .binary: { _, length, text, length2, text2 in Self.compare(text, length, text2, length2) }
      case .nocase:
        { _, length, text, length2, text2 in
          let left = text?.assumingMemoryBound(to: CChar.self),
            right = text2?.assumingMemoryBound(to: CChar.self)
          let result = sqlite3_strnicmp(left, right, min(length, length2))
          return result == 0 ? length - length2 : result
        }
      case .rtrim:
        { _, length, text, length2, text2 in
          Self.compare(text, Self.trimmed(text, length), text2, Self.trimmed(text2, length2))
        }
      }
    sqlite3_create_collation_v2(db.sqliteConnection, name, SQLITE_UTF8, nil, compare, nil)
  }

  fileprivate static func compare(
    _ text: UnsafeRawPointer?, _ length: CInt, _ text2: UnsafeRawPointer?, _ length2: CInt
  )
    -> CInt
  {
    let (left, right) = (bytes(text, length), bytes(text2, length2))
    if let index = zip(left, right).enumerated().first(where: { $0.element.0 != $0.element.1 })?.offset {
      return left[index] < right[index] ? -1 : 1
    }
    return length - length2
  }

  private static func trimmed(_ text: UnsafeRawPointer?, _ length: CInt) -> CInt {
    CInt((bytes(text, length).lastIndex { $0 != 0x20 } ?? -1) + 1)
  }

  private static func bytes(_ text: UnsafeRawPointer?, _ length: CInt) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: text, count: Int(length))
  }
}

extension ContainerConfiguration {
  /// Adds the app's functions and collations to a connection.
  package func define(in db: Database) {
    for (name, function) in functions { function.add(named: name, to: db) }
    for (name, collation) in collations { collation.add(named: name, to: db) }
  }

  /// Requires that the indexes with a collation of the app are in the order that it has here: in another order SQLite would
  /// not find their rows, and would damage them.
  ///
  /// - Throws: ``DrydockError`` `badConfiguration`. A collation that is unknown here fails the statements that need it.
  package func requireDeclaredOrder(_ db: Database, of path: String) throws {
    // GRDB's have the order of this system.
    let known =
      [
        DatabaseCollation.unicodeCompare, .caseInsensitiveCompare, .localizedCaseInsensitiveCompare,
        .localizedCompare, .localizedStandardCompare,
      ].map(\.name) + collations.keys
    let sql = """
      SELECT DISTINCT t.name, i.name, x.coll
      FROM pragma_table_list AS t, pragma_index_list(t.name) AS i, pragma_index_xinfo(i.name) AS x
      WHERE t.schema = 'main' AND t.type = 'table' AND upper(x.coll) NOT IN ('BINARY', 'NOCASE', 'RTRIM')
      """
    var checked: [String: [String]] = [:]
    for part in try Row.fetchAll(db, sql: sql) {
      let (table, index, collation): (String, String, String) = (part[0], part[1], part[2])
      guard let name = known.first(where: { $0.lowercased() == collation.lowercased() }) else { continue }
      let lines = try checked[table] ?? Self.faults(of: table, db)
      checked[table] = lines
      // SQLite stops after 100 lines.
      let found = lines.first {
        $0.hasSuffix("index \(index)") || $0 == "row not in PRIMARY KEY order for \(table)"
          || lines.count > 99
      }
      guard let found else { continue }
      let order = collations[name].map { "`collations: {\(name): \($0.rawValue)}`" }
      throw DrydockError(
        .badConfiguration,
        "the index `\(index)` is not in the order of \(order ?? "the collation \(name) here") (\(found)): "
          + "\(order == nil ? "declare" : "correct") the app's order in drydock.yaml, or, if it is right, let the app "
          + "rebuild the index (REINDEX)", path: path)
    }
  }

  /// A table that cannot be checked has more than SQLite reports.
  private static func faults(of table: String, _ db: Database) throws -> [String] {
    do { return try String.fetchAll(db, sql: "PRAGMA integrity_check(\(quotedIdentifier(table)))") } catch let
      error
      as DatabaseError where error.resultCode == .SQLITE_ERROR
    { return Array(repeating: error.plainMessage, count: 100) }
  }
}

extension Database {
  /// Sorts by bytes what only the app can sort: for files that no app reads, and where SQLite only needs that the order has a name.
  package func substituteUnknownCollations() {
    sqlite3_collation_needed(sqliteConnection, nil) { _, connection, _, name in
      sqlite3_create_collation_v2(
        connection, name, SQLITE_UTF8, nil,
        { _, length, text, length2, text2 in SQLCollation.compare(text, length, text2, length2) }, nil)
    }
  }
}
