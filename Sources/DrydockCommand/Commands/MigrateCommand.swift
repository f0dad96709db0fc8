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
    var conflicts: [ContainerPath] = []

    init(_ outcome: TransactionOutcome<MigrationResult>) {
      (transaction, snapshot) = (outcome.transaction?.description, outcome.value.snapshot)
      (report, conflicts) = (outcome.value.report, outcome.conflicts)
      unseenProcesses = outcome.unseen
      (exposed, notSearched) = (outcome.value.exposed, outcome.value.notSearched)
    }

    init(_ outcome: DryRunOutcome<MigrationReport>) {
      (report, difference) = (outcome.value, outcome.difference)
    }
  }

  /// The one document of a run that commits each migration by itself.
  struct EachResult: Encodable, Sendable {
    var runs: [Result] = []
    var error: Failure.Detail?
  }

  func validate() throws {
    if exitCode && !dryRun { throw ValidationError("--exit-code goes with --dry-run") }
    if each && dryRun { throw ValidationError("a dry run commits nothing: leave --each out") }
  }

  func run() throws {
    let configuration = try common.configuration()
    if let batch = try container.batch(configuration, asJSON: common.json) { return try run(batch) }
    if dryRun { return try container.one.reading(configuration, expansion, show) }
    let opened = try container.one.open(configuration)
    let catalog = try migrations.catalog(configuration)
    var options = try options(configuration)
    if !common.json { options.backup?.completed = { Output.advice("backed up to \($0.path)") } }
    options.searchedRepository = repository.path(configuration).map(Repository.init)
    if each { return try runEach(opened, catalog, options) }
    let outcome = try opened.migrate(catalog, options: options)
    if common.json { Output.json(Result(outcome)) }
    report(outcome, opened)
    try outcome.throwUnlessClean()
  }

  /// How migrations are run, with the snapshot before where there is a repository.
  private func options(_ configuration: ContainerConfiguration) throws -> MigrationOptions {
    var options = MigrationOptions()
    (options.version, options.allowsOutOfOrder) = (to, allowOutOfOrder)
    options.transaction = try container.wait.transaction(deviceKeys, use)
    if dryRun { return options }
    let lock = try recipients.lock(configuration)
    guard !noSnapshot, let path = repository.path(configuration) else { return options }
    try Repository(path).createIfNeeded()
    var snapshot = SnapshotOptions()
    (snapshot.lockTimeout, snapshot.busyTimeout) = (
      options.transaction.lockTimeout, options.transaction.busyTimeout
    )
    (snapshot.encryption, snapshot.deviceKeys) = (lock, options.transaction.deviceKeys)
    options.backup = MigrationOptions.Backup(into: Repository(path), options: snapshot)
    return options
  }

  private func report(_ outcome: TransactionOutcome<MigrationResult>, _ opened: Container) {
    outcome.report(on: opened, asJSON: common.json) { MigrationText.write($0.report, verb: "ran") }
    MigrationText.warn(exposed: outcome.value.exposed, notSearched: outcome.value.notSearched)
  }

  private func show(_ opened: Container) throws {
    let outcome = try opened.dryRun(
      migrations.catalog(opened.configuration), options: options(opened.configuration))
    if common.json {
      Output.json(Result(outcome))
    } else {
      MigrationText.write(outcome.value, verb: "would run")
      if outcome.value.changedAnything {
        Output.line("dry run: nothing was changed; the difference would be")
        DifferenceText.write(outcome.difference)
      }
    }
    if exitCode && outcome.value.changedAnything { throw ExitStatus.pending.code }
  }

  // MARK: Each migration by itself

  /// From this number of commits on, a note explains the time they take.
  private static let commitsWorthANote = 20

  private func runEach(_ opened: Container, _ catalog: MigrationCatalog, _ options: MigrationOptions) throws {
    var exit: ExitStatus?
    let (document, failure) = try Self.runEach(opened, catalog, options) { count in
      guard count > Self.commitsWorthANote else { return }
      Output.note(
        "drydock: note: --each commits \(count) times, and each commit waits for the disk; without --each there is one"
      )
    } committed: { outcome in
      report(outcome, opened)
      exit = exit ?? outcome.exit
    }
    if let failure {
      failure.report(asJSON: false)
      Output.note(
        "drydock: committed before that: \(Output.count(document.runs.count, "migration")); `drydock rollback` reverts one "
          + "at a time")
      if let archive = document.runs.first?.snapshot {
        Output.note(
          "drydock: note: `drydock restore \(archive) \(opened.root)` restores the state before all of them")
      }
      exit = .incomplete
    }
    if common.json { Output.json(document) }
    if let exit { throw exit.code }
  }

  /// Runs the migrations one by one. A failure after the first commit leaves the container changed: it is returned.
  private static func runEach(
    _ container: Container, _ catalog: MigrationCatalog, _ options: MigrationOptions,
    starting: (Int) -> Void = { _ in }, committed: (TransactionOutcome<MigrationResult>) -> Void
  ) throws -> (EachResult, Failure?) {
    var document = EachResult()
    do {
      try container.migrateEach(catalog, options: options, starting: starting) { outcome in
        document.runs.append(Result(outcome))
        committed(outcome)
      }
      return (document, nil)
    } catch {
      guard document.runs.contains(where: { $0.transaction != nil }) else { throw error }
      let failure = Failure(error)
      document.error = failure.detail(status: .incomplete)
      return (document, failure)
    }
  }

  // MARK: Many containers

  /// Migrates every container of a batch, each in a separate transaction.
  private func run(_ batch: Batch) throws {
    let catalog = try migrations.catalog(batch.configuration)
    let options = try options(batch.configuration)
    let moved = Mutex<[String: [MovedSecret]]>([:])
    var summary = batch.run { [to, each, dryRun, exitCode] container in
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
      let report = outcome.value.report
      return BatchResult([outcome], BatchResult.text(from: report.from, to: report.to), Result(outcome))
    }
    var outcomes: [TransactionOutcome<MigrationResult>] = []
    let (document, failure) = try runEach(container, catalog, options) { outcome in
      committed(outcome)
      outcomes.append(outcome)
    }
    let reports = document.runs.map(\.report)
    var result = BatchResult(
      outcomes, BatchResult.text(from: reports.first?.from ?? 0, to: reports.last?.to ?? 0), document)
    if let failure {
      result.exit = .incomplete
      result.text += ", then: \(failure.text), exit \(ExitStatus.incomplete.rawValue)"
    }
    return result
  }

  private static func show(
    _ container: Container, _ catalog: MigrationCatalog, _ options: MigrationOptions, exitCode: Bool
  ) throws -> BatchResult {
    let outcome = try container.dryRun(catalog, options: options)
    let text = BatchResult.text(from: outcome.value.from, to: outcome.value.to)
    guard outcome.value.changedAnything else {
      return BatchResult(state: .unchanged, text: text, document: Result(outcome))
    }
    return BatchResult(
      state: .pending, text: "\(text): \(BatchResult.text(outcome.difference))", document: Result(outcome),
      exit: exitCode ? .pending : nil)
  }
}
