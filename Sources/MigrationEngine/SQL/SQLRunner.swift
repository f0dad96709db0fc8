import AppContainer
import GRDB

/// Runs a script in one transaction, the way SQLite's documentation wants schema changes done: foreign keys off,
/// everything in one transaction, and afterwards no violation that was not there before.
struct SQLRunner {
  let script: SQLScript
  /// The author's reason for destroying data; nil when the script must not.
  let destructive: String?
  /// What a Core Data store is to be afterwards; nil when its schema has to stay.
  var coreData: CoreDataModel?

  /// Runs it; the connection must have foreign keys off and no open transaction.
  ///
  /// - Returns: remarks for the report.
  func run(_ db: Database) throws -> [String] {
    let before = try? violations(db)
    try db.execute(sql: "BEGIN IMMEDIATE")
    do {
      let store = try CoreDataGuard(db, model: coreData)
      if coreData != nil, store == nil {
        throw MigrationError(
          .sql, "\(script.position(at: 0)): the database is no Core Data store: leave `core-data` out")
      }
      try runStatements(db, store)
      var notes = try compare(before, db)
      do {
        notes += try store?.finish(db) ?? []
      } catch let failure as StepFailure {
        throw MigrationError(.sql, "\(script.position(at: 0)): \(failure.message)")
      }
      try db.execute(sql: "COMMIT")
      return notes
    } catch {
      if db.isInsideTransaction { try? db.execute(sql: "ROLLBACK") }
      throw error
    }
  }

  private func runStatements(_ db: Database, _ store: CoreDataGuard?) throws {
    var splitter = try SQLSplitter(script: script, in: db)
    while let part = try splitter.next() {
      do {
        if let reason = try StatementRules(sql: part.text, destructive: destructive).refusal(db) {
          throw failure(part, reason)
        }
        try part.statement.execute()
        try store?.check(db)
      } catch let reason as StepFailure {
        throw failure(part, reason.message)
      } catch let error as DatabaseError {
        throw failure(part, error.plainMessage, error)
      }
      guard db.isInsideTransaction else {
        throw failure(part, "the statement ended the transaction of the migration")
      }
    }
  }

  private func failure(
    _ part: SQLSplitter.Part, _ message: String, _ cause: (any Error)? = nil
  ) -> MigrationError {
    MigrationError(.sql, "\(script.position(at: part.offset)): \(message)", cause: cause)
  }

  // MARK: Foreign keys

  /// A row whose parent is missing. Its table is left out: a migration may rename it.
  private struct Violation: Hashable {
    let rowid: Int64?
    let parent: String
  }

  private func violations(_ db: Database) throws -> [Violation: Int] {
    var found: [Violation: Int] = [:]
    let rows = try Row.fetchCursor(db, sql: "PRAGMA foreign_key_check")
    while let row = try rows.next() {
      let parent: String = row["parent"] ?? ""
      found[Violation(rowid: row["rowid"], parent: parent.lowercased()), default: 0] += 1
    }
    return found
  }

  private func compare(_ before: [Violation: Int]?, _ db: Database) throws -> [String] {
    let place = script.position(at: 0)
    let after: [Violation: Int]
    do {
      after = try violations(db)
    } catch let error as DatabaseError {
      // The schema's foreign keys made no sense before: then nothing can be compared.
      if before == nil { return ["foreign keys could not be checked: \(error.plainMessage)"] }
      throw MigrationError(
        .sql, "\(place): after these statements foreign keys cannot be checked: \(error.plainMessage)",
        cause: error)
    }
    let broken = after.filter { $0.value > (before ?? [:])[$0.key] ?? 0 }
    if !broken.isEmpty {
      let more = broken.reduce(0) { $0 + $1.value - ((before ?? [:])[$1.key] ?? 0) }
      let parents = Set(broken.keys.map(\.parent)).sorted().joined(separator: ", ")
      throw MigrationError(
        .sql,
        "\(place): these statements leave references to missing rows of \(parents) (\(more) more than before): "
          + "change both sides, or delete the rows that refer to them")
    }
    let old = after.values.reduce(0, +)
    return old == 0 ? [] : ["references to rows that were missing before the migration already: \(old)"]
  }
}
