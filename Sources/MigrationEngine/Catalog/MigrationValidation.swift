import AppContainer
import ContainerTransaction
import DrydockErrors
import Formats
import GRDB

/// What is wrong with migrations, as far as it can be told without a container: everything at once.
package struct MigrationValidation: Sendable {
  /// The migrations that can be read.
  package let catalog: MigrationCatalog
  /// What is wrong: with the files, the statements, and with what was released.
  package let problems: [DrydockError]

  /// Reads a directory of migrations and checks all of it.
  ///
  /// - Parameter configuration: tells which databases there are; one that names none is not asked.
  /// - Throws: ``DrydockError`` with code `catalog` when the directory cannot be read.
  package static func run(
    _ directory: String, tool: MigrationTool? = nil, _ configuration: ContainerConfiguration
  ) throws -> MigrationValidation {
    let (catalog, problems) = try MigrationCatalog.read(directory, tool: tool)
    return MigrationValidation(catalog, configuration, reading: problems)
  }

  /// Checks a plan.
  package static func run(
    _ plan: any MigrationPlan.Type, _ configuration: ContainerConfiguration
  ) -> MigrationValidation {
    let (catalog, problems) = MigrationCatalog.read(plan)
    return MigrationValidation(catalog, configuration, reading: problems)
  }

  /// Checks migrations.
  ///
  /// - Parameter problems: what kept some of them from being read.
  package init(
    _ catalog: MigrationCatalog, _ configuration: ContainerConfiguration,
    reading problems: [DrydockError] = []
  ) {
    self.catalog = catalog
    var found = problems
    found += Self.unknownDatabases(catalog, configuration)
    found += Self.statements(catalog, configuration)
    found += Self.irreversibleSteps(catalog)
    do {
      // Where some cannot be read, it would seem that they were removed.
      found += try Releases.read(catalog.directory).problems(in: catalog, isComplete: problems.isEmpty)
    } catch {
      found.append(DrydockError(reading: error))
    }
    self.problems = found
  }

  private static func unknownDatabases(
    _ catalog: MigrationCatalog, _ configuration: ContainerConfiguration
  ) -> [DrydockError] {
    let known = configuration.databases.keys.sorted()
    if known.isEmpty { return [] }
    return catalog.migrations.flatMap { migration in
      let steps = (migration.steps + migration.down).compactMap { $0.operation as? RunSQL }
      let assertions = (migration.checks + migration.verifications).compactMap(\.database)
      return (steps.map { ($0.database, $0.position) } + assertions).compactMap { name, position in
        known.contains(name)
          ? nil : DrydockError(reading: StagedContainer.unknown(name, known, at: position))
      }
    }
  }

  /// Other tools' migrations may have no way down, as in these tools.
  private static func irreversibleSteps(_ catalog: MigrationCatalog) -> [DrydockError] {
    if catalog.tool != nil { return [] }
    return catalog.migrations.filter { !$0.isIrreversible }.flatMap(\.irreversibleSteps).map {
      DrydockError(.irreversible, $0.description)
    }
  }

  private static func statements(
    _ catalog: MigrationCatalog, _ configuration: ContainerConfiguration
  ) -> [DrydockError] {
    do {
      var check = try StatementCheck(configuration)
      for migration in catalog.migrations { check.add(migration) }
      return check.problems
    } catch {
      return [DrydockError(.sql, "the statements could not be checked: \(DrydockError.text(of: error))")]
    }
  }
}

extension Assertion {
  /// The database that a check asks, and where it stands.
  fileprivate var database: (String, YAMLPosition)? {
    guard case .sql(let assertion) = kind else { return nil }
    return (assertion.database, assertion.position)
  }
}

/// Finds the statements of migrations that SQLite cannot parse or that migrations may not have, without a container.
///
/// What the migrations themselves make is built up in empty databases in recorded. A statement on what is not there is no
/// mistake: the app made it. From the first of these on a database's schema is not known, and what is told is only what
/// is wrong whatever the schema is.
struct StatementCheck {
  private(set) var problems: [DrydockError] = []
  /// By database.
  private var schemas: [String: DatabaseQueue] = [:]
  private var isKnown: [String: Bool] = [:]
  private let settings: ContainerConfiguration
  /// What SQLite and `drydock.yaml` have, in capitals.
  private let functions: Set<String>

  /// - Parameter settings: what names the app's own functions.
  init(_ settings: ContainerConfiguration) throws {
    self.settings = settings
    functions = try DatabaseQueue().read { db in
      settings.addFunctions(to: db)
      return Set(try String.fetchAll(db, sql: "SELECT DISTINCT upper(name) FROM pragma_function_list"))
    }
  }

  /// Checks what a migration runs and asks, both ways.
  mutating func add(_ migration: Migration) {
    for assertion in migration.checks { query(assertion) }
    for step in migration.steps {
      if let sql = step.operation as? RunSQL {
        run(sql.up, of: sql, destructive: sql.destructive?.text)
      } else if let sql = step.operation as? RunToolSQL {
        parse(sql.up, of: sql)
      } else if Self.mayReplaceDatabases(step.operation) {
        for name in schemas.keys { isKnown[name] = false }
      }
    }
    for assertion in migration.verifications { query(assertion) }
    checkWayBack(migration)
  }

