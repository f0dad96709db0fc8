import ArgumentParser
import Drydock

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
      Output.dryRun(difference, "it would have \(report.summary)")
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
