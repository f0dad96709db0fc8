import AppContainer
import DrydockErrors
import Formats
import GRDB

/// Finds the statements of migrations that SQLite cannot parse or that migrations may not have, without a container.
///
/// What the migrations themselves make is built up in empty databases in memory. A statement on what is not there is no
/// mistake: the app made it. From the first of these on a database's schema is not known, and what is told is only what
/// is wrong whatever the schema is.
struct StatementCheck {
  private(set) var problems: [DrydockError] = []
  /// By database.
  private var schemas: [String: DatabaseQueue] = [:]
  private var isKnown: [String: Bool] = [:]
  private let settings: AppContainer.Configuration
  /// What SQLite and `drydock.yaml` have, in capitals.
  private let functions: Set<String>

  /// - Parameter settings: what names the app's own functions.
  init(_ settings: AppContainer.Configuration) throws {
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
          if SQLWords(part.verb).isAboutTransactions { continue }
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
      let words = SQLWords(source.text)
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
        let unknown = SQLWords(source.text).calls.first { !functions.contains($0.uppercased()) }
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
