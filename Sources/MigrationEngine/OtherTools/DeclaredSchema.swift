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

extension SQLDelightSources {
  /// The database that the app creates, in memory.
  func fresh(_ configuration: ContainerConfiguration) throws -> DatabaseQueue {
    let queue = try DatabaseQueue.fresh(configuration)
    try queue.writeWithoutTransaction { db in
      for script in statements {
        try script.run(in: db) { StatementRules(source: $0, destructive: "the schema") }
      }
    }
    return queue
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

/// The schema that another tool's migrations make, by their definitions in an empty database. What of it a database lacks was
/// not applied there, whatever the tool's record says.
struct ReplayedSchema {
  /// What the database lacks, such as `table note: column title`, and the migration that makes it; nil for what the app made
  /// before the first one.
  private(set) var missing: [(part: String, migration: Migration?)] = []
  private let catalog: MigrationCatalog
  private let version: Int
  /// Definitions whose result is not known, with the reasons.
  private var skipped: [String] = []
  /// The words of these definitions, in lower case.
  private var unknown: Set<String> = ["room_master_table"]

  /// Compares a container's database; nil when the migrations do not say what it has.
  ///
  /// - Parameter recorded: the numbers that the tool has recorded, up to a version.
  init?(
    _ catalog: MigrationCatalog, applied: [Migration], recorded: Set<Int>, version: Int,
    of stage: StagedContainer
  ) throws {
    // A migration without a file may have dropped what an earlier one made.
    let others = recorded.subtracting(catalog.numbers).subtracting([catalog.base])
    guard let tool = catalog.tool, let first = applied.first,
      others.allSatisfy({ $0 < first.number }), let place = try stage.databasePlace(tool.database)
    else { return nil }
    (self.catalog, self.version) = (catalog, version)
    let settings = stage.container.configuration
    func base() throws -> Base { try Base(catalog, tool, version, hasAll: others.isEmpty, settings) }
    do {
      let start = try base()
      let expected = try replay(applied, start) { _, _ in }
      let found = try stage.readDatabase(at: place) { try SchemaShape($0) }
      let parts = found.missing(from: expected, except: unknown)
      guard !parts.isEmpty else { return }
      var makers: [String: Migration] = [:]
      _ = try replay(applied, base()) { migration, db in
        let places = try SchemaShape(db).places
        for part in parts {
          makers[part] = places.contains(part.lowercased()) ? makers[part] ?? migration : nil
        }
      }
      missing = parts.map { ($0, makers[$0]) }
    } catch let error as DatabaseError {
      skipped = [error.plainMessage]
    }
  }

  /// Runs the definitions, and leaves statements on rows out.
  private mutating func replay(
    _ migrations: [Migration], _ base: Base, _ each: (Migration, Database) throws -> Void
  ) throws -> SchemaShape {
    skipped = []
    return try base.queue.writeWithoutTransaction { db in
      var schema = SchemaCopy(db)
      for migration in migrations where migration.number > base.version {
        guard let script = migration.toolSQL?.script.up else { continue }
        for statement in script.statements() where statement.definesSchema {
          let reason =
            schema.run(statement.text).error
            ?? (!base.isKnown && statement.verb == "CREATE" && statement.asksForExistence
              ? "the tables before it are not known" : nil)
          guard let reason else { continue }
          skipped.append("\(script.position(at: statement.offset)): \(reason)")
          unknown.formUnion(SQLToken.all(in: statement.text).map { $0.text.lowercased() })
        }
        try each(migration, db)
      }
      let shadows = "SELECT lower(name) FROM pragma_table_list WHERE type = 'shadow'"
      try unknown.formUnion(String.fetchAll(db, sql: shadows))
      return try SchemaShape(db)
    }
  }

  /// The error when the database lacks something, which names it.
  ///
  /// - Parameter record: what says that the migrations are applied.
  func problem(_ record: String) -> DrydockError? {
    if missing.isEmpty { return nil }
    let first = missing.compactMap(\.migration?.number).min()
    let before = first.map { first in
      " to \(catalog.numbers.last { $0 < first } ?? catalog.base), from which they run"
    }
    return DrydockError(
      .unconfirmedVersion,
      "\(record) is at version \(version), and the database lacks what its migrations make:\n"
        + lines.map { "  \($0)\n" }.joined()
        + "  if they were not applied: set the version\(before ?? " that it has")\n"
        + "  if the database is as it should be: set the version to \(version)", path: catalog.directory)
  }

  /// What is missing, each with its migration.
  var lines: [String] {
    missing.map { part, migration in part + (migration.map { " (\($0.identifier))" } ?? "") }
  }

  /// What was not compared.
  var note: String? {
    guard let first = skipped.first else { return nil }
    let more = skipped.count > 1 ? " (and \(skipped.count - 1) more)" : ""
    return "the database was compared with its migrations only in part: \(first)\(more)"
  }

  /// The database that the first of the replayed migrations finds.
  private struct Base {
    let queue: DatabaseQueue
    var version = 0
    var isKnown = true

    init(
      _ catalog: MigrationCatalog, _ tool: MigrationTool, _ version: Int, hasAll: Bool,
      _ settings: ContainerConfiguration
    ) throws {
      // The app makes a new database with the newest schema.
      if let queue = try? catalog.roomSchema(version)?.fresh(settings) {
        (self.queue, self.version) = (queue, version)
        return
      }
      let sources = try? tool.sources.map { try SQLDelightSources($0) }
      if version == catalog.latest, let queue = try? sources?.fresh(settings) {
        (self.queue, self.version) = (queue, version)
        return
      }
      queue = try DatabaseQueue.fresh(settings)
      if let old = sources?.databases.last(where: { $0.version <= version }) {
        try DatabaseQueue.inMemoryCopy(fromPath: old.path).backup(to: queue)
        self.version = old.version
      } else {
        isKnown = hasAll && !tool.format.usesUserVersion
      }
    }
  }
}
