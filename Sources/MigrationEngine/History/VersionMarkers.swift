import AppContainer
import AppFrameworks
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats
import GRDB

extension ContainerConfiguration.VersionMarker.Place {
  /// Its name in messages.
  package var name: String {
    switch self {
    case .defaults(let key): "the setting `\(key)`"
    case .userVersion(let database): "the user_version of the database \(database)"
    case .json(let path, let pointer): "`\(pointer)` in \(path)"
    case .grdb(let database, _): "the table grdb_migrations of the database \(database)"
    }
  }
}

/// Reads and writes the number that an app keeps about its own data.
struct VersionMarkerAccess {
  let marker: ContainerConfiguration.VersionMarker
  let stage: StagedContainer

  /// The marker's name in messages.
  var name: String { marker.place.name }

  /// The app's number; nil when it is absent.
  ///
  /// - Throws: ``DrydockError`` with code `unknownVersion` when it is not an integer.
  func read() throws -> Int? {
    switch marker.place {
    case .defaults(let key):
      guard let path = stage.container.standardDefaults, let value = try stage.defaults(path)?.root[key]
      else {
        return nil
      }
      guard let number = value.anyInteger.flatMap({ Int(exactly: $0) }) else {
        throw unreadable("is a \(value.typeName)")
      }
      return number
    case .userVersion(let database):
      guard let path = try stage.databasePlace(database) else { return nil }
      return try stage.readDatabase(at: path) { try Int.fetchOne($0, sql: "PRAGMA user_version") }
    case .json(let path, let pointer):
      guard try stage.status(of: path) != nil else { return nil }
      guard let value = try document(path).value[JSONPointer(pointer)] else { return nil }
      guard case .number(let number) = value, let number = number.integer.flatMap({ Int(exactly: $0) }) else {
        throw unreadable("is not an integer")
      }
      return number
    case .grdb(let database, let identifiers):
      guard let applied = try appliedByGRDB(database) else { return nil }
      if identifiers.isEmpty { return applied.count }
      return identifiers.lastIndex(where: applied.contains).map { $0 + 1 } ?? 0
    }
  }

  private func appliedByGRDB(_ database: String) throws -> [String]? {
    guard let path = try stage.databasePlace(database) else { return nil }
    return try stage.readDatabase(at: path) { try $0.appliedByGRDB() }
  }

  /// Writes the app's number where its place exists; a setting is created.
  ///
  /// - Returns: a note when it could not be written.
  func write(_ number: Int) throws -> String? {
    switch marker.place {
    case .defaults(let key):
      guard let path = stage.container.standardDefaults else {
        return "\(name): the settings file is unknown"
      }
      var file = try stage.defaults(path) ?? SettingsFile(newAt: path.description)
      guard file.root[key]?.anyInteger != Int64(number) else { return nil }
      try file.set(.integer(Int64(number)), for: key)
      try stage.setDefaults(file, at: path)
    case .userVersion(let database):
      guard let path = try stage.databasePlace(database) else {
        return "\(name): the database does not exist: no version was written to it"
      }
      guard try read() != number else { return nil }
      guard Int32(exactly: number) != nil else { return "\(name): \(number) does not fit" }
      try stage.writeDatabase(at: path) { try $0.execute(sql: "PRAGMA user_version = \(number)") }
    case .json(let path, let pointer):
      guard try stage.status(of: path) != nil else { return "\(name): the file does not exist" }
      guard try read() != number else { return nil }
      var document = try document(path)
      guard (try? document.value.set(.number(JSONNumber(number)), at: JSONPointer(pointer))) != nil else {
        return "\(name): its parent does not exist"
      }
      try stage.write(document.bytes, to: path)
    case .grdb(let database, let identifiers):
      guard let path = try stage.databasePlace(database), let present = try read() else {
        return "\(name): the table does not exist: no version was written to it"
      }
      guard present != number else { return nil }
      guard number <= identifiers.count else {
        return "\(name): the identifiers are unknown, and none was written: name them in the marker's `at:`"
      }
      try stage.writeDatabase(at: path) { db in
        try db.inTransaction {
          for (index, identifier) in identifiers.enumerated() {
            let sql =
              index < number
              ? "INSERT OR IGNORE INTO grdb_migrations (identifier) VALUES (?)"
              : "DELETE FROM grdb_migrations WHERE identifier = ?"
            try db.execute(sql: sql, arguments: [identifier])
          }
          return .commit
        }
      }
    }
    return nil
  }

  private func document(_ path: ContainerPath) throws -> JSONDocument {
    do {
      return try JSONDocument(bytes: try stage.read(path))
    } catch let error as DrydockError where error.code == .malformed {
      throw DrydockError(
        .unknownVersion, "the file with the version marker is \(error.message)", path: path.description,
        cause: error)
    }
  }

  private func unreadable(_ what: String) -> DrydockError {
    DrydockError(.unknownVersion, "the version marker, \(name), \(what): a version is an integer")
  }
}

/// Translates between the app's own version numbers and the numbers of migrations.
///
/// Without `at:` they are the same. `at: {4: 2, 6: 3}` says that after migration 4 the app's number is 2 and after 6 it
/// is 3. An app's number means its migration and those after it, up to the next one in `at:`: 2 means "4 or 5", and 0 means
/// "before 4". A number that is not in `at:` is an error. `at: {0: 3}` says that the number was 3 before the first migration.
struct VersionMarkerNumbers {
  private let pairs: [(migration: Int, app: Int)]

