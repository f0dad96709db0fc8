import Drydock

/// What migrations did, for people.
enum MigrationText {
  /// - Parameter verb: `ran`, or `would run` in a dry run.
  static func write(_ report: MigrationReport, verb: String) {
    guard report.changedAnything else {
      return Output.line("nothing to do: the container has version \(report.to)")
    }
    Output.line("version \(report.from) → \(report.to)")
    if !report.byTheApp.isEmpty {
      let numbers = report.byTheApp.map(String.init).joined(separator: ", ")
      Output.line("  recorded as done by the app itself: \(numbers)")
    }
    for migration in report.migrations {
      let text = migration.summary.map { ": \($0)" } ?? ""
      Output.line("  \(verb) \(migration.name)\(text) (\(migration.milliseconds) ms)")
      for note in migration.notes { Output.line("      \(note)") }
    }
    for note in report.notes { Output.line("  \(note)") }
  }
}
