import AppStores
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats
import GRDB

/// Runs migrations on a staged container. Nothing outside the stage is changed: the caller commits or discards it.
package struct Migrator {
  /// Called after each step, with the stage as it is then.
  package typealias Watch = (StepOutline, StagedContainer) throws -> Void

  private let stage: StagedContainer
  /// Of consecutive `sql` steps.
  private let connection = StagedConnection()
  /// By the databases' names, the first migration that has statements for each.
  private let firstOfDatabase: [String: Int]
  private var priorValues: PriorValues.Run
  /// What the version markers said when nobody but Drydock had written them.
  private var markers: [Int?]

  /// Runs the pending migrations: for each one `check`, the steps, `verify`; then it writes the history and the version
  /// markers.
  ///
  /// - Parameters:
  ///   - target: the version to stop at; the latest when nil.
  ///   - stamp: what the history records about this run.
  ///   - watch: is called after each step; an error that it throws ends the run.
  /// - Throws: `DrydockError` with the place of the step or check that failed. Errors about the container as a whole
  ///   (in use, no space) are passed on unchanged.
  package static func run(
    _ status: MigrationStatus, to target: Int? = nil, on stage: StagedContainer, stamp: MigrationStamp,
    watch: Watch? = nil
  ) throws -> MigrationReport {
    let pending = try status.pending(to: target)
    try status.requireKeys(to: target, for: stage)
    var migrator = Migrator(
      stage: stage, firstOfDatabase: firstOfDatabase(status.catalog),
      priorValues: PriorValues.Run(from: status.detected.version), markers: stage.markerNumbers)
    var history = status.detected.history
    var report = MigrationReport(
      from: status.detected.version, to: status.detected.version, migrations: [],
      appliedExternally: status.appliedExternally, notes: status.notes, appNumber: status.detected.appNumber)
    for number in report.appliedExternally {
      guard let migration = status.catalog.migration(number) else { continue }
      history.add(MigrationRecord(migration, origin: .app, stamp: stamp))
    }
    stage.progress?.begin(.migrate)
    defer { stage.progress?.begin(item: nil, of: 0) }
    for (index, migration) in pending.enumerated() {
      stage.progress?.begin(item: index + 1, of: pending.count)
      report.to = max(report.to, migration.number)
      let outcome = try migrator.run(migration, version: report.to, watch)
      report.migrations.append(outcome)
      history.add(
        MigrationRecord(migration, origin: .applied, milliseconds: outcome.milliseconds, stamp: stamp))
    }
    try stage.close(migrator.connection)
    if report.changedAnything { try history.write(to: stage) }
    if !pending.isEmpty {
      report.notes += try stage.updateToolRecord(history, status.catalog)
      report.notes += try migrator.writeMarkers(version: report.to)
      try stage.attach(steps: migrator.priorValues.encoded())
    }
    report.moved = stage.movedSecrets.map { .init(file: $0.path, key: $0.key) }
    return report
  }

  private static func firstOfDatabase(_ catalog: MigrationCatalog) -> [String: Int] {
    var numbers: [String: Int] = [:]
    for migration in catalog.migrations {
      for database in migration.steps.compactMap(\.operation.namedDatabase) where numbers[database] == nil {
        numbers[database] = migration.number
      }
    }
    return numbers
  }

  /// - Parameter version: the container's version after the migration.
  private mutating func run(
    _ migration: Migration, version: Int, _ watch: Watch?
  ) throws -> MigrationReport.Outcome {
    let start = ContinuousClock.now
    var notes: [String] = []
    let isVerified = !migration.verifications.isEmpty
    if isVerified || !migration.checks.isEmpty { try stage.close(connection) }
    for assertion in migration.checks {
      notes += try judge(assertion, before: nil, .checkFailed, "check")
    }
    let before = try migration.verifications.map { assertion in
      try Self.located(assertion.position, "verify") { try assertion.observeBefore(stage) }
    }
    var missing: [String?] = []
    for (step, outline) in zip(migration.steps, migration.outline) {
      var recorded = PriorValues()
      let name = step.name
      let operation = prepared(step.operation, of: migration)
      let stepNotes = try Self.located(step.position, name) {
        if case .sql(let sql) = operation.kind, sql.canShareConnection {
          return try sql.apply(to: stage, &recorded, on: connection)
        }
        try stage.close(connection)
        return try operation.apply(to: stage, &recorded)
      }
      missing.append(operation.namedDatabase.flatMap { recorded.skipped.contains($0) ? $0 : nil })
      notes += stepNotes.map { "\(step.position): \(name): \($0)" }
      priorValues.add(recorded, of: migration.number)
      if let watch {
        try stage.close(connection)
        try watch(outline, stage)
      }
    }
    if isVerified {
      try stage.close(connection)
      // What is verified is what the app will see.
      _ = try writeMarkers(version: version)
      markers = stage.markerNumbers
    }
    for (assertion, before) in zip(migration.verifications, before) {
      notes += try judge(assertion, before: before, .verifyFailed, "verify")
    }
    return MigrationReport.Outcome(
      number: migration.number, name: migration.name, summary: migration.summary,
      milliseconds: start.millisecondsSince, notes: notes,
      missingDatabases: missing.isEmpty || missing.contains(nil)
        ? nil : Set(missing.compactMap(\.self)).sorted())
  }

  /// Brings the version markers up to date, and records those that this adds.
  ///
  /// - Returns: notes on markers that could not be written.
  private mutating func writeMarkers(version: Int) throws -> [String] {
    try priorValues.noteMarkers(on: stage) { [stage, markers] in
      try stage.writeMarkers(version: version, since: markers)
    }
  }

  /// Sets whether a step is the first with statements for its database.
  private func prepared(_ operation: any MigrationAction, of migration: Migration) -> any MigrationAction {
    guard case .sql(var sql) = operation.kind else { return operation }
    sql.isFirstOfDatabase = firstOfDatabase[sql.database.name] == migration.number
    return sql
  }

  private func judge(
    _ assertion: Assertion, before: Observation?, _ code: DrydockError.Code, _ what: String
  ) throws -> [String] {
    let verdict = try Self.located(assertion.position, what) {
      try assertion.body.judge(stage, before: before)
    }
    switch verdict {
    case .passed: return []
    case .notRun(let note): return ["\(assertion.position): \(what): \(note)"]
    case .failed(let failures):
      let reason = failures.map(\.sentence).joined(separator: "; ")
      throw DrydockError(code, "\(assertion.position): \(what): \(reason)")
    }
  }

  /// Runs a part of a migration, and adds the place and the operation's name to its error.
  static func located<T>(_ position: YAMLPosition, _ what: String, _ body: () throws -> T) throws -> T {
    do {
      return try body()
    } catch let error as DrydockError where error.isAboutTheContainer {
      throw error
    } catch let failure as StepFailure {
      throw DrydockError(
        failure.code, "\(position): \(what): \(failure.message)", path: failure.path?.description)
    } catch let error as DrydockError where error.code.isOfMigrations {
      // An SQL error has a more precise place than the step.
      var error = error
      if !error.message.hasPrefix(position.file + ":") { error.message += " (step \(position))" }
      throw error
    } catch {
      let text = DrydockError.text(of: error)
      let message = text.hasPrefix(position.file + ":") ? text : "\(position): \(what): \(text)"
      throw DrydockError(.stepFailed, message, cause: error)
    }
  }
}

