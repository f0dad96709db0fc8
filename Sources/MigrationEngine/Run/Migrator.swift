import AppContainer
import ContainerTransaction
import DrydockErrors
import Formats
import GRDB

/// Runs migrations on a staged container. Nothing outside the stage is changed: whoever gives the stage decides
/// whether it becomes the container, or is thrown away.
package struct Migrator {
  /// Takes part in a run without changing it: called after each step, with the stage as it is then.
  package typealias Watch = (StepOutline, StagedContainer) throws -> Void

  private let stage: StagedContainer
  private let stamp: MigrationStamp
  /// By the databases' names, the first migration that has statements for each.
  private let firstOfDatabase: [String: Int]

  /// Runs what a plan has pending: for each migration `check`, the steps, `verify`; then the history and the
  /// version markers.
  ///
  /// - Parameters:
  ///   - target: the version to stop at; the latest when nil.
  ///   - stamp: what the history says about this run.
  ///   - watch: is told of each step; what it throws ends the run.
  /// - Throws: ``DrydockError`` with the place of the step or check that failed. Errors that are about the
  ///   container as a whole (in use, no space) come through as they are.
  package static func run(
    _ plan: MigrationStatus, to target: Int? = nil, on stage: StagedContainer, stamp: MigrationStamp,
    watch: Watch = { _, _ in }
  ) throws -> MigrationReport {
    let pending = try plan.pending(to: target)
    try plan.requireKeys(to: target, for: stage)
    let migrator = Migrator(stage: stage, stamp: stamp, firstOfDatabase: firstOfDatabase(plan.catalog))
    var history = plan.detected.history
    var report = MigrationReport(
      from: plan.detected.version, to: plan.detected.version, migrations: [],
      byTheApp: plan.byTheApp, notes: plan.notes)
    for number in report.byTheApp {
      guard let migration = plan.catalog.migration(number) else { continue }
      history.add(MigrationRecord(migration, origin: .app, stamp: stamp))
    }
    var memories = StepMemories(from: report.from)
    for migration in pending {
      let outcome = try migrator.run(migration, &memories, watch)
      report.migrations.append(outcome)
      report.to = max(report.to, migration.number)
      history.add(
        MigrationRecord(migration, origin: .applied, milliseconds: outcome.milliseconds, stamp: stamp))
    }
    if report.changedAnything { try history.write(to: stage) }
    if !pending.isEmpty {
      report.notes += try stage.settle(history, plan.catalog)
      report.notes += try memories.noteMarkers(on: stage) { try stage.writeMarkers(version: report.to) }
      try stage.attach(steps: memories.encoded())
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

  private func run(
    _ migration: Migration, _ memories: inout StepMemories, _ watch: Watch
  ) throws -> MigrationReport.Outcome {
    let start = ContinuousClock.now
    var notes: [String] = []
    for assertion in migration.checks {
      notes += try judge(assertion, before: nil, .checkFailed, "check")
    }
    let before = try migration.verifications.map { assertion in
      try Self.located(assertion.position, "verify") { try assertion.observeBefore(stage) }
    }
    var missing: [String?] = []
    for (step, outline) in zip(migration.steps, migration.outline) {
      var memory = StepMemory()
      let name = step.operation.name
      let operation = prepared(step.operation, of: migration)
      let remarks = try Self.located(step.position, name) { try operation.apply(to: stage, &memory) }
      missing.append(operation.namedDatabase.flatMap { memory.skipped.contains($0) ? $0 : nil })
      notes += remarks.map { "\(step.position): \(name): \($0)" }
      memories.add(memory, of: migration.number)
      try watch(outline, stage)
    }
    for (assertion, before) in zip(migration.verifications, before) {
      notes += try judge(assertion, before: before, .verifyFailed, "verify")
    }
    let seconds = (ContinuousClock.now - start) / .milliseconds(1)
    return MigrationReport.Outcome(
      number: migration.number, name: migration.name, summary: migration.summary,
      milliseconds: Int(seconds.rounded()), notes: notes,
      missingDatabases: missing.isEmpty || missing.contains(nil)
        ? nil : Set(missing.compactMap(\.self)).sorted())
  }

  /// Statements know whether they are the first ones for their database.
  private func prepared(_ operation: any MigrationAction, of migration: Migration) -> any MigrationAction {
    guard var sql = operation as? RunSQL else { return operation }
    sql.isFirstOfDatabase = firstOfDatabase[sql.database] == migration.number
    return sql
  }

  private func judge(
    _ assertion: Assertion, before: Observation?, _ code: DrydockError.Code, _ what: String
  ) throws -> [String] {
    let now = try Self.located(assertion.position, what) { try assertion.observe(stage) }
    switch assertion.judge(now, before: before, stage.redactor) {
    case .passed: return []
    case .notRun(let remark): return ["\(assertion.position): \(what): \(remark)"]
    case .failed(let reason): throw DrydockError(code, "\(assertion.position): \(what): \(reason)")
    }
  }

  /// Runs a part of a migration; a failure gets the place and the operation's name.
  static func located<T>(_ position: YAMLPosition, _ what: String, _ body: () throws -> T) throws -> T {
    do {
      return try body()
    } catch let error as DrydockError where error.isAboutTheContainer {
      throw error
    } catch let failure as StepFailure {
      throw DrydockError(failure.code, "\(position): \(what): \(failure.message)", path: failure.path)
    } catch let error as DrydockError where error.code.isOfMigrations {
      // SQL has a place of its own, nearer than the step's.
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

extension MigrationAction {
  /// The database that it runs statements on; nil for other operations.
  fileprivate var namedDatabase: String? { (self as? RunSQL)?.database ?? (self as? RunToolSQL)?.database }
}

extension DrydockError {
  /// Whether the run as a whole cannot go on, whatever the step is.
  fileprivate var isAboutTheContainer: Bool {
    switch code {
    case .locked, .inUse, .changedMeanwhile, .noSpace, .vaultLocked, .badVault: true
    default: (cause as? DatabaseError)?.isAboutTheDisk == true
    }
  }
}

extension Assertion {
  /// What is needed of the state before: the value when it is compared, else only whether the database is there
  /// (a query of the new schema could not run yet).
  fileprivate func observeBefore(_ stage: StagedContainer) throws -> Observation? {
    if before != nil { return try observe(stage) }
    guard case .sql(let assertion) = kind else { return nil }
    let path = try stage.namedDatabase(assertion.database, at: assertion.position)
    return path == nil ? .noDatabase(assertion.database) : .rows([], columns: [])
  }
}

extension StagedContainer {
  /// Brings the app's version markers up to date.
  ///
  /// - Returns: remarks on markers that could not be kept.
  func writeMarkers(version: Int) throws -> [String] {
    try container.configuration.versionMarkers.compactMap { marker -> String? in
      let access = VersionMarkerAccess(marker: marker, stage: self)
      if let number = VersionMarkerNumbers(marker.at).app(for: version) { return try access.write(number) }
      // Before the first number that `at:` names: one that stands there would mean a later version.
      guard let number = try? access.read(), number != 0 else { return nil }
      return try access.write(0)
    }
  }
}
