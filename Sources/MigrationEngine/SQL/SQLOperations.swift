import AppContainer
import AppFrameworks
import AppStores
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats
import GRDB

struct RunSQL: MigrationOperation {
  static let kinds = [
    OperationKind(
      "sql",
      "Runs statements on a database of `drydock.yaml`, in one transaction, with foreign keys off.",
      Argument<NamedDatabase>("database", "a name under `databases:`"),
      Argument(
        [
          "up": "the statements, or the name of a `.sql` file of the migration's directory",
          "down": "the same for the down migration; destructive statements there need no reason",
          "file": "instead of both: a file of the migration's directory, all of it, or with the sections `-- "
            + "migrate:up` and `-- migrate:down`",
        ], read: scripts),
      Argument(
        "destructive",
        "required for DROP TABLE, DROP COLUMN, and DELETE or UPDATE without WHERE, or with a WHERE "
          + "that names no column, such as `WHERE 1`: one reason if the step destroys data of one table; "
          + "otherwise one per table: `{trip: rebuilt, stop: merged into trip}`",
        ifGiven: DestructiveReason.init),
      Argument<IfNoDatabase?>(
        "if-missing",
        "`create`, `skip` or `fail`: for a database that exists in none of its places; see below"),
      Argument(
        "without-triggers",
        "`{NAME: REASON}`: these triggers do not run for the statements, and are there again "
          + "afterwards as they were: such as one that calls a function that only the app has",
        ifGiven: { try $0.reasons("triggers: {NAME: why}") }),
      Argument([
        "core-data": "for a [Core Data store](OtherTools.md#core-data) whose schema changes: the target model"
      ]) { reader, files in try reader["core-data"].map { try CoreDataModels($0, files) } },
      Argument(
        "defaults",
        "`true`, `{suite: NAME}` or `{file: PATH}`: the statements read and write these [settings "
          + "as a table](Migrations.md#settings-as-a-table)", ifGiven: DefaultsTable.init),
      example: OperationExample(
        before: "sql: CREATE TABLE task (a); INSERT INTO task VALUES (1)",
        step: "{database: notes, up: UPDATE task SET a = a + 1 WHERE a > 0, down: UPDATE task SET a = a - 1 "
          + "WHERE a > 0}", after: "rows: {SELECT a FROM task: 2}")
    ) { database, scripts, destructive, ifMissing, triggers, models, defaults in
      try models?.require(hasDown: scripts.down != nil)
      return try Self(
        database: database, up: scripts.up, down: scripts.down, ifMissing: ifMissing,
        destructive: destructive, language: .steps, models: models, defaults: defaults ?? nil,
        withoutTriggers: triggers ?? [:])
    }
  ]

  let database: NamedDatabase
  let up: SQLScript
  let down: SQLScript?
  /// Nil when the first statement decides: see ``createsDatabase``.
  let ifMissing: IfNoDatabase?
  /// Whether no earlier migration is for the same database. Where there is one, a missing database is made by the app,
  /// with tables that these statements alone would not give it.
  var isFirstOfDatabase = false
  let destructive: DestructiveReason?
  let announcedLoss: AnnouncedLoss
  /// Whether messages speak of the arguments of a step, or the directives of a `.sql` file.
  let language: SQLLanguage
  private let models: CoreDataModels?
  /// The settings that the statements see as a table, and the down statements, too.
  let defaults: DefaultsTable?
  /// Why triggers do not run for the statements, by their names in lower case.
  let withoutTriggers: [String: String]

  init(
    database: NamedDatabase, up: SQLScript, down: SQLScript?, ifMissing: IfNoDatabase?,
    destructive: DestructiveReason?, language: SQLLanguage, models: CoreDataModels? = nil,
    defaults: DefaultsTable? = nil, withoutTriggers: [String: String] = [:]
  ) throws {
    (self.database, self.up, self.down) = (database, up, down)
    (self.ifMissing, self.destructive) = (ifMissing, destructive)
    (self.language, self.models, self.defaults) = (language, models, defaults)
    self.withoutTriggers = withoutTriggers
    if up.isBlank { throw database.position.error("`sql` has no statement to run") }
    announcedLoss = try Self.announcedLoss(destructive, up)
  }

