import AppContainer
import AppFrameworks
import AppStores
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats
import GRDB

/// The record of applied migrations that another tool keeps in the database: read to detect the version, and kept up to
/// date, so that the tool can continue from there.
struct ToolRecord {
  enum State {
    /// The database does not exist, or is empty.
    case noDatabase
    /// The database has tables, but not the tool's record.
    case unmarked
    case applied(ExternalMigrations)
  }

  let tool: MigrationTool
  private let stage: StagedContainer

  init(_ tool: MigrationTool, _ stage: StagedContainer) { (self.tool, self.stage) = (tool, stage) }

  /// The record's name in messages.
  var name: String {
    tool.format.usesUserVersion
      ? "the user_version of the database \(tool.database)"
      : "\(tool.format.rawValue)'s table \(table) in the database \(tool.database)"
  }

  private var table: String { tool.format == .goose ? "goose_db_version" : "schema_migrations" }

  private var place: ContainerPath? {
    get throws {
      try stage.namedDatabase(
        tool.database,
        at: YAMLPosition(file: stage.container.configuration.file ?? "drydock.yaml", line: 1, column: 1))
    }
  }

  /// - Throws: ``DrydockError`` `unknownVersion` when golang-migrate failed in the middle of a migration, or the
  ///   table is not the tool's.
  func read() throws -> State {
    guard let place = try place else { return .noDatabase }
    do {
      return try stage.readDatabase(at: place, read)
    } catch let error as DatabaseError {
      throw DrydockError(
        .unknownVersion, "\(name) cannot be read: \(error.plainMessage)", path: place.description,
        cause: error)
    }
  }

