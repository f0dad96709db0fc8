import ArgumentParser
import Drydock

struct MigrateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "migrate", abstract: "Run all pending migrations on a container, or none.",
    discussion: """
      All pending migrations are one transaction: a failure anywhere leaves the
      container as it was. With --each every migration is one of its own: what was
      done before a failure stays, and the exit code is 3 then. A dry run does the
      same work on a copy of what changes, shows the difference, and throws it away.

      With a repository (-r, or `repository:` in drydock.yaml) a snapshot is taken
      first, as `snapshot` takes it; without anything to migrate there is none.

      Steps on the vault need the device key, in a dry run too. When settings were
      moved into the vault, archives of the repository that are not encrypted and
      still hold their values are listed: those secrets have to be rotated.

      Examples:
        drydock migrate Notes -m Migrations --dry-run
        drydock migrate Notes -m Migrations --device-key device.key -r Backups
        drydock migrate Notes -m Migrations --to 3
        drydock migrate --all Customers -m Migrations --jobs 4 --json > report
      """)

  @OptionGroup var container: ContainersOptions
  @OptionGroup var migrations: CatalogOptions
  @Option(help: ArgumentHelp("Stop at this version.", valueName: "number")) var to: Int?
  @Flag(help: "Commit each migration by itself.") var each = false
  @Flag(
    help: "Run a migration although a later one was applied; all in the order of their numbers.")
  var allowOutOfOrder = false
  @Flag(help: "Show what would change, and change nothing.") var dryRun = false
  @Flag(help: "With --dry-run: exit with 2 when migrations are pending.") var exitCode = false
  @OptionGroup var repository: RepositoryOptions
  @Flag(help: "Take no snapshot first.") var noSnapshot = false
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
    if let many = try container.many(configuration, asJSON: common.json) { return try run(many) }
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
    try tell(outcome, opened)
  }

  /// How migrations are run, without a snapshot.
  func options(transaction: TransactionOptions) -> MigrationOptions {
    var options = MigrationOptions()
    (options.version, options.allowsOutOfOrder) = (to, allowOutOfOrder)
    options.transaction = transaction
    return options
  }

  /// Says what a run did; results in words only without `--json`.
  func tell(_ outcome: TransactionOutcome<MigrationResult>, _ opened: Container) throws {
    ContainerOptions.tell(outcome.recovered, opened)
    for note in outcome.allNotes { Output.note("drydock: note: \(note)") }
    if !common.json {
      MigrationText.write(outcome.value.report, verb: "ran")
      if let transaction = outcome.transaction {
        Output.advice("transaction \(transaction); `drydock rollback` undoes it")
      }
      for path in outcome.conflicts {
        Output.note("drydock: the app changed it at the same moment, kept aside: \(path)")
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

struct StatusCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status", abstract: "Show a container's schema version and the state of each migration.",
    discussion: """
      Examples:
        drydock status Notes -m Migrations --exit-code
        drydock status --all Customers -m Migrations
      """)

  @OptionGroup var container: ContainersOptions
  @OptionGroup var migrations: CatalogOptions
  @Flag(help: "Exit with 2 when migrations are pending.") var exitCode = false
  @OptionGroup var expansion: ExpansionOptions
  @OptionGroup var common: CommonOptions

  struct Result: Encodable, Sendable {
    struct Entry: Encodable, Sendable {
      var number: Int
      var name: String
      var state: String
      var record: MigrationRecord?
      var needsDeviceKey: Bool
    }
    var version: Int
    var source: String
    var latest: Int
    var migrations: [Entry]
    var notes: [String]
    var problems: [String]

    init(_ plan: MigrationStatus) {
      (version, source) = (plan.detected.version, plan.detected.source.description)
      latest = plan.catalog.latest
      migrations = plan.entries.map {
        Entry(
          number: $0.number, name: $0.name, state: $0.state.rawValue, record: $0.record,
          needsDeviceKey: $0.needsDeviceKey)
      }
      (notes, problems) = (plan.notes, plan.problems.map(\.description))
    }
  }

  func run() throws {
    let configuration = try common.configuration()
    if let many = try container.many(configuration, asJSON: common.json) { return try run(many) }
    try container.reading(configuration, expansion, show)
  }

  private func show(_ opened: Container) throws {
    let plan = try opened.status(
      migrations.catalog(opened.configuration), options: container.transaction())
    let problems = plan.problems
    if common.json {
      Output.json(Result(plan))
    } else {
      Output.line("version \(plan.detected.version) of \(plan.catalog.latest), by \(plan.detected.source)")
      Output.table(
        plan.entries.map { entry in
          let when =
            entry.record.map { "\($0.origin.rawValue) \(UTCTime.text($0.time))" }
            ?? (entry.needsDeviceKey ? "needs the device key" : "")
          return [String(entry.number), entry.state.rawValue, entry.name, when]
        })
    }
    for note in plan.notes { Output.note("drydock: note: \(note)") }
    for problem in problems { Output.note("drydock: \(problem)") }
    if !problems.isEmpty { throw ExitStatus.validation.code }
    if exitCode && !plan.pending.isEmpty { throw ExitStatus.pending.code }
  }
}

struct BaselineCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "baseline", abstract: "Say which version a container has, without running anything.",
    discussion: """
      With --all, it is said of those containers only of which nothing else says it:
      one that has a history, or is new, is left as it is.

      Examples:
        drydock baseline Notes -m Migrations --to 3
        drydock baseline --all Customers -m Migrations --to 3
      """)

  @OptionGroup var container: ContainersOptions
  @OptionGroup var migrations: CatalogOptions
  @Option(help: ArgumentHelp("The version that the container has.", valueName: "number")) var to: Int
  @OptionGroup var use: UseOptions
  @OptionGroup var common: CommonOptions

  struct Result: Encodable, Sendable {
    var transaction: String?
    var version: Int
    var notes: [String]
    var unseenProcesses: UnseenProcesses?
  }

  func run() throws {
    let configuration = try common.configuration()
    if let many = try container.many(configuration, asJSON: common.json) { return try run(many) }
    let opened = try container.open(configuration)
    let outcome = try opened.baseline(
      migrations.catalog(configuration), version: to, options: container.transaction().with(use))
    ContainerOptions.tell(outcome.recovered, opened)
    let notes = outcome.value + outcome.notes
    for note in outcome.value + outcome.allNotes { Output.note("drydock: note: \(note)") }
    if common.json {
      Output.json(
        Result(
          transaction: outcome.transaction?.description, version: to, notes: notes,
          unseenProcesses: outcome.unseen))
    } else {
      Output.line("the container has version \(to) now, without anything having been run")
    }
  }
}