  /// It starts from what the way here has made, and leaves nothing.
  private mutating func checkWayBack(_ migration: Migration) {
    for schema in schemas.values {
      try? schema.writeWithoutTransaction { try $0.execute(sql: "SAVEPOINT here") }
    }
    defer {
      for schema in schemas.values {
        try? schema.writeWithoutTransaction { try $0.execute(sql: "ROLLBACK TO here; RELEASE here") }
      }
    }
    for step in migration.steps.reversed() {
      // What it destroys is what the way here has made.
      if let sql = step.operation as? RunSQL, let down = sql.down {
        run(down, of: sql, destructive: "the way back")
      } else if let sql = step.operation as? RunToolSQL, let down = sql.down {
        parse(down, of: sql)
      }
    }
    for step in migration.down {
      if let sql = step.operation as? RunSQL { run(sql.up, of: sql, destructive: sql.destructive?.text) }
    }
  }

  /// What deletes or replaces files, or does what only it knows, may leave other databases behind.
  private static func mayReplaceDatabases(_ operation: any MigrationAction) -> Bool {
    !(operation is MoveFiles) && !operation.name.hasPrefix("defaults.") && !operation.name.hasPrefix("vault.")
  }

  private mutating func schema(of database: String) throws -> DatabaseQueue {
    if let schema = schemas[database] { return schema }
    var configuration = GRDB.Configuration()
    configuration.foreignKeysEnabled = false
    configuration.allowsUnsafeTransactions = true
    configuration.prepareDatabase { [settings] in settings.addFunctions(to: $0) }
    let schema = try DatabaseQueue(configuration: configuration)
    (schemas[database], isKnown[database]) = (schema, true)
    return schema
  }

  private mutating func query(_ assertion: Assertion) {
    guard case .sql(let sql) = assertion.kind else { return }
    do {
      let schema = try schema(of: sql.database)
      try schema.read { _ = try $0.makeStatement(sql: sql.query) }
    } catch let error as DatabaseError {
      tell(error, sql.database, at: assertion.position)
    } catch {
      problems.append(DrydockError(reading: error))
    }
  }

  private mutating func run(_ script: SQLScript, of step: RunSQL, destructive: String?) {
    do {
      let schema = try schema(of: step.database)
      schema.writeWithoutTransaction { db in
        var places = SQLPlaces(script)
        var offset = 0
        while let part = script.statement(from: offset) {
          offset = part.end
          let rules = StatementRules(source: part, destructive: destructive, language: step.language)
          check(rules, of: step.database, db, &places)
        }
      }
    } catch {
      problems.append(DrydockError(reading: error))
    }
  }

  /// Another tool's statements have no rules of ours.
  private mutating func parse(_ script: SQLScript, of step: RunToolSQL) {
    do {
      let schema = try schema(of: step.database)
      schema.writeWithoutTransaction { db in
        var places = SQLPlaces(script)
        var offset = 0
        while let part = script.statement(from: offset) {
          offset = part.end
          if SQLStatement(part.verb).isAboutTransactions { continue }
          let rules = StatementRules(
            source: part, destructive: "as \(step.tool.rawValue) would", isInTransaction: false)
          check(rules, of: step.database, db, &places)
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
      // To explain it compiles it already. Rows change no schema, and may be many.
      if source.isAboutRows { _ = try db.makeStatement(sql: source.text) }
      if let reason = try rules.refusal(db) {
        return problems.append(DrydockError(.sql, "\(places.position(at: source.offset)): \(reason)"))
      }
      if source.isAboutRows { return }
      let words = SQLStatement(source.text)
      if words.definesSchema { try db.execute(sql: source.text) }
      // Who asks whether something is there does not know the schema either.
      if words.asksForExistence { isKnown[database] = false }
    } catch let error as DatabaseError {
      if let reason = rules.refusalByWords {
        problems.append(DrydockError(.sql, "\(places.position(at: source.offset)): \(reason)"))
      }
      let position = places.position(at: source.offset)
      tell(error, database, at: position)
      // SQLite looks for tables first.
      if error.message?.hasPrefix("no such table") == true, source.isAboutRows {
        let unknown = SQLStatement(source.text).calls.first { !functions.contains($0.uppercased()) }
        if let unknown {
          problems.append(DrydockError(.sql, "\(position): \(DatabaseError.unknownFunction(unknown))"))
        }
      }
    } catch {
      problems.append(DrydockError(reading: error))
    }
  }

  private mutating func tell(_ error: DatabaseError, _ database: String, at position: YAMLPosition) {
    let message = error.message ?? ""
    if message.hasPrefix("no such function") {
      problems.append(DrydockError(.sql, "\(position): \(error.plainMessage)", cause: error))
      return
    }
    if message.hasPrefix("no such ") && !message.hasPrefix("no such column") { isKnown[database] = false }
    let isSyntax = ["syntax error", "unrecognized token", "incomplete input"].contains {
      message.contains($0)
    }
    guard isSyntax || isKnown[database] == true else { return }
    problems.append(DrydockError(.sql, "\(position): \(error.plainMessage)", cause: error))
  }
}
