import Drydock

/// What migrations did, for people.
enum MigrationText {
  /// - Parameter verb: `ran`, or `would run` in a dry run.
  static func write(_ report: MigrationReport, verb: String) {
    guard report.changedAnything else {
      Output.line("nothing to do: the container has version \(report.to)")
      for note in report.notes { Output.line("  \(note)") }
      return
    }
    Output.line(
      report.from == report.to ? "version \(report.to)" : "version \(report.from) → \(report.to)")
    if !report.byTheApp.isEmpty {
      let numbers = report.byTheApp.map(String.init).joined(separator: ", ")
      Output.line("  recorded as done by the app itself: \(numbers)")
    }
    for migration in report.migrations {
      let text = migration.summary.map { ": \($0)" } ?? ""
      Output.line("  \(verb) \(migration.name)\(text) (\(migration.milliseconds) ms)")
      for line in migration.notes.flatMap({ $0.split(separator: "\n", omittingEmptySubsequences: false) }) {
        Output.line("      \(line)")
      }
    }
    for note in report.notes { Output.line("  \(note)") }
    for migration in report.withoutDatabase {
      let names = migration.missingDatabases?.joined(separator: ", ") ?? ""
      Output.note(
        "drydock: note: \(migration.name) counts as applied and did nothing: the container has no database \(names)"
      )
    }
  }

  /// Which archives still hold what is in the vault now, on standard error whatever the output is.
  static func warn(exposed: [ExposedSecret], notSearched: [String]) {
    let count = Set(exposed.map(\.archive)).count
    if count > 0 {
      Output.note(
        "drydock: warning: what was moved into the vault stands in the clear in \(Output.count(count, "archive")); "
          + "who has a copy has the secret: rotate it")
      for item in exposed { Output.note("  \(item.archive): \(item.key) in \(item.file)".printable) }
    }
    for archive in notSearched {
      Output.note("drydock: warning: not searched for what was moved into the vault: \(archive)".printable)
    }
  }
}
