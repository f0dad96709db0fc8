import Drydock

/// What migrations did, for people.
enum MigrationText {
  /// - Parameter verb: `ran`, or `would run` in a dry run.
  static func write(_ report: MigrationReport, verb: String) {
    for line in report.lines(verb) { Output.line(line) }
    for migration in report.withoutDatabase {
      let names = migration.missingDatabases?.joined(separator: ", ") ?? ""
      Output.note(
        "\(migration.name) is recorded as applied and did nothing: the container has no database \(names)"
      )
    }
  }

  /// Which archives still hold what is in the vault now, on standard error whatever the output is.
  static func warn(exposed: [ExposedSecret], notSearched: [String]) {
    let count = Set(exposed.map(\.archive)).count
    if count > 0 {
      let items = exposed.map { "\n  " + "\($0.archive): \($0.key) in \($0.file)".printable }
      Output.warning(
        "unencrypted archives still hold what was moved into the vault: \(Output.count(count, "archive")); "
          + "rotate these secrets\(items.joined())")
    }
    for archive in notSearched {
      Output.warning("not searched for what was moved into the vault: \(archive)".printable)
    }
  }
}

/// What a rollback did, for people.
enum RollbackText {
  /// - Parameters:
  ///   - verb: `rolled back`, or what it would do in a dry run.
  ///   - steps: the same for migrations that are taken back by their steps.
  static func write(_ report: MigrationRollback.Report, verb: String, steps: String) {
    guard !report.isEmpty else {
      let reason = report.notes.first ?? "the container has version \(report.to ?? 0)"
      return Output.line("nothing to do: \(reason)")
    }
    if let from = report.from, let to = report.to, from != to { Output.line("version \(from) → \(to)") }
    for undone in report.undone { Output.line("\(verb): \(undone.transaction), which \(undone.summary)") }
    for conflict in report.discarded { Output.line("  discarded: \(conflict)") }
    for migration in report.migrations {
      let text = migration.summary.map { ": \($0)" } ?? ""
      Output.line("  \(steps) \(migration.name)\(text) (\(migration.milliseconds) ms)")
      for note in migration.notes { Output.line("      \(note)") }
    }
    for note in report.notes { Output.line("  \(note)") }
  }
}

/// What became of a vault's items, for people.
enum RestoredVaultText {
  /// - Parameter isDone: false for a dry run.
  static func write(_ vault: RestoreReport.Vault, isDone: Bool) {
    let counts =
      "\(vault.returned.count), removed: \(vault.removed.count), not restored: \(vault.notRestored.count)"
    Output.line("vault items \(isDone ? "restored" : "to restore"): \(counts)")
    names(vault.returned, "+")
    names(vault.removed, "-")
    list(
      vault.notRestored.lazy.map {
        "not restored \(($0.item ?? "all that is in the vault").printable): \(Advice.added(to: $0.reason))"
      })
  }

  /// What a container lacks of an archive's items, and has beyond them.
  static func writeDifference(_ vault: RestoreReport.Vault) {
    names(vault.returned, "- or other:")
    names(vault.removed, "+")
  }

  private static func names(_ names: [String], _ sign: String) {
    list(names.lazy.map { "\(sign) \($0.printable)" })
  }

  private static func list(_ texts: some Collection<String>) {
    for line in texts.lines(100, more: "more; --json lists them") { Output.line("  \(line)") }
  }
}
