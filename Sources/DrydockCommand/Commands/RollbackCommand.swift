import ArgumentParser
import Drydock
import Synchronization

struct RollbackCommand: ProgressSubcommand {
  static let configuration = CommandConfiguration(
    commandName: "rollback",
    abstract: "Undo the last transaction, or go back to a version, keeping newer data.",
    discussion: """
      Reverts each setting, database and file separately. Where the app has changed \
      the same one since, it is a conflict: nothing is changed, both sides are shown. \
      --to undoes as many transactions as needed, in one; where the undo log does not \
      reach, it runs down steps.

      Examples:
        drydock rollback Notes
        drydock rollback Notes -m Migrations --to 3 --dry-run
        drydock rollback Notes -m Migrations --down
        drydock rollback --all Customers --transaction-of 4711
      """)

  @OptionGroup var container: ContainersOptions
  @OptionGroup var migrations: CatalogOptions
  @Option("Go back to this version.", value: "number") var to: Int?
  @Flag(
    help: "Revert migrations by their down steps, on the current data; without --to, those of the last run.")
  var down = false
  @Flag(help: "On a conflict, discard what the app has written since.") var discardNewer = false
  @Flag(help: "Undo the last rollback instead.") var redo = false
  @Option("Undo what this run changed, as `drydock log` shows it, where nothing else followed.", value: "run")
  var transactionOf: String?
  @Flag(help: "Show what would change, and change nothing.") var dryRun = false
  @OptionGroup(title: OptionTitle.keys) var deviceKeys: DeviceKeyOptions
  @OptionGroup(title: OptionTitle.limits) var use: UseOptions
  @OptionGroup(title: OptionTitle.limits) var expansion: ExpansionOptions
  @OptionGroup(title: OptionTitle.output) var showing: ProgressOptions

  private static func document(_ report: MigrationRollback.Report) -> ResultObject {
    [
      "from": report.from, "to": report.to, "undone": report.undone, "migrations": report.migrations,
      "discarded": report.discarded, "notes": report.notes,
    ]
  }

  func validate() throws {
    try container.requireAny()
    if down && discardNewer {
      throw ValidationError(
        "--down keeps what the app has written since, and --discard-newer discards it: give one")
    }
    if redo && (down || to != nil) {
      throw ValidationError("--redo undoes the last rollback as a whole: leave --to and --down out")
    }
    if transactionOf != nil && (down || redo || to != nil) {
      throw ValidationError("--transaction-of undoes what a run changed: leave --to, --down and --redo out")
    }
  }

  func run() throws {
    let configuration = try common.configuration()
    let display = try showing.display()
    defer { display.end() }
    display.progress?.begin(.rollback)
    let request = try request()
    if let batch = try container.batch(configuration, "rollback", asJSON: common.json) {
      return try run(batch, request, catalog(configuration), display)
    }
    var options = try container.wait.transaction(deviceKeys, use)
    options.progress = display.progress
    let one = container.one
    // What only a dry run can read is an archive of a container.
    try dryRun
      ? one.reading(configuration, expansion) { try run($0, request, options, display) }
      : run(one.open(configuration), request, options, display)
  }

  private func run(
    _ opened: Container, _ request: MigrationRollback.Request, _ options: TransactionOptions,
    _ display: ProgressDisplay
  ) throws {
    let catalog = try catalog(opened.configuration)
    if !dryRun, let run = request.run, try !opened.has(run) {
      throw DrydockError(
        .nothingToUndo, "the container has no transaction of run \(run); `drydock log` shows the runs",
        path: opened.root)
    }
    try opened.plan(.rollback(request, catalog: catalog, options: options)).perform(
      dryRun: dryRun, asJSON: common.json, display: display, undo: redo ? nil : "drydock rollback --redo",
      document: Self.document
    ) { report, difference in
      guard let difference else {
        return report.write(redo ? "redone" : "rolled back", steps: "reverted")
      }
      report.write(redo ? "would redo" : "would roll back", steps: "would revert")
      Output.dryRun(difference)
    }
  }

  func request() throws -> MigrationRollback.Request {
    var request = MigrationRollback.Request()
    (request.version, request.bySteps) = (to, down)
    (request.discardingNewer, request.redoing) = (discardNewer, redo)
    request.run = try UsageError.reading("--transaction-of") { try transactionOf.map { try RunID($0) } }
    return request
  }

