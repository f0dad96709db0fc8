import ArgumentParser
import Drydock
import Reports
import Synchronization

struct MigrateCommand: ProgressSubcommand {
  static let configuration = CommandConfiguration(
    commandName: "migrate", abstract: "Run all pending migrations on a container, or none.",
    discussion: """
      All pending migrations are one transaction: a failure leaves the container \
      unchanged. With a repository a snapshot is taken first, to a new archive. A dry \
      run does the same work on a copy and shows the difference. Steps on the vault need \
      the device key.

      Examples:
        drydock migrate Notes -m Migrations --dry-run
        drydock migrate Notes -m Migrations --device-key device.key -r Backups
        drydock migrate Notes -m Migrations --to 3
        drydock migrate --all Customers -m Migrations --jobs 4 --json > report
      """)

  @OptionGroup var container: ContainersOptions
  @OptionGroup var migrations: CatalogOptions
  @Option("Migrate up to this version (default: the latest).", value: "number") var to: Int?
  @Flag(help: "Commit each migration separately: after a failure the earlier ones stay (exit code 3).")
  var each = false
  @Flag(
    help: "Run a migration even if a later one was applied, in the order of their numbers.")
  var allowOutOfOrder = false
  @Flag(help: "Show what would change, and change nothing.") var dryRun = false
  @Flag(help: "With --dry-run: exit with 2 when migrations are pending.") var exitCode = false
  @OptionGroup(title: OptionTitle.reports) var page: HTMLOptions
  @OptionGroup var repository: RepositoryOptions
  @Flag(help: "Do not take a snapshot first.") var noSnapshot = false
  @OptionGroup(title: OptionTitle.keys) var recipients: RecipientOptions
  @OptionGroup(title: OptionTitle.keys) var signing: SigningOptions
  @OptionGroup(title: OptionTitle.keys) var deviceKeys: DeviceKeyOptions
  @OptionGroup(title: OptionTitle.limits) var use: UseOptions
  @OptionGroup(title: OptionTitle.limits) var expansion: ExpansionOptions
  @OptionGroup(title: OptionTitle.output) var showing: ProgressOptions

  private static func document(_ result: MigrationResult) -> ResultObject {
    [
      "snapshot": result.snapshot, "report": result.report, "exposed": result.exposed,
      "not_searched": result.notSearched,
    ]
  }

  /// What a run did that commits each migration by itself, and what ended it.
  private struct EachResult {
    var outcomes: [TransactionOutcome<MigrationResult>] = []
    var failure: Failure?

    var document: ResultObject {
      [
        "runs": outcomes.map { $0.document(MigrateCommand.document($0.value)) },
        "error": failure.map { $0.detail(status: .incomplete) },
      ]
    }
  }

  func validate() throws {
    try container.requireAny()
    if exitCode && !dryRun { throw ValidationError("--exit-code goes with --dry-run") }
    if page.html != nil && (!dryRun || container.all != nil) {
      throw ValidationError("--html goes with --dry-run and one container")
    }
    if each && dryRun { throw ValidationError("a dry run commits nothing: leave --each out") }
  }

  func run() throws {
    let configuration = try common.configuration()
    let display = try showing.display()
    defer { display.end() }
    if let batch = try container.batch(configuration, "migrate", asJSON: common.json) {
      return try run(batch, display)
    }
    if dryRun {
      return try page.reporting(Self.dryRunTitle, container.one.path) {
        try container.one.reading(configuration, expansion) { try show($0, display) }
      }
    }
    let opened = try container.one.open(configuration)
    let catalog = try migrations.catalog(configuration)
    var options = try options(configuration, display.progress)
    let archive = Mutex<String?>(nil)
    options.backup?.completed = { [isShown = !common.json && !common.quiet] report in
      archive.withLock { $0 = report.path }
      if isShown { Output.advice("backed up to \(report.path)") }
    }
    options.searchedRepository = repository.path(configuration).map(Repository.init)
    do {
      if each { return try runEach(opened, catalog, options) }
      let outcome = try opened.apply(.migrate(catalog, options: options))
      display.end()
      if common.json { Output.json(outcome.document(Self.document(outcome.value))) }
      report(outcome, opened)
      try outcome.throwUnlessClean()
    } catch let error where !(error is ExitCode) {
      if let path = archive.withLock({ $0 }) {
        Output.note("`drydock restore \(path) \(opened.root)` restores the previous state")
      }
      throw error
    }
  }

  /// How migrations are run, with the snapshot before where there is a repository.
  private func options(
    _ configuration: ContainerConfiguration, _ progress: WorkProgress? = nil
  ) throws -> MigrationOptions {
    var options = MigrationOptions()
    (options.version, options.allowsOutOfOrder) = (to, allowOutOfOrder)
    options.transaction = try container.wait.transaction(deviceKeys, use)
    options.transaction.progress = progress
    if dryRun { return options }
    let encryption = try recipients.encryption(configuration)
    guard !noSnapshot, let path = repository.path(configuration) else { return options }
    try Repository(path).createIfNeeded()
    let snapshot = SnapshotOptions(
      options.transaction, encryption: encryption, signing: try signing.copies(configuration))
    options.backup = MigrationOptions.Backup(into: Repository(path), options: snapshot)
    return options
  }

  private func report(_ outcome: TransactionOutcome<MigrationResult>, _ opened: Container) {
    // The undo log keeps a secret that moved to the vault encrypted.
    let options = outcome.value.moved.isEmpty ? "" : deviceKeys.words
    outcome.report(on: opened, asJSON: common.json, options: options) {
      $0.report.write("ran")
    }
    Self.warn(exposed: outcome.value.exposed, notSearched: outcome.value.notSearched)
  }

