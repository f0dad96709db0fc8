import Drydock

extension HTMLPage {
  /// So many rows of a table are listed in a page, of each kind: as many must be in the difference.
  package static var rowLimit: Int { DifferenceSections.rowLimit }

  /// The page of a dry run of migrations.
  ///
  /// - Parameter container: the path that it was named by.
  package init(
    dryRun report: MigrationReport, changing difference: ContainerDifference, app: String, instance: String,
    container: String
  ) {
    let sections = DifferenceSections(difference: difference, stores: Set(ContainerStore.allCases))
    let title = "\(app): " + Self.versions(report)
    if report.changedAnything {
      let count = NumberText.count(report.migrations.count, "migration")
      let effect = difference.isEmpty ? "would change nothing" : "would change \(difference.summary)"
      self.init(
        kind: "Dry run of migrations", title: title,
        verdict: report.withoutDatabase.isEmpty ? .changes : .warning, word: "Changes pending",
        sentence: "\(count) \(effect). All checks before a commit passed; the container was not changed.")
    } else {
      self.init(
        kind: "Dry run of migrations", title: title, verdict: .good, word: "Nothing to do",
        sentence: "No migration is pending.")
    }
    facts = [
      ("App", [.plain(app)]), ("Instance", [.plain(instance)]), ("Container", [.code(container)]),
    ]
    self.sections =
      difference.isEmpty
      ? Self.sections(report) : [sections.overview] + Self.sections(report) + sections.all
  }

  /// One of two that were compared.
  package struct Compared {
    var name: String, details: [String]

    package init(name: String, details: [String]) { (self.name, self.details) = (name, details) }
  }

  /// The page of a comparison.
  ///
  /// - Parameters:
  ///   - before: what is called A.
  ///   - compared: the number of paths that both have, and were compared.
  ///   - stores: those that were compared.
  package init(
    comparing before: Compared, with after: Compared, _ difference: ContainerDifference, compared: Int,
    notCompared: [NotCompared], stores: Set<ContainerStore>
  ) {
    let sections = DifferenceSections(difference: difference, stores: stores)
    let lost = notCompared.filter(\.isLoss)
    let paths = "\(NumberText.count(compared, "path")) that both have"
    let title = "\(Self.lastName(before.name)) → \(Self.lastName(after.name))"
    if !lost.isEmpty {
      let count = NumberText.count(lost.count, "path")
      self.init(
        kind: "Comparison", title: title, verdict: .warning, word: "Incomplete",
        sentence: "\(count) could not be read. "
          + (difference.isEmpty ? "No other difference was found." : "Different: \(difference.summary)."))
    } else if difference.isEmpty {
      self.init(
        kind: "Comparison", title: title, verdict: .good, word: "No difference",
        sentence: "Compared: \(paths).")
    } else {
      self.init(
        kind: "Comparison", title: title, verdict: .changes, word: "Different",
        sentence: "\(difference.summary). Compared: \(paths).")
    }
    facts = [("Before (A)", before), ("After (B)", after)].map { name, operand in
      (name, [.code(operand.name)] + operand.details.map { .muted(" · \($0)") })
    }
    self.sections = difference.isEmpty ? [] : [sections.overview] + sections.all
    if !notCompared.isEmpty {
      let table = HTMLTable(
        "Paths that were not compared", ["Path", "Why"],
        notCompared.map { [.headerCode($0.path.description), .text($0.reason)] }, noun: ("path", "paths"))
      self.sections.append(
        Section(
          id: "not-compared", heading: "Not compared", detail: NumberText.count(notCompared.count, "path"),
          blocks: [.table(table)]))
    }
  }

  private static func versions(_ report: MigrationReport) -> String {
    report.from == report.to ? "version \(report.to)" : "version \(report.from) → \(report.to)"
  }

  /// The last part of a path, which is enough for a title.
  private static func lastName(_ path: String) -> String {
    path.split(separator: "/").last.map(String.init) ?? path
  }

  private static func sections(_ report: MigrationReport) -> [Section] {
    var sections: [Section] = []
    if !report.migrations.isEmpty {
      let longest = UInt64(report.migrations.map(\.milliseconds).max() ?? 0)
      let table = HTMLTable(
        "Migrations in the order in which they would run", ["Migration", "Description and notes", "Time"],
        report.migrations.map { migration in
          var notes = migration.notes.flatMap { $0.split(whereSeparator: \.isNewline).map(String.init) }
          if let missing = migration.missingDatabases {
            notes.insert("does nothing: no database \(missing.joined(separator: ", "))", at: 0)
          }
          let digits = String(migration.number)
          let number = String(repeating: "0", count: max(0, 4 - digits.count)) + digits
          var time = HTMLCell.text("\(NumberText.grouped(migration.milliseconds)) ms")
          time.bar = HTMLBar(parts: [(.plain, UInt64(max(0, migration.milliseconds)))], largest: longest)
          return [
            .headerCode(
              migration.name.hasPrefix(digits) || migration.name.hasPrefix(number)
                ? migration.name : "\(number) \(migration.name)"),
            HTMLCell(
              spans: [HTMLSpan(kind: .line, text: migration.summary ?? "")]
                + notes.flatMap { [.muted($0), HTMLSpan(kind: .line, text: "")] }), time,
          ]
        }, noun: ("migration", "migrations"))
      sections.append(
        Section(
          id: "migrations", heading: "Migrations",
          detail: NumberText.count(report.migrations.count, "pending", "pending"), blocks: [.table(table)]))
    }
    var notes = report.notes
    if !report.appliedExternally.isEmpty {
      let numbers = report.appliedExternally.map(String.init).joined(separator: ", ")
      notes.insert("recorded as applied by the app: \(numbers)", at: 0)
    }
    if !notes.isEmpty {
      sections.append(Section(id: "notes", heading: "Notes", blocks: [.list(notes.map(HTMLSpan.prose))]))
    }
    return sections
  }
}
