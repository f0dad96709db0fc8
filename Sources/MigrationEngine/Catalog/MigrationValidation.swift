import AppContainer
import AppStores
import ContainerTransaction
import DrydockErrors
import Formats
import GRDB

/// All errors in migrations that can be found without a container.
package struct MigrationValidation: Sendable {
  /// The readable migrations.
  package let catalog: MigrationCatalog
  /// The errors in the files and statements, and the changes of released migrations.
  package let problems: [DrydockError]
  /// What may not be meant, such as an index that goes with a table that is made again.
  package let notes: [YAMLNote]

  /// Reads a directory of migrations and checks all of it.
  ///
  /// - Parameter configuration: names the databases; when it names none, their names are not checked.
  /// - Throws: ``DrydockError`` with code `catalog` when the directory cannot be read.
  package static func run(
    _ directory: String, tool: MigrationTool? = nil, _ configuration: ContainerConfiguration
  ) throws -> MigrationValidation {
    let (catalog, incomplete, problems) = try MigrationCatalog.read(directory, tool: tool)
    return MigrationValidation(catalog, configuration, incomplete: incomplete, reading: problems)
  }

  /// Checks a plan.
  package static func run(
    _ plan: any MigrationPlan.Type, _ configuration: ContainerConfiguration
  ) -> MigrationValidation {
    let (catalog, problems) = MigrationCatalog.read(plan.migrations, String(describing: plan))
    return MigrationValidation(catalog, configuration, reading: problems)
  }

  /// Checks migrations.
  ///
  /// - Parameters:
  ///   - incomplete: migrations with errors, with what could be read of them.
  ///   - problems: the errors of migrations that could not be read.
  package init(
    _ catalog: MigrationCatalog, _ configuration: ContainerConfiguration, incomplete: [Migration] = [],
    reading problems: [DrydockError] = []
  ) {
    self.catalog = catalog
    var found = problems
    let readable = (catalog.migrations + incomplete).sorted { $0.number < $1.number }
    found += Self.unknownDatabases(readable, configuration)
    let statements = Self.statements(readable, configuration, incomplete: Set(incomplete.map(\.file)))
    found += statements.problems
    notes = catalog.notes + statements.notes
    found += Self.irreversibleSteps(catalog)
    if found.isEmpty { found += DeclaredSchema.rehearsal(catalog, configuration) }
    do {
      // Unreadable migrations must not be reported as removed.
      found += try Releases.read(catalog.directory).problems(in: catalog, isComplete: problems.isEmpty)
        .map(\.error)
    } catch {
      found.append(DrydockError(reading: error))
    }
    self.problems = Self.ordered(found, in: catalog.directory)
  }

  /// By file, line and column; then those of the whole directory, in the order in which they were found.
  private static func ordered(_ problems: [DrydockError], in directory: String) -> [DrydockError] {
    problems.enumerated().map { number, problem in
      let place = problem.located
      let isFile = place.file != nil && place.file != directory
      return (
        isFile ? 0 : 1, isFile ? place.file ?? "" : "", place.line ?? 0, place.column ?? 0, number, problem
      )
    }
    .sorted { ($0.0, $0.1, $0.2, $0.3, $0.4) < ($1.0, $1.1, $1.2, $1.3, $1.4) }.map(\.5)
  }

  private static func unknownDatabases(
    _ migrations: [Migration], _ configuration: ContainerConfiguration
  ) -> [DrydockError] {
    let known = configuration.databases.keys.sorted()
    if known.isEmpty { return [] }
    return migrations.flatMap { migration in
      let steps = (migration.steps + migration.down).compactMap(\.operation.kind.database)
      let assertions = (migration.checks + migration.verifications).compactMap(\.body.sql?.database)
      return (steps + assertions).filter { !known.contains($0.name) }.map {
        DrydockError(reading: StagedContainer.unknown($0.name, known, at: $0.position))
      }
    }
  }

  /// Other tools' migrations need no down statements, and steps beside one without them no inverse.
  private static func irreversibleSteps(_ catalog: MigrationCatalog) -> [DrydockError] {
    catalog.migrations.filter { !$0.isIrreversible && $0.toolSQL?.reversal != Reversal.none }
      .flatMap(\.irreversibleSteps).map { DrydockError(.irreversible, $0) }
  }

  /// - Parameter incomplete: the files of migrations whose other statements are not known.
  private static func statements(
    _ migrations: [Migration], _ configuration: ContainerConfiguration, incomplete: Set<String>
  ) -> (problems: [DrydockError], notes: [YAMLNote]) {
    do {
      var check = try StatementCheck(configuration)
      for migration in migrations { check.add(migration, isComplete: !incomplete.contains(migration.file)) }
      return (check.problems, check.notes)
    } catch {
      let text = DrydockError.text(of: error)
      return ([DrydockError(.sql, "the statements could not be checked: \(text)")], [])
    }
  }
}