extension ContinuousClock.Instant {
  /// The time since then, for reports.
  var millisecondsSince: Int { Int(((ContinuousClock.now - self) / .milliseconds(1)).rounded()) }
}

extension MigrationAction {
  /// The database that it runs statements on; nil for other operations.
  fileprivate var namedDatabase: String? {
    switch kind {
    case .sql(let sql): sql.database.name
    case .toolSQL(let sql): sql.database
    default: nil
    }
  }
}

extension DrydockError {
  /// Whether no step could go on.
  fileprivate var isAboutTheContainer: Bool {
    switch code {
    case .locked, .inUse, .changedMeanwhile, .noSpace, .vaultLocked, .badVault: true
    default: (cause as? DatabaseError)?.isAboutTheDisk == true
    }
  }
}

extension Assertion {
  /// The observation before the migration: the value when it is compared, otherwise only whether the database exists,
  /// since a query on the new schema could not run yet.
  fileprivate func observeBefore(_ stage: StagedContainer) throws -> Observation? {
    if before != nil { return try body.observe(stage) }
    return try body.sql.map { try $0.database.place(on: stage) == nil ? .rows(nil) : .rows([]) }
  }
}

extension StagedContainer {
  /// What each of the app's version markers says; nil for one that is absent or cannot be read.
  var markerNumbers: [Int?] {
    container.configuration.versionMarkers.map {
      (try? VersionMarkerAccess(marker: $0, stage: self).read()) ?? nil
    }
  }

