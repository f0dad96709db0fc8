import AppStores
import ContainerTransaction
import Formats
import Foundation
import GRDB
import Synchronization

/// Keyed archives in a column of a database, for `files.unarchive`: SQLite calls the conversion for each row, so that the
/// number of rows does not matter.
struct ArchivedColumn: ArchivePlace {
  private static let function = "drydock_unarchive"

  private let place: TableColumn
  private let store: Unarchive.Store
  private let ifMissing: IfMissing

  init(reading reader: YAMLReader) throws {
    place = try TableColumn(reading: reader)
    store = try reader.choice("store") ?? .text
    ifMissing = try reader.ifMissing()
  }

  func convert(
    _ conversion: ArchiveConversion, on stage: StagedContainer, _ recorded: inout PriorValues
  ) throws -> [String] {
    try place.change(on: stage, ifMissing) { try convert(conversion, $0) }
  }

  private func convert(_ conversion: ArchiveConversion, _ db: Database) throws -> [String] {
    let run = Run(conversion: conversion, store: store, column: "\(place)")
    let function = DatabaseFunction(Self.function, argumentCount: 2) { try run.convert($0[0], row: $0[1]) }
    db.add(function: function)
    defer { db.remove(function: function) }
    let name = quotedIdentifier(place.column)
    let row = try place.rowID(db) ?? "NULL"
    let statement: Statement
    do {
      statement = try db.makeStatement(
        sql: """
          UPDATE \(quotedIdentifier(place.table)) SET \(name) = \(Self.function)(\(name), \(row)) \
          WHERE \(name) IS NOT NULL\(place.furtherCondition)
          """)
    } catch let error as DatabaseError where !error.isAboutTheDisk {
      throw place.error(error)
    }
    do {
      try statement.execute()
    } catch let error as DatabaseError where !error.isAboutTheDisk {
      // SQLite passes on only the text of the error that the conversion threw.
      throw run.state.withLock { $0.failure } ?? StepFailure(error.plainMessage)
    }
    let state = run.state.withLock { $0 }
    if state.count == 0 {
      let what =
        "no row of \(place.table) has a value in \(place.column)"
        + (place.condition == nil ? "" : " that `where` selects")
      return [try ifMissing.skipped(what)]
    }
    return state.notes.all
  }

  /// One run through the rows.
  private final class Run: Sendable {
    struct State: Sendable {
      var count = 0
      var notes: RowNotes
      var failure: (any Error)?
    }

    private let conversion: ArchiveConversion
    private let store: Unarchive.Store
    private let column: String
    let state: Mutex<State>

    init(conversion: ArchiveConversion, store: Unarchive.Store, column: String) {
      (self.conversion, self.store, self.column) = (conversion, store, column)
      state = Mutex(State(notes: RowNotes(prefix: "\(column): ")))
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
            state.notes.add(text)
            return value
          case .deleted(let text):
            state.notes.add(text)
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
  }
}
