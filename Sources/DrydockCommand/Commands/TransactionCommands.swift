import ArgumentParser
import Drydock

struct LogCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "log", abstract: "List a container's transactions, and which can still be undone.",
    discussion: """
      Examples:
        drydock log Notes
        drydock log Notes --script-output
      """)

  @OptionGroup var container: ContainerOptions
  @Flag(help: "Also show the output of migration scripts, while the undo log has it.")
  var scriptOutput = false
  @OptionGroup(title: OptionTitle.keys) var deviceKeys: DeviceKeyOptions
  @OptionGroup(title: OptionTitle.output) var common: CommonOptions

  func run() throws {
    if container.isForeign {
      Output.note(
        "a foreign archive has no log: the log is beside the container, never in it"
      )
    }
    let opened = try container.isForeign ? nil : container.open(common.configuration())
    let entries = try opened?.log() ?? []
    var written: [String: [String]] = [:]
    if scriptOutput, let opened {
      let options = try container.wait.transaction(deviceKeys)
      for entry in entries {
        let texts = try ScriptLog.output(of: entry.transaction, in: opened, options: options)
        if !texts.isEmpty { written[entry.transaction.description] = texts }
      }
    }
    if common.json { return Output.json(["transactions": entries, "output": scriptOutput ? written : nil]) }
    if entries.isEmpty { return Output.line("no transactions yet") }
    Output.table(
      entries.map { entry in
        let undo = entry.undoBytes > 0 ? ", undo \(NumberText.size(entry.undoBytes))" : ""
        return [
          entry.transaction.description, entry.kind.rawValue, entry.state.rawValue,
          "\(entry.summary) (\(NumberText.count(entry.changes, "path"))\(undo))"
            + (entry.archive.map { ", after the snapshot \($0)" } ?? "")
            + (entry.run.map { ", run \($0)" } ?? ""),
        ]
      }, indent: "")
    for entry in entries {
      guard let texts = written[entry.transaction.description] else { continue }
      Output.line(entry.transaction.description)
      for line in texts.flatMap({ $0.split(separator: "\n", omittingEmptySubsequences: false) }) {
        Output.line("  \(line)")
      }
    }
  }
}

struct RecoverCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "recover",
    abstract:
      "Complete or revert an interrupted command on a container; every command that opens it does this first.",
    discussion: "Example: drydock recover Notes")

  @OptionGroup var container: ContainerOptions
  @OptionGroup(title: OptionTitle.output) var common: CommonOptions

  func run() throws {
    try container.refuseForeign()
    let configuration = try common.configuration()
    // A restore that was to make the container may have been killed before there was one.
    let planned = try Container.planned(at: container.path, configuration: configuration)
    let opened: Container
    if let planned, try StateDirectory.existing(for: planned) != nil {
      opened = planned
    } else {
      opened = try Container(at: container.path, configuration: configuration, instance: container.instance)
    }
    let reports = try opened.recover(lockTimeout: container.wait.transaction().lockTimeout)
    if common.json {
      let recovered = reports.map { report -> ResultObject in
        [
          "transaction": report.transaction.description, "outcome": report.outcome.rawValue,
          "conflicts": report.conflicts,
        ]
      }
      Output.json(["recovered": recovered])
    } else if reports.isEmpty {
      Output.line("nothing was interrupted")
    } else {
      for line in ContainerOptions.lines(reports, opened) { Output.line(line) }
    }
    if reports.contains(where: { !$0.conflicts.isEmpty }) { throw ExitStatus.conflict.code }
  }
}