  /// Brings the app's version markers up to date.
  ///
  /// - Parameter before: what they said when nobody but Drydock had written them; nil to overwrite any number.
  /// - Returns: notes on markers that could not be written.
  /// - Throws: ``DrydockError`` `contradiction` when a migration wrote another number itself.
  func writeMarkers(version: Int, since before: [Int?]? = nil) throws -> [String] {
    let now = before == nil ? [] : markerNumbers
    return try container.configuration.versionMarkers.enumerated().compactMap { index, marker -> String? in
      let access = VersionMarkerAccess(marker: marker, stage: self)
      let number = VersionMarkerNumbers(marker.at).app(for: version)
      if let before, let written = now[index], written != before[index] ?? 0, written != number ?? 0 {
        throw DrydockError(
          .contradiction,
          "the migrations set \(access.name) to \(written), and drydock.yaml says \(number ?? 0) for version "
            + "\(version): add `\(version): \(written)` to `at:` of this marker in drydock.yaml, remove the statement, or remove the marker where another tool counts the versions"
        )
      }
      if let number { return try access.write(number) }
      // The version is before the first one in `at:`: a number that remained would mean a later version.
      guard let number = try? access.read(), number != 0 else { return nil }
      return try access.write(0)
    }
  }
}

extension DrydockError {
  /// An error while reading migrations, as an error of the catalogue.
  init(reading error: any Error) {
    let error =
      error as? DrydockError
      ?? DrydockError(.catalog, String(describing: error), cause: error)
    self =
      error.code.isOfMigrations
      ? error : DrydockError(.catalog, error.message, path: error.path, cause: error)
  }

  /// The one line of an error's message; never a statement's arguments.
  package static func text(of error: any Error) -> String {
    (error as? DatabaseError)?.plainMessage ?? String(describing: error)
  }
}

extension DrydockError.Code {
  /// Whether it is about migrations, and its message has a place in their files.
  var isOfMigrations: Bool {
    switch self {
    case .catalog, .unknownVersion, .unconfirmedVersion, .newer, .edited, .missingMigration, .outOfOrder,
      .released,
      .contradiction, .damagedHistory, .irreversible, .stepFailed, .verifyFailed, .sql, .foreignSchema,
      .usage:
      true
    default: false
    }
  }
}

/// The result of a run of migrations.
public struct MigrationReport: Sendable, Codable, Equatable {
  /// One migration that was run.
  public struct Outcome: Sendable, Codable, Equatable {
    /// The migration's number.
    public var number: Int
    /// Without the number.
    public var name: String
    /// The description by its author.
    public var summary: String?
    /// How long it took.
    public var milliseconds: Int
    /// What was skipped, kept or not checked; each note starts with `file:line:column`.
    public var notes: [String]
    /// The missing databases, when no step did anything because of them; nil otherwise.
    public var missingDatabases: [String]?
  }

  /// A setting that was moved into the vault.
  package struct Moved: Sendable, Codable, Equatable {
    package var file: ContainerPath, key: String
  }

  /// The version before.
  public var from: Int
  /// The version after.
  public var to: Int
  /// The migrations that were run, in order.
  public var migrations: [Outcome]
  /// Numbers of migrations that the app had applied, and that were recorded.
  package var appliedExternally: [Int]
  /// Notes that belong to no migration, such as on a version marker that could not be written.
  public var notes: [String]
  package var moved: [Moved] = []
  /// The app's own number for the version before, where it is another one.
  package var appNumber: Int? = nil

  /// The migrations that were recorded as applied but did nothing, since their database does not exist.
  public var withoutDatabase: [Outcome] { migrations.filter { $0.missingDatabases != nil } }

  /// Whether anything was changed in the container.
  public var changedAnything: Bool { !migrations.isEmpty || !appliedExternally.isEmpty }
}

extension MigrationReport: CustomStringConvertible {
  /// What ran, as `drydock migrate` prints it.
  public var description: String { lines("ran").joined(separator: "\n") }

  /// - Parameter verb: `ran`, or `would run` in a dry run.
  package func lines(_ verb: String) -> [String] {
    guard changedAnything else {
      return ["nothing to do: the container has version \(Self.version(to, app: appNumber))"]
        + notes.map { "  \($0)" }
    }
    var lines = [Self.versions(from: from, to: to, app: appNumber)]
    if !appliedExternally.isEmpty {
      lines.append(
        "  recorded as applied by the app: \(appliedExternally.map(String.init).joined(separator: ", "))")
    }
    for migration in migrations {
      let text = migration.summary.map { ": \($0)" } ?? ""
      lines.append("  \(verb) \(migration.name)\(text) (\(migration.milliseconds) ms)")
      let notes = migration.notes.flatMap { $0.split(separator: "\n", omittingEmptySubsequences: false) }
      lines += notes.map { "      \($0)" }
    }
    return lines + notes.map { "  \($0)" }
  }

  /// Such as `version 0 (the app's 4) → 2`.
  package static func versions(from: Int, to: Int, app: Int? = nil) -> String {
    from == to ? "version \(version(to, app: app))" : "version \(version(from, app: app)) → \(to)"
  }

  /// A version with the app's own number for it.
  package static func version(_ version: Int, app: Int?) -> String {
    app.map { "\(version) (the app's \($0))" } ?? "\(version)"
  }
}
