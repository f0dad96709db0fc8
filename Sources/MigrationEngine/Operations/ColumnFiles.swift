import AppStores
import ContainerTransaction
import Cryptography
import DrydockErrors
import FileSystem
import Formats
import Foundation
import GRDB

/// The values of a column that become files, or files that become values: which rows, and the path of each row's file, by
/// a SQL expression over its columns.
struct ColumnFiles: Sendable {
  /// Larger values go into the database in pieces. Triggers and indexes then see zeros first.
  static let largeSize = 16 << 20

  let place: TableColumn
  let path: SQLExpression
  /// Whether rows without a value are left out.
  private let needsValue: Bool

  init(reading reader: YAMLReader, path key: String, needsValue: Bool) throws {
    self.needsValue = needsValue
    place = try TableColumn(reading: reader)
    path = try SQLExpression(reader.required(key), "`\(key)`")
    try path.requireSameInEachRun()
  }

  /// One row; its path is nil where the expression gives NULL.
  struct Row {
    let id: Int64
    let path: ContainerPath?
    /// The path as the expression gives it.
    let text: String
    /// What the column has now.
    let content: Content
  }

  /// What a column has in a row.
  enum Content: String, Codable, Sendable { case null, path, text, data, other }

  /// The query for the rows, also for a check without a container.
  func query(rowID: String) -> String {
    let column = quotedIdentifier(place.column)
    // The line ends end comments in the expressions.
    return """
      SELECT \(rowID), typeof(\(column)), (\(path.sql)
      ), \(column) IS (\(path.sql)
      ) FROM \(quotedIdentifier(place.table)) WHERE \(needsValue ? "\(column) IS NOT NULL" : "1")\(place.furtherCondition)
      """
  }

  /// The selected rows, by row ID.
  ///
  /// - Throws: ``StepFailure`` for a path that is none, or that no step may write.
  func rows(_ db: Database, on stage: StagedContainer) throws -> [Row] {
    guard let rowID = try place.rowID(db) else {
      throw StepFailure("the table \(place.table) has no row IDs, which this operation needs")
    }
    let statement: Statement
    do {
      statement = try db.makeStatement(sql: query(rowID: rowID) + " ORDER BY 1")
    } catch let error as DatabaseError where !error.isAboutTheDisk {
      throw path.position.error(error.plainMessage)
    }
    var rows: [Row] = []
    let cursor = try GRDB.Row.fetchCursor(statement)
    while let row = try cursor.next() {
      let id: Int64 = row[0]
      let value: DatabaseValue = row[2]
      if case .blob = value.storage { throw failure(id, "the expression gives data, not a path") }
      let text = String.fromDatabaseValue(value)
      let isPath: Bool? = row[3]
      let content: Content =
        switch row[1] as String {
        case "null": .null
        case "text": isPath == true ? .path : .text
        case "blob": .data
        default: .other
        }
      rows.append(
        Row(
          id: id, path: try text.map { try path($0, of: id, on: stage) }, text: text ?? "", content: content))
    }
    return rows
  }

  func failure(_ row: Int64, _ reason: String) -> StepFailure {
    StepFailure("\(path.position): \(place) in row \(row): \(reason)")
  }

  private func path(_ text: String, of row: Int64, on stage: StagedContainer) throws -> ContainerPath {
    let path: ContainerPath
    do {
      path = try ContainerPath(text)
    } catch let error as DrydockError where error.code == .badPath {
      throw failure(row, "the expression gives no path: " + stage.redactor.shown(message: error.message))
    }
    if path.isRoot { throw failure(row, "the expression gives the container itself") }
    let shown = "`\(stage.redactor.shown(name: path.description))`"
    if try ([path] + [DatabaseUnit.main(ofSidecar: path)].compactMap(\.self)).contains(
      where: stage.isDatabase)
    {
      throw failure(row, "\(shown) is a database")
    }
    try stage.requireChangeable(path)
    let container = stage.container
    let settings = [container.standardDefaults].compactMap { $0 } + container.configuration.defaults.values
    if path == container.vaultPath || settings.contains(path) {
      throw failure(row, "\(shown) is \(path == container.vaultPath ? "the vault" : "a settings file")")
    }
    return path
  }

  // MARK: Values

  /// Writes a row's value to a file.
  func export(
    _ row: Int64, to path: ContainerPath, _ db: Database, on stage: StagedContainer
  ) throws {
    let blob = try IncrementalBlob(db, table: place.table, column: place.column, row: row)
    try stage.write(to: path, size: UInt64(blob.count)) { file in try blob.read { try file.write($0) } }
  }

  func digest(of row: Int64, _ db: Database) throws -> SHA256.Digest {
    let hash = try SHA256()
    try IncrementalBlob(db, table: place.table, column: place.column, row: row).read { hash.update($0) }
    return try hash.finalize()
  }

  /// Makes a file's content the value of a row.
  func load(
    _ path: ContainerPath, into row: Int64, asText: Bool, _ db: Database, on stage: StagedContainer
  ) throws {
    let size = Int(try stage.status(of: path)?.size ?? 0)
    if asText {
      guard let text = String(validating: try stage.read(path), as: UTF8.self), !text.utf8.contains(0) else {
        throw failure(row, "`\(path)` is not UTF-8 text")
      }
      return try set(row, to: text.databaseValue, db)
    }
    if size <= Self.largeSize { return try set(row, to: Data(stage.read(path)).databaseValue, db) }
    try db.execute(sql: update("zeroblob(\(size))", try rowID(db)), arguments: [row])
    let blob = try IncrementalBlob(
      db, table: place.table, column: place.column, row: row, isWritable: true)
    var offset = 0
    try stage.read(path) { piece in
      guard offset + piece.count <= size else { throw failure(row, "`\(path)` changes while it is read") }
      try blob.write(piece, at: offset)
      offset += piece.count
    }
  }

  func set(_ row: Int64, to value: DatabaseValue, _ db: Database) throws {
    let statement = try db.cachedStatement(sql: update("?", try rowID(db)))
    try statement.execute(arguments: [value, row])
  }

  private func update(_ value: String, _ rowID: String) -> String {
    "UPDATE \(quotedIdentifier(place.table)) SET \(quotedIdentifier(place.column)) = \(value) WHERE \(rowID) = ?"
  }

  private func rowID(_ db: Database) throws -> String { try place.rowID(db) ?? "rowid" }

  /// What a row has now; nil when it does not exist.
  func value(of row: Int64, _ db: Database) throws -> (type: String, text: String?)? {
    let column = quotedIdentifier(place.column)
    let sql = """
      SELECT typeof(\(column)), CASE WHEN typeof(\(column)) = 'text' AND length(\(column)) < 5000 THEN \(column) END
      FROM \(quotedIdentifier(place.table)) WHERE \(try rowID(db)) = ?
      """
    return try GRDB.Row.fetchOne(db.cachedStatement(sql: sql), arguments: [row]).map { ($0[0], $0[1]) }
  }
}

/// Notes of which only the first ones are printed.
struct RowNotes: Sendable {
  private static let limit = 5

  /// Before the number of the others.
  private let prefix: String
  private(set) var notes: [String] = []
  private var more = 0

  init(prefix: String = "") { self.prefix = prefix }

  mutating func add(_ note: String) {
    if notes.count < Self.limit { notes.append(note) } else { more += 1 }
  }

  mutating func add(contentsOf notes: [String]) { notes.forEach { add($0) } }

  var all: [String] { notes + (more == 0 ? [] : ["\(prefix)\(more) more notes of this kind"]) }
}
