import ArgumentParser
import Drydock

extension ChangePlan {
  /// Makes the change and prints what it did; in a dry run prints what it would do.
  ///
  /// - Parameters:
  ///   - display: ends before anything is printed.
  ///   - undo: the command that undoes the change, before the container.
  ///   - checked: refuses an outcome before anything is printed.
  ///   - unchanged: a line for when there was nothing to change.
  ///   - notes: what of the value goes to standard error.
  ///   - document: the value in JSON.
  ///   - text: prints the value, and in a dry run the difference.
  @discardableResult
  func perform(
    dryRun: Bool, asJSON: Bool, display: ProgressDisplay? = nil, undo: String? = "drydock rollback",
    unchanged: String? = nil, notes: (Value) -> [String] = { _ in [] },
    checked: (TransactionOutcome<Value>) throws -> Void = { _ in }, document: (Value) -> ResultObject,
    text: (Value, ContainerDifference?) -> Void
  ) throws -> Value {
    if dryRun {
      let outcome = try self.dryRun()
      display?.end()
      for note in notes(outcome.value) { Output.note(note) }
      if asJSON {
        Output.json(outcome.document(document(outcome.value)))
      } else {
        text(outcome.value, outcome.difference)
      }
      return outcome.value
    }
    let outcome = try apply()
    display?.end()
    try checked(outcome)
    try outcome.finish(
      on: container, asJSON: asJSON, undo: undo, notes: notes(outcome.value),
      document: document(outcome.value)
    ) {
      text($0, nil)
      if outcome.transaction == nil, let unchanged { Output.line(unchanged) }
    }
    return outcome.value
  }
}

extension TransactionOutcome {
  /// Prints what a command has changed, and ends the program with its exit code unless that is 0.
  func finish(
    on container: Container, asJSON: Bool, undo: String? = "drydock rollback", notes: [String] = [],
    document: ResultObject, text: (Value) -> Void
  ) throws {
    if asJSON { Output.json(self.document(document)) }
    for note in notes { Output.note(note) }
    report(on: container, asJSON: asJSON, undo: undo, text: text)
    try throwUnlessClean()
  }
}

/// What one change to a store did: a command prints it alike for settings and vaults.
protocol StoreReport {
  /// What was done, such as "set theme in Library/Preferences/com.example.notes.plist".
  var summary: String { get }
  /// What may not be intended.
  var notes: [String] { get }
  /// The report in JSON.
  func document(_ redactor: Redactor) -> ResultObject
}

extension SettingsChange.Report: StoreReport {
  func document(_ redactor: Redactor) -> ResultObject { ["summary": summary, "file": file, "notes": notes] }
}

extension VaultChange.Report: StoreReport {
  func document(_ redactor: Redactor) -> ResultObject {
    [
      "summary": summary, "item": item.map { ShownVaultItem($0, redactor) },
      "recipients": recipients.map(\.description), "notes": notes,
    ]
  }
}

/// The options of commands that change settings or a vault, except for the container, which comes first.
struct StoreChangeOptions: ParsableArguments {
  @Flag(help: "Show what would change, and change nothing.") var dryRun = false
  @OptionGroup(title: OptionTitle.keys) var deviceKeys: DeviceKeyOptions
  @OptionGroup(title: OptionTitle.limits) var use: UseOptions
  @OptionGroup(title: OptionTitle.output) var common: CommonOptions

  func run(_ change: VaultChange, on container: ContainerOptions, newKeys: DeviceKeys? = nil) throws {
    try run(on: container) { .vault(change, newKeys: newKeys, options: $0) }
  }

  func run(_ change: SettingsChange, in place: SettingsPlaceOptions, on container: ContainerOptions) throws {
    let place = try place.place()
    try run(on: container) { .settings(change, in: place, options: $0) }
  }

  /// Makes a change and prints it, or shows what it would change.
  private func run<Report: StoreReport>(
    on container: ContainerOptions, _ change: (TransactionOptions) -> ContainerChange<Report>
  ) throws {
    let opened = try container.open(common.configuration())
    let options = try container.wait.transaction(deviceKeys, use)
    try opened.plan(change(options)).perform(
      dryRun: dryRun, asJSON: common.json, unchanged: "nothing to change", notes: \.notes,
      document: { $0.document(options.redactor) }
    ) { report, difference in
      guard let difference else { return Output.line(report.summary) }
      Output.line("dry run: nothing was changed; it would have \(report.summary)")
      Output.dryRun(difference)
    }
  }
}

/// A command that changes settings or a vault.
protocol StoreChangeCommand: Subcommand {
  var change: StoreChangeOptions { get }
}

extension StoreChangeCommand {
  var common: CommonOptions { change.common }
}
