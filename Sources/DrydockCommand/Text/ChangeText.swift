import Drydock

/// What one change to a store did: a command prints it alike for settings and vaults.
protocol ChangeReport {
  /// What was done, such as "set theme in Library/Preferences/com.example.notes.plist".
  var summary: String { get }
  /// What may not be intended.
  var notes: [String] { get }
}

extension SettingsChange.Report: ChangeReport {}
extension VaultChange.Report: ChangeReport {}

extension DryRunOutcome where Value: ChangeReport {
  /// Prints what would change.
  func write(asJSON: Bool, _ document: (Value) -> ResultObject) {
    for note in value.notes { Output.note("\(note)") }
    if asJSON { return Output.json(self.document(document(value))) }
    Output.line("dry run: nothing was changed; it would have \(value.summary)")
    Output.dryRun(difference)
  }
}

extension TransactionOutcome where Value: ChangeReport {
  /// Prints what was changed, and ends the program with its exit code unless that is 0.
  func write(on container: Container, asJSON: Bool, _ document: (Value) -> ResultObject) throws {
    if asJSON { Output.json(self.document(document(value))) }
    for note in value.notes { Output.note("\(note)") }
    report(on: container, asJSON: asJSON) {
      Output.line($0.summary)
      if transaction == nil { Output.line("nothing to change") }
    }
    try throwUnlessClean()
  }
}