  private func read(_ db: Database) throws -> State {
    let tables =
      try Int.fetchOne(
        db, sql: "SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
      ?? 0
    if tables == 0 { return .noDatabase }
    if tool.format.usesUserVersion {
      let version = try userVersion(db)
      return version > 0 ? .applied(.through(1...version)) : .unmarked
    }
    guard try db.tableExists(table) else { return .unmarked }
    switch tool.format {
    case .dbmate: return try .applied(.each(numbers(db, "SELECT version FROM schema_migrations")))
    case .goose:
      // Older versions of goose added a row when a migration was reverted: the newest row of a version counts.
      let sql = """
        SELECT version_id FROM goose_db_version AS a WHERE is_applied
          AND id = (SELECT max(id) FROM goose_db_version WHERE version_id = a.version_id)
        """
      return try .applied(.each(numbers(db, sql)))
    case .golangMigrate: return try readPointer(db)
    case .sqldelight, .room: return .unmarked
    }
  }

  private func numbers(_ db: Database, _ sql: String) throws -> Set<Int> {
    Set(try Row.fetchAll(db, sql: sql).compactMap { Self.number($0[0]) }.filter { $0 > 0 })
  }

  /// A version as an integer or as text; nil for any other value.
  private static func number(_ value: DatabaseValue) -> Int? {
    Int.fromDatabaseValue(value) ?? String.fromDatabaseValue(value).flatMap { Int($0) }
  }

  private func readPointer(_ db: Database) throws -> State {
    let rows = try Row.fetchAll(db, sql: "SELECT version, dirty FROM schema_migrations LIMIT 1")
    guard let row = rows.first, let version = Self.number(row[0]) else { return .applied(.none) }
    if Self.number(row[1]) ?? 0 != 0 {
      throw DrydockError(
        .unknownVersion,
        "golang-migrate failed in the middle of migration \(version), and left the database dirty: repair it, and set "
          + "the version")
    }
    return .applied(version > 0 ? .through(1...version) : .none)
  }

  private func userVersion(_ db: Database) throws -> Int {
    try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
  }

  /// Updates the record to the applied migrations. Rows of migrations whose files are missing stay.
  ///
  /// - Returns: a note when the database does not exist.
  func update(_ applied: Set<Int>, _ catalog: MigrationCatalog) throws -> [String] {
    guard let place = try place, try !tool.format.usesUserVersion || stage.tableCount(of: place) > 0 else {
      return ["the database \(tool.database) does not exist: no version was written to it"]
    }
    try stage.writeDatabase(at: place) { db in
      try db.inTransaction {
        try update(applied, catalog, db)
        return .commit
      }
    }
    return []
  }

  private func update(_ applied: Set<Int>, _ catalog: MigrationCatalog, _ db: Database) throws {
    let newest = applied.max()
    switch tool.format {
    case .sqldelight:
      try db.execute(sql: "PRAGMA user_version = \(newest ?? catalog.base)")
    case .room: try updateRoom(newest, catalog, db)
    case .golangMigrate:
      try db.execute(
        sql: """
          CREATE TABLE IF NOT EXISTS schema_migrations (version uint64,dirty bool);
          CREATE UNIQUE INDEX IF NOT EXISTS version_unique ON schema_migrations (version);
          DELETE FROM schema_migrations;
          """)
      if let newest {
        try db.execute(
          sql: "INSERT INTO schema_migrations (version, dirty) VALUES (?, 0)", arguments: [newest])
      }
    case .dbmate:
      try db.execute(
        sql: #"CREATE TABLE IF NOT EXISTS "schema_migrations" (version varchar(128) primary key)"#)
      for migration in catalog.migrations {
        let version = tool.version(of: migration)
        let statement =
          applied.contains(migration.number)
          ? "INSERT OR IGNORE INTO schema_migrations (version) VALUES (?)"
          : "DELETE FROM schema_migrations WHERE version = ?"
        try db.execute(sql: statement, arguments: [version])
      }
    case .goose: try updateGoose(applied, catalog, db)
    }
  }

  /// Room's hash belongs to the version, and it is only written when Room would open the database.
  private func updateRoom(_ newest: Int?, _ catalog: MigrationCatalog, _ db: Database) throws {
    let version = newest ?? catalog.base
    guard let schema = catalog.roomSchema(version) else {
      if let step = catalog.roomSteps.first(where: { $0.to == version }) {
        throw RoomSchema.missing(version, in: tool.schemas ?? "", at: step.position)
      }
      return try db.execute(sql: "PRAGMA user_version = \(version)")
    }
    do { try schema.adopt(db) } catch let failure as StepFailure {
      throw DrydockError(failure.code, failure.message)
    }
  }

  private func updateGoose(_ applied: Set<Int>, _ catalog: MigrationCatalog, _ db: Database) throws {
    if try !db.tableExists(table) {
      try db.execute(
        sql: """
          CREATE TABLE goose_db_version (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            version_id INTEGER NOT NULL,
            is_applied INTEGER NOT NULL,
            tstamp TIMESTAMP DEFAULT (datetime('now'))
          );
          INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, 1);
          """)
    }
    var there: Set<Int> = []
    if case .applied(let numbers) = try read(db) { there = Set(catalog.numbers.filter(numbers.contains)) }
    for number in catalog.numbers where applied.contains(number) != there.contains(number) {
      // As current versions of goose do: one row for each applied migration.
      try db.execute(sql: "DELETE FROM goose_db_version WHERE version_id = ?", arguments: [number])
      if applied.contains(number) {
        try db.execute(
          sql: "INSERT INTO goose_db_version (version_id, is_applied) VALUES (?, 1)", arguments: [number])
      }
    }
  }
}

extension MigrationTool.Format {
  /// Whether its record is `PRAGMA user_version`; then the app creates the database, and no migration does.
  var usesUserVersion: Bool { self == .sqldelight || self == .room }
}

extension MigrationCatalog {
  var roomSteps: [RoomStep] {
    migrations.compactMap { $0.toolSQL?.room }
  }

  /// The version before the first migration: that of the database which the first release of the app creates.
  var base: Int {
    guard tool?.format.usesUserVersion == true, let first = migrations.first else { return 0 }
    return roomSteps.first?.from ?? first.number - 1
  }

  /// The exported schema of a version.
  func roomSchema(_ version: Int) -> RoomSchema? {
    for step in roomSteps {
      for schema in [step.target, step.source].compactMap(\.self) where schema.version == version {
        return schema
      }
    }
    return nil
  }
}

extension StagedContainer {
  /// Updates the record of another tool to the history; does nothing for Drydock's own migrations.
  ///
  /// - Returns: notes for the report.
  func updateToolRecord(_ history: MigrationHistory, _ catalog: MigrationCatalog) throws -> [String] {
    guard let tool = catalog.tool else { return [] }
    return try ToolRecord(tool, self).update(Set(history.records.map(\.number)), catalog)
  }
}
