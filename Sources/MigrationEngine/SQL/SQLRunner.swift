import AppFrameworks
import AppStores
import DrydockErrors
import Formats
import GRDB

/// Runs a script in one transaction.
struct SQLRunner {
  let script: SQLScript
  /// The reason for destroying data; nil when the script must not.
  let destructive: String?
  var language: SQLLanguage = .steps
  /// The new model of a Core Data store; nil when its schema must not change.
  var coreData: CoreDataModel?
  /// Why triggers do not run for the statements, by their names in lower case.
  var withoutTriggers: [String: String] = [:]
  /// Where a dry run shows what triggers write; else nil.
  var triggers: TriggerWatch?

  /// Runs it; the connection must have foreign keys off and no open transaction.
  ///
  /// - Parameter around: calls its argument, which runs the statements, in their transaction.
  /// - Returns: notes for the report.
  func run(
    _ db: Database, around: (Database, () throws -> Void) throws -> Void = { try $1() }
  ) throws -> [String] {
    do {
      return try MigrationTransaction.run(db, model: coreData, script: script) { store in
        let triggers = try setAside(db)
        try around(db) { try runStatements(db, store) }
        for sql in triggers { try db.execute(sql: sql) }
      }
    } catch let failure as StepFailure {
      let code = failure.code == .stepFailed ? .sql : failure.code
      throw DrydockError(code, "\(script.position(at: 0)): \(worded(failure.message))")
    }
  }

  /// Drops the triggers that must not run for the statements.
  ///
  /// - Returns: the statements that create them again, as SQLite keeps them.
  private func setAside(_ db: Database) throws -> [String] {
    try withoutTriggers.keys.sorted().map { name in
      let text = "SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND name = ? COLLATE NOCASE"
      guard let sql = try String.fetchOne(db, sql: text, arguments: [name]) else {
        throw StepFailure(message: "there is no trigger `\(name)`: correct `without-triggers`")
      }
      try db.execute(sql: "DROP TRIGGER \(quotedIdentifier(name))")
      return sql
    }
  }

  private func runStatements(_ db: Database, _ store: CoreDataGuard?) throws {
    try script.run(in: db, noting: triggers) { source in
      StatementRules(source: source, destructive: destructive, language: language)
    } after: { source in
      if !source.isAboutRows {
        do { try store?.check(db) } catch let failure as StepFailure {
          throw StepFailure(message: worded(failure.message))
        }
      }
      guard db.isInsideTransaction else {
        throw StepFailure(message: "the statement ended the transaction of the migration")
      }
    }
  }

  /// A `.sql` file has no directive for the model of a Core Data store.
  private func worded(_ message: String) -> String {
    guard language == .directives, message.contains("`core-data") else { return message }
    return message
      + "; that is an argument of a `sql` step, in the migration.yaml of a directory that has this file"
  }
}

extension SQLScript {
  /// Runs its statements. Each is compiled after the one before has run, so that it can use its results.
  ///
  /// - Parameters:
  ///   - place: where it is, for messages; the place of the statement when nil.
  ///   - triggers: notes what triggers write for the statements.
  ///   - rules: what a statement must not do; nil for one that is not checked.
  ///   - after: is called after each statement; its failures get the statement's place.
  func run(
    in db: Database, at place: String? = nil, noting triggers: TriggerWatch? = nil,
    _ rules: (SQLStatement) -> StatementRules?, after: (SQLStatement) throws -> Void = { _ in }
  ) throws {
    if let index = firstNUL {
      throw DrydockError(.sql, "\(position(at: index)): a NUL character is not SQL: remove it")
    }
    var offset = 0
    while let source = statement(from: offset) {
      offset = source.end
      func failure(_ message: String, _ cause: (any Error)? = nil) -> DrydockError {
        DrydockError(.sql, "\(place ?? "\(position(at: source.offset))"): \(message)", cause: cause)
      }
      do {
        // SQLite reports an error when it finds several statements in the text.
        let statement = try db.makeStatement(sql: source.text)
        try triggers?.note(source, in: db)
        if let reason = try rules(source)?.refusal(db) { throw failure(reason) }
        try statement.execute()
        try after(source)
      } catch let reason as StepFailure {
        throw failure(reason.message)
      } catch let error as DatabaseError where !error.isAboutTheDisk {
        throw failure(error.plainMessage, error)
      }
    }
  }
}