  private static func scripts(
    _ reader: YAMLReader, _ files: MigrationFiles
  ) throws -> (up: SQLScript, down: SQLScript?) {
    let (up, down): (SQLScript, SQLScript?)
    if let file = reader["file"] {
      if let other = reader["up"] ?? reader["down"] {
        throw other.position.error("name either `file` or `up` and `down`, not both")
      }
      let name = try file.text("`file`")
      let read = SQLFile(try files.text(of: name, namedAt: file.position), file: files.display(name))
      if let problem = read.problems.first { throw problem }
      let parts = read.parts
      if parts.count > 1 {
        throw parts[1].head.position(at: 0).error("a step is for one database: make a step for each")
      }
      // A file without sections is run as a whole.
      (up, down) = (parts[0].up ?? parts[0].head, parts[0].down)
    } else {
      up = try script(try reader.required("up"), "`up`", files)
      down = try reader["down"].map { try script($0, "`down`", files) }
    }
    if up.isBlank { throw reader.position.error("`sql` has no statement to run") }
    return (up, down)
  }

  /// The loss that the reason announces. A reason that names tables must name all whose data is destroyed.
  private static func announcedLoss(_ reason: DestructiveReason?, _ up: SQLScript) throws -> AnnouncedLoss {
    guard let reason else { return .nothing }
    let destroyed = DestroyedTables(up)
    if case .tables(let reasons) = reason, let (offset, table) = destroyed.unnamed(in: reasons) {
      throw up.position(at: offset).error(
        "the statement destroys data of `\(table)`, which `destructive` does not name: add `\(table): \"why\"`"
      )
    }
    return .tables(destroyed.announced(by: reason))
  }

