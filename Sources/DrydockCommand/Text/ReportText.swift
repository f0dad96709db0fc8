import Drydock
import DrydockTesting
import Foundation
import Reports

// What results say to people.

extension Output {
  /// The first ones, below a line, and how many more there are.
  static func list(
    _ texts: some Collection<String>, _ limit: Int = 100, more: String = "more; --json lists them"
  ) {
    for text in texts.lines(limit, more: more) { line("  \(text)") }
  }
}

extension MigrationReport {
  /// - Parameter verb: `ran`, or `would run` in a dry run.
  func write(_ verb: String) {
    for line in lines(verb) { Output.line(line) }
    for migration in withoutDatabase {
      let names = migration.missingDatabases?.joined(separator: ", ") ?? ""
      Output.note(
        "\(migration.name) is recorded as applied and did nothing: the container has no database \(names)"
      )
    }
  }
}

extension MigrationRollback.Report {
  /// - Parameters:
  ///   - verb: `rolled back`, or what it would do in a dry run.
  ///   - steps: the same for migrations that are reverted by their down steps.
  func write(_ verb: String, steps: String) {
    guard !isEmpty else {
      return Output.line("nothing to do: \(notes.first ?? "the container has version \(to ?? 0)")")
    }
    if let from, let to, from != to { Output.line("version \(from) → \(to)") }
    for undone in undone { Output.line("\(verb): \(undone.transaction), which \(undone.summary)") }
    for conflict in discarded { Output.line("  discarded: \(conflict)") }
    for migration in migrations {
      let text = migration.summary.map { ": \($0)" } ?? ""
      Output.line("  \(steps) \(migration.name)\(text) (\(migration.milliseconds) ms)")
      for note in migration.notes { Output.line("      \(note)") }
    }
    for note in notes { Output.line("  \(note)") }
  }
}

extension RestoreReport.Vault {
  /// - Parameter isDone: false for a dry run.
  func write(isDone: Bool) {
    let counts = "\(returned.count), removed: \(removed.count), not restored: \(notRestored.count)"
    Output.line("vault items \(isDone ? "restored" : "to restore"): \(counts)")
    Output.list(returned.map { "+ \($0.printable)" })
    Output.list(removed.map { "- \($0.printable)" })
    Output.list(
      notRestored.lazy.map {
        "not restored \(($0.item ?? "all that is in the vault").printable): \(Advice.added(to: $0.reason))"
      })
  }

  /// What a container lacks of an archive's items, and has beyond them.
  func writeDifference() {
    Output.list(returned.map { "- or other: \($0.printable)" })
    Output.list(removed.map { "+ \($0.printable)" })
  }
}

extension FixtureSuite.Golden {
  /// What it says differently, if it is another one now.
  func write() {
    if change == .unchanged { return }
    let path = FindingText.path(directory, from: FileManager.default.currentDirectoryPath)
    let base = base.map { "; what the migrations after version \($0) change:" } ?? ""
    Output.line("\(change.rawValue) \(path)\(base)".printable)
    if let difference { Output.difference(difference) }
  }
}
