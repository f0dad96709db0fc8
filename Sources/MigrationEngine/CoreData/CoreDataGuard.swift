import AppContainer
import GRDB

/// Keeps a Core Data store one while a step changes it with SQL: its schema belongs to its model, its metadata says
/// which model that is, and `Z_PRIMARYKEY` which keys were given out.
struct CoreDataGuard {
  private let model: CoreDataModel?
  private let schema: [Row]
  private let schemaVersion: Int?
  private let metadata: [Row]
  private let entities: CoreDataEntities
  private let strays: [String: Int]

  /// Nil when a database is no Core Data store.
  ///
  /// - Parameter model: what the store is to be afterwards; nil when the schema has to stay.
  init?(_ db: Database, model: CoreDataModel?) throws {
    let columns = try String.fetchAll(
      db,
      sql: """
        SELECT m.name || '.' || c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c
        WHERE m.type = 'table' AND m.name IN ('Z_METADATA', 'Z_PRIMARYKEY')
        """)
    let needed = [
      "Z_METADATA.Z_PLIST", "Z_PRIMARYKEY.Z_ENT", "Z_PRIMARYKEY.Z_NAME", "Z_PRIMARYKEY.Z_SUPER",
      "Z_PRIMARYKEY.Z_MAX",
    ]
    guard Set(needed).isSubset(of: columns) else { return nil }
    self.model = model
    schema = try Self.schema(db)
    schemaVersion = try Self.schemaVersion(db)
    metadata = try Self.metadata(db)
    entities = try CoreDataEntities(db)
    strays = try entities.strays(db)
  }

  /// Looks at the store after a statement.
  ///
  /// - Throws: ``StepFailure`` when it changed the schema, and no model says to what.
  func check(_ db: Database) throws {
    guard model == nil, try Self.schemaVersion(db) != schemaVersion else { return }
    try requireSchema(db)
  }

  /// Looks at the store after the last statement, and brings right what follows from the others.
  ///
  /// - Returns: remarks.
  /// - Throws: ``StepFailure`` for what would make Core Data refuse the store, or misunderstand it.
  func finish(_ db: Database) throws -> [String] {
    guard try Self.metadata(db) == metadata else {
      throw StepFailure(
        message:
          "these statements change Z_METADATA, which is Core Data's own: leave it alone; `core-data` with the "
          + "VersionInfo.plist of the target model brings it right")
    }
    let after = try CoreDataEntities(db)
    var notes: [String] = []
    if let model {
      notes += try adopt(model, after, db)
    } else {
      try requireSchema(db)
    }
    for (entity, count) in try after.strays(db).sorted(by: { $0.key < $1.key }) {
      let more = count - (strays[entity] ?? 0)
      if more <= 0 { continue }
      throw StepFailure(
        message:
          "these statements leave \(more) rows of \(entity) with a Z_ENT that is not its own: give each row the "
          + "Z_ENT that Z_PRIMARYKEY has for its entity")
    }
    return try notes + after.raiseLargestKeys(db)
  }

  private func requireSchema(_ db: Database) throws {
    guard try Self.schema(db) != schema else { return }
    throw StepFailure(
      message:
        "the database is a Core Data store, and the statement changes its schema: Core Data would refuse to open "
        + "it; put the VersionInfo.plist of the target model (in its .momd) into the migration's directory, and say "
        + "`core-data: {version-info: VersionInfo.plist}`")
  }

  // MARK: A new model

  private func adopt(_ model: CoreDataModel, _ after: CoreDataEntities, _ db: Database) throws -> [String] {
    var metadata = try CoreDataMetadata(db)
    let before = entities.names
    let old = metadata.entities
    let new = Set(model.hashes.keys)
    guard !old.isDisjoint(with: new) else {
      throw StepFailure(
        message:
          "the model `\(model.name)` has no entity in common with the Core Data store: is the VersionInfo.plist "
          + "another app's?")
    }
    // A store may have been made for some of its model's entities only: those that it never had may be missing.
    let missing = new.subtracting(after.names).subtracting(old.subtracting(before)).sorted()
    let extra = after.names.subtracting(new).subtracting(before.subtracting(old)).sorted()
    if let name = missing.first {
      throw StepFailure(
        message:
          "the model `\(model.name)` has the entity \(name), and Z_PRIMARYKEY does not: insert its row, with a "
          + "Z_ENT that is free")
    }
    if let name = extra.first {
      throw StepFailure(
        message:
          "Z_PRIMARYKEY has the entity \(name), and the model `\(model.name)` does not: delete or rename its row"
      )
    }
    if let entity = after.all.first(where: {
      $0.parent == 0 && new.contains($0.name) && after.table(of: $0) == nil
    }) {
      throw StepFailure(message: "the entity \(entity.name) has no table Z\(entity.name.uppercased())")
    }
    try metadata.adopt(model)
    try metadata.write(db)
    // A copy of the old model, for Core Data's own migrations: it would contradict the metadata.
    if try db.tableExists("Z_MODELCACHE") { try db.execute(sql: "DELETE FROM Z_MODELCACHE") }
    return []
  }

  // MARK: What the store is

  /// The schema without SQLite's own tables, such as those that ANALYZE makes.
  private static func schema(_ db: Database) throws -> [Row] {
    try Row.fetchAll(
      db,
      sql: """
        SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
        ORDER BY type, name
        """)
  }

  private static func schemaVersion(_ db: Database) throws -> Int? {
    try Int.fetchOne(db, sql: "PRAGMA schema_version")
  }

  private static func metadata(_ db: Database) throws -> [Row] {
    do {
      return try Row.fetchAll(db, sql: "SELECT * FROM Z_METADATA")
    } catch let error as DatabaseError {
      throw StepFailure(message: "the store's Z_METADATA is not there any more: \(error.plainMessage)")
    }
  }
}
