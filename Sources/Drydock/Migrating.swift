import AppContainer
import BackupRepository
import ContainerTransaction
import DrydockErrors
import MigrationEngine

/// Runs migrations over a container: all that are pending, in one transaction.
package enum Migrating {
  /// The container's version and what is pending, without changing anything.
  ///
  /// - Throws: `DrydockError` with code `unknownVersion` when nothing says which version it is.
  package static func status(
    _ container: Container, _ catalog: MigrationCatalog, options: TransactionOptions = TransactionOptions()
  ) throws -> MigrationStatus {
    try Transaction.inspect(container, options: options) {
      try MigrationStatus(catalog, of: $0)
    }
  }

  /// What a run of migrations did, and what it found elsewhere.
  package struct Report: Sendable {
    /// The migrations.
    package var migration: MigrationReport
    /// What was moved into the vault, for ``search(_:for:app:configuration:redactor:)``.
    package var moved: [MovedSecret] = []
    /// Plain archives that still hold what was moved into the vault: these secrets have to be replaced by new ones.
    package var exposed: [ExposedSecret] = []
    /// Archives that could not be looked into for that, each with the reason.
    package var notSearched: [String] = []
  }

  /// Migrates.
  ///
  /// - Parameters:
  ///   - version: where to stop; the latest when nil.
  ///   - repository: where the container's archives are, which are looked into when a setting was moved into the vault.
  ///   - backup: takes a snapshot before anything is staged, under the same locks; one that lacks something ends the run.
  ///     Without anything to migrate none is taken.
  ///   - allowingOutOfOrder: whether migrations are run although a later one was applied, in the order of their numbers.
  ///   - backedUp: called with it.
  /// - Throws: `DrydockError`, `DrydockError`, `DrydockError`, `DrydockError` (`vaultLocked` when a step on the vault lacks the
  ///   device key); nothing has changed then.
  package static func run(
    _ container: Container, _ catalog: MigrationCatalog, to version: Int? = nil, repository: String? = nil,
    backup: SnapshotOptions? = nil, allowingOutOfOrder: Bool = false,
    options: TransactionOptions = TransactionOptions(),
    backedUp: @escaping @Sendable (SnapshotReport) -> Void = { _ in }
  ) throws -> TransactionOutcome<Report> {
    // Whether a key is missing is known before anything is staged.
    let plan = try Transaction.inspect(container, options: options) {
      let plan = try MigrationStatus(catalog, of: $0, allowingOutOfOrder: allowingOutOfOrder)
      try plan.requireKeys(to: version, for: $0)
      return plan
    }
    let names = try plan.pending(to: version).map(\.identifier)
    // A container that is up to date may be in use: there is nothing to refuse.
    if names.isEmpty && plan.byTheApp.isEmpty {
      return TransactionOutcome(
        unchanged: Report(
          migration: try dryRun(container, catalog, to: version, options: options).value))
    }
    let summary =
      names.isEmpty ? "recorded what the app migrated itself" : "ran \(names.joined(separator: ", "))"
    var options = options
    if let backup {
      let version = plan.detected.version
      options.backsUp = { locked in
        let report = try backUp(container, locked, backup, version)
        backedUp(report)
        return String(report.path.split(separator: "/").last ?? "")
      }
    }
    var moved: [MovedSecret] = []
    let outcome = try Transaction.run(on: container, .migrate, summary: summary, options: options) { staged in
      let report = try migrate(staged, catalog, version, allowingOutOfOrder)
      moved = staged.movedSecrets
      return report
    }
    return outcome.map {
      var report = Report(migration: $0, moved: moved)
      if let repository, !moved.isEmpty {
        (report.exposed, report.notSearched) = search(
          repository, for: moved, app: container.app, configuration: container.configuration,
          redactor: options.redactor)
      }
      return report
    }
  }

  private static func backUp(
    _ container: Container, _ locked: LockedContainer, _ options: SnapshotOptions, _ version: Int
  ) throws -> SnapshotReport {
    var options = options
    (options.locked, options.schemaVersion) = (locked, version)
    let report = try Snapshot.take(container, options)
    if let lost = report.skipped.first(where: \.isLoss) {
      throw DrydockError(
        .notInArchive,
        "could not be backed up (\(lost.reason.rawValue)), so that nothing was migrated; remove the cause, or migrate "
          + "without a snapshot (--no-snapshot)", path: "\(lost.path)")
    }
    return report
  }

  /// Looks through a repository for plain archives that still hold what was moved into a vault. Containers are migrated
  /// by then: what goes wrong here is told, and no failure.
  ///
  /// - Returns: where it was found, and the archives that could not be looked into, each with the reason.
  package static func search(
    _ repository: String, for moved: [MovedSecret], app: String, configuration: Configuration,
    redactor: Redactor = Redactor()
  ) -> (exposed: [ExposedSecret], notSearched: [String]) {
    do {
      var (exposed, notSearched) = try Repository(repository).exposed(
        moved, of: app, configuration: configuration)
      for index in exposed.indices { exposed[index].key = redactor.shown(name: exposed[index].key) }
      return (exposed, notSearched)
    } catch let error as DrydockError where error.code == .notFound {
      // None has been made yet.
      return ([], [])
    } catch {
      return ([], ["\(repository): \(error)"])
    }
  }

  /// Migrates a stage that is thrown away, and tells the difference that the real run would make.
  package static func dryRun(
    _ container: Container, _ catalog: MigrationCatalog, to version: Int? = nil,
    allowingOutOfOrder: Bool = false, options: TransactionOptions = TransactionOptions()
  ) throws -> DryRunOutcome<MigrationReport> {
    try Transaction.dryRun(on: container, options: options) {
      try migrate($0, catalog, version, allowingOutOfOrder)
    }
  }

  /// Says which version a container has, without running anything.
  package static func baseline(
    _ container: Container, _ catalog: MigrationCatalog, version: Int,
    options: TransactionOptions = TransactionOptions()
  ) throws -> TransactionOutcome<[String]> {
    // A version that does not exist is refused before a transaction begins.
    _ = try Transaction.inspect(container, options: options) {
      try Baseline.set(version, catalog: catalog, on: $0, stamp: stamp($0))
    }
    return try Transaction.run(on: container, .baseline, summary: "set version \(version)", options: options)
    {
      try Baseline.set(version, catalog: catalog, on: $0, stamp: stamp($0))
    }
  }

  /// The schema version as far as it can be known without migrations, or what keeps it from being known: a
  /// container whose settings or history are damaged is backed up all the same.
  package static func schemaVersion(
    of container: Container, options: TransactionOptions = TransactionOptions()
  ) throws -> (number: Int?, problem: String?) {
    try Transaction.inspect(container, options: options) { schemaVersion(in: $0) }
  }

  /// As ``schemaVersion(of:options:)``, of a container that somebody looks at.
  package static func schemaVersion(in staged: StagedContainer) -> (number: Int?, problem: String?) {
    do {
      return (try DetectedVersion.detect(in: staged).version, nil)
    } catch let error as DrydockError where error.code == .unknownVersion {
      return (nil, nil)
    } catch {
      return (nil, String(describing: error))
    }
  }

  /// Migrates what a stage holds.
  static func migrate(
    _ staged: StagedContainer, _ catalog: MigrationCatalog, _ version: Int?,
    _ allowingOutOfOrder: Bool = false
  ) throws -> MigrationReport {
    let plan = try MigrationStatus(catalog, of: staged, allowingOutOfOrder: allowingOutOfOrder)
    return try Migrator.run(plan, to: version, on: staged, stamp: stamp(staged))
  }

  private static func stamp(_ staged: StagedContainer) -> MigrationStamp {
    MigrationStamp(tool: DrydockVersion.tool, transaction: staged.transaction)
  }
}
