import AppContainer
import AppStores
import BackupRepository
import ContainerTransaction
import DrydockErrors
import MigrationEngine

/// Which migrations are run, and what is done before and after them.
public struct MigrationOptions: Sendable {
  /// The snapshot before a run of migrations.
  public struct Backup: Sendable {
    /// Where it goes.
    public var repository: Repository
    /// How it is taken.
    public var options: SnapshotOptions
    /// Called once it is there.
    package var completed: @Sendable (SnapshotReport) -> Void

    /// A snapshot into a repository; `completed` is called once it is there.
    public init(
      into repository: Repository, options: SnapshotOptions = SnapshotOptions(),
      completed: @escaping @Sendable (SnapshotReport) -> Void = { _ in }
    ) {
      (self.repository, self.options, self.completed) = (repository, options, completed)
    }
  }

  /// The version to stop at; nil for the latest.
  public var version: Int?
  /// Runs a migration even where a later one was applied, in the order of their numbers.
  public var allowsOutOfOrder = false
  /// Takes a snapshot before anything is staged, under the same locks. One that lacks something ends the run; with
  /// nothing to migrate, none is taken.
  public var backup: Backup?
  /// Whose archives are searched for secrets that a migration moved into the vault.
  public var searchedRepository: Repository?
  /// How the transaction is run; its device keys open the vault.
  public var transaction = TransactionOptions()
  /// How many rows of a table the difference of a dry run lists, of each kind.
  package var rowLimit = Self.shownRows
  /// So many are examples.
  package static let shownRows = 3

  /// All pending migrations, without a snapshot.
  public init() {}
}

/// What a run of migrations did, with the members of its report, and what it found elsewhere.
@dynamicMemberLookup
public struct MigrationResult: Sendable {
  /// The versions, and each migration.
  public var report: MigrationReport
  /// The archive of ``MigrationOptions/backup``.
  public var snapshot: String?
  /// Archives that are not encrypted and still hold a secret that was moved into the vault: rotate these secrets.
  public var exposed: [ExposedSecret] = []
  /// Archives that could not be searched for that, each with the reason.
  public var notSearched: [String] = []
  package var moved: [MovedSecret] = []

  /// A member of the report.
  public subscript<Member>(dynamicMember member: KeyPath<MigrationReport, Member>) -> Member {
    report[keyPath: member]
  }
}

extension ContainerChange<MigrationResult> {
  /// Runs all pending migrations in one transaction, or none.
  ///
  /// When it is applied, it throws ``DrydockError``: `inUse`, `locked`, `stepFailed`, `verifyFailed`, `vaultLocked` (a step on
  /// the vault lacks the device key), and what ``Container/status(_:options:)`` throws. Nothing has changed then.
  public static func migrate(
    _ catalog: MigrationCatalog, options: MigrationOptions = MigrationOptions()
  ) -> Self {
    Self {
      try $0.migrate(catalog, options) { _ in options.version }
    } dryRun: {
      let stage = try DiscardedStage(on: $0, options: options.transaction)
      let report = try Container.migrate(stage, catalog, options.version, options.allowsOutOfOrder)
      return try stage.outcome(MigrationResult(report: report), rowLimit: options.rowLimit)
    }
  }
}

extension ContainerChange<[String]> {
  /// Sets the version that the container has, without running anything; the value is notes.
  public static func baseline(
    _ catalog: MigrationCatalog, version: Int, options: TransactionOptions = TransactionOptions()
  ) -> Self {
    history(.baseline, "set version \(version)", options) {
      try Baseline.set(version, catalog: catalog, on: $0, stamp: Container.stamp($0))
    }
  }

  /// Brings the history in line with the migrations: records the new checksums of applied migrations that are accepted
  /// although their files have changed, removes the records of those that no longer exist, and renumbers the records of those
  /// that have another number now. The value is what was done.
  ///
  /// When it is applied, it throws ``DrydockError`` with code `usage` for a migration that is not in that state; nothing has
  /// changed then.
  public static func repair(
    _ catalog: MigrationCatalog, accept: [Int] = [], remove: [Int] = [], renumber: Bool = false,
    options: TransactionOptions = TransactionOptions()
  ) -> Self {
    let repair = Repair(accept: accept, remove: remove, renumber: renumber)
    let numbers = [("accepted", accept), ("removed", remove)].filter { !$0.1.isEmpty }
      .map { "\($0.0) \($0.1.sorted().map(String.init).joined(separator: ", "))" }
    let summary = (numbers + (renumber ? ["renumbered"] : [])).joined(separator: "; ")
    return history(.repair, summary, options) { try repair.run(catalog, on: $0) }
  }

  /// A change of the history alone. An invalid one is refused before a transaction begins.
  private static func history(
    _ kind: TransactionLogEntry.Kind, _ summary: String, _ options: TransactionOptions,
    _ change: @escaping (StagedContainer) throws -> [String]
  ) -> Self {
    Self {
      try Transaction.run(on: $0, kind, options: options) { staged -> TransactionPlan<Void, [String]> in
        _ = try change(staged)
        return .change((), summary: summary)
      } body: { staged, _ in
        try change(staged)
      }
    } dryRun: {
      let stage = try DiscardedStage(on: $0, options: options)
      return try stage.outcome(change(stage))
    }
  }
}

