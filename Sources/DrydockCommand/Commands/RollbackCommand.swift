import ArgumentParser
import Drydock

struct RollbackCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rollback",
    abstract: "Undo the last transaction, or go back to a version, keeping what the app wrote since.",
    discussion: """
      Goes back setting by setting, database by database, file by file. What both
      the transaction and, since then, the app changed is a conflict: nothing is
      changed then, and both sides are shown.

      --to undoes as many transactions as it takes, as one. --down takes migrations
      back by their steps instead, so that newer data goes back with them; without
      --to, those of the last run. Where a version lies in the middle of a
      transaction, or its undo is gone, --to does that by itself.

      Examples:
        drydock rollback Notes
        drydock rollback Notes -m Migrations --to 3 --dry-run
        drydock rollback Notes -m Migrations --down
        drydock rollback Notes --redo
        drydock rollback --all Customers -m Migrations --to 3
      """)

  @OptionGroup var container: ContainersOptions
  @OptionGroup var migrations: CatalogOptions
  @Option(help: ArgumentHelp("Go back to this version.", valueName: "number")) var to: Int?
  @Flag(help: "Take migrations back by their steps, with what the app wrote since.") var down = false
  @Flag(help: "Where both changed it, give up what the app wrote since.") var discardNewer = false
  @Flag(help: "Undo the last rollback instead.") var redo = false
  @Flag(help: "Show what would change, and change nothing.") var dryRun = false
  @OptionGroup var deviceKeys: DeviceKeyOptions
  @OptionGroup var use: UseOptions
  @OptionGroup var expansion: ExpansionOptions
  @OptionGroup var common: CommonOptions

  struct Result: Encodable, Sendable {
    var transaction: String?
    var from: Int?, to: Int?
    var undone: [RollbackReport.Undone]
    var migrations: [MigrationReport.Outcome]
    var discarded: [RollbackConflict]
    var notes: [String]
    var unseenProcesses: UnseenProcesses?
    var difference: ContainerDifference?
    var conflicts: [ContainerPath]

    init(_ outcome: TransactionOutcome<MigrationRollback.Report>) {
      self.init(outcome.value)
      (transaction, conflicts) = (outcome.transaction?.description, outcome.conflicts)
      unseenProcesses = outcome.unseen
    }

    init(_ outcome: DryRunOutcome<MigrationRollback.Report>) {
      self.init(outcome.value)
      difference = outcome.difference
    }

    private init(_ report: MigrationRollback.Report) {
      (from, to) = (report.from, report.to)
      (undone, migrations) = (report.undone, report.migrations)
      (discarded, notes) = (report.discarded, report.notes)
      conflicts = []
    }
  }

  func validate() throws {
    if down && discardNewer {
      throw ValidationError(
        "--down keeps what the app wrote since, and --discard-newer gives it up: name one")
    }
    if redo && (down || to != nil) {
      throw ValidationError("--redo takes back the last rollback as a whole: leave --to and --down out")
    }
  }

  func run() throws {
    let configuration = try common.configuration()
    if let many = try container.many(configuration, asJSON: common.json) {
      return try run(many, request, catalog(configuration))
    }
    if dryRun { return try container.reading(configuration, expansion, show) }
    let opened = try container.open(configuration)
    let outcome = try opened.rollback(
      request, catalog: catalog(configuration), options: container.transaction().with(deviceKeys).with(use))
    ContainerOptions.tell(outcome.recovered, opened)
    for note in outcome.allNotes { Output.note("drydock: note: \(note)") }
    if common.json {
      Output.json(Result(outcome))
    } else {
      RollbackText.write(outcome.value, verb: redo ? "redone" : "rolled back", steps: "took back")
      if let transaction = outcome.transaction {
        Output.advice("transaction \(transaction)\(redo ? "" : "; `drydock rollback --redo` takes it back")")
      }
      for path in outcome.conflicts {
        Output.note("drydock: the app changed it at the same moment, kept aside: \(path)")
      }
    }
    try outcome.throwUnlessClean()
  }

  private func show(_ opened: Container) throws {
    let outcome = try opened.dryRunRollback(
      request, catalog: catalog(opened.configuration), options: container.transaction().with(deviceKeys))
    if common.json { return Output.json(Result(outcome)) }
    RollbackText.write(
      outcome.value, verb: redo ? "would redo" : "would roll back", steps: "would take back")
    Output.line("dry run: nothing was changed; the difference would be")
    DifferenceText.write(outcome.difference)
  }

  var request: MigrationRollback.Request {
    var request = MigrationRollback.Request()
    (request.version, request.bySteps) = (to, down)
    (request.discardingNewer, request.redoing) = (discardNewer, redo)
    return request
  }

  /// The migrations: needed to go by steps; else they only say whether that is another way out of a conflict, and need
  /// not even be readable.
  func catalog(_ configuration: ContainerConfiguration) throws -> MigrationCatalog? {
    if down { return try migrations.catalog(configuration) }
    guard migrations.areNamed(configuration) else { return nil }
    return to == nil ? try? migrations.catalog(configuration) : try migrations.catalog(configuration)
  }
}