  /// Which archives still hold what is in the vault now, on standard error whatever the output is.
  private static func warn(exposed: [ExposedSecret], notSearched: [String]) {
    let count = Set(exposed.map(\.archive)).count
    if count > 0 {
      let items = exposed.map { "\n  " + "\($0.archive): \($0.key) in \($0.file)".printable }
      Output.warning(
        "unencrypted archives still hold what was moved into the vault: \(NumberText.count(count, "archive")); "
          + "rotate these secrets\(items.joined())")
    }
    for archive in notSearched {
      Output.warning("not searched for what was moved into the vault: \(archive)".printable)
    }
  }

  private static let dryRunTitle = "Dry run of migrations"

  private func show(_ opened: Container, _ display: ProgressDisplay) throws {
    var options = try options(opened.configuration, display.progress)
    options.rowLimit = page.html == nil ? MigrationOptions.shownRows : HTMLPage.rowLimit
    var outcome = try opened.plan(.migrate(migrations.catalog(opened.configuration), options: options))
      .dryRun()
    display.end()
    try page.write(
      Report(
        dryRun: outcome.report, changing: outcome.difference, app: opened.app, instance: opened.instance,
        container: container.one.path))
    outcome.difference = outcome.difference.listing(rows: MigrationOptions.shownRows)
    if common.json {
      Output.json(outcome.document(Self.document(outcome.value)))
    } else {
      outcome.report.write("would run")
      if outcome.changedAnything { Output.dryRun(outcome.difference) }
    }
    if exitCode && outcome.changedAnything { throw ExitStatus.pending.code }
  }

  /// From this number of commits on, a note explains the time they take.
  private static let commitsWorthANote = 20

  private func runEach(_ opened: Container, _ catalog: MigrationCatalog, _ options: MigrationOptions) throws {
    var exit: ExitStatus?
    let result = try Self.runEach(opened, catalog, options) { count in
      guard count > Self.commitsWorthANote else { return }
      Output.note(
        "--each commits \(count) times, and each commit waits for the disk; without --each there is one"
      )
    } committed: { outcome in
      report(outcome, opened)
      exit = exit ?? outcome.exit
    }
    if let failure = result.failure {
      failure.report(asJSON: false)
      let count = NumberText.count(result.outcomes.count, "migration")
      Output.note("committed before that: \(count); `drydock rollback` reverts one at a time")
      if let archive = result.outcomes.first?.value.snapshot {
        Output.note(
          "`drydock restore \(archive) \(opened.root)` restores the state before all of them")
      }
      exit = .incomplete
    }
    if common.json { Output.json(result.document) }
    if let exit { throw exit.code }
  }

  /// Runs the migrations one by one. A failure after the first commit leaves the container changed: it is returned.
  private static func runEach(
    _ container: Container, _ catalog: MigrationCatalog, _ options: MigrationOptions,
    starting: (Int) -> Void = { _ in }, committed: (TransactionOutcome<MigrationResult>) -> Void
  ) throws -> EachResult {
    var result = EachResult()
    do {
      try container.migrateEach(catalog, options: options, starting: starting) { outcome in
        result.outcomes.append(outcome)
        committed(outcome)
      }
    } catch {
      guard result.outcomes.contains(where: { $0.transaction != nil }) else { throw error }
      result.failure = Failure(error)
    }
    return result
  }

  /// Migrates every container of a batch, each in a separate transaction.
  private func run(_ batch: Batch, _ display: ProgressDisplay) throws {
    let catalog = try migrations.catalog(batch.configuration)
    var options = try options(batch.configuration)
    options.transaction.run = batch.job.run
    // A container has one line.
    options.rowLimit = 0
    let moved = Mutex<[String: [MovedSecret]]>([:])
    display.progress?.begin(.migrate)
    var summary = batch.run(display.progress, isChange: !dryRun) {
      [to, each, dryRun, exitCode, options] container in
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
    display.end()
    Self.warn(exposed: summary.exposed, notSearched: summary.notSearched)
    try batch.finish(summary, undo: "--transaction-of \(batch.job.run)")
  }

  private static func migrate(
    _ container: Container, _ catalog: MigrationCatalog, _ options: MigrationOptions, each: Bool,
    committed: (TransactionOutcome<MigrationResult>) -> Void
  ) throws -> BatchResult {
    guard each else {
      let outcome = try container.apply(.migrate(catalog, options: options))
      committed(outcome)
      return result([outcome], outcome.document(document(outcome.value)))
    }
    let each = try runEach(container, catalog, options, committed: committed)
    var result = result(each.outcomes, each.document)
    if let failure = each.failure {
      result.exit = .incomplete
      result.text += ", then: \(failure.text), exit \(ExitStatus.incomplete.rawValue)"
    }
    return result
  }

  private static func result(
    _ outcomes: [TransactionOutcome<MigrationResult>], _ document: ResultObject
  ) -> BatchResult {
    let (first, last) = (outcomes.first, outcomes.last)
    let text = MigrationReport.versions(from: first?.from ?? 0, to: last?.to ?? 0)
    return BatchResult(outcomes, text, document, versions: (first?.from, last?.to))
  }

  private static func show(
    _ container: Container, _ catalog: MigrationCatalog, _ options: MigrationOptions, exitCode: Bool
  ) throws -> BatchResult {
    let outcome = try container.plan(.migrate(catalog, options: options)).dryRun()
    return BatchResult(
      outcome, isPending: outcome.changedAnything,
      MigrationReport.versions(from: outcome.from, to: outcome.to), document(outcome.value),
      exit: exitCode ? .pending : nil, versions: (outcome.from, outcome.to))
  }
}