  /// Inline SQL, or the name of a file beside `migration.yaml`, which ends in `.sql`.
  private static func script(_ node: YAMLNode, _ what: String, _ files: MigrationFiles) throws -> SQLScript {
    let text = try node.text(what)
    if node.position.file.hasSuffix(".swift") {
      // The line in the code that a text starts in is unknown.
      return SQLScript(text: text, file: "\(node.position): \(what)", firstLine: 1)
    }
    guard text.hasSuffix(".sql"), !text.contains(where: \.isNewline) else {
      // A block scalar's text starts in the line below its `|`.
      let isBlock = text.contains(where: \.isNewline)
      return SQLScript(
        text: text, file: node.position.file, firstLine: node.position.line + (isBlock ? 1 : 0))
    }
    return SQLScript(
      bytes: try files.text(of: text, namedAt: node.position), file: files.display(text), firstLine: 1)
  }

  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    try apply(to: stage, &recorded, on: nil)
  }

  /// Whether the statements neither use nor change the state of a connection.
  var canShareConnection: Bool {
    // To read a longer script costs more than a connection.
    defaults == nil && up.bytes.count <= 1 << 14 && !up.usesConnection
  }

  /// - Parameter connection: of steps that can share one.
  func apply(
    to stage: StagedContainer, _ recorded: inout PriorValues, on connection: StagedConnection?
  ) throws -> [String] {
    let place = try database.place(on: stage, ifMissing == .fail ? .fail : .skip)
    guard let path = try place ?? newPlace(on: stage, &recorded) else {
      recorded.skipped.append(database.name)
      return [database.missing]
    }
    return try stage.notingTriggers(in: path) { triggers in
      let runner = SQLRunner(
        script: up, destructive: destructive?.text, language: language, coreData: models?.up,
        withoutTriggers: withoutTriggers, triggers: triggers, connection: connection)
      let notes = try run(runner, at: path, on: stage, &recorded).notes
      if let connection, (connection.left as? DatabaseState)?.usesConnection == true {
        try stage.close(connection)
      }
      return notes
    }
  }

  /// Runs statements, with the table of settings if they use it.
  private func run(
    _ runner: SQLRunner, at path: ContainerPath, on stage: StagedContainer, _ recorded: inout PriorValues
  ) throws -> (notes: [String], changed: [ExactText]) {
    guard let defaults else {
      let notes = try stage.writeDatabase(at: path, keepsJournal: false, on: runner.connection) {
        try runner.run($0)
      }
      return (notes, [])
    }
    return try defaults.run(on: stage, &recorded) { around in
      try stage.writeDatabase(at: path, keepsJournal: false) { db in
        // Settings may be secrets: they must not reach a temporary file.
        try db.execute(sql: "PRAGMA temp_store=MEMORY")
        return try runner.run(db, around: around)
      }
    }
  }

  /// Whether a missing database is created: when the file says so, or its first statement creates a table.
  private var createsDatabase: Bool {
    if let ifMissing { return ifMissing == .create }
    guard isFirstOfDatabase else { return false }
    var offset = 0
    while let statement = up.statement(from: offset) {
      if statement.verb != "PRAGMA" { return statement.createsTable }
      offset = statement.end
    }
    return false
  }

  /// Creates the database in the first of its places.
  private func newPlace(on stage: StagedContainer, _ recorded: inout PriorValues) throws -> ContainerPath? {
    guard createsDatabase, let place = stage.container.configuration.databases[database.name]?.first else {
      return nil
    }
    try recorded.noteMade(place, on: stage)
    try stage.write([], to: place)
    return place
  }

  var effects: StepEffects {
    StepEffects(databases: .named(database.name), announcedLoss: announcedLoss)
  }
  var kind: StepKind { .sql(self) }
  var reversal: Reversal { down.map(\.isBlank) == false ? .explicit : .none }

  func revert(on stage: StagedContainer, _ recorded: PriorValues?) throws -> [String] {
    if recorded?.skipped.contains(database.name) == true { return [] }
    guard let down, let path = try database.place(on: stage) else { return [database.missing] }
    // Down statements may remove what the statements created.
    let runner = SQLRunner(
      script: down, destructive: "down", coreData: models?.down, withoutTriggers: withoutTriggers)
    var unused = PriorValues()
    var (notes, changed) = try run(runner, at: path, on: stage, &unused)
    if var settings = recorded {
      // The settings that the down statements leave as the statements wrote them.
      settings.settings.removeAll { changed.contains(ExactText($0.key)) }
      notes += try settings.revertSettings(on: stage)
    }
    if let recorded, recorded.made.contains(path), try stage.tableCount(of: path) == 0 {
      try stage.remove(path)
      try recorded.removeEmptyDirectories(on: stage)
    }
    return notes
  }
}

extension StagedContainer {
  /// The path of a database that a migration names; an unknown name is an error at that position.
  func namedDatabase(_ name: String, at position: YAMLPosition) throws -> ContainerPath? {
    guard container.configuration.databases[name] != nil else {
      throw Self.unknown(name, container.configuration.databases.keys.sorted(), at: position)
    }
    return try databasePlace(name)
  }

  static func unknown(_ name: String, _ known: [String], at position: YAMLPosition) -> DrydockError {
    position.error(
      known.isEmpty
        ? "drydock.yaml names no database: add `databases: {\(name): [PATH]}`"
        : "drydock.yaml has no database `\(name)`; " + NearestWord.hint(for: name, among: known))
  }
}

/// The statements of another tool's migration, run as that tool runs them: they need no reason for destroying data.
struct RunToolSQL: MigrationAction {
  let tool: MigrationTool.Format
  let database: String
  /// Where the migration starts, for messages.
  let position: YAMLPosition
  let script: ToolScript
  /// What Room does besides.
  var room: RoomStep? = nil

