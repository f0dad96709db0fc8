import AppContainer
import AppStores
import ContainerTransaction
import DrydockErrors
import Formats
import GRDB

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
        guard let script = migration.toolSQL?.up else { continue }
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
      .firstContact,
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
