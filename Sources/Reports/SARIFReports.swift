import Drydock
import DrydockTesting

extension SARIFLog {
  /// The findings of a suite: a result for each cause, at the step of the migration where it is known. Where the
  /// expectations are is related.
  package init(_ report: FixtureSuite.Report, root: String, directory: String) {
    let fixtures = report.fixturesByName
    self.init(
      report.groups.map { group in
        let places = Self.places(of: group, fixtures)
        let reason = group.isKnown ? group.fixtures.compactMap { fixtures[$0.name]?.knownFailure }.first : nil
        return Result(
          rule: Self.rule(of: group.check), level: group.isKnown ? .note : .error,
          message: GroupText(group, from: directory).lines().joined(separator: "\n"),
          place: group.cause.map { Place(file: $0.file, line: $0.line) } ?? places.first,
          related: group.cause == nil ? Array(places.dropFirst()) : places, fingerprint: group.fingerprint,
          accepted: reason.map { "known failure: \($0)" })
      },
      rules: FixtureResult.Finding.Check.allCases.map { (Self.rule(of: $0), $0.summary) },
      root: root, directory: directory)
  }

  private static func rule(of check: FixtureResult.Finding.Check) -> String { "test/\(check.rawValue)" }

  /// The first file of each fixture that says what is expected; else the fixture's own.
  private static func places(of group: FindingGroup, _ fixtures: [String: FixtureResult]) -> [Place] {
    var seen: Set<String?> = []
    let places = group.members.compactMap { member -> Place? in
      guard seen.insert(member.fixture).inserted else { return nil }
      let own = member.fixture.flatMap { fixtures[$0] }.map { $0.directory + "/fixture.yaml" }
      guard let file = member.finding.file ?? own, file != group.cause?.file else { return nil }
      return Place(
        file: file, line: member.finding.file == nil ? nil : member.finding.line,
        note: member.fixture.map { "expected in the fixture \($0)" })
    }
    return Array(places.prefix(20))
  }

  /// The problems of migration files, and the notes on them.
  package init(_ validation: MigrationValidation, root: String, directory: String) {
    var results = validation.problems.map { problem in
      let (file, line, column, message) = problem.located
      return Result(
        rule: Self.rule(of: problem), level: .error, message: message,
        place: file.map { Place(file: $0, line: line, column: column) },
        fingerprint:
          "\(problem.code.rawValue) | \(FindingText.path(file ?? "", from: directory)) | \(message)")
    }
    results += validation.notes.map { note in
      let position = note.position
      return Result(
        rule: "validate/note", level: .note, message: note.message,
        place: Place(file: position.file, line: position.line, column: position.column))
    }
    self.init(
      results,
      rules: [
        ("validate/catalog", "A migration file or its name is invalid."),
        ("validate/sql", "A SQL statement is invalid, or is not allowed in a migration."),
        ("validate/irreversible", "A step has no inverse, and its migration has no down steps."),
        ("validate/released", "A released migration was changed, removed, or another one was inserted."),
        ("validate/other", "The migrations cannot be read."),
        ("validate/note", "Something in a migration file may not be meant as it is written."),
      ], root: root, directory: directory)
  }

  private static func rule(of problem: DrydockError) -> String {
    switch problem.code {
    case .catalog, .sql, .irreversible, .released: "validate/\(problem.code.rawValue)"
    default: "validate/other"
    }
  }

  /// The findings of an audit, at the files of the container or of the app. Rules that are off are left out.
  package init(_ report: AuditReport, root: String, directory: String) {
    self.init(
      report.findings.map { finding in
        let place = finding.path.map { path in
          // The files that an app declares something in are not in the container.
          Place(
            file: finding.isInApp ? path : report.root + (path == "." ? "" : "/" + path), note: finding.item)
        }
        var lines = [[finding.item, finding.message].compactMap { $0 }.joined(separator: ": ")]
        if finding.count > 1 || !finding.examples.isEmpty {
          let examples = finding.examples.isEmpty ? "" : ": " + finding.examples.joined(separator: ", ")
          lines.append(finding.count.counted(finding.unit) + examples)
        }
        lines.append("fix: \(finding.fix)")
        return Result(
          rule: Self.rule(finding.rule), level: finding.severity, message: lines.joined(separator: "\n"),
          place: place,
          fingerprint: "\(finding.rule.rawValue) | \(finding.path ?? "") | \(finding.item ?? "")")
      },
      rules: AuditRule.all.map { (Self.rule($0.id), "\($0.title): \($0.why).") }, root: root,
      directory: directory)
  }

  private static func rule(_ id: AuditRuleID) -> String { "audit/\(id.rawValue)" }
}

extension FixtureResult.Finding.Check {
  /// What must be true, in a sentence.
  var summary: String {
    switch self {
    case .build: "The container of a fixture can be made."
    case .migration: "A fixture can be migrated to the latest version."
    case .golden: "A migrated fixture is like its golden."
    case .expectation: "A migrated fixture is as its `expect` says."
    case .again: "Migrating again changes nothing."
    case .rollback: "Rolling back restores exactly the previous state."
    case .down: "Down migrations restore the previous state."
    case .lostRows: "No table loses rows that its migration does not announce."
    case .lostValues: "No step loses values that its migration does not announce."
    case .coverage: "Every step changes something in some fixture."
    case .release: "Every release has its fixtures."
    case .fresh: "A migrated container is like one that the app wrote itself."
    case .known: "A known failure still fails."
    }
  }
}
