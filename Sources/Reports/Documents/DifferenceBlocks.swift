import Drydock

extension Report {
  /// A dry run of migrations.
  package init(
    dryRun report: MigrationReport, changing difference: ContainerDifference, app: String, instance: String,
    container: String
  ) {
    let versions = MigrationReport.versions(from: report.from, to: report.to)
    let effect = difference.isEmpty ? "would change nothing" : "would change \(difference.summary)"
    let count = NumberText.count(report.migrations.count, "migration")
    let isPending = report.changedAnything
    self.init(
      kind: "Dry run of migrations", title: "\(app): \(versions)",
      verdict: !isPending ? .good : report.withoutDatabase.isEmpty ? .changes : .warning,
      word: isPending ? "Changes pending" : "Nothing to do",
      sentence: isPending
        ? "\(count) \(effect). All checks before a commit passed; the container was not changed"
        : "no migration is pending")
    opening = [Line("\(app), instance \(instance)", depth: 0), Line(container)]
    sections = [
      Section("migrations", [.lines(report.lines("would run").map(Line.init(indented:)))]),
      Section("changes", [.difference(difference)]),
    ]
    let missing = report.withoutDatabase.map { migration in
      let names = migration.missingDatabases?.joined(separator: ", ") ?? ""
      return Line("\(migration.name) does nothing: no database \(names)", .warning)
    }
    sections[0].blocks.append(.lines(missing))
  }

  /// A comparison.
  package init(
    comparing names: (String, String), _ opening: [Line], _ difference: ContainerDifference, compared: Int,
    notCompared: [NotCompared]
  ) {
    let lost = notCompared.count(where: \.isLoss)
    let title = [names.0, names.1].map { $0.split(separator: "/").last.map(String.init) ?? $0 }
    let paths = "compared: \(NumberText.count(compared, "path")) that both have"
    let unread = "\(NumberText.count(lost, "path")) could not be read. "
    let (verdict, word, sentence): (Verdict, String, String) =
      switch (lost > 0, difference.isEmpty) {
      case (true, true): (.warning, "Incomplete", unread + "No other difference was found")
      case (true, false): (.warning, "Incomplete", unread + "Different: \(difference.summary)")
      case (false, true): (.good, "No difference", paths)
      case (false, false): (.changes, "Different", "\(difference.summary); \(paths)")
      }
    self.init(
      kind: "Comparison", title: title.joined(separator: " → "), verdict: verdict, word: word,
      sentence: sentence)
    self.opening = opening
    let rows = notCompared.map { Row([.text($0.path.description), .text($0.reason)]) }
    let rest = Table("Paths that were not compared", ["Path", "Reason"], rows)
    sections = [
      Section("changes", [.difference(difference)]), Section("not compared", [.table(rest)]),
    ]
  }
}

extension Report.Line {
  /// A line of a text that has two spaces for each level.
  init(indented text: String) {
    let indent = text.prefix { $0 == " " }.count / 2
    self.init(String(text.dropFirst(2 * indent)), depth: indent)
  }
}
