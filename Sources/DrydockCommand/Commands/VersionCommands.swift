import ArgumentParser
import Drydock

struct StatusCommand: Subcommand {
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
  @OptionGroup(title: OptionTitle.limits) var expansion: ExpansionOptions
  @OptionGroup(title: OptionTitle.output) var common: CommonOptions

  private static func document(_ plan: MigrationStatus) -> ResultObject {
    let migrations = plan.entries.map { entry -> ResultObject in
      [
        "number": entry.number, "name": entry.name, "state": entry.state.rawValue, "record": entry.record,
        "needs_device_key": entry.needsDeviceKey,
      ]
    }
    return [
      "version": plan.detected.version, "source": plan.detected.source.description,
      "latest": plan.catalog.latest, "migrations": migrations, "notes": plan.notes,
      "problems": plan.problems.map(\.advised.description),
    ]
  }

  func validate() throws { try container.requireAny() }

  func run() throws {
    let configuration = try common.configuration()
    if let batch = try container.batch(configuration, "status", asJSON: common.json) { return try run(batch) }
    try container.one.reading(configuration, expansion, show)
  }

  private func show(_ opened: Container) throws {
    let plan = try opened.status(
      migrations.catalogIfThere(opened.configuration), options: container.wait.transaction())
    let problems = plan.problems
    if common.json {
      Output.json(Self.document(plan))
    } else {
      let version = MigrationReport.version(plan.detected.version, app: plan.detected.appNumber)
      Output.line("version \(version) of \(plan.catalog.latest), by \(plan.detected.source)")
      Output.table(
        plan.entries.map { entry in
          let when =
            entry.record.map { "\($0.origin.rawValue) \(UTCTime.text($0.time))" }
            ?? (entry.needsDeviceKey ? "needs the device key" : "")
          return [String(entry.number), entry.state.rawValue, entry.name, when]
        }, roles: plan.entries.map { $0.state == .applied ? nil : $0.state == .pending ? .changed : .error })
    }
    for note in plan.notes { Output.note("\(note)") }
    for problem in problems { Output.error("\(problem.advised)") }
    if !problems.isEmpty { throw ExitStatus.validation.code }
    if exitCode && !plan.pending.isEmpty { throw ExitStatus.pending.code }
  }
}

extension StatusCommand {
  /// The status of every container of a batch.
  func run(_ batch: Batch) throws {
    let catalog = try migrations.catalogIfThere(batch.configuration)
    let (options, exitCode) = (try container.wait.transaction(), exitCode)
    try batch.finish(
      batch.run { container in
        let plan = try container.status(catalog, options: options)
        var result = BatchResult(
          state: .unchanged, text: "version \(plan.detected.version) of \(plan.catalog.latest)",
          document: Self.document(plan), versions: (plan.detected.version, plan.detected.version))
        if let problem = plan.problems.first {
          let more = plan.problems.count > 1 ? " (and \(plan.problems.count - 1) more)" : ""
          (result.state, result.exit, result.failure) = (.failed, .validation, Failure(problem))
          result.text += ", exit \(ExitStatus.validation.rawValue): \(problem.advised)\(more)"
        } else if !plan.pending.isEmpty {
          (result.state, result.exit) = (.pending, exitCode ? .pending : nil)
          result.text += ", by \(plan.detected.source); \(plan.pending.count) pending"
        }
        return result
      })
  }
}

struct BaselineCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "baseline", abstract: "Set a container's schema version, without running anything.",
    discussion: """
      For a container whose version neither a migration history nor a version marker \
      shows: records --to as its version, so that `drydock migrate` runs only later \
      migrations. With --all, containers with a history and new ones are left unchanged.

      Examples:
        drydock baseline Notes -m Migrations --to 3
        drydock baseline --all Customers -m Migrations --to 3
      """)

  @OptionGroup var container: ContainersOptions
  @OptionGroup var migrations: CatalogOptions
  @Option("The version that the container has.", value: "number") var to: Int
  @OptionGroup(title: OptionTitle.limits) var use: UseOptions
  @OptionGroup(title: OptionTitle.output) var common: CommonOptions

  private static func document(_ outcome: TransactionOutcome<[String]>, _ version: Int) -> ResultObject {
    ["version": version, "notes": outcome.value + outcome.notes]
  }

  func validate() throws { try container.requireAny() }

  func run() throws {
    let configuration = try common.configuration()
    if let batch = try container.batch(configuration, "baseline", asJSON: common.json) {
      return try run(batch)
    }
    let opened = try container.one.open(configuration)
    let outcome = try opened.apply(
      .baseline(migrations.catalog(configuration), version: to, options: container.wait.transaction(nil, use))
    )
    try outcome.finish(
      on: opened, asJSON: common.json, notes: outcome.value, document: Self.document(outcome, to)
    ) { _ in Output.line("the container now has version \(to); no migration was run") }
  }
}

