import AppContainer
import DrydockErrors
import FileSystem
import Foundation
import GRDB

/// Compares two database files: definitions by name, rows by primary key. SQLite does the work, so that no table
/// is held in memory.
package struct DatabaseComparison {
  /// Paths of two closed database files in a private directory.
  package let before, after: String
  /// How many rows of a table are told, of each kind.
  let rowLimit: Int
  let redactor: Redactor

  package init(before: String, after: String, rowLimit: Int, redactor: Redactor) {
    (self.before, self.after, self.rowLimit, self.redactor) = (before, after, rowLimit, redactor)
  }

  package struct Result {
    package var schema: [ContainerDifference.SchemaObject]
    package var tables: [ContainerDifference.Table]
  }

  /// Compares a database of one side with one of another.
  static func run(
    _ before: any ComparisonSide, _ old: ContainerPath, _ after: any ComparisonSide, _ new: ContainerPath,
    in scratch: Directory, rowLimit: Int, redactor: Redactor
  ) throws -> Result {
    let names: (ContainerPath, ContainerPath) = ("before", "after")
    defer {
      try? scratch.removeDatabase(names.0)
      try? scratch.removeDatabase(names.1)
    }
    return try DatabaseComparison(
      before: before.databaseFile(of: old, in: scratch, as: names.0),
      after: after.databaseFile(of: new, in: scratch, as: names.1), rowLimit: rowLimit, redactor: redactor
    ).run()
  }

  package func run() throws -> Result {
    do {
      let encodings = (try encoding(of: before), try encoding(of: after))
      let queue = try DatabaseQueue.alone(with: after) {
        // A schema may be anybody's: what it calls must be harmless.
        $0.prepareDatabase { try $0.execute(sql: "PRAGMA trusted_schema=OFF") }
      }
      defer { try? queue.close() }
      return try queue.writeWithoutTransaction { db in
        guard encodings.0 == encodings.1 else {
          // SQLite puts only databases of one encoding side by side.
          let encoding = ContainerDifference.SchemaObject(
            kind: "pragma", name: "encoding", change: .changed, before: encodings.0, after: encodings.1)
          return Result(schema: [encoding], tables: [])
        }
        try db.execute(sql: "ATTACH ? AS before", arguments: [before])
        db.add(function: redactor.databaseFunction)
        try addMissingCollations(db)
        let (old, new) = (try DatabaseSchema(db, "before"), try DatabaseSchema(db, "main"))
        let tables = try old.comparedTables(db).intersection(new.comparedTables(db))
        return Result(
          schema: try pragmas(db) + DatabaseSchema.difference(old, new, redactor),
          tables: try tables.sorted().compactMap {
            try RowComparison(table: $0.text, db: db, limit: rowLimit, redactor: redactor).run()
          })
      }
    } catch let error as DatabaseError {
      throw DrydockError.database("cannot compare the database with what it was", after, error)
    }
  }

  /// SQLite does not even scan a table whose key is in an order that only the app knows. What stands in for it here
  /// is never asked: such a key is compared in a copy, by bytes.
  private func addMissingCollations(_ db: Database) throws {
    var names: Set<String> = []
    for schema in ["main", "before"] {
      let indexes = try String.fetchAll(
        db, sql: "SELECT name FROM \(schema).sqlite_schema WHERE type = 'index'")
      for index in indexes {
        names.formUnion(
          try String.fetchAll(
            db, sql: "SELECT coll FROM pragma_index_xinfo(?, ?) WHERE coll IS NOT NULL",
            arguments: [index, schema]))
      }
      let tables = try String.fetchAll(
        db, sql: "SELECT name FROM pragma_table_list WHERE schema = ? AND wr = 1", arguments: [schema])
      for table in tables {
        // The key of such a table is no index of the schema; its columns are found by the table's own name.
        names.formUnion(
          try String.fetchAll(
            db, sql: "SELECT coll FROM pragma_index_xinfo(?, ?) WHERE coll IS NOT NULL",
            arguments: ["sqlite_autoindex_\(table)_1", schema]))
      }
    }
    names.subtract(["BINARY", "NOCASE", "RTRIM"])
    for name in names {
      db.add(
        collation: DatabaseCollation(name) {
          $0 == $1 ? .orderedSame : $0 < $1 ? .orderedAscending : .orderedDescending
        })
    }
  }

  private func encoding(of path: String) throws -> String {
    let queue = try DatabaseQueue.alone(with: path)
    defer { try? queue.close() }
    return try queue.writeWithoutTransaction { try String.fetchOne($0, sql: "PRAGMA encoding") } ?? ""
  }

  /// Numbers in the header that mean something to an app.
  private func pragmas(_ db: Database) throws -> [ContainerDifference.SchemaObject] {
    try ["application_id", "user_version"].compactMap { name in
      let old = try Int.fetchOne(db, sql: "PRAGMA before.\(name)") ?? 0
      let new = try Int.fetchOne(db, sql: "PRAGMA main.\(name)") ?? 0
      if old == new { return nil }
      return .init(kind: "pragma", name: name, change: .changed, before: "\(old)", after: "\(new)")
    }
  }
}

/// A name in SQL.
func quoted(_ name: String) -> String { "\"\(name.replacing("\"", with: "\"\""))\"" }
