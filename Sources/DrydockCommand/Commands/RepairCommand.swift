import ArgumentParser
import Drydock

struct RepairCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "repair", abstract: "Bring a container's history in line with the migrations, as you say.",
    discussion: """
      --accept is for migrations that were edited after they were applied: their
      files as they are now count as what was applied. --remove is for migrations
      whose files are gone: the history forgets them. Nothing is run, and nothing but
      the history and the version markers is touched. It is a transaction, and
      `drydock rollback` undoes it. With --all, containers that need no such repair
      are left as they are.

      Examples:
        drydock repair Notes -m Migrations --accept 2 4
        drydock repair Notes -m Migrations --remove 7
        drydock repair --all Customers -m Migrations --accept 2
      """)

  @OptionGroup var container: ContainersOptions
  @OptionGroup var migrations: CatalogOptions
  @Option(
    parsing: .upToNextOption,
    help: ArgumentHelp("Migrations whose edit makes no difference.", valueName: "number"))
  var accept: [Int] = []
  @Option(
    parsing: .upToNextOption,
    help: ArgumentHelp("Migrations whose files are gone for good.", valueName: "number"))
  var remove: [Int] = []
  @OptionGroup var use: UseOptions
  @OptionGroup var common: CommonOptions

  struct Result: Encodable, Sendable {
    var transaction: String?
    var notes: [String]
    var unseenProcesses: UnseenProcesses?
  }

  func validate() throws {
    if accept.isEmpty && remove.isEmpty { throw ValidationError("name migrations with --accept or --remove") }
  }

  func run() throws {
    let configuration = try common.configuration()
    if let many = try container.many(configuration, asJSON: common.json) { return try run(many) }
    let opened = try container.open(configuration)
    let outcome = try opened.repair(
      migrations.catalog(configuration), accept: accept, remove: remove,
      options: container.transaction().with(use))
    ContainerOptions.tell(outcome.recovered, opened)
    for note in outcome.allNotes { Output.note("drydock: note: \(note)") }
    if common.json {
      Output.json(
        Result(
          transaction: outcome.transaction?.description, notes: outcome.value, unseenProcesses: outcome.unseen
        ))
    } else {
      for line in outcome.value { Output.line(line) }
    }
    try outcome.throwUnlessClean()
  }
}