extension Container {
  /// The container's version and the state of each migration; changes nothing.
  ///
  /// - Throws: ``DrydockError`` with code `unknownVersion` when nothing shows the version.
  public func status(
    _ catalog: MigrationCatalog, options: TransactionOptions = TransactionOptions()
  ) throws -> MigrationStatus {
    try MigrationStatus(catalog, of: DiscardedStage(on: self, options: options))
  }

  /// Runs each pending migration in a transaction by itself: what was done before a failure stays, and a rollback can stop
  /// between any two. A backup is taken before the first.
  ///
  /// `starting` is called before the first transaction with their number, `committed` after each; once, with none, when there
  /// is nothing to do.
  ///
  /// - Throws: as ``ContainerChange/migrate(_:options:)``; what `committed` was called with before that is done.
  public func migrateEach(
    _ catalog: MigrationCatalog, options: MigrationOptions = MigrationOptions(),
    starting: (Int) -> Void = { _ in },
    committed: (TransactionOutcome<MigrationResult>) throws -> Void
  ) throws {
    var (options, pending) = (options, Int.max)
    while pending > 1 {
      // What keeps a later one from being run keeps the first one from being run, too.
      let outcome = try migrate(catalog, options) { plan in
        let numbers = try plan.pending(to: options.version).map(\.number)
        if pending == .max { starting(numbers.count) }
        pending = numbers.count
        return numbers.first ?? options.version
      }
      options.backup = nil
      try committed(outcome)
    }
  }

  /// Runs pending migrations in one transaction.
  ///
  /// - Parameter target: the version to stop at.
  fileprivate func migrate(
    _ catalog: MigrationCatalog, _ options: MigrationOptions, to target: (MigrationStatus) throws -> Int?
  ) throws -> TransactionOutcome<MigrationResult> {
    var (moved, archive): ([MovedSecret], String?) = ([], nil)
    let outcome = try Transaction.run(on: self, .migrate, options: options.transaction) {
      staged -> TransactionPlan<(MigrationStatus, Int?), MigrationReport> in
      let plan = try MigrationStatus(catalog, of: staged, allowingOutOfOrder: options.allowsOutOfOrder)
      try plan.requireKeys(to: options.version, for: staged)
      let version = try target(plan)
      let names = try plan.pending(to: version).map(\.identifier)
      if names.isEmpty && plan.appliedExternally.isEmpty {
        return .unchanged(try Migrator.run(plan, to: version, on: staged, stamp: Self.stamp(staged)))
      }
      let summary =
        names.isEmpty ? "recorded what the app migrated itself" : "ran \(names.joined(separator: ", "))"
      return .change(
        (plan, version), summary: summary,
        backUp: options.backup.map { backup in
          { locked in
            let report = try backUp(
              locked, into: backup.repository, options: backup.options, schemaVersion: plan.detected.version)
            archive = report.path
            backup.completed(report)
            return String(report.path.split(separator: "/").last ?? "")
          }
        })
    } body: { staged, plan in
      let report = try Migrator.run(plan.0, to: plan.1, on: staged, stamp: Self.stamp(staged))
      moved = staged.movedSecrets
      return report
    }
    return outcome.map {
      var result = MigrationResult(report: $0, snapshot: archive, moved: moved)
      if let repository = options.searchedRepository, !moved.isEmpty {
        (result.exposed, result.notSearched) = repository.search(
          for: moved, of: app, configuration: configuration, redactor: options.transaction.redactor)
      }
      return result
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

  fileprivate static func stamp(_ staged: StagedContainer) -> MigrationStamp {
    MigrationStamp(tool: DrydockVersion.tool, transaction: staged.transaction)
  }
}

extension MigrationCatalog {
  /// The migrations in a directory.
  ///
  /// - Throws: ``DrydockError`` with code `catalog`, the place and what is wrong there.
  public static func load(_ directory: String) throws -> MigrationCatalog {
    try load(directory, tool: nil)
  }

  /// The migrations that `drydock.yaml` names, which may be files of another tool.
  ///
  /// - Throws: as ``load(_:)``; ``DrydockError`` with code `badConfiguration` when it names none.
  public static func load(for configuration: ContainerConfiguration) throws -> MigrationCatalog {
    guard let directory = configuration.migrations else {
      throw DrydockError(
        .badConfiguration, "no migrations are configured; name their directory with `migrations:`",
        path: configuration.file)
    }
    return try load(directory, tool: configuration.migrationTool)
  }
}

extension MigrationStatus {
  /// The version that the container has.
  public var version: Int { detected.version }
  /// What shows the version, such as `the history`.
  public var versionSource: String { detected.source.description }
  /// The version after all migrations.
  public var latest: Int { catalog.latest }
}

extension Repository {
  /// Searches the archives that are not encrypted for secrets that were moved into a vault. Containers are migrated by
  /// then: a failure here is reported, not thrown.
  ///
  /// - Returns: where they were found, and the archives that could not be searched, each with the reason.
  package func search(
    for moved: [MovedSecret], of app: String, configuration: ContainerConfiguration,
    redactor: Redactor = Redactor()
  ) -> (exposed: [ExposedSecret], notSearched: [String]) {
    do {
      var (exposed, notSearched) = try exposed(moved, of: app, configuration: configuration)
      for index in exposed.indices { exposed[index].key = redactor.shown(name: exposed[index].key) }
      return (exposed, notSearched)
    } catch let error as DrydockError where error.code == .notFound {
      // There is no repository yet.
      return ([], [])
    } catch {
      return ([], ["\(path): \(error)"])
    }
  }
}
