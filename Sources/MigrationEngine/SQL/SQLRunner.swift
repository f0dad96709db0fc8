import AppContainer
import DrydockErrors
import GRDB

/// Runs a script in one transaction.
struct SQLRunner {
  let script: SQLScript
  /// The author's reason for destroying data; nil when the script must not.
  let destructive: String?
  var language: SQLLanguage = .steps
  /// What a Core Data store is to be afterwards; nil when its schema has to stay.
  var coreData: CoreDataModel?

  /// Runs it; the connection must have foreign keys off and no open transaction.
  ///
  /// - Returns: remarks for the report.
  func run(_ db: Database) throws -> [String] {
    do {
      return try MigrationTransaction.run(db, model: coreData) { try runStatements(db, $0) }
    } catch let failure as StepFailure {
      let code = failure.code == .stepFailed ? .sql : failure.code
      throw DrydockError(code, "\(script.position(at: 0)): \(worded(failure.message))")
    }
  }

  private func runStatements(_ db: Database, _ store: CoreDataGuard?) throws {
    var splitter = try SQLSplitter(script: script, in: db)
    while let part = try splitter.next() {
      do {
        let rules = StatementRules(source: part.source, destructive: destructive, language: language)
        if let reason = try rules.refusal(db) { throw failure(part, reason) }
        try part.statement.execute()
        if !part.source.isAboutRows { try store?.check(db) }
      } catch let reason as StepFailure {
        throw failure(part, worded(reason.message))
      } catch let error as DatabaseError where !error.isAboutTheDisk {
        throw failure(part, error.plainMessage, error)
      }
      guard db.isInsideTransaction else {
        throw failure(part, "the statement ended the transaction of the migration")
      }
    }
  }

  /// A `.sql` file has no word for the model of a Core Data store.
  private func worded(_ message: String) -> String {
    guard language == .directives, message.contains("`core-data") else { return message }
    return message
      + "; that is an argument of a `sql` step, in the migration.yaml of a directory that has this file"
  }

  private func failure(
    _ part: SQLSplitter.Part, _ message: String, _ cause: (any Error)? = nil
  ) -> DrydockError {
    DrydockError(.sql, "\(script.position(at: part.offset)): \(message)", cause: cause)
  }
}
