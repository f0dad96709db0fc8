import AppContainer
import ContainerTransaction
import Formats
import Foundation
import GRDB
import Synchronization

/// Keyed archives in a column of a database, for `files.unarchive`: SQLite calls the conversion for each row, so that the
/// number of rows does not matter.
struct ArchivedColumn: Sendable {
  static let keys = ["database", "table", "where"]

  private static let function = "drydock_unarchive"

  private let database: String
  private let table: String
  private let column: String
  private let condition: String?
  private let store: Unarchive.Store
  private let ifMissing: IfMissing
  private let positions: (database: YAMLPosition, table: YAMLPosition, column: YAMLPosition)
  private let conditionPosition: YAMLPosition?

  init(reading reader: YAMLReader) throws {
    let nodes = try (reader.required("database"), reader.required("table"), reader.required("column"))
    database = try nodes.0.text("`database`")
    table = try nodes.1.text("`table`")
    column = try nodes.2.text("`column`")
    positions = (nodes.0.position, nodes.1.position, nodes.2.position)
    condition = try reader.text("where")
    conditionPosition = reader["where"]?.position
    store = try reader.choice("store") ?? .text
    ifMissing = try reader.ifMissing()
  }

  func convert(_ conversion: ArchiveConversion, on stage: StagedContainer) throws -> [String] {
    guard let path = try stage.namedDatabase(database, at: positions.database) else {
      if ifMissing == .fail {
        throw StepFailure(message: "the database \(database) is not in the container")
      }
      return ["the database \(database) does not exist: skipped"]
    }
    return try stage.writeDatabase(at: path, keepsJournal: false) { db in
      var notes: [String] = []
      let more = try MigrationTransaction.run(db) { _ in notes = try convert(conversion, db) }
      return notes + more
    }
  }

  private func convert(_ conversion: ArchiveConversion, _ db: Database) throws -> [String] {
    try requireColumn(db)
    let run = Run(conversion: conversion, store: store, column: "\(table).\(column)")
    let function = DatabaseFunction(Self.function, argumentCount: 2) { try run.convert($0[0], row: $0[1]) }
    db.add(function: function)
    defer { db.remove(function: function) }
    let name = quotedIdentifier(column)
    let row = try hasRowID(db) ? "rowid" : "NULL"
    // The line end ends a comment in the condition.
    let rows = condition.map { " AND (\($0)\n)" } ?? ""
    let statement: Statement
    do {
      statement = try db.makeStatement(
        sql: """
          UPDATE \(quotedIdentifier(table)) SET \(name) = \(Self.function)(\(name), \(row)) \
          WHERE \(name) IS NOT NULL\(rows)
          """)
    } catch let error as DatabaseError where !error.isAboutTheDisk {
      throw (conditionPosition ?? positions.table).error(error.plainMessage)
    }
    do {
      try statement.execute()
    } catch let error as DatabaseError where !error.isAboutTheDisk {
      // SQLite passes on only the text of the error that the conversion threw.
      throw run.failure ?? StepFailure(message: error.plainMessage)
    }
    if run.count == 0 {
      let what =
        "no row of \(table) has a value in \(column)" + (condition == nil ? "" : " that `where` selects")
      if ifMissing == .fail { throw StepFailure(message: what) }
      return ["\(what): skipped"]
    }
    return run.notes
  }

  private func requireColumn(_ db: Database) throws {
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

  /// Whether the table has row IDs, which name the rows in messages.
  private func hasRowID(_ db: Database) throws -> Bool {
    let sql = "SELECT wr FROM pragma_table_list WHERE schema = 'main' AND lower(name) = lower(?)"
    return try Int.fetchOne(db, sql: sql, arguments: [table]) != 1
  }

  /// One run through the rows.
  private final class Run: Sendable {
    private struct State {
      var count = 0
      var notes: [String] = []
      var more = 0
      var failure: (any Error)?
    }

    private static let noteLimit = 5

    private let conversion: ArchiveConversion
    private let store: Unarchive.Store
    private let column: String
    private let state = Mutex(State())

    init(conversion: ArchiveConversion, store: Unarchive.Store, column: String) {
      (self.conversion, self.store, self.column) = (conversion, store, column)
    }

    var count: Int { state.withLock { $0.count } }
    var failure: (any Error)? { state.withLock { $0.failure } }

    var notes: [String] {
      state.withLock { state in
        state.notes + (state.more == 0 ? [] : ["\(column): \(state.more) more notes of this kind"])
      }
    }

    func convert(_ value: DatabaseValue, row: DatabaseValue) throws -> DatabaseValue {
      let bytes: [UInt8]? =
        switch value.storage {
        case .blob(let data): [UInt8](data)
        case .string(let text): Array(text.utf8)
        default: nil
        }
      let place = Int64.fromDatabaseValue(row).map { " in row \($0)" } ?? ""
      do {
        let outcome = try conversion.convert(bytes, "\(column)\(place)", isIndented: false)
        return try state.withLock { state in
          state.count += 1
          switch outcome {
          case .converted(let document): return try stored(document)
          case .kept(let text):
            note(text, &state)
            return value
          case .deleted(let text):
            note(text, &state)
            return .null
          }
        }
      } catch {
        state.withLock { $0.failure = error }
        throw error
      }
    }

    private func stored(_ document: StructuredDocument) throws -> DatabaseValue {
      if case .json(let json) = document, store == .text { return json.text.databaseValue }
      return Data(try document.encoded()).databaseValue
    }

    private func note(_ text: String, _ state: inout State) {
      if state.notes.count < Self.noteLimit { state.notes.append(text) } else { state.more += 1 }
    }
  }
}
