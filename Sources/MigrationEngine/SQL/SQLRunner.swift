import AppContainer
import GRDB

/// Runs a script in one transaction.
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
    do {
      return try MigrationTransaction.run(db, model: coreData) { try runStatements(db, $0) }
    } catch let failure as StepFailure {
      throw MigrationError(.sql, "\(script.position(at: 0)): \(failure.message)")
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
      } catch let error as DatabaseError where !error.isAboutTheDisk {
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
}
