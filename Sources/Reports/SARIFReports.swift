import Drydock
import DrydockTesting

extension SARIFLog {
  /// The findings of a suite: a result for each cause, at the step of the migration where it is known. Where the
  /// expectations are is related.
  package init(_ report: FixtureSuite.Report, root: String, directory: String) {
    let fixtures = report.fixturesByName
    self.init(
      report.groups.map { group in
        var result = Result(
          Self.rule(of: group.check), group.isKnown ? .note : .error,
          GroupText(group, from: directory).lines().joined(separator: "\n"))
        let places = Self.places(of: group, fixtures)
        result.place = group.cause.map { Place($0.file, line: $0.line) } ?? places.first
        result.related = group.cause == nil ? Array(places.dropFirst()) : places
        result.fingerprint = group.fingerprint
        let reason = group.isKnown ? group.fixtures.compactMap { fixtures[$0.name]?.knownFailure }.first : nil
        result.accepted = reason.map { "known failure: \($0)" }
        return result
      },
      rules: FixtureResult.Finding.Check.allCases.map { Rule(Self.rule(of: $0), $0.summary) },
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
        file, line: member.finding.file == nil ? nil : member.finding.line,
        note: member.fixture.map { "expected in the fixture \($0)" })
    }
    return Array(places.prefix(20))
  }

  /// The problems of migration files, and the notes on them.
  package init(_ validation: MigrationValidation, root: String, directory: String) {
    var results = validation.problems.map { problem in
      let (file, line, column, message) = problem.located
      var result = Result(
        Self.rule(of: problem), .error, message, at: file.map { Place($0, line: line, column: column) })
      result.fingerprint =
        "\(problem.code.rawValue) | \(FindingText.path(file ?? "", from: directory)) | \(message)"
      return result
    }
    results += validation.notes.map { note in
      let position = note.position
      return Result(
        "validate/note", .note, note.message,
        at: Place(position.file, line: position.line, column: position.column))
    }
    self.init(
      results,
      rules: [
        Rule("validate/catalog", "A migration file or its name is invalid."),
        Rule("validate/sql", "A SQL statement is invalid, or is not allowed in a migration."),
        Rule("validate/irreversible", "A step has no inverse, and its migration has no down steps."),
        Rule("validate/released", "A released migration was changed, removed, or another one was inserted."),
        Rule("validate/other", "The migrations cannot be read."),
        Rule("validate/note", "Something in a migration file may not be meant as it is written."),
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
          Place(finding.isInApp ? path : report.root + (path == "." ? "" : "/" + path), note: finding.item)
        }
        var lines = [[finding.item, finding.message].compactMap { $0 }.joined(separator: ": ")]
        if finding.count > 1 || !finding.examples.isEmpty {
          let examples = finding.examples.isEmpty ? "" : ": " + finding.examples.joined(separator: ", ")
          lines.append("\(finding.count) \(finding.unit)\(finding.count == 1 ? "" : "s")\(examples)")
        }
        lines.append("fix: \(finding.fix)")
        var result = Result(
          Self.rule(finding.rule), finding.severity, lines.joined(separator: "\n"), at: place)
        result.fingerprint = [finding.rule.rawValue, finding.path ?? "", finding.item ?? ""].joined(
          separator: " | ")
        return result
      },
      rules: AuditRule.all.map { Rule(Self.rule($0.id), "\($0.title): \($0.why).") }, root: root,
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
