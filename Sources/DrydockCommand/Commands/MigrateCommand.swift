import ArgumentParser
import Drydock
import Synchronization

struct MigrateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "migrate", abstract: "Run all pending migrations on a container, or none.",
    discussion: """
      All pending migrations are one transaction: a failure leaves the container
      unchanged. With --each, every migration is a separate transaction: what was done
      before a failure stays, and the exit code is 3. A dry run does the same work on
      a copy of what changes, shows the difference, and discards it.

      With a repository (-r, or `repository:` in drydock.yaml) a snapshot is taken
      first, unless there is nothing to migrate.

      Steps on the vault need the device key, in a dry run too. When settings were
      moved into the vault, the repository's unencrypted archives that still hold
      them are listed: rotate these secrets.

      Examples:
        drydock migrate Notes -m Migrations --dry-run
        drydock migrate Notes -m Migrations --device-key device.key -r Backups
        drydock migrate Notes -m Migrations --to 3
        drydock migrate --all Customers -m Migrations --jobs 4 --json > report
      """)

  @OptionGroup var container: ContainersOptions
  @OptionGroup var migrations: CatalogOptions
  @Option(help: ArgumentHelp("Stop at this version.", valueName: "number")) var to: Int?
  @Flag(help: "Commit each migration separately.") var each = false
  @Flag(
    help: "Run a migration even if a later one was applied, in the order of their numbers.")
  var allowOutOfOrder = false
  @Flag(help: "Show what would change, and change nothing.") var dryRun = false
  @Flag(help: "With --dry-run: exit with 2 when migrations are pending.") var exitCode = false
  @OptionGroup var repository: RepositoryOptions
  @Flag(help: "Do not take a snapshot first.") var noSnapshot = false
  @OptionGroup var recipients: RecipientOptions
  @OptionGroup var deviceKeys: DeviceKeyOptions
  @OptionGroup var use: UseOptions
  @OptionGroup var expansion: ExpansionOptions
  @OptionGroup var common: CommonOptions

  struct Result: Encodable, Sendable {
    var transaction: String? = nil
    /// The archive that the container was backed up to before.
    var snapshot: String? = nil
    var report: MigrationReport, difference: ContainerDifference? = nil
    var exposed: [ExposedSecret] = [], notSearched: [String] = []
    var unseenProcesses: UnseenProcesses? = nil
    var conflicts: [ContainerPath]

    init(_ outcome: TransactionOutcome<MigrationResult>, snapshot: String? = nil) {
      self.snapshot = snapshot
      transaction = outcome.transaction?.description
      (report, conflicts) = (outcome.value.report, outcome.conflicts)
      unseenProcesses = outcome.unseen
      (exposed, notSearched) = (outcome.value.exposed, outcome.value.notSearched)
    }

    init(report: MigrationReport, difference: ContainerDifference) {
      (self.report, self.difference, conflicts) = (report, difference, [])
    }
  }

  func validate() throws {
    if exitCode && !dryRun { throw ValidationError("--exit-code goes with --dry-run") }
    if each && dryRun { throw ValidationError("a dry run commits nothing: leave --each out") }
  }

  func run() throws {
    let configuration = try common.configuration()
    if let batch = try container.batch(configuration, asJSON: common.json) { return try run(batch) }
    if dryRun { return try container.reading(configuration, expansion, show) }
    let opened = try container.open(configuration)
    let catalog = try migrations.catalog(configuration)
    var options = try options(transaction: container.transaction().with(deviceKeys).with(use))
    let backup = try MigrationBackup(self, configuration, options.transaction)
    options.backup = backup.options
    options.searchedRepository = repository.path(configuration).map(Repository.init)
    if each { return try runEach(opened, catalog, backup, options) }
    let outcome = try backup.explaining(opened) { try opened.migrate(catalog, options: options) }
    if common.json { Output.json(Result(outcome, snapshot: backup.path)) }
    try report(outcome, opened)
  }

  /// How migrations are run, without a snapshot.
  func options(transaction: TransactionOptions) -> MigrationOptions {
    var options = MigrationOptions()
    (options.version, options.allowsOutOfOrder) = (to, allowOutOfOrder)
    options.transaction = transaction
    return options
  }

  /// Reports what a run did; results as text only without `--json`.
  func report(_ outcome: TransactionOutcome<MigrationResult>, _ opened: Container) throws {
    ContainerOptions.reportRecovery(outcome.recovered, opened)
    for note in outcome.allNotes { Output.note("drydock: note: \(note)") }
    if !common.json {
      MigrationText.write(outcome.value.report, verb: "ran")
      if let transaction = outcome.transaction {
        Output.advice("transaction \(transaction); `drydock rollback` undoes it")
      }
      for path in outcome.conflicts {
        Output.note("drydock: the app changed it at the same moment; conflict copy kept: \(path)")
      }
    }
    MigrationText.warn(exposed: outcome.value.exposed, notSearched: outcome.value.notSearched)
    try outcome.throwUnlessClean()
  }

  private func show(_ opened: Container) throws {
    let outcome = try opened.dryRun(
      migrations.catalog(opened.configuration),
      options: options(transaction: container.transaction().with(deviceKeys)))
    if common.json {
      Output.json(Result(report: outcome.value, difference: outcome.difference))
    } else {
      MigrationText.write(outcome.value, verb: "would run")
      if outcome.value.changedAnything {
        Output.line("dry run: nothing was changed; the difference would be")
        DifferenceText.write(outcome.difference)
      }
    }
    if exitCode && outcome.value.changedAnything { throw ExitStatus.pending.code }
  }
}

