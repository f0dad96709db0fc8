import AppContainer
import AppFrameworks
import AppStores
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats
import GRDB

/// What one migration of Room does besides its statements.
struct RoomStep: Sendable {
  let from: Int, to: Int
  /// The schemas before and after it, if they were exported.
  let source, target: RoomSchema?
  /// The tables whose foreign keys are checked after it.
  var tablesWithForeignKeys: [ExactText] = []
  /// Where the migration is, for messages.
  let position: YAMLPosition

  /// As Room before its migrations.
  func begin(_ db: Database) throws {
    let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
    guard version == from else {
      throw StepFailure(
        "the file migrates from version \(from), and the database has version \(version): no file leads there"
      )
    }
    let prefix = "room_fts_content_sync_"
    let triggers = try String.fetchAll(
      db, sql: "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND substr(name, 1, ?) = ?",
      arguments: [prefix.count, prefix])
    for name in triggers { try db.execute(sql: "DROP TRIGGER \(quotedIdentifier(name))") }
  }

  /// As Room after its migrations: it creates triggers, validates, and writes its hash; the version comes last. Without the
  /// schema the next migration does that.
  func finish(_ db: Database) throws {
    for table in tablesWithForeignKeys {
      let sql = "SELECT count(*), min(parent) FROM pragma_foreign_key_check(?)"
      guard let row = try Row.fetchOne(db, sql: sql, arguments: [table.text]), row[0] > 0 else { continue }
      throw StepFailure(
        "the foreign keys of the table \(table.text) refer to missing rows of \(row[1] ?? "") (\(row[0] as Int) rows): "
          + "Room refuses that after it recreates a table; delete or correct these rows before")
    }
    guard let target else { return try db.execute(sql: "PRAGMA user_version = \(to)") }
    for trigger in target.tables.compactMap(\.fullText).flatMap(\.syncTriggers) {
      try target.run(trigger, db)
    }
    try target.adopt(db)
  }
}

extension RoomSchema {
  /// Validates a database, and writes the hash and the version of this schema into it.
  ///
  /// - Throws: ``StepFailure`` `verifyFailed` when Room would refuse the database.
  func adopt(_ db: Database) throws {
    let differences = try differences(in: db)
    guard differences.isEmpty else { throw Self.failure(differences, version: version) }
    try db.execute(
      sql: """
        CREATE TABLE IF NOT EXISTS room_master_table (id INTEGER PRIMARY KEY,identity_hash TEXT);
        INSERT OR REPLACE INTO room_master_table (id, identity_hash) VALUES (42, ?);
        """, arguments: [identityHash])
    try db.execute(sql: "PRAGMA user_version = \(version)")
  }

  static func failure(_ differences: [SchemaDrift], version: Int) -> StepFailure {
    let more = differences.count > 20 ? ["  \(differences.count - 20) more differences"] : []
    let lines = differences.prefix(20).map { "  " + $0.description } + more
    return StepFailure(
      "Room would refuse this database as version \(version):\n" + lines.joined(separator: "\n"),
      code: .verifyFailed)
  }

  /// Runs one statement of the schema's file.
  ///
  /// - Throws: ``DrydockError`` `sql` also for what no schema has, such as ATTACH.
  func run(_ sql: String, _ db: Database) throws {
    try SQLScript(text: sql, file: file, firstLine: 1).run(in: db, at: file) {
      StatementRules(source: $0, destructive: "the schema")
    }
  }

  /// The empty database that the app creates with this schema, in memory.
  package func fresh(_ configuration: ContainerConfiguration) throws -> DatabaseQueue {
    let queue = try DatabaseQueue.fresh(configuration)
    try queue.writeWithoutTransaction { db in
      for table in tables.filter({ $0.fullText == nil }) + tables.filter({ $0.fullText != nil }) {
        try run(table.create(), db)
        for index in table.indices { try run(table.create(index), db) }
        for trigger in table.fullText?.syncTriggers ?? [] { try run(trigger, db) }
      }
      for view in views { try run(view.create, db) }
      do { try adopt(db) } catch let failure as StepFailure {
        throw DrydockError(.catalog, "\(file): its statements do not create its tables: \(failure.message)")
      }
    }
    return queue
  }
}

extension DatabaseQueue {
  /// An empty database in memory with the app's functions, and foreign keys off.
  static func fresh(_ settings: ContainerConfiguration) throws -> DatabaseQueue {
    var configuration = GRDB.Configuration()
    configuration.foreignKeysEnabled = false
    configuration.allowsUnsafeTransactions = true
    configuration.prepareDatabase { settings.sql.define(in: $0) }
    return try DatabaseQueue(configuration: configuration)
  }
}

/// `room: {database, schema}`: Room would open the database with an exported schema, which is a file of the migration.
struct RoomAssertion: AssertionBody {
  private let database: NamedDatabase
  private let schema: RoomSchema

  init(_ arguments: YAMLNode, _ files: MigrationFiles) throws {
    let reader = try YAMLReader(arguments, what: "room", keys: ["database", "schema"])
    database = try NamedDatabase(reading: reader)
    let file = try reader.required("schema")
    let path = try file.text("`schema`")
    schema = try RoomSchema(files.bytes(of: path, namedAt: file.position), file: files.display(path))
  }

  var demandsSomething: Bool { true }

  func judge(_ stage: StagedContainer, before: Observation?) throws -> Verdict {
    guard let place = try database.place(on: stage) else { return .notRun(missing: database) }
    return try stage.readDatabase(at: place) { db in
      let differences = try schema.differences(in: db)
      if !differences.isEmpty {
        return .failed(RoomSchema.failure(differences, version: schema.version).message)
      }
      let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
      return version == schema.version
        ? .passed
        : .failed("the user_version of the database \(database.name) is \(version), not \(schema.version)")
    }
  }
}
