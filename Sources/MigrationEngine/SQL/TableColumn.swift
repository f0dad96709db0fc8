import AppStores
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats
import GRDB

/// A column of a table, by the arguments `database`, `table` and `column`, and rows of it, by the condition `where`.
struct TableColumn: Sendable, CustomStringConvertible {
  static let keys = ["database", "table", "where"]

  let database: String
  let table: String
  let column: String
  let condition: String?
  let positions: (database: YAMLPosition, table: YAMLPosition, column: YAMLPosition)
  private let conditionPosition: YAMLPosition?

  init(reading reader: YAMLReader) throws {
    let nodes = try (reader.required("database"), reader.required("table"), reader.required("column"))
    database = try nodes.0.text("`database`")
    table = try nodes.1.text("`table`")
    column = try nodes.2.text("`column`")
    positions = (nodes.0.position, nodes.1.position, nodes.2.position)
    condition = try reader.text("where")
    conditionPosition = reader["where"]?.position
  }

  var description: String { "\(table).\(column)" }

  /// Where its database is; when it is missing the step fails, or the result is nil.
  func place(on stage: StagedContainer, _ ifMissing: IfMissing) throws -> ContainerPath? {
    let place = try stage.namedDatabase(database, at: positions.database)
    if place == nil, ifMissing == .fail {
      throw StepFailure(message: "the database \(database) is not in the container")
    }
    return place
  }

  var missingNote: String { "the database \(database) does not exist: skipped" }

  /// The condition on rows after a condition of the step.
  ///
  /// The line end ends a comment in it.
  var furtherCondition: String { condition.map { " AND (\($0)\n)" } ?? "" }

  /// An error about SQL that has the condition, if there is one.
  func error(_ error: DatabaseError, at other: YAMLPosition? = nil) -> DrydockError {
    (other ?? conditionPosition ?? positions.table).error(error.plainMessage)
  }

  /// - Throws: `DrydockError` with the place of an unknown table or column.
  func require(_ db: Database) throws {
    let tables = try String.fetchAll(db, sql: "SELECT name FROM sqlite_schema WHERE type = 'table'")
    guard let known = tables.first(where: { $0.lowercased() == table.lowercased() }) else {
      throw positions.table.error(
        "the database \(database) has no table `\(table)`; " + NearestWord.hint(for: table, among: tables))
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
