import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats
import GRDB

/// The statements of another tool's migration, run as that tool runs them: nothing asks why they destroy data.
struct RunToolSQL: MigrationAction {
  let tool: MigrationTool.Format
  let database: String
  /// Where the migration starts, for messages.
  let position: YAMLPosition
  let up: SQLScript
  let down: SQLScript?
  let upInTransaction: Bool
  let downInTransaction: Bool

  var name: String { "sql" }
  var needsVault: Bool { false }
  var wayBack: WayBack { down == nil ? .none : .byArguments }
  var hasWrittenDown: Bool { down != nil }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    let notes = try run(up, inTransaction: upInTransaction, on: stage)
    if try stage.namedDatabase(database, at: position) == nil { memory.skipped.append(database) }
    return notes
  }

  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    guard let down else { throw StepFailure(message: "the migration has no way down") }
    return try run(down, inTransaction: downInTransaction, on: stage)
  }

  private func run(
    _ script: SQLScript, inTransaction: Bool, on stage: StagedContainer
  ) throws -> [String] {
    guard let place = try stage.namedDatabase(database, at: position) ?? newPlace(on: stage),
      try tool != .sqldelight || stage.tableCount(of: place) > 0
    else {
      return ["the database \(database) is not there: skipped; the app makes it with the newest schema"]
    }
    if script.isBlank { return [] }
    return try stage.writeDatabase(at: place) { db in
      if inTransaction {
        return try MigrationTransaction.run(db) { _ in try statements(script, db, inTransaction: true) }
      }
      try statements(script, db, inTransaction: false)
      guard !db.isInsideTransaction else {
        throw DrydockError(.sql, "\(script.position(at: 0)): these statements leave a transaction open")
      }
      return []
    }
  }

  /// The tools make a database that is not there; but SQLDelight makes it from files that are no migrations.
  private func newPlace(on stage: StagedContainer) throws -> ContainerPath? {
    guard tool != .sqldelight, let place = stage.container.configuration.databases[database]?.first else {
      return nil
    }
    try stage.write([], to: place)
    return place
  }

  private func statements(_ script: SQLScript, _ db: Database, inTransaction: Bool) throws {
    var splitter = try SQLSplitter(script: script, in: db)
    while let part = try splitter.next() {
      do {
        let rules = StatementRules(
          source: part.source, destructive: "as \(tool.rawValue) would", isInTransaction: inTransaction)
        // To explain the end of a transaction would end it for GRDB.
        if inTransaction || !SQLWords(part.source.verb).isAboutTransactions,
          let reason = try rules.refusal(db)
        {
          throw DrydockError(.sql, "\(script.position(at: part.offset)): \(reason)")
        }
        try part.statement.execute()
      } catch let error as DatabaseError where !error.isAboutTheDisk {
        throw DrydockError(
          .sql, "\(script.position(at: part.offset)): \(error.plainMessage)", cause: error)
      }
    }
  }
}
