import AppContainer
import AppFrameworks
import AppStores
import ContainerTransaction
import DrydockErrors
import Formats
import GRDB

/// The schema that the app's library declares for its database: Room's exported schemas, SQLDelight's `.sq` files. It is
/// compared as the library does, with a database that the library itself creates.
package struct DeclaredSchema {
  private let tool: MigrationTool
  private let catalog: MigrationCatalog
  private let configuration: ContainerConfiguration
  private let fresh: SchemaShape?

  /// Nil when the migrations have no such library, or the `.sq` files are not named.
  ///
  /// - Throws: ``DrydockError`` for files that cannot be read.
  package init?(_ catalog: MigrationCatalog, _ configuration: ContainerConfiguration) throws {
    guard let tool = catalog.tool, tool.format == .room || tool.sources != nil else { return nil }
    (self.tool, self.catalog, self.configuration) = (tool, catalog, configuration)
    fresh = try tool.sources.map {
      try SQLDelightSources($0).fresh(configuration).read { try SchemaShape($0) }
    }
  }

  /// How a container's database differs from the schema of its version; empty where none is declared, or the container has
  /// no database.
  package func drift(in stage: StagedContainer, at version: Int) throws -> [SchemaDrift] {
    guard let place = try stage.databasePlace(tool.database), try stage.tableCount(of: place) > 0 else {
      return []
    }
    return try stage.readDatabase(at: place) { db in
      if let fresh {
        return version == catalog.latest ? try Self.drift(db, fresh) : []
      }
      guard let schema = catalog.roomSchema(version) else { return [] }
      // The schema file itself must create what it declares.
      _ = try schema.fresh(configuration)
      return try schema.differences(in: db)
    }
  }

  private static func drift(_ db: Database, _ fresh: SchemaShape) throws -> [SchemaDrift] {
    try SchemaShape(db).differences(from: fresh).map {
      SchemaDrift(place: $0.place, expected: $0.expected, found: $0.found)
    }
  }
}

extension DeclaredSchema {
  /// Runs the migrations in databases of the old versions, in memory: Room's exported schemas, SQLDelight's `N.db`.
  ///
  /// - Returns: the errors, at their files.
  static func rehearsal(_ catalog: MigrationCatalog, _ configuration: ContainerConfiguration)
    -> [DrydockError]
  {
    guard let tool = catalog.tool else { return [] }
    do {
      switch tool.format {
      case .room: return catalog.migrations.compactMap { rehearse($0, configuration) }
      case .sqldelight: return try tool.sources.map { try rehearse(catalog, $0, configuration) } ?? []
      default: return []
      }
    } catch {
      return [DrydockError(reading: error)]
    }
  }

  /// One of Room's migrations, from an empty database of its version.
  private static func rehearse(
    _ migration: Migration, _ configuration: ContainerConfiguration
  ) -> DrydockError? {
    guard let step = migration.toolSQL, let source = step.room?.source else { return nil }
    do {
      try Migrator.located(step.position, "the empty database of version \(source.version)") {
        try source.fresh(configuration).writeWithoutTransaction { try step.rehearse($0) }
      }
      return nil
    } catch {
      return DrydockError(reading: error)
    }
  }

  /// SQLDelight's migrations, from each of the old databases to the newest version.
  private static func rehearse(
    _ catalog: MigrationCatalog, _ path: String, _ configuration: ContainerConfiguration
  ) throws -> [DrydockError] {
    let sources = try SQLDelightSources(path)
    let fresh = try sources.fresh(configuration).read { try SchemaShape($0) }
    return sources.databases.flatMap { version, file -> [DrydockError] in
      do {
        let queue = try DatabaseQueue.fresh(configuration)
        try DatabaseQueue.inMemoryCopy(fromPath: file).backup(to: queue)
        let drift = try queue.writeWithoutTransaction { db in
          for migration in catalog.migrations where migration.number > version {
            try migration.toolSQL?.rehearse(db)
          }
          return try Self.drift(db, fresh)
        }
        return drift.map { drift in
          DrydockError(
            .verifyFailed,
            "\(file): migrated to version \(catalog.latest), the database differs from the .sq files: \(drift.sentence)"
          )
        }
      } catch let error as DatabaseError {
        return [DrydockError(.catalog, "\(file): \(error.plainMessage)", cause: error)]
      } catch {
        let error = DrydockError(reading: error)
        return [DrydockError(error.code, "\(error.message) (in \(file))", path: error.path)]
      }
    }
  }
}

extension SchemaDrift {
  /// Such as `table note: column title: missing`.
  var sentence: String {
    switch (expected, found) {
    case (let expected?, let found?): "\(place): \(expected) expected, found \(found)"
    case (let expected?, nil): "\(place): missing, expected \(expected)"
    default: "\(place): only in the migrated database"
    }
  }
}
