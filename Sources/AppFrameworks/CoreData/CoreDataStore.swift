import DrydockErrors
import Formats
import Foundation
import GRDB

extension Database {
  /// Whether it has the tables that make a database a Core Data store.
  package func isCoreDataStore() throws -> Bool {
    let columns = try String.fetchAll(
      self,
      sql: """
        SELECT m.name || '.' || c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c
        WHERE m.type = 'table' AND m.name IN ('Z_METADATA', 'Z_PRIMARYKEY')
        """)
    let needed = [
      "Z_METADATA.Z_PLIST", "Z_PRIMARYKEY.Z_ENT", "Z_PRIMARYKEY.Z_NAME", "Z_PRIMARYKEY.Z_SUPER",
      "Z_PRIMARYKEY.Z_MAX",
    ]
    return Set(needed).isSubset(of: columns)
  }
}

/// The entities of a Core Data store, from `Z_PRIMARYKEY`: their numbers, and the largest key of each that was given out.
package struct CoreDataEntities {
  package struct Entity: Sendable, Equatable {
    package let number: Int64
    package let name: String
    /// The number of the entity that it inherits from; 0 for none.
    package let parent: Int64
    package let largestKey: Int64

    /// Whether it is Core Data's, for the history of changes or for CloudKit, rather than the app's.
    package var isInternal: Bool { number >= 16000 || name.hasPrefix("NSCK") }
  }

  /// By number.
  package let all: [Entity]
  /// The tables of the store, by their names in capitals.
  private let tables: [String: String]

  /// Reads any content: values of other types count as 0, or as an empty name.
  package init(_ db: Database) throws {
    all = try Row.fetchAll(db, sql: "SELECT Z_ENT, Z_NAME, Z_SUPER, Z_MAX FROM Z_PRIMARYKEY ORDER BY Z_ENT")
      .map { row in
        let number = { (column: Int) in Int64.fromDatabaseValue(row[column]) ?? 0 }
        return Entity(
          number: number(0), name: String.fromDatabaseValue(row[1]) ?? "", parent: number(2),
          largestKey: number(3))
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

  /// The app's entities.
  package var ofApp: [Entity] { all.filter { !$0.isInternal } }

  /// The names of the app's entities.
  package var names: Set<String> { Set(ofApp.map(\.name)) }

  package func named(_ name: String) -> Entity? { all.first { $0.name == name } }

  /// The entities that have a table, which those that inherit from them share.
  package var roots: [(entity: Entity, table: String)] {
    all.compactMap { entity in
      guard entity.parent == 0, let table = table(of: entity) else { return nil }
      return (entity, table)
    }
  }

  /// The table of an entity that inherits from none; nil when there is none.
  package func table(of entity: Entity) -> String? {
    tables[(entity.isInternal ? "A" : "Z") + entity.name.uppercased()]
  }

  /// The entity that an entity inherits from, at the top; nil when one is missing, or they inherit from each other.
  package func root(of entity: Entity) -> Entity? {
    var (entity, seen) = (entity, Set<Int64>())
    while entity.parent != 0 {
      guard seen.insert(entity.number).inserted, let parent = all.first(where: { $0.number == entity.parent })
      else { return nil }
      entity = parent
    }
    return entity
  }

  /// The numbers of an entity and of all that inherit from it.
  package func family(of root: Entity) -> Set<Int64> {
    var found: Set = [root.number]
    while case let more = all.filter({ found.contains($0.parent) && !found.contains($0.number) }),
      !more.isEmpty
    {
      found.formUnion(more.map(\.number))
    }
    return found
  }
}

/// The metadata of a Core Data store: one property list, in which apps store values, too.
package struct CoreDataMetadata {
  private var file: PropertyListFile

  /// - Throws: `DrydockError` (`malformed`) when it is missing or corrupt.
  package init(_ db: Database) throws {
    let rows = try Row.fetchAll(db, sql: "SELECT Z_PLIST FROM Z_METADATA")
    guard rows.count == 1, let data = Data.fromDatabaseValue(rows[0][0]) else {
      throw DrydockError(
        .malformed,
        "the Core Data store's metadata is corrupt: Z_METADATA has not one row with a Z_PLIST")
    }
    do {
      file = try PropertyListFile(bytes: [UInt8](data))
    } catch let error as DrydockError {
      throw DrydockError(.malformed, "the Core Data store's metadata is corrupt: \(error.message)")
    }
  }

  /// The entities of the store's model with their hashes.
  package var hashes: [String: [UInt8]] { file.root["NSStoreModelVersionHashes"]?.entityHashes ?? [:] }

  /// What the developers call the version. It is often the name of another one.
  package var versionIdentifiers: [String] {
    guard case .array(let values)? = file.root["NSStoreModelVersionIdentifiers"] else { return [] }
    return values.compactMap { value in
      if case .string(let text) = value, !text.isEmpty { text } else { nil }
    }
  }

  /// What the app stores in the metadata, by key.
  package var ofApp: [(key: String, value: PropertyListValue)] {
    file.root.sorted().filter { pair in
      !["NS", "_NS", "PFCloudKit"].contains { pair.key.hasPrefix($0) }
    }
  }

  /// Sets the model's hashes and, where they exist, the values derived from them. The rest stays: the identifiers are hints
  /// for people, and not in a VersionInfo.plist.
  package mutating func adopt(_ model: CoreDataModel) throws {
    file.root["NSStoreModelVersionHashes"] = .dictionary(
      PropertyListDictionary(model.hashes.map { ($0.key, .data($0.value)) }))
    let derived = [
      "NSStoreModelVersionHashesDigest": try model.digest(),
      "NSStoreModelVersionChecksumKey": try model.checksum(),
    ]
    for (key, value) in derived where file.root[key] != nil { file.root[key] = .string(value) }
  }

  package func write(_ db: Database) throws {
    try db.execute(sql: "UPDATE Z_METADATA SET Z_PLIST = ?", arguments: [Data(try file.encoded())])
  }
}
