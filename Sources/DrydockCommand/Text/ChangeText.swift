import Drydock
import DrydockTesting
import Foundation

extension ChangePlan {
  /// Makes the change and prints what it did; in a dry run prints what it would do.
  ///
  /// - Parameters:
  ///   - display: ends before anything is printed.
  ///   - undo: the command that undoes the change, before the container.
  ///   - unchanged: a line for when there was nothing to change.
  ///   - notes: what of the value goes to standard error.
  ///   - document: the value in JSON.
  ///   - text: prints the value, and in a dry run the difference.
  @discardableResult
  func perform(
    dryRun: Bool, asJSON: Bool, display: ProgressDisplay? = nil, undo: String? = "drydock rollback",
    unchanged: String? = nil, notes: (Value) -> [String] = { _ in [] },
    document: (Value) -> ResultObject,
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

extension DryRunOutcome {
  /// The JSON result, with what all dry runs have.
  func document(_ members: ResultObject) -> ResultObject {
    var document = members
    document["difference"] = difference
    document["conflicts"] = [ContainerPath]()
    return document
  }
}

extension TransactionOutcome {
  /// The exit code of an outcome that needs attention; nil for a clean one.
  var exit: ExitStatus? {
    if !conflicts.isEmpty { return .conflict }
    return isFinished ? nil : .incomplete
  }

  /// The JSON result, with what all transactions have.
  func document(_ members: ResultObject) -> ResultObject {
    var document = members
    document["transaction"] = transaction?.description
    document["conflicts"] = conflicts
    document["unseen_processes"] = unseen
    return document
  }

  /// Prints the notes, and without `--json` also the value as text, the transaction and the conflict copies.
  ///
  /// - Parameters:
  ///   - undo: the command that undoes the transaction, before the container.
  ///   - options: what that command needs besides, after the container.
  func report(
    on container: Container, asJSON: Bool, undo: String? = "drydock rollback", options: String = "",
    text: (Value) -> Void
  ) {
    for line in ContainerOptions.lines(recovered, container) { Output.note(line) }
    for note in allNotes { Output.note(Advice.added(to: note)) }
    if asJSON { return }
    if Output.isQuiet { return conflictNotices.forEach(Output.write) }
    text(value)
    if let transaction {
      let place = FindingText.path(container.root, from: FileManager.default.currentDirectoryPath)
      Output.advice(
        "transaction \(transaction)\(undo.map { "; `\($0) \(Output.word(place))\(options)` undoes it" } ?? "")"
      )
    }
    conflictNotices.forEach(Output.write)
  }

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

  /// Ends the program with the exit code, unless the outcome is clean.
  func throwUnlessClean() throws {
    if let exit { throw exit.code }
  }

  private var conflictNotices: [Notice] {
    conflicts.map { Notice(.warning, "the app changed it at the same moment; conflict copy kept: \($0)") }
  }

  /// What standard error gets, without the unseen processes, which are the same for a whole batch.
  var notices: [Notice] { notes.map { Notice(.note, Advice.added(to: $0)) } + conflictNotices }
}
