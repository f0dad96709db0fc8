import AppStores
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats
import GRDB

/// A database of `drydock.yaml` that a migration names.
struct NamedDatabase: ArgumentValue {
  let name: String
  /// Where it is named, for messages.
  let position: YAMLPosition

  init(_ name: String, at position: YAMLPosition) { (self.name, self.position) = (name, position) }

  init(_ node: YAMLNode, _ name: String, of reader: YAMLReader) throws {
    self.init(try node.text("`\(name)`"), at: node.position)
  }

  /// The argument `database`.
  init(reading reader: YAMLReader) throws {
    try self.init(reader.required("database"), "database", of: reader)
  }

  /// The note of a step that is skipped without it.
  var missing: String { "the database \(name) does not exist: skipped" }

  /// Where it is; when it is missing the step fails, or the result is nil.
  func place(on stage: StagedContainer, _ ifMissing: IfMissing = .skip) throws -> ContainerPath? {
    let place = try stage.namedDatabase(name, at: position)
    if place == nil, ifMissing == .fail {
      throw StepFailure("the database \(name) is not in the container")
    }
    return place
  }

  /// Changes it.
  ///
  /// - Parameter what: the beginning of the message about an error of SQLite.
  /// - Returns: the notes of the body; nil when it is missing.
  func change(
    on stage: StagedContainer, _ ifMissing: IfMissing, _ what: String = "",
    _ body: (Database) throws -> [String]
  ) throws -> [String]? {
    guard let path = try place(on: stage, ifMissing) else { return nil }
    return try stage.writeDatabase(at: path, keepsJournal: false) { db in
      do { return try body(db) } catch let error as DatabaseError where !error.isAboutTheDisk {
        throw StepFailure(what + error.plainMessage)
      }
    }
  }
}

/// A column of a table, by the arguments `database`, `table` and `column`, and rows of it, by the condition `where`.
struct TableColumn: Sendable, CustomStringConvertible {
  static let keys = ["database", "table", "where"]

  let database: NamedDatabase
  let table: String
  let column: String
  let condition: String?
  private let positions: (table: YAMLPosition, column: YAMLPosition)
  private let conditionPosition: YAMLPosition?

  init(reading reader: YAMLReader) throws {
    database = try NamedDatabase(reading: reader)
    let nodes = try (reader.required("table"), reader.required("column"))
    table = try nodes.0.text("`table`")
    column = try nodes.1.text("`column`")
    positions = (nodes.0.position, nodes.1.position)
    condition = try reader.text("where")
    conditionPosition = reader["where"]?.position
  }

  var description: String { "\(table).\(column)" }

  /// Changes its database in one transaction.
  ///
  /// - Returns: the notes of the body, or one that the database does not exist.
  func change(
    on stage: StagedContainer, _ ifMissing: IfMissing, _ body: (Database) throws -> [String]
  ) throws -> [String] {
    try database.change(on: stage, ifMissing, "\(self): ") { db in
      var notes: [String] = []
      let more = try MigrationTransaction.run(db) { _ in
        try require(db)
        notes = try body(db)
      }
      return notes + more
    } ?? [database.missing]
  }

  /// The condition on rows after a condition of the step.
  ///
  /// The line end ends a comment in it.
  var furtherCondition: String { condition.map { " AND (\($0)\n)" } ?? "" }

  /// An error about SQL that has the condition, if there is one.
  func error(_ error: DatabaseError) -> DrydockError {
    (conditionPosition ?? positions.table).error(error.plainMessage)
  }

  /// - Throws: `DrydockError` with the place of an unknown table or column.
  private func require(_ db: Database) throws {
    let tables = try String.fetchAll(db, sql: "SELECT name FROM sqlite_schema WHERE type = 'table'")
    guard let known = tables.first(where: { $0.lowercased() == table.lowercased() }) else {
      throw positions.table.error(
        "the database \(database.name) has no table `\(table)`; "
          + NearestWord.hint(for: table, among: tables))
    }
    let columns = try db.columns(in: known).map(\.name)
    guard columns.contains(where: { $0.lowercased() == column.lowercased() }) else {
      throw positions.column.error(
        "the table \(table) has no column `\(column)`; " + NearestWord.hint(for: column, among: columns))
    }
  }

  /// The name of the table's row IDs, which no column has; nil for a table without row IDs.
  func rowID(_ db: Database) throws -> String? {
    let sql = "SELECT wr FROM pragma_table_list WHERE schema = 'main' AND lower(name) = lower(?)"
    if try Int.fetchOne(db, sql: sql, arguments: [table]) == 1 { return nil }
    let columns = Set(try db.columns(in: table).map { $0.name.lowercased() })
    return ["rowid", "_rowid_", "oid"].first { !columns.contains($0) }
  }
}