/// Finds statements that SQLite cannot parse or that migrations must not contain, without a container.
///
/// The schema that the migrations create is built in empty databases in memory. A statement on a table that does not exist
/// there is valid: the app created it. From then on the database's schema is unknown, and only errors that do not depend
/// on it are reported.
struct StatementCheck {
  private(set) var problems: [DrydockError] = []
  private(set) var notes: [YAMLNote] = []
  private var schemas: [String: DatabaseQueue] = [:]
  private var isKnown: [String: Bool] = [:]
  private var isSchemaKnown = true
  private let settings: ContainerConfiguration
  /// The functions of SQLite and `drydock.yaml`, in capitals.
  private let functions: Set<String>

  /// - Parameter settings: names the app's functions.
  init(_ settings: ContainerConfiguration) throws {
    self.settings = settings
    functions = try DatabaseQueue().read { db in
      settings.sql.define(in: db)
      // Those whose result is a table are modules.
      let sql =
        "SELECT upper(name) FROM pragma_function_list UNION SELECT upper(name) FROM pragma_module_list"
      return Set(try String.fetchAll(db, sql: sql))
    }
  }

  /// Checks a migration's statements and queries, and its down statements.
  ///
  /// - Parameter isComplete: whether all its statements are known; from one on of which they are not, no schema is.
  mutating func add(_ migration: Migration, isComplete: Bool = true) {
    if !isComplete { isSchemaKnown = false }
    for assertion in migration.checks { query(assertion) }
    for step in migration.steps {
      check(step.operation)
      switch step.operation.kind {
      case .sql(let sql): run(sql.up, of: sql, destructive: sql.destructive?.text)
      case .toolSQL(let sql): run(sql.script.up, of: sql, inTransaction: sql.script.upInTransaction)
      default:
        for name in schemas.keys
        where step.operation.effects.mayReplace(name, at: settings.databases[name] ?? []) {
          isKnown[name] = false
        }
      }
    }
    for assertion in migration.verifications { query(assertion) }
    checkDown(migration)
  }

  /// Starts from the schema after the migration, and restores it.
  private mutating func checkDown(_ migration: Migration) {
    for schema in schemas.values {
      try? schema.writeWithoutTransaction { try $0.execute(sql: "SAVEPOINT here") }
    }
    defer {
      for schema in schemas.values {
        try? schema.writeWithoutTransaction { try $0.execute(sql: "ROLLBACK TO here; RELEASE here") }
      }
    }
    for step in migration.steps.reversed() {
      switch step.operation.kind {
      case .sql(let sql):
        // Down statements may destroy what the migration created.
        if let down = sql.down { run(down, of: sql, destructive: "down") }
      case .toolSQL(let sql):
        if let down = sql.script.down { run(down, of: sql, inTransaction: sql.script.downInTransaction) }
      default: break
      }
    }
    for step in migration.down {
      check(step.operation)
      if case .sql(let sql) = step.operation.kind {
        run(sql.up, of: sql, destructive: sql.destructive?.text)
      }
    }
  }

  /// Checks the expressions of a step.
  private mutating func check(_ operation: any MigrationAction) {
    do {
      switch operation.kind {
      case .computing(let expressions, let parameters):
        try parameters.check(expressions, in: ExpressionDatabase(settings.sql))
      case .column(let files):
        query(files.query(rowID: "1"), of: files.place.database.name, at: files.path.position)
      default: break
      }
    } catch {
      problems.append(DrydockError(reading: error))
    }
  }

  private mutating func schema(of database: String) throws -> DatabaseQueue {
    if let schema = schemas[database] { return schema }
    let schema = try DatabaseQueue.fresh(settings)
    (schemas[database], isKnown[database]) = (schema, true)
    return schema
  }

  private mutating func query(_ assertion: Assertion) {
    guard let sql = assertion.body.sql else { return }
    query(sql.query, of: sql.database.name, at: assertion.position)
  }

  private mutating func query(_ sql: String, of database: String, at position: YAMLPosition) {
    do {
      let schema = try schema(of: database)
      try schema.read { _ = try $0.makeStatement(sql: sql) }
    } catch let error as DatabaseError {
      report(error, database, at: position)
    } catch {
      problems.append(DrydockError(reading: error))
    }
  }

