import AppFrameworks
import AppStores
import DrydockErrors
import GRDB

/// Keeps a Core Data store valid while a step changes it with SQL: its schema must fit the model that its metadata names,
/// and `Z_PRIMARYKEY` has the largest keys.
struct CoreDataGuard {
  private let model: CoreDataModel?
  /// Whether other steps may have to add or rename entities before the store has all of the model's.
  private let isPart: Bool
  private let schema: [Row]
  private let schemaVersion: Int
  private let metadata: [Row]
  private let entities: CoreDataEntities
  private let orphanedRows: [String: Int]

  /// Nil when the database is not a Core Data store.
  ///
  /// - Parameters:
  ///   - model: the new model; nil when the schema must not change.
  ///   - isPart: whether the change is one of several that lead to the model.
  init?(_ db: Database, model: CoreDataModel?, isPart: Bool = false) throws {
    guard try db.isCoreDataStore() else { return nil }
    (self.model, self.isPart) = (model, isPart)
    schema = try db.schemaRows()
    schemaVersion = try db.schemaVersion
    metadata = try Self.metadata(db)
    entities = try CoreDataEntities(db)
    orphanedRows = try entities.orphanedRows(db)
  }

  /// Checks the store after a statement.
  ///
  /// - Throws: ``StepFailure`` when it changed the schema without a new model.
  func check(_ db: Database) throws {
    guard model == nil, try db.schemaVersion != schemaVersion else { return }
    try requireSchema(db)
  }

  /// Checks the store after the last statement, and updates its metadata and largest keys.
  ///
  /// - Returns: notes.
  /// - Throws: ``StepFailure`` when Core Data would refuse or misread the store.
  func finish(_ db: Database) throws -> [String] {
    guard try Self.metadata(db) == metadata else {
      throw StepFailure(
        "these statements change Z_METADATA, which belongs to Core Data: leave it unchanged; `core-data` with the "
          + "VersionInfo.plist of the target model updates it")
    }
    let after = try CoreDataEntities(db)
    var notes: [String] = []
    if let model {
      notes += try adopt(model, after, db)
    } else {
      try requireSchema(db)
    }
    for (entity, count) in try after.orphanedRows(db).sorted(by: { $0.key < $1.key }) {
      let more = count - (orphanedRows[entity] ?? 0)
      if more <= 0 { continue }
      throw StepFailure(
        "these statements leave \(more) rows of \(entity) with a Z_ENT that is not its own: give each row the "
          + "Z_ENT that Z_PRIMARYKEY has for its entity")
    }
    return try notes + after.raiseLargestKeys(db)
  }

  private func requireSchema(_ db: Database) throws {
    guard try db.schemaRows() != schema else { return }
    throw StepFailure(
      "the database is a Core Data store, and the statement changes its schema: Core Data would refuse to open "
        + "it; put the VersionInfo.plist of the target model (in its .momd) into the migration's directory, and say "
        + "`core-data: {version-info: VersionInfo.plist}`")
  }

  private func adopt(_ model: CoreDataModel, _ after: CoreDataEntities, _ db: Database) throws -> [String] {
    var metadata: CoreDataMetadata
    do {
      metadata = try CoreDataMetadata(db)
    } catch let error as DrydockError {
      throw StepFailure(error.message)
    }
    let before = entities.names
    let old = Set(metadata.hashes.keys)
    let new = Set(model.hashes.keys)
    guard !old.isDisjoint(with: new) else {
      throw StepFailure(
        "the model `\(model.name)` has no entity in common with the Core Data store: is the VersionInfo.plist "
          + "another app's?")
    }
    // A store may have been created for some entities of its model only: those that it never had may be missing.
    let missing = new.subtracting(after.names).subtracting(old.subtracting(before)).sorted()
    let extra = after.names.subtracting(new).subtracting(before.subtracting(old)).sorted()
    let notes = isPart ? Self.notes(missing: missing, extra: extra, of: model) : []
    if !isPart { try Self.require(noneOf: missing, extra, in: model) }
    if let entity = after.all.first(where: {
      $0.parent == 0 && new.contains($0.name) && after.table(of: $0) == nil
    }) {
      throw StepFailure("the entity \(entity.name) has no table Z\(entity.name.uppercased())")
    }
    let kept = metadata.hashes.filter { extra.contains($0.key) }
    try metadata.adopt(isPart ? model.having(after.names, and: kept) : model)
    try metadata.write(db)
    // A copy of the old model, which would contradict the metadata.
    if try db.tableExists("Z_MODELCACHE") { try db.execute(sql: "DELETE FROM Z_MODELCACHE") }
    return notes
  }

  private static func require(noneOf missing: [String], _ extra: [String], in model: CoreDataModel) throws {
    if let name = missing.first {
      throw StepFailure(
        "the model `\(model.name)` has the entity \(name), and Z_PRIMARYKEY does not: insert its row, with a "
          + "Z_ENT that is free")
    }
    if let name = extra.first {
      throw StepFailure(
        "Z_PRIMARYKEY has the entity \(name), and the model `\(model.name)` does not: delete or rename its row"
      )
    }
  }

  private static func notes(missing: [String], extra: [String], of model: CoreDataModel) -> [String] {
    let parts = [("without", missing), ("with", extra)].filter { !$0.1.isEmpty }.map {
      "\($0.0) \($0.1.joined(separator: ", "))"
    }
    if parts.isEmpty { return [] }
    return [
      "the store is not yet of the model `\(model.name)`: it is \(parts.joined(separator: ", and ")); other steps must "
        + "change that"
    ]
  }

  private static func metadata(_ db: Database) throws -> [Row] {
    do {
      return try Row.fetchAll(db, sql: "SELECT * FROM Z_METADATA")
    } catch let error as DatabaseError {
      throw StepFailure("the store has no Z_METADATA any more: \(error.plainMessage)")
    }
  }
}

extension Database {
  /// The schema without SQLite's own tables, such as those that ANALYZE makes, and without another table.
  func schemaRows(except table: String = "") throws -> [Row] {
    try Row.fetchAll(
      self,
      sql: """
        SELECT type, name, tbl_name, sql FROM sqlite_schema
        WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name != ? ORDER BY type, name
        """, arguments: [table])
  }
}

extension CoreDataEntities {
  /// Raises the largest keys to those of the tables, since Core Data would otherwise reuse keys.
  ///
  /// - Returns: notes.
  func raiseLargestKeys(_ db: Database) throws -> [String] {
    try roots.compactMap { root, table in
      let sql = "SELECT max(Z_PK) FROM \(quotedIdentifier(table))"
      guard let largest = try Int64.fetchOne(db, sql: sql), largest > root.largestKey else { return nil }
      try db.execute(
        sql: "UPDATE Z_PRIMARYKEY SET Z_MAX = ? WHERE Z_ENT = ?", arguments: [largest, root.number])
      return "Z_PRIMARYKEY: the largest key of \(root.name) is \(largest) now (was \(root.largestKey))"
    }
  }
}