extension MigrateCommand {
  /// The one document of a run that commits each migration by itself.
  struct EachResult: Encodable, Sendable {
    var runs: [Result] = []
    var error: Failure.Detail?
  }

  /// From this number of commits on, a note explains the time they take.
  private static let commitsWorthANote = 20

  /// Runs the migrations one by one. A failure after the first commit leaves the container changed: exit code 3.
  func runEach(
    _ opened: Container, _ catalog: MigrationCatalog, _ backup: MigrationBackup, _ options: MigrationOptions
  ) throws {
    var result = EachResult()
    var count = 0
    var unclean: (any Error)?
    do {
      let starting = { (count: Int) in
        guard count > Self.commitsWorthANote else { return }
        Output.note(
          "drydock: note: --each commits \(count) times, and each commit waits for the disk; without --each there is one"
        )
      }
      try backup.explaining(opened) {
        try opened.migrateEach(catalog, options: options, starting: starting) { outcome in
          result.runs.append(Result(outcome, snapshot: count == 0 ? backup.path : nil))
          if outcome.transaction != nil { count += 1 }
          do { try report(outcome, opened) } catch { unclean = unclean ?? error }
        }
      }
    } catch {
      guard count > 0 else { throw error }
      let failure = Failure(error) ?? Failure(unforeseen: error)
      failure.report(asJSON: false)
      Output.note(
        "drydock: \(Output.count(count, "migration")) before it is committed; `drydock rollback` goes back one by one"
      )
      result.error = failure.detail(status: .incomplete)
      if common.json { Output.json(result) }
      throw ExitStatus.incomplete.code
    }
    if common.json { Output.json(result) }
    if let unclean { throw unclean }
  }
}

/// The snapshot that `migrate` takes first, where there is a repository.
struct MigrationBackup: Sendable {
  /// How it is taken; nil for none.
  let options: MigrationOptions.Backup?
  private let taken = Taken()

  /// - Throws: `UsageError` for flags that contradict each other.
  init(_ command: MigrateCommand, _ configuration: ContainerConfiguration, _ options: TransactionOptions)
    throws
  {
    let lock = try command.recipients.lock(configuration)
    guard !command.noSnapshot, let path = command.repository.path(configuration) else {
      self.options = nil
      return
    }
    let repository = Repository(path)
    try repository.createIfNeeded()
    var snapshot = SnapshotOptions()
    (snapshot.lockTimeout, snapshot.busyTimeout) = (options.lockTimeout, options.busyTimeout)
    (snapshot.encryption, snapshot.deviceKeys) = (lock, options.deviceKeys)
    let isShown = !command.common.json
    self.options = MigrationOptions.Backup(into: repository, options: snapshot) { [taken] report in
      taken.path.withLock { $0 = report.path }
      if isShown { Output.advice("backed up to \(report.path)") }
    }
  }

  /// The archive's path, once it is there.
  var path: String? { taken.path.withLock { $0 } }

  private final class Taken: Sendable {
    let path = Mutex<String?>(nil)
  }

  /// A failure after the snapshot says how to get back to it.
  func explaining<T>(_ container: Container, _ body: () throws -> T) throws -> T {
    do { return try body() } catch {
      if let path {
        Output.note(
          "drydock: note: `drydock restore \(path) \(container.root)` restores the previous state")
      }
      throw error
    }
  }
}