extension BaselineCommand {
  /// Sets the version of the batch's containers of unknown version; others would lose their history.
  func run(_ batch: Batch) throws {
    let catalog = try migrations.catalog(batch.configuration)
    var options = try container.wait.transaction(nil, use)
    options.run = batch.job.run
    try batch.finish(
      batch.run(isChange: true) { [to, options] container in
        if let detected = try Self.known(container, catalog, options, setting: to) {
          return BatchResult(
            state: .unchanged, text: "version \(detected.version) already, by \(detected.source)",
            versions: (detected.version, detected.version))
        }
        let outcome = try container.apply(.baseline(catalog, version: to, options: options))
        var result = BatchResult(
          [outcome], "version \(to)", outcome.document(Self.document(outcome, to)), versions: (nil, to))
        result.notes = outcome.value.map { Notice(.note, $0) } + result.notes
        return result
      }, undo: "--transaction-of \(batch.job.run)")
  }

  /// The known version; nil when nothing shows it, or only a marker without a history, or a record that the database contradicts.
  private static func known(
    _ container: Container, _ catalog: MigrationCatalog, _ options: TransactionOptions, setting version: Int
  ) throws -> DetectedVersion? {
    do {
      let plan = try container.status(catalog, options: options)
      guard plan.problems.contains(where: { $0.code == .unconfirmedVersion }) else { return plan.detected }
      // What another tool has recorded is not taken for another version.
      return catalog.tool == nil || plan.version == version ? nil : plan.detected
    } catch let error as DrydockError where error.code == .unknownVersion {
      // Its history would be lost, and migrations would run again.
      if try MigrationHistory.read(DiscardedStage(on: container, options: options)) != nil { throw error }
      return nil
    }
  }
}

struct RepairCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "repair", abstract: "Correct a container's migration history.",
    discussion: """
      --accept is for migrations that were modified after they were applied: the current \
      files count as applied. --remove is for migrations whose files no longer exist: \
      they are removed from the history. --renumber is for migrations that got another \
      number after they were applied, as after a merge. Nothing is run, and only the \
      history and the version markers change, in a transaction that `drydock rollback` \
      undoes. With --all, containers that need no such repair are left unchanged.

      Examples:
        drydock repair Notes -m Migrations --accept 2 4
        drydock repair Notes -m Migrations --remove 7
        drydock repair Notes -m Migrations --renumber
        drydock repair --all Customers -m Migrations --accept 2
      """)

  @OptionGroup var container: ContainersOptions
  @OptionGroup var migrations: CatalogOptions
  @Option(
    parsing: .upToNextOption,
    help: ArgumentHelp(
      "Accept these modified migrations: record the checksums of their current files; several numbers may follow.",
      valueName: "number"))
  var accept: [Int] = []
  @Option(
    parsing: .upToNextOption,
    help: ArgumentHelp(
      "Remove these migrations, whose files no longer exist, from the history; several numbers may follow.",
      valueName: "number"))
  var remove: [Int] = []
  @Flag(help: "Give records the numbers that their migrations have now.") var renumber = false
  @OptionGroup(title: OptionTitle.limits) var use: UseOptions
  @OptionGroup(title: OptionTitle.output) var common: CommonOptions

  func validate() throws {
    try container.requireAny()
    if accept.isEmpty && remove.isEmpty && !renumber {
      throw ValidationError("name migrations with --accept or --remove, or give --renumber")
    }
  }

  func run() throws {
    let configuration = try common.configuration()
    if let batch = try container.batch(configuration, "repair", asJSON: common.json) { return try run(batch) }
    let opened = try container.one.open(configuration)
    let change = try change(migrations.catalog(configuration), container.wait.transaction(nil, use))
    try opened.plan(change).perform(
      dryRun: false, asJSON: common.json, document: { ["notes": $0] }
    ) { done, _ in
      for line in done { Output.line(line) }
    }
  }

  private func change(
    _ catalog: MigrationCatalog, _ options: TransactionOptions
  ) -> ContainerChange<[String]> {
    .repair(catalog, accept: accept, remove: remove, renumber: renumber, options: options)
  }
}

extension RepairCommand {
  /// Repairs the containers of a batch that need it.
  func run(_ batch: Batch) throws {
    let catalog = try migrations.catalog(batch.configuration)
    if let unknown = accept.first(where: { catalog.migration($0) == nil }) {
      throw UsageError("--accept \(unknown): no migration has that number")
    }
    var options = try container.wait.transaction(nil, use)
    options.run = batch.job.run
    try batch.finish(
      batch.run(isChange: true) { [self, options] container in
        do {
          let outcome = try container.apply(change(catalog, options))
          return BatchResult(
            [outcome], outcome.value.joined(separator: "; "), outcome.document(["notes": outcome.value]))
        } catch let error as DrydockError where error.code == .usage {
          // This container needs no such repair.
          return BatchResult(state: .unchanged, text: error.message)
        }
      }, undo: "--transaction-of \(batch.job.run)")
  }
}
