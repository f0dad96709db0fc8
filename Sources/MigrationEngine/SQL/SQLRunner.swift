import AppFrameworks
import AppStores
import ContainerTransaction
import DrydockErrors
import FileSystem
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
  /// Shared with the steps before and after; nil when it is not.
  var connection: StagedConnection?

  /// Runs it; the connection must have foreign keys off and no open transaction.
  ///
  /// - Parameter around: calls its argument, which runs the statements, in their transaction.
  /// - Returns: notes for the report.
  func run(
    _ db: Database, around: (Database, () throws -> Void) throws -> Void = { try $1() }
  ) throws -> [String] {
    do {
      return try MigrationTransaction.run(db, model: coreData, script: script, on: connection) { store in
        let triggers = try setAside(db)
        try around(db) { try runStatements(db, store) }
        for sql in triggers { try db.execute(definition: sql) }
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
        throw StepFailure("the trigger `\(name)` does not exist: correct `without-triggers`")
      }
      try db.execute(sql: "DROP TRIGGER \(quotedIdentifier(name))")
      return sql
    }
  }

  private func runStatements(_ db: Database, _ store: CoreDataGuard?) throws {
    try script.run(in: db, noting: triggers) { source in
      StatementRules(source: source, destructive: destructive, language: language)
    } after: { source in
      if let store, !source.isAboutRows {
        do { try store.check(db) } catch let failure as StepFailure {
          throw StepFailure(worded(failure.message))
        }
      }
      guard db.isInsideTransaction else {
        throw StepFailure("the statement ended the transaction of the migration")
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

/// What a statement must not do in a migration, by SQLite's program for it (`EXPLAIN`), not by its spelling.
struct StatementRules {
  let source: SQLStatement
  /// The reason for destroying data.
  let destructive: String?
  /// Whether messages speak of arguments or directives.
  var language: SQLLanguage = .steps
  /// Whether the statements are in a transaction that they must not end; another tool's need not be.
  var isInTransaction = true

  /// Why the statement may not run; nil when it may.
  func refusal(_ db: Database) throws -> String? {
    // Statements on rows may be many. `load_extension` is found by its name, in quotes, too.
    if source.isAboutRows, !source.mentionsExtensions { return loss(drops: false) }
    if source.verb == "PRAGMA", source.namesWritableSchema {
      return "`writable_schema` is not for migrations: change the schema by CREATE, ALTER and DROP"
    }
    var drops = false
    // Stops at the first refusal: GRDB reads the end of `EXPLAIN COMMIT` as a commit.
    let rows = try Row.fetchCursor(db, sql: "EXPLAIN " + source.text)
    while let row = try rows.next() {
      let opcode: String = row["opcode"] ?? ""
      let detail: String = (row["p4"] as DatabaseValue).storage.text ?? ""
      if let reason = refusal(opcode, detail, row["p3"]) { return reason }
      // Database 1 has the temporary tables.
      let database: Int = row["p1"] ?? 0
      drops = drops || (opcode == "DropTable" && database != 1) || detail.hasPrefix("sqlite_drop_column(")
    }
    return loss(drops: drops)
  }

  /// The refusal by words alone, for a statement on tables that do not exist.
  var refusalByWords: String? { loss(drops: source.drops) }

  private func loss(drops: Bool) -> String? {
    if destructive != nil { return nil }
    // A list would be made again for each of the statements on rows.
    if !drops, source.verb != "DELETE", source.verb != "UPDATE", source.verb != "WITH" { return nil }
    // A view has no data, although SQLite's program drops it as it drops a table.
    if drops, source.dropsView { return nil }
    let rows = drops ? nil : source.lossOfAllRows
    guard let what = drops ? "drops a table or a column" : rows.map({ "is \($0)" }) else { return nil }
    return "the statement \(what) and destroys data: \(language.reason)"
  }

  private func refusal(_ opcode: String, _ detail: String, _ argument: Int?) -> String? {
    switch opcode {
    case "AutoCommit" where !isInTransaction, "Savepoint" where !isInTransaction,
      "Vacuum" where !isInTransaction:
      return nil
    case "AutoCommit", "Savepoint":
      return
        "BEGIN, COMMIT, ROLLBACK and SAVEPOINT are not for migrations: the whole run is one transaction already"
    case "Vacuum": return "VACUUM is not for migrations: it cannot run inside their transaction"
    // -1 only reads the mode, as SQLite does in some other statements.
    case "JournalMode" where argument != -1:
      return "the journal mode is not for migrations: a migrated database keeps the mode that it has"
    case "Checkpoint": return "a checkpoint is not for migrations: they work on a copy without a log"
    default: break
    }
    if detail.hasPrefix("sqlite_attach(") || detail.hasPrefix("sqlite_detach(") {
      return "ATTACH and DETACH are not for migrations: another file would be changed outside the transaction"
    }
    if detail.hasPrefix("load_extension(") { return "extensions are not for migrations" }
    return nil
  }
}

extension DatabaseValue.Storage {
  fileprivate var text: String? {
    if case .string(let text) = self { text } else { nil }
  }
}

/// Whether a message about SQL speaks of arguments or directives.
enum SQLLanguage: Sendable {
  case steps
  /// A `.sql` file with its directives in comments.
  case directives

  /// How to give a reason for destroying data.
  var reason: String {
    switch self {
    case .steps: "say why with `destructive`"
    case .directives: "say why with a line `-- drydock: destructive REASON`"
    }
  }
}

/// Finds the columns that triggers write and the statements of a script do not name.
///
/// SQLite says what a statement writes while it compiles it. The database's own connection reports that to GRDB, so the
/// statements are compiled once more, in an empty copy of the schema.
final class TriggerWatch {
  private(set) var columns: [String: [String: String]] = [:]
  /// Nil in a database without triggers.
  private var copy: DatabaseQueue?
  /// Whether no statement can have changed the schema since it was copied.
  private var isCopied = false
  private let compiled = CompiledWrites()

  /// Notes what a statement that can be compiled is about to write.
  func note(_ source: SQLStatement, in db: Database) throws {
    guard source.isAboutRows else { return isCopied = false }
    if !isCopied { (copy, isCopied) = (try copied(db), true) }
    guard let copy else { return }
    compiled.columns = []
    copy.inDatabase { schema in
      var schema = SchemaCopy(schema)
      _ = schema.run(source.text)
    }
    for case let (table, column, trigger?) in compiled.columns
    where !compiled.columns.contains(where: { $0 == (table, column, nil) }) {
      columns[table, default: [:]][column] = trigger
    }
  }

  private func copied(_ db: Database) throws -> DatabaseQueue? {
    let objects = try SchemaShape(db).objects
    let triggers = objects.filter(\.isTrigger)
    if triggers.isEmpty { return nil }
    let queue = try DatabaseQueue()
    queue.inDatabase { db in
      var schema = SchemaCopy(db)
      for object in objects.filter({ !$0.isTrigger }) + triggers { _ = schema.run(object.sql) }
      compiled.watch(db)
    }
    return queue
  }
}

extension StagedContainer {
  /// Changes a database; a dry run notes which columns triggers write for the statements.
  func notingTriggers<Value>(
    in database: ContainerPath, _ body: (TriggerWatch?) throws -> Value
  ) rethrows -> Value {
    guard self is DiscardedStage else { return try body(nil) }
    let triggers = TriggerWatch()
    let value = try body(triggers)
    note(triggers.columns, in: database)
    return value
  }
}