  var effects: StepEffects { StepEffects(databases: .named(database)) }
  var kind: StepKind { .toolSQL(self) }
  var reversal: Reversal { script.down != nil ? .explicit : script.up.isBlank ? .derived : .none }

  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    let notes = try run(script.up, inTransaction: script.upInTransaction, on: stage)
    if try stage.namedDatabase(database, at: position) == nil { recorded.skipped.append(database) }
    return notes
  }

  func revert(on stage: StagedContainer, _ recorded: PriorValues?) throws -> [String] {
    guard let down = script.down else {
      // The version alone, which the tool's record gets.
      if script.up.isBlank { return [] }
      throw StepFailure("the migration has no down statements")
    }
    return try run(down, inTransaction: script.downInTransaction, on: stage)
  }

  private func run(
    _ script: SQLScript, inTransaction: Bool, on stage: StagedContainer
  ) throws -> [String] {
    guard let place = try stage.namedDatabase(database, at: position) ?? newPlace(on: stage),
      try !tool.usesUserVersion || stage.tableCount(of: place) > 0
    else {
      return ["the database \(database) does not exist: skipped; the app creates it with the newest schema"]
    }
    if script.isBlank, room == nil { return [] }
    return try stage.notingTriggers(in: place) { triggers in
      try stage.writeDatabase(at: place) { try run(script, inTransaction: inTransaction, $0, triggers) }
    }
  }

  private func run(
    _ script: SQLScript, inTransaction: Bool, _ db: Database, _ triggers: TriggerWatch?
  ) throws -> [String] {
    if let room { return try run(room, db, triggers) }
    if inTransaction {
      return try MigrationTransaction.run(db, script: script, allowsOrphans: true) { _ in
        try statements(script, db, inTransaction: true, triggers)
      }
    }
    let before = try DatabaseState(db, changing: script)
    let children = try Self.cascades(db)
    try statements(script, db, inTransaction: false, triggers)
    guard !db.isInsideTransaction else {
      throw DrydockError(.sql, "\(script.position(at: 0)): these statements leave a transaction open")
    }
    let now = try Self.cascades(db)
    let gone = children.filter { $0.value > now[$0.key] ?? $0.value }.sorted { $0.key < $1.key }.map {
      "`\($0.key)` has \($0.value - (now[$0.key] ?? 0)) rows less: foreign keys were on, with ON DELETE CASCADE"
    }
    return try gone + before.notes(after: db, allowsOrphans: true)
  }

  /// Runs the statements as Room does, in one transaction with its hash and version.
  private func run(_ room: RoomStep, _ db: Database, _ triggers: TriggerWatch? = nil) throws -> [String] {
    try MigrationTransaction.run(db, guardsRoom: false, script: script.up) { _ in
      try room.begin(db)
      try statements(script.up, db, inTransaction: true, triggers)
      try room.finish(db)
    }
  }

  /// Runs the statements in a database that is not in a container.
  func rehearse(_ db: Database) throws {
    if let room { _ = try run(room, db) } else { try statements(script.up, db, inTransaction: false) }
  }

  /// The tools create a missing database, except SQLDelight and Room, whose apps create it.
  private func newPlace(on stage: StagedContainer) throws -> ContainerPath? {
    guard !tool.usesUserVersion, let place = stage.container.configuration.databases[database]?.first else {
      return nil
    }
    try stage.write([], to: place)
    return place
  }

  /// The numbers of rows of the tables whose rows go with those that they refer to, while foreign keys are on.
  private static func cascades(_ db: Database) throws -> [String: Int] {
    let sql = """
      SELECT DISTINCT child.name FROM sqlite_schema AS child, pragma_foreign_key_list(child.name) AS key
      WHERE child.type = 'table' AND key.on_delete = 'CASCADE'
      """
    return try String.fetchAll(db, sql: sql).reduce(into: [:]) { counts, name in
      counts[name] = try Int.fetchOne(db, sql: "SELECT count(*) FROM \(quotedIdentifier(name))")
    }
  }

  private func statements(
    _ script: SQLScript, _ db: Database, inTransaction: Bool, _ triggers: TriggerWatch? = nil
  ) throws {
    try script.run(in: db, noting: triggers) { source in
      // For GRDB, EXPLAIN of the end of a transaction would end it.
      if !inTransaction, source.isAboutTransactions { return nil }
      return StatementRules(
        source: source, destructive: "as \(tool.rawValue) would", isInTransaction: inTransaction)
    }
  }
}