extension MigrateCommand {
  /// Migrates every container of a batch, each in a separate transaction.
  func run(_ batch: Batch) throws {
    let catalog = try migrations.catalog(batch.configuration)
    var options = options(transaction: try container.transaction().with(deviceKeys).with(use))
    if !dryRun {
      options.backup = try MigrationBackup(self, batch.configuration, options.transaction).options
      // The rows of the batch say enough.
      options.backup?.completed = { _ in }
    }
    let moved = Mutex<[String: [MovedSecret]]>([:])
    var summary = batch.run { [to, each, dryRun, exitCode, options] container in
      do {
        if dryRun { return try Self.show(container, catalog, options, exitCode: exitCode) }
        return try Self.migrate(container, catalog, options, each: each) { outcome in
          moved.withLock { $0[container.app, default: []] += outcome.value.moved }
        }
      } catch let error as DrydockError where error.code == .usage && to ?? 0 <= catalog.latest {
        // This container is ahead of the version.
        return BatchResult(state: .unchanged, text: error.message)
      }
    }
    // One search for all: each would read the whole repository.
    if let repository = repository.path(batch.configuration) {
      for (app, moved) in moved.withLock({ $0 }).sorted(by: { $0.key < $1.key }) where !moved.isEmpty {
        let found = Repository(repository).search(
          for: moved, of: app, configuration: batch.configuration, redactor: options.transaction.redactor)
        summary.exposed += found.exposed
        summary.notSearched += found.notSearched
      }
    }
    MigrationText.warn(exposed: summary.exposed, notSearched: summary.notSearched)
    try batch.finish(summary)
  }

  private static func migrate(
    _ container: Container, _ catalog: MigrationCatalog, _ options: MigrationOptions, each: Bool,
    committed: (TransactionOutcome<MigrationResult>) -> Void
  ) throws -> BatchResult {
    guard each else {
      let outcome = try container.migrate(catalog, options: options)
      committed(outcome)
      return result([outcome], Result(outcome), nil)
    }
    var outcomes: [TransactionOutcome<MigrationResult>] = []
    var document = EachResult()
    do {
      try container.migrateEach(catalog, options: options) { outcome in
        committed(outcome)
        outcomes.append(outcome)
        document.runs.append(Result(outcome))
      }
    } catch {
      guard outcomes.contains(where: { $0.transaction != nil }) else { throw error }
      let failure = Failure(error) ?? Failure(unforeseen: error)
      document.error = failure.detail(status: .incomplete)
      return result(outcomes, document, failure)
    }
    return result(outcomes, document, nil)
  }

  /// What one or more transactions did, and what ended them.
  private static func result(
    _ outcomes: [TransactionOutcome<MigrationResult>], _ document: some Encodable & Sendable,
    _ failure: Failure?
  ) -> BatchResult {
    let versions = outcomes.map(\.value.report)
    var result = BatchResult(
      state: outcomes.allSatisfy { $0.transaction == nil } ? .unchanged : .changed,
      text: text(versions.first?.from ?? 0, versions.last?.to ?? 0), document: document,
      exit: outcomes.lazy.compactMap(\.exit).first, notes: outcomes.flatMap(\.reportLines),
      unseen: outcomes.lazy.compactMap(\.unseen).first)
    if let failure {
      result.exit = .incomplete
      result.text += ", then: \(failure.text)"
    }
    if let exit = result.exit { result.text += ", exit \(exit.rawValue)" }
    return result
  }

  private static func show(
    _ container: Container, _ catalog: MigrationCatalog, _ options: MigrationOptions, exitCode: Bool
  ) throws -> BatchResult {
    let outcome = try container.dryRun(catalog, options: options)
    let (report, document) = (
      outcome.value, Result(report: outcome.value, difference: outcome.difference)
    )
    guard report.changedAnything else {
      return BatchResult(state: .unchanged, text: text(report.from, report.to), document: document)
    }
    return BatchResult(
      state: .pending, text: "\(text(report.from, report.to)): \(BatchResult.text(outcome.difference))",
      document: document, exit: exitCode ? .pending : nil)
  }

  private static func text(_ from: Int, _ to: Int) -> String {
    from == to ? "version \(to)" : "version \(from) → \(to)"
  }
}

extension BatchResult {
  /// What would change, counted.
  static func text(_ difference: ContainerDifference) -> String {
    let counts = [
      (difference.settings.count, "setting"), (difference.vault.count, "vault"),
      (difference.databases.count, "database"), (difference.files.count, "file"),
    ]
    return counts.filter { $0.0 > 0 }.map { Output.count($0.0, $0.1) }.joined(separator: ", ")
  }
}