  /// The migrations. Without `--to` and `--down` they only show whether down steps could resolve a conflict, and need not
  /// even be readable.
  func catalog(_ configuration: ContainerConfiguration) throws -> MigrationCatalog? {
    if down { return try migrations.catalog(configuration) }
    guard migrations.areThere(configuration) else { return nil }
    return to == nil ? try? migrations.catalog(configuration) : try migrations.catalog(configuration)
  }
}

extension RollbackCommand {
  /// Rolls back every container of a batch, each in a separate transaction.
  func run(
    _ batch: Batch, _ request: MigrationRollback.Request, _ catalog: MigrationCatalog?,
    _ display: ProgressDisplay
  ) throws {
    if request.version == nil, request.run == nil { try refuseMixture(batch) }
    var options = try container.wait.transaction(deviceKeys, use)
    options.run = batch.job.run
    let isKnown = Mutex(false)
    var summary = batch.run(display.progress, isChange: !dryRun) { [dryRun, options] container in
      if let run = request.run, try container.has(run) { isKnown.withLock { $0 = true } }
      do {
        let plan = container.plan(.rollback(request, catalog: catalog, options: options))
        if dryRun {
          let outcome = try plan.dryRun()
          return BatchResult(
            outcome, isPending: !outcome.value.isEmpty, Self.text(outcome.value, request),
            Self.document(outcome.value), versions: outcome.value.versions)
        }
        let outcome = try plan.apply()
        return BatchResult(
          [outcome], Self.text(outcome.value, request), outcome.document(Self.document(outcome.value)),
          versions: outcome.value.versions)
      } catch let error as DrydockError where error.code == .usage {
        // This container is behind the version.
        return BatchResult(state: .unchanged, text: error.message)
      }
    }
    display.end()
    if let run = request.run, !isKnown.withLock({ $0 }), summary.exitCode == 0 {
      let what =
        "no container\(batch.job.shard.map { " of shard \($0)" } ?? "") has a transaction of run \(run)"
      // A part of the containers may have none.
      if batch.job.shard != nil || batch.leftOut > 0 {
        Output.note(what)
      } else {
        Output.error("\(what); `drydock log` shows the runs of a container")
        summary.exitCode = ExitStatus.failed.rawValue
      }
    }
    try batch.finish(summary, undo: redo ? "--transaction-of \(batch.job.run)" : "--redo")
  }

  private static func text(_ report: MigrationRollback.Report, _ request: MigrationRollback.Request) -> String
  {
    if request.run != nil, report.isEmpty { return report.notes.joined(separator: "; ") }
    guard let from = report.from, let to = report.to else {
      let summaries = report.undone.map(\.summary).joined(separator: "; ")
      return "\(request.redoing ? "redone" : "undone"): \(summaries)"
    }
    return MigrationReport.versions(from: from, to: to)
  }

  /// What a run over all containers did in most of them it may have failed to do in one: there, the last transaction is
  /// an older one, which should not be undone.
  private func refuseMixture(_ batch: Batch) throws {
    var containers: [String: [String]] = [:]
    for child in batch.containers {
      // What fails here fails in the container's turn too, and is reported there.
      guard let container = try? Container(at: child.path, configuration: batch.configuration),
        (try? ContainerOptions.recovering(container)) != nil, let log = try? container.log(),
        let last = log.last(where: { $0.state == .undoable && ($0.kind == .rollback) == redo })
      else { continue }
      // A rollback is described by what it undid.
      let undone = redo ? log.filter { last.undoes.contains($0.transaction) } : [last]
      let text = undone.map { "\($0.kind.rawValue): \($0.summary)" }.joined(separator: "; ")
      containers[text, default: []].append(child.name)
    }
    guard containers.count > 1 else { return }
    let shown = containers.sorted { ($1.value.count, $0.key) < ($0.value.count, $1.key) }.prefix(5).map {
      text, names in
      "\(NumberText.count(names.count, "container")) such as \(names[0].printable) (\(text))"
    }
    throw DrydockError(
      .ambiguous,
      "the last transaction is not the same in all containers, so it is not clear what to undo; nothing was "
        + "changed: \(shown.joined(separator: "; "))\(containers.count > 5 ? "; and others" : ""). "
        + (redo ? "Redo them one by one" : "Give the version to go back to with --to"),
      path: batch.path)
  }
}

extension Container {
  /// Whether a run has changed it, also where that is undone.
  fileprivate func has(_ run: RunID) throws -> Bool { try log().contains { $0.run == run } }
}
