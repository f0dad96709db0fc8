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
protocol ChangeReport {
  /// What was done, such as "set theme in Library/Preferences/com.example.notes.plist".
  var summary: String { get }
  /// What may not be intended.
  var notes: [String] { get }
}

extension SettingsChange.Report: ChangeReport {}
extension VaultChange.Report: ChangeReport {}

extension ChangePlan where Value: ChangeReport {
  /// Makes the change of a store and prints it, or shows what it would change.
  func perform(dryRun: Bool, asJSON: Bool, document: (Value) -> ResultObject) throws {
    try perform(
      dryRun: dryRun, asJSON: asJSON, unchanged: "nothing to change", notes: \.notes, document: document
    ) { report, difference in
      guard let difference else { return Output.line(report.summary) }
      Output.line("dry run: nothing was changed; it would have \(report.summary)")
      Output.dryRun(difference)
    }
  }
}