  private mutating func run(_ script: SQLScript, of step: RunSQL, destructive: String?) {
    if step.defaults != nil { addDefaults(to: step.database) }
    check(script, of: step.database.name) {
      StatementRules(source: $0, destructive: destructive, language: step.language)
    }
    if step.defaults != nil {
      try? schemas[step.database.name]?.writeWithoutTransaction {
        try $0.execute(sql: "DROP TABLE IF EXISTS temp.defaults")
      }
    }
  }

  /// The table of settings, which exists for one step.
  private mutating func addDefaults(to database: NamedDatabase) {
    do {
      try schema(of: database.name).writeWithoutTransaction { db in
        if try DefaultsTable.collides(with: db) { throw database.position.error(DefaultsTable.collision) }
        try db.execute(sql: DefaultsTable.creation)
      }
    } catch {
      problems.append(DrydockError(reading: error))
    }
  }

  /// Another tool's statements need no reasons.
  private mutating func run(_ script: SQLScript, of step: RunToolSQL, inTransaction: Bool) {
    check(script, of: step.database) { source in
      if !inTransaction, source.isAboutTransactions { return nil }
      return StatementRules(
        source: source, destructive: "as \(step.tool.rawValue) would", isInTransaction: inTransaction)
    }
  }

  /// - Parameter rules: nil for a statement that is not checked.
  private mutating func check(
    _ script: SQLScript, of database: String, rules: (SQLStatement) -> StatementRules?
  ) {
    do {
      try schema(of: database).writeWithoutTransaction { db in
        let before = isKnown[database] == true ? try DatabaseState(db, changing: script) : nil
        var places = SQLPlaces(script)
        for statement in script.statements() {
          if let rules = rules(statement) { check(rules, of: database, db, &places) }
        }
        guard let before, isSchemaKnown, isKnown[database] == true else { return }
        let position = script.position(at: 0)
        do {
          notes += try before.notes(after: db).map { YAMLNote(position: position, message: $0) }
        } catch let failure as StepFailure {
          problems.append(DrydockError(.sql, "\(position): \(failure.message)"))
        }
      }
    } catch {
      problems.append(DrydockError(reading: error))
    }
  }

  private mutating func check(
    _ rules: StatementRules, of database: String, _ db: Database, _ places: inout SQLPlaces
  ) {
    let source = rules.source
    do {
      // EXPLAIN compiles other statements. Statements on rows change no schema, and may be many.
      if source.isAboutRows { _ = try db.makeStatement(sql: source.text) }
      if let reason = try rules.refusal(db) {
        return problems.append(DrydockError(.sql, "\(places.position(at: source.offset)): \(reason)"))
      }
      if source.isAboutRows { return }
      if source.definesSchema { try db.execute(sql: source.text) }
      // A statement with IF EXISTS does not know the schema either.
      if source.asksForExistence { isKnown[database] = false }
    } catch let error as DatabaseError {
      if let reason = rules.refusalByWords {
        problems.append(DrydockError(.sql, "\(places.position(at: source.offset)): \(reason)"))
      }
      let position = places.position(at: source.offset)
      report(error, database, at: position)
      // SQLite reports a missing table before an unknown function.
      if error.message?.hasPrefix("no such table") == true, source.isAboutRows {
        let unknown = source.calls.first {
          !functions.contains($0.uppercased()) && !$0.uppercased().hasPrefix("PRAGMA_")
        }
        if let unknown {
          problems.append(DrydockError(.sql, "\(position): \(DatabaseError.unknownFunction(unknown))"))
        }
      }
    } catch {
      problems.append(DrydockError(reading: error))
    }
  }

  private mutating func report(_ error: DatabaseError, _ database: String, at position: YAMLPosition) {
    let message = error.message ?? ""
    if ["no such function", "no such collation"].contains(where: message.hasPrefix) {
      problems.append(DrydockError(.sql, "\(position): \(error.plainMessage)", cause: error))
      return
    }
    if message.hasPrefix("no such ") && !message.hasPrefix("no such column") { isKnown[database] = false }
    let isSyntax = ["syntax error", "unrecognized token", "incomplete input"].contains {
      message.contains($0)
    }
    guard isSyntax || isSchemaKnown && isKnown[database] == true else { return }
    problems.append(DrydockError(.sql, "\(position): \(error.plainMessage)", cause: error))
  }
}
