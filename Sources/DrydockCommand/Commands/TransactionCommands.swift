import ArgumentParser
import Drydock

struct RollbackCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rollback",
    abstract: "Undo the last migration, restore or baseline, keeping what the app wrote since.",
    discussion: """
      Goes back setting by setting, database by database, file by file. What both
      the transaction and, since then, the app changed is a conflict: nothing is
      changed then, and both sides are shown.

      Examples:
        drydock rollback Notes
        drydock rollback Notes --redo
        drydock rollback --all Customers
      """)

  @OptionGroup var container: ContainersOptions
  @Flag(help: "Where both changed it, give up what the app wrote since.") var discardNewer = false
  @Flag(help: "Undo the last rollback instead.") var redo = false
  @OptionGroup var deviceKeys: DeviceKeyOptions
  @OptionGroup var common: CommonOptions

  struct Result: Encodable, Sendable {
    var transaction: String?
    var undone: [RollbackReport.Undone]
    var discarded: [RollbackConflict]
    var conflicts: [ContainerPath]

    init(_ outcome: TransactionOutcome<RollbackReport>) {
      (transaction, conflicts) = (outcome.transaction?.description, outcome.conflicts)
      (undone, discarded) = (outcome.value.undone, outcome.value.discarded)
    }
  }

  func run() throws {
    if let many = try container.many(common) { return try run(many) }
    let opened = try container.open(common)
    let outcome = try Transaction.rollback(
      opened, discardingNewer: discardNewer, redoing: redo, options: container.transaction().with(deviceKeys))
    ContainerOptions.tell(outcome.recovered, opened)
    for note in outcome.notes { Output.note("drydock: note: \(note)") }
    let report = outcome.value
    if common.json {
      Output.json(Result(outcome))
    } else {
      for undone in report.undone {
        Output.line("\(redo ? "redone" : "rolled back"): \(undone.transaction), which \(undone.summary)")
      }
      for conflict in report.discarded { Output.line("  given up: \(conflict)") }
      if let transaction = outcome.transaction {
        Output.line("transaction \(transaction)\(redo ? "" : "; `drydock rollback --redo` takes it back")")
      }
      for path in outcome.conflicts {
        Output.note("drydock: the app changed it at the same moment, kept aside: \(path)")
      }
    }
    try outcome.throwUnlessClean()
  }
}

struct LogCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "log", abstract: "List a container's transactions, and which can still be undone.",
    discussion: "Example: drydock log Notes")

  @OptionGroup var container: ContainerOptions
  @OptionGroup var common: CommonOptions

  struct Result: Encodable {
    var transactions: [TransactionLogEntry]
  }

  func run() throws {
    if container.isPacked {
      Output.note(
        "drydock: note: a packed container has no log: that is kept beside a container's directory, never in it"
      )
    }
    let entries = try container.isPacked ? [] : Transaction.log(container.open(common))
    if common.json { return Output.json(Result(transactions: entries)) }
    if entries.isEmpty { return Output.line("no transactions yet") }
    Output.table(
      entries.map { entry in
        let undo = entry.undoBytes > 0 ? ", undo \(Output.size(entry.undoBytes))" : ""
        return [
          entry.transaction.description, entry.kind.rawValue, entry.state.rawValue,
          "\(entry.summary) (\(Output.count(entry.changes, "path"))\(undo))",
        ]
      }, indent: "")
  }
}

struct RecoverCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "recover",
    abstract: "End what an interrupted command left; every command does this at its start.",
    discussion: "Example: drydock recover Notes")

  @OptionGroup var container: ContainerOptions
  @OptionGroup var common: CommonOptions

  struct Result: Encodable {
    struct Item: Encodable {
      var transaction: String
      var outcome: String
      var conflicts: [ContainerPath]
    }
    var recovered: [Item]
  }

  func run() throws {
    try container.refusePacked()
    let configuration = try common.configuration()
    // A restore that was to make the container may have been killed before there was one.
    let planned = try Container.planned(at: container.path, configuration: configuration)
    let opened: Container
    if let planned, try StateDirectory.existing(for: planned, .beside) != nil {
      opened = planned
    } else {
      opened = try Container(at: container.path, configuration: configuration, instance: container.instance)
    }
    let reports = try Transaction.recover(opened, lockTimeout: container.transaction().lockTimeout)
    if common.json {
      Output.json(
        Result(
          recovered: reports.map {
            .init(
              transaction: $0.transaction.description, outcome: $0.outcome.rawValue, conflicts: $0.conflicts)
          }))
    } else if reports.isEmpty {
      Output.line("nothing was interrupted")
    } else {
      for report in reports {
        Output.line(
          "transaction \(report.transaction) was interrupted; the container is as "
            + (report.outcome == .old ? "before it" : "it left it"))
        for path in report.conflicts { Output.line("  kept aside, for both changed it: \(path)") }
      }
    }
    if reports.contains(where: { !$0.conflicts.isEmpty }) { throw ExitStatus.conflict.code }
  }
}
