import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats
import GRDB

/// `sql`: runs statements on a named database, in one transaction.
struct RunSQL: MigrationOperation {
  static let name = "sql"
  static let keys = ["database", "up", "down", "file", "if-missing", "destructive", "core-data"]

  let database: String
  /// Where the database is named, for messages.
  let position: YAMLPosition
  let up: SQLScript
  /// The way back.
  let down: SQLScript?
  /// Nil when the first statement decides: see ``createsDatabase``.
  let ifMissing: IfNoDatabase?
  /// Whether no earlier migration is for the same database. Where one is, and the database is not there all the same, the
  /// app makes it, with tables that these statements alone would not give it.
  var isFirstOfDatabase = false
  let destructive: DestructiveReason?
  let announcedLoss: AnnouncedLoss
  /// Whose words messages use: those of a step, or those of a `.sql` file.
  let language: SQLLanguage
  /// What a Core Data store is to be after the way up, and after the way back.
  let coreData: CoreDataModel?
  let downCoreData: CoreDataModel?

  init(
    database: String, position: YAMLPosition, up: SQLScript, down: SQLScript?, ifMissing: IfNoDatabase?,
    destructive: DestructiveReason?
  ) throws {
    self.database = database
    self.position = position
    self.up = up
    self.down = down
    self.ifMissing = ifMissing
    self.destructive = destructive
    language = .directives
    (coreData, downCoreData) = (nil, nil)
    announcedLoss = try Self.announcedLoss(destructive, up)
  }

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    language = .steps
    let node = try reader.required("database")
    database = try node.text("`database`")
    position = node.position
    ifMissing = try reader.choice("if-missing")
    destructive = try reader["destructive"].map(DestructiveReason.init)
    if let file = reader["file"] {
      if let other = reader["up"] ?? reader["down"] {
        throw other.position.error("name either `file` or `up` and `down`, not both")
      }
      let name = try file.text("`file`")
      let parts = try SQLFile(try files.text(of: name, namedAt: file.position), file: files.display(name))
        .parts
      if parts.count > 1 {
        throw parts[1].head.position(at: 0).error("a step is for one database: make a step for each")
      }
      // A file without sections is all way up.
      up = parts[0].up ?? parts[0].head
      down = parts[0].down
    } else {
      up = try Self.script(try reader.required("up"), "`up`", files)
      down = try reader["down"].map { try Self.script($0, "`down`", files) }
    }
    let hasDown = down != nil
    let models = try reader["core-data"].map { try CoreDataArgument($0, files: files, hasDown: hasDown) }
    (coreData, downCoreData) = (models?.up, models?.down)
    if up.isBlank { throw reader.position.error("`sql` has no statement to run") }
    announcedLoss = try Self.announcedLoss(destructive, up)
  }

  /// What the reason announces. Who names tables names all of which the statements destroy data.
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

  /// SQL in place, or the name of a file beside `migration.yaml`: one that ends in `.sql`, which no SQL does.
  private static func script(_ node: YAMLNode, _ what: String, _ files: MigrationFiles) throws -> SQLScript {
    let text = try node.text(what)
    guard text.hasSuffix(".sql"), !text.contains(where: \.isNewline) else {
      // A block scalar's text starts in the line below its `|`.
      let isBlock = text.contains(where: \.isNewline)
      return SQLScript(
        text: text, file: node.position.file, firstLine: node.position.line + (isBlock ? 1 : 0))
    }
    return SQLScript(
      bytes: try files.text(of: text, namedAt: node.position), file: files.display(text), firstLine: 1)
  }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    guard let path = try stage.namedDatabase(database, at: position) ?? newPlace(on: stage, &memory) else {
      if ifMissing == .fail { throw StepFailure(message: "the database \(database) is not in the container") }
      memory.skipped.append(database)
      return ["the database \(database) is not there: skipped"]
    }
    let runner = SQLRunner(
      script: up, destructive: destructive?.text, language: language, coreData: coreData)
    return try stage.writeDatabase(at: path, keepsJournal: false) { try runner.run($0) }
  }

  /// Whether a missing database is made: when the file says so, or its first statement makes a table.
  private var createsDatabase: Bool {
    if let ifMissing { return ifMissing == .create }
    guard isFirstOfDatabase else { return false }
    var offset = 0
    while let statement = up.statement(from: offset) {
      if statement.verb != "PRAGMA" { return SQLWords(statement.text).makesTable }
      offset = statement.end
    }
    return false
  }

  /// Makes the database, in the first of its places.
  private func newPlace(on stage: StagedContainer, _ memory: inout StepMemory) throws -> ContainerPath? {
    guard createsDatabase, let place = stage.container.configuration.databases[database]?.first else {
      return nil
    }
    try memory.noteMade(place, on: stage)
    try stage.write([], to: place)
    return place
  }

  var isDestructive: Bool { destructive != nil }
  var wayBack: WayBack { down.map(\.isBlank) == false ? .byArguments : .none }
  var hasWrittenDown: Bool { down != nil }

  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    if memory?.skipped.contains(database) == true { return [] }
    guard let down, let path = try stage.namedDatabase(database, at: position) else {
      return ["the database \(database) is not there: skipped"]
    }
    // Whoever wrote the way back means it to take away what the way up made.
    let runner = SQLRunner(script: down, destructive: "the way back", coreData: downCoreData)
    let notes = try stage.writeDatabase(at: path, keepsJournal: false) { try runner.run($0) }
    if let memory, memory.made.contains(path), try stage.tableCount(of: path) == 0 {
      try stage.remove(path)
      try memory.removeEmptyDirectories(on: stage)
    }
    return notes
  }
}

extension StagedContainer {
  /// The place of a database that a migration names; an unknown name is an error at that place.
  func namedDatabase(_ name: String, at position: YAMLPosition) throws -> ContainerPath? {
    guard container.configuration.databases[name] != nil else {
      throw Self.unknown(name, container.configuration.databases.keys.sorted(), at: position)
    }
    return try databasePlace(name)
  }

  static func unknown(_ name: String, _ known: [String], at position: YAMLPosition) -> DrydockError {
    position.error(
      known.isEmpty
        ? "no database is named in drydock.yaml: add `databases: {\(name): [PATH]}`"
        : "drydock.yaml has no database `\(name)`; " + NearestWord.hint(for: name, among: known))
  }
}
