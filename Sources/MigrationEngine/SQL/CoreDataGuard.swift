import AppContainer
import DrydockErrors
import Formats
import Foundation
import GRDB

/// Keeps a Core Data store valid while a step changes it with SQL: its schema must fit the model that its metadata names,
/// and `Z_PRIMARYKEY` has the largest keys.
struct CoreDataGuard {
  private let model: CoreDataModel?
  private let schema: [Row]
  private let schemaVersion: Int?
  private let metadata: [Row]
  private let entities: CoreDataEntities
  private let strays: [String: Int]

  /// Nil when the database is not a Core Data store.
  ///
  /// - Parameter model: the new model; nil when the schema must not change.
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
    schema = try db.schemaRows()
    schemaVersion = try Self.schemaVersion(db)
    metadata = try Self.metadata(db)
    entities = try CoreDataEntities(db)
    strays = try entities.strays(db)
  }

  /// Checks the store after a statement.
  ///
  /// - Throws: ``StepFailure`` when it changed the schema without a new model.
  func check(_ db: Database) throws {
    guard model == nil, try Self.schemaVersion(db) != schemaVersion else { return }
    try requireSchema(db)
  }

  /// Checks the store after the last statement, and updates its metadata and largest keys.
  ///
  /// - Returns: notes.
  /// - Throws: ``StepFailure`` when Core Data would refuse or misread the store.
  func finish(_ db: Database) throws -> [String] {
    guard try Self.metadata(db) == metadata else {
      throw StepFailure(
        message:
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
    guard try db.schemaRows() != schema else { return }
    throw StepFailure(
      message:
        "the database is a Core Data store, and the statement changes its schema: Core Data would refuse to open "
        + "it; put the VersionInfo.plist of the target model (in its .momd) into the migration's directory, and say "
        + "`core-data: {version-info: VersionInfo.plist}`")
  }

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
    // A store may have been created for some entities of its model only: those that it never had may be missing.
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
    // A copy of the old model, which would contradict the metadata.
    if try db.tableExists("Z_MODELCACHE") { try db.execute(sql: "DELETE FROM Z_MODELCACHE") }
    return []
  }

  private static func schemaVersion(_ db: Database) throws -> Int? {
    try Int.fetchOne(db, sql: "PRAGMA schema_version")
  }

  private static func metadata(_ db: Database) throws -> [Row] {
    do {
      return try Row.fetchAll(db, sql: "SELECT * FROM Z_METADATA")
    } catch let error as DatabaseError {
      throw StepFailure(message: "the store has no Z_METADATA any more: \(error.plainMessage)")
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

/// The entities of a Core Data store, from `Z_PRIMARYKEY`: their numbers, and the largest key of each that was given out.
struct CoreDataEntities {
  struct Entity {
    let number: Int64
    let name: String
    /// The number of the entity that it inherits from; 0 for none.
    let parent: Int64
    let largestKey: Int64
  }

  /// Numbers from here on are those of Core Data's own entities, such as the history of changes.
  private static let ownNumbers: Int64 = 16000

  let all: [Entity]
  /// The tables of the store, by their names in capitals.
  private let tables: [String: String]

  init(_ db: Database) throws {
    all = try Row.fetchAll(db, sql: "SELECT Z_ENT, Z_NAME, Z_SUPER, Z_MAX FROM Z_PRIMARYKEY ORDER BY Z_ENT")
      .map {
        Entity(
          number: $0[0] ?? 0, name: $0[1] ?? "", parent: $0[2] ?? 0, largestKey: $0[3] ?? 0)
      }
    let names = try String.fetchAll(
      db,
      sql: """
        SELECT m.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c
        WHERE m.type = 'table' AND m.sql NOT LIKE 'CREATE VIRTUAL %' AND c.name IN ('Z_PK', 'Z_ENT')
        GROUP BY m.name HAVING count(*) = 2
        """)
    tables = Dictionary(names.map { ($0.uppercased(), $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// The names of the app's entities.
  var names: Set<String> { Set(all.filter { $0.number < Self.ownNumbers }.map(\.name)) }

  /// The entities that have a table, which those that inherit from them share.
  var roots: [(entity: Entity, table: String)] {
    all.compactMap { entity in
      guard entity.parent == 0, let table = table(of: entity) else { return nil }
      return (entity, table)
    }
  }

  /// The table of an entity that inherits from none; nil when there is none.
  func table(of entity: Entity) -> String? {
    let prefix = entity.number < Self.ownNumbers ? "Z" : "A"
    return tables[prefix + entity.name.uppercased()]
  }

  /// The numbers of an entity and of all that inherit from it.
  private func family(of root: Entity) -> Set<Int64> {
    var found: Set = [root.number]
    while case let more = all.filter({ found.contains($0.parent) && !found.contains($0.number) }),
      !more.isEmpty
    {
      found.formUnion(more.map(\.number))
    }
    return found
  }

  /// Rows of each app's table whose `Z_ENT` is none of the entities that the table is for.
  func strays(_ db: Database) throws -> [String: Int] {
    var strays: [String: Int] = [:]
    for (root, table) in roots where root.number < Self.ownNumbers {
      let numbers = family(of: root).map(String.init).joined(separator: ", ")
      let sql = """
        SELECT count(*) FROM \(quotedIdentifier(table)) WHERE Z_ENT IS NULL OR Z_ENT NOT IN (\(numbers))
        """
      strays[root.name] = try Int.fetchOne(db, sql: sql)
    }
    return strays
  }

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

/// The metadata of a Core Data store: one property list, in which apps store values, too.
struct CoreDataMetadata {
  private var file: PropertyListFile

  /// - Throws: ``StepFailure`` when it is missing or corrupt.
  init(_ db: Database) throws {
    let rows = try Row.fetchAll(db, sql: "SELECT Z_PLIST FROM Z_METADATA")
    guard rows.count == 1, let data = Data.fromDatabaseValue(rows[0][0]) else {
      throw StepFailure(
        message: "the Core Data store's metadata is corrupt: Z_METADATA has not one row with a Z_PLIST")
    }
    do {
      file = try PropertyListFile(bytes: [UInt8](data))
    } catch let error as DrydockError {
      throw StepFailure(message: "the Core Data store's metadata is corrupt: \(error.message)")
    }
  }

  /// The entities of the store's model.
  var entities: Set<String> {
    Set((file.root["NSStoreModelVersionHashes"]?.entityHashes ?? [:]).keys)
  }

  /// Sets the model's hashes and, where they exist, the values derived from them. The rest stays: the identifiers are hints
  /// for people, and not in a VersionInfo.plist.
  mutating func adopt(_ model: CoreDataModel) throws {
    file.root["NSStoreModelVersionHashes"] = .dictionary(
      PropertyListDictionary(model.hashes.map { ($0.key, .data($0.value)) }))
    let derived = [
      "NSStoreModelVersionHashesDigest": try model.digest(),
      "NSStoreModelVersionChecksumKey": try model.checksum(),
    ]
    for (key, value) in derived where file.root[key] != nil { file.root[key] = .string(value) }
  }

  func write(_ db: Database) throws {
    try db.execute(sql: "UPDATE Z_METADATA SET Z_PLIST = ?", arguments: [Data(try file.encoded())])
  }
}
