import Drydock

/// What a rollback did, for people.
enum RollbackText {
  /// - Parameters:
  ///   - verb: `rolled back`, or what it would do in a dry run.
  ///   - steps: the same for migrations that are taken back by their steps.
  static func write(_ report: MigrationRollback.Report, verb: String, steps: String) {
    guard !report.isEmpty else {
      return Output.line("nothing to do: the container has version \(report.to ?? 0)")
    }
    if let from = report.from, let to = report.to, from != to { Output.line("version \(from) → \(to)") }
    for undone in report.undone { Output.line("\(verb): \(undone.transaction), which \(undone.summary)") }
    for conflict in report.discarded { Output.line("  given up: \(conflict)") }
    for migration in report.migrations {
      let text = migration.summary.map { ": \($0)" } ?? ""
      Output.line("  \(steps) \(migration.name)\(text) (\(migration.milliseconds) ms)")
      for note in migration.notes { Output.line("      \(note)") }
    }
    for note in report.notes { Output.line("  \(note)") }
  }
}
