import AppStores
import DrydockErrors
import Formats
import GRDB

/// By what Room recognizes a database.
package struct RoomIdentity: Sendable, Equatable {
  /// `PRAGMA user_version`.
  package let version: Int
  /// Nil when the table has no hash.
  package let hash: String?

  /// Nil for a database without Room's table.
  package init?(_ db: Database) throws {
    let sql =
      "SELECT count(*) FROM pragma_table_info('room_master_table') WHERE name IN ('id', 'identity_hash')"
    guard try Int.fetchOne(db, sql: sql) == 2 else { return nil }
    version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
    let value = try DatabaseValue.fetchOne(
      db, sql: "SELECT identity_hash FROM room_master_table WHERE id = 42")
    hash = value.flatMap { String.fromDatabaseValue($0) }
  }
}

extension DatabaseDescription {
  private static let limit = 20

  /// Describes a database of Room; nil for others.
  init?(room database: DescribedDatabase) throws {
    guard let identity = (try? RoomIdentity(database.db)) ?? nil else { return nil }
    self.init(.room, summary: "Room database, version \(identity.version)")
    facts.append(Fact("version", "\(identity.version)"))
    facts.append(
      Fact(
        "identity hash",
        identity.hash.map { database.redactor.shown(message: String($0.prefix(64))) } ?? "none"))
    if identity.hash == nil {
      warnings.append(
        "room_master_table has no identity hash: Room validates the schema when it opens the database")
    }
    do {
      try compare(identity, database)
      try countRows(database)
    } catch let error as DatabaseError {
      warnings.append("the Room database is corrupt: \(error.plainMessage)")
    }
  }

  /// Compares it with the exported schemas that `drydock.yaml` names.
  private mutating func compare(_ identity: RoomIdentity, _ database: DescribedDatabase) throws {
    guard let tool = database.configuration.migrationTool, let path = tool.schemas,
      database.configuration.databases[tool.database]?.contains(database.path) == true
    else { return }
    do {
      guard let schema = try RoomSchema.exported(identity.version, to: path) else {
        let last =
          try RoomSchema.versions(in: path).last.map { "the last one is \($0)" }
          ?? "the directory has no schemas"
        return facts.append(Fact("schema", "version \(identity.version) was not exported; \(last)"))
      }
      let name = "\(identity.version).json"
      let differences = try schema.differences(in: database.db)
      if schema.identityHash == identity.hash, differences.isEmpty {
        return facts.append(Fact("schema", "matches \(name)"))
      }
      facts.append(Fact("schema", "differs from \(name)"))
      if schema.identityHash != identity.hash {
        let other = try RoomSchema.versions(in: path).first {
          try RoomSchema.exported($0, to: path)?.identityHash == identity.hash
        }
        warnings.append(
          "Room would refuse the database: its identity hash is "
            + (other.map { "that of version \($0), not of version \(identity.version)" }
              ?? "not that of \(name)"))
      }
      warnings += differences.prefix(Self.limit).map { "Room's schema: \($0.description)" }
      if differences.count > Self.limit {
        warnings.append("Room's schema: \(differences.count - Self.limit) more differences")
      }
    } catch let error as DrydockError {
      warnings.append("Room's schemas cannot be read: \(error.message)")
    }
  }

  private mutating func countRows(_ database: DescribedDatabase) throws {
    let sql = """
      SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual')
        AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT IN ('room_master_table', 'android_metadata')
      ORDER BY name
      """
    for name in try String.fetchAll(database.db, sql: sql) {
      // A virtual table may need a module that is not here.
      let rows = try? Int.fetchOne(database.db, sql: "SELECT count(*) FROM \(quotedIdentifier(name))")
      entities.append(Entity(name: database.redactor.shown(name: name), rows: rows ?? nil))
    }
  }
}

extension DatabaseDescription {
  /// Describes a database whose migrations GRDB keeps a record of; nil for others.
  init?(grdb database: DescribedDatabase) throws {
    guard let applied = (try? database.db.appliedByGRDB()) ?? nil else { return nil }
    self.init(.grdb, summary: "GRDB, \(applied.count.counted("migration"))")
    for (index, identifier) in applied.enumerated() {
      facts.append(Fact("migration \(index + 1)", database.redactor.shown(name: identifier)))
    }
  }
}

extension Database {
  /// The identifiers of the migrations that GRDB applied, in the order of their insertion, since GRDB keeps no other; nil
  /// without its table.
  package func appliedByGRDB() throws -> [String]? {
    let sql = "SELECT 1 FROM pragma_table_info('grdb_migrations') WHERE name = 'identifier'"
    guard try Int.fetchOne(self, sql: sql) != nil else { return nil }
    return try DatabaseValue.fetchAll(
      self, sql: "SELECT identifier FROM grdb_migrations ORDER BY rowid LIMIT 10000"
    )
    .compactMap { String.fromDatabaseValue($0) }
  }
}
