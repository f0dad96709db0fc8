import AppContainer
import DrydockErrors
import GRDB

/// Runs a script in one transaction.
struct SQLRunner {
  let script: SQLScript
  /// The reason for destroying data; nil when the script must not.
  let destructive: String?
  var language: SQLLanguage = .steps
  /// The new model of a Core Data store; nil when its schema must not change.
  var coreData: CoreDataModel?

  /// Runs it; the connection must have foreign keys off and no open transaction.
  ///
  /// - Parameter around: calls its argument, which runs the statements, in their transaction.
  /// - Returns: notes for the report.
  func run(
    _ db: Database, around: (Database, () throws -> Void) throws -> Void = { try $1() }
  ) throws -> [String] {
    do {
      return try MigrationTransaction.run(db, model: coreData) { store in
        try around(db) { try runStatements(db, store) }
      }
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

  /// A `.sql` file has no directive for the model of a Core Data store.
  private func worded(_ message: String) -> String {
    guard language == .directives, message.contains("`core-data") else { return message }
    return message
      + "; that is an argument of a `sql` step, in the migration.yaml of a directory that has this file"
  }

  private func failure(
    _ part: SQLSplitter.Part, _ message: String, _ cause: (any Error)? = nil
  ) -> DrydockError {
    DrydockError(.sql, "\(script.position(at: part.source.offset)): \(message)", cause: cause)
  }
}

/// Splits a script into statements. Each is compiled after the one before has run, so that it can use its results.
struct SQLSplitter {
  /// A statement, ready to run, and its text.
  typealias Part = (statement: Statement, source: SQLStatementText)

  private let script: SQLScript
  private let db: Database
  private var offset = 0

  init(script: SQLScript, in db: Database) throws {
    // SQLite would read it as the end of the text.
    if let index = script.bytes.firstIndex(of: 0) {
      throw DrydockError(.sql, "\(script.position(at: index)): a NUL character is not SQL: remove it")
    }
    self.script = script
    self.db = db
  }

  /// The next statement; nil at the end.
  mutating func next() throws -> Part? {
    guard let source = script.statement(from: offset) else { return nil }
    offset = source.end
    do {
      // SQLite reports an error when it finds several statements in the text.
      return (try db.makeStatement(sql: source.text), source)
    } catch let error as DatabaseError where !error.isAboutTheDisk {
      throw DrydockError(
        .sql, "\(script.position(at: source.offset)): \(error.plainMessage)", cause: error)
    }
  }
}

/// A change of a database in one transaction, by SQLite's documented procedure for schema changes: foreign keys are off,
/// and afterwards there is no new violation. Core Data stores and Room databases stay valid.
enum MigrationTransaction {
  /// Runs a body; the connection must have foreign keys off and no open transaction.
  ///
  /// - Parameters:
  ///   - model: the new model of a Core Data store; nil when its schema must not change.
  ///   - guardsRoom: whether Room's hash must change with the schema; false when the body validates the schema.
  ///   - body: gets a guard that checks such a store between statements; nil for other databases.
  /// - Returns: notes for the report.
  /// - Throws: ``StepFailure`` about foreign keys and Core Data, and the errors of the body.
  static func run(
    _ db: Database, model: CoreDataModel? = nil, guardsRoom: Bool = true,
    _ body: (CoreDataGuard?) throws -> Void
  ) throws -> [String] {
    let before: [Violation: Int]?
    do {
      before = try violations(db)
    } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
      // Invalid foreign keys, such as to a missing table.
      before = nil
    }
    try db.execute(sql: "BEGIN IMMEDIATE")
    do {
      let store = try CoreDataGuard(db, model: model)
      if model != nil, store == nil {
        throw StepFailure(message: "the database is not a Core Data store: leave `core-data` out")
      }
      let room = guardsRoom ? try RoomGuard(db) : nil
      try body(store)
      guard db.isInsideTransaction else {
        throw StepFailure(message: "a statement ended the transaction of the migration")
      }
      try room?.finish(db)
      let notes = try compare(before, db) + (store?.finish(db) ?? [])
      try db.execute(sql: "COMMIT")
      return notes
    } catch {
      if db.isInsideTransaction { try? db.execute(sql: "ROLLBACK") }
      throw error
    }
  }

  /// A row whose parent is missing. Its table is left out: a migration may rename it.
  private struct Violation: Hashable {
    let rowid: Int64?
    let parent: String
  }

  private static func violations(_ db: Database) throws -> [Violation: Int] {
    var found: [Violation: Int] = [:]
    let rows = try Row.fetchCursor(db, sql: "PRAGMA foreign_key_check")
    while let row = try rows.next() {
      let parent: String = row["parent"] ?? ""
      found[Violation(rowid: row["rowid"], parent: parent.lowercased()), default: 0] += 1
    }
    return found
  }

  private static func compare(_ before: [Violation: Int]?, _ db: Database) throws -> [String] {
    let after: [Violation: Int]
    do {
      after = try violations(db)
    } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
      // Foreign keys that were invalid before cannot be compared.
      if before == nil { return ["foreign keys could not be checked: \(error.plainMessage)"] }
      throw StepFailure(
        message: "after these statements foreign keys cannot be checked: \(error.plainMessage)")
    }
    let broken = after.filter { $0.value > (before ?? [:])[$0.key] ?? 0 }
    if !broken.isEmpty {
      let more = broken.reduce(0) { $0 + $1.value - ((before ?? [:])[$1.key] ?? 0) }
      let parents = Set(broken.keys.map(\.parent)).sorted().joined(separator: ", ")
      throw StepFailure(
        message:
          "these statements leave references to missing rows of \(parents) (\(more) more than before): "
          + "change both sides, or delete the rows that refer to them")
    }
    let old = after.values.reduce(0, +)
    return old == 0 ? [] : ["references to missing rows, as before the migration: \(old)"]
  }
}

/// Keeps a database valid for Room, which compares the hash in `room_master_table` with the one of its compiled
/// schema, and a schema that SQL changed has another one.
struct RoomGuard {
  private let schema: [Row]
  private let identity: [Row]?

  /// Nil when the database is not Room's.
  init?(_ db: Database) throws {
    // GRDB's `tableExists` reads the whole schema.
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'room_master_table' COLLATE NOCASE"
    guard try Int.fetchOne(db, sql: sql) != nil else { return nil }
    schema = try db.schemaRows(except: "room_master_table")
    identity = try Self.identity(db)
  }

  /// Checks the database after the last statement.
  ///
  /// - Throws: ``StepFailure`` when the schema has changed and its hash has not.
  func finish(_ db: Database) throws {
    guard try db.schemaRows(except: "room_master_table") != schema, try Self.identity(db) == identity else {
      return
    }
    throw StepFailure(
      message:
        "the database is Room's, and these statements change its schema: Room compares `room_master_table.identity_hash` "
        + "with the schema that the app was compiled with, and would refuse to open it; let the app's own Room "
        + "migration make this change, or write the new hash (`identityHash` in the app's exported schema) in the "
        + "same step: UPDATE room_master_table SET identity_hash = '…' WHERE id = 42",
      code: .foreignSchema)
  }

  /// Nil when the table does not exist any more, or has other columns.
  private static func identity(_ db: Database) throws -> [Row]? {
    do {
      return try Row.fetchAll(db, sql: "SELECT id, identity_hash FROM room_master_table ORDER BY id")
    } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
      return nil
    }
  }
}