  init(_ at: [Int: Int]) {
    pairs = at.map { (migration: $0.key, app: $0.value) }.sorted { $0.migration < $1.migration }
  }

  /// The migrations that an app's number means; nil when it is unknown.
  func migrations(for app: Int) -> ClosedRange<Int>? {
    if pairs.isEmpty { return app >= 0 ? app...app : nil }
    if let index = pairs.firstIndex(where: { $0.app == app }) {
      let last = index + 1 < pairs.count ? pairs[index + 1].migration - 1 : Int.max
      return pairs[index].migration...max(pairs[index].migration, last)
    }
    guard app == 0, let first = pairs.first, first.migration > 0 else { return nil }
    return 0...first.migration - 1
  }

  /// The app's number after a migration; nil when it has none.
  func app(for migration: Int) -> Int? {
    if pairs.isEmpty { return migration }
    return pairs.last { $0.migration <= migration }?.app
  }
}

/// Finds the places where a container probably stores its schema version, for a first configuration.
package struct VersionMarkerSearch {
  package struct Finding: Equatable {
    package var place: ContainerConfiguration.VersionMarker.Place
    package var number: Int
  }

  /// Databases with migrations of GRDB first, which the app trusts itself, then settings, and databases whose `user_version` is
  /// not 0, the default.
  package private(set) var findings: [Finding] = []

  /// - Parameter databases: by name. Unreadable ones are skipped.
  package init(_ stage: StagedContainer, databases: [(name: String, path: ContainerPath)]) {
    if let path = stage.container.standardDefaults, let root = try? stage.defaults(path)?.root {
      for (key, value) in root where Self.isAboutTheSchema(key) {
        guard let number = value.anyInteger.flatMap({ Int(exactly: $0) }), number >= 0 else {
          continue
        }
        findings.append(Finding(place: .defaults(key: key), number: number))
      }
    }
    for (name, path) in databases {
      let applied = try? stage.readDatabase(at: path) { try $0.appliedByGRDB() }
      if let last = (applied ?? nil)?.last {
        let count = findings.count { if case .grdb = $0.place { true } else { false } }
        findings.insert(Finding(place: .grdb(database: name, identifiers: [last]), number: 1), at: count)
      }
      let read = try? stage.readDatabase(at: path) { try Int.fetchOne($0, sql: "PRAGMA user_version") }
      guard let number = read ?? nil, number > 0 else { continue }
      findings.append(Finding(place: .userVersion(database: name), number: number))
    }
  }

  /// `dataSchemaVersion`, `db_version`, `lastMigration`: not `version`, which may be the app's.
  static func isAboutTheSchema(_ key: String) -> Bool {
    let name = key.lowercased().filter(\.isLetter)
    let subjects = ["schema", "data", "datamodel", "database", "db", "store", "storage", "migration"]
    return subjects.contains { name.hasSuffix($0 + "version") || name.hasSuffix("version" + "of" + $0) }
      || name.hasSuffix("schemaversionnumber") || name.hasSuffix("lastmigration")
  }
}

/// What a database's own library, or another migration tool, has written into it about its schema.
package struct SchemaRecord: Sendable, Equatable {
  /// In a sentence, such as `GRDB applied 3 migrations, the last one is v3 (table grdb_migrations)`.
  package var text: String
  /// The format of the tool's migration directory, which Drydock can read.
  package var tool: MigrationTool.Format?
  package var room: RoomIdentity?

  /// The record in a database; nil when there is none.
  package static func find(in database: ContainerPath, of stage: StagedContainer) -> SchemaRecord? {
    (try? stage.readDatabase(at: database) { try find($0) }) ?? nil
  }

  private static func find(_ db: Database) throws -> SchemaRecord? {
    let tables = try Set(String.fetchAll(db, sql: "SELECT name FROM sqlite_schema WHERE type = 'table'"))
    if let names = try db.appliedByGRDB() {
      let last = names.last.map { ", the last one is \($0.debugDescription)" } ?? ""
      return SchemaRecord(text: "GRDB applied \(names.count) migrations\(last) (table grdb_migrations)")
    }
    if let room = try RoomIdentity(db) {
      return SchemaRecord(
        text: "Room's, version \(room.version): Room refuses a schema that its identity hash does not match "
          + "(table room_master_table)", tool: .room, room: room)
    }
    if tables.isSuperset(of: ["Z_METADATA", "Z_PRIMARYKEY"]) {
      let entities = try Int.fetchOne(db, sql: "SELECT count(*) FROM Z_PRIMARYKEY") ?? 0
      return SchemaRecord(
        text: "a Core Data or SwiftData store with \(entities) entities: its model decides the schema, and "
          + "user_version is not its version")
    }
    if tables.contains("goose_db_version") {
      return SchemaRecord(text: "goose's (table goose_db_version)", tool: .goose)
    }
    if tables.contains("schema_migrations") {
      let columns = try db.columns(in: "schema_migrations").map(\.name)
      return columns.contains("dirty")
        ? SchemaRecord(text: "golang-migrate's (table schema_migrations)", tool: .golangMigrate)
        : SchemaRecord(text: "dbmate's (table schema_migrations)", tool: .dbmate)
    }
    return nil
  }
}
