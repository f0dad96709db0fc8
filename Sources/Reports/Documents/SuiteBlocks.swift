import Drydock
import DrydockTesting

extension Report {
  /// A run of the fixtures: a table of them, a part for each cause, and what the migrations change.
  ///
  /// - Parameter examples: so many findings of a cause are shown.
  package init(
    _ suite: FixtureSuite.Report, from root: String? = nil, examples: Int = GroupText.examples,
    advised: (String) -> String = { $0 }
  ) {
    self.init(
      kind: "Fixtures", title: "Migration tests", verdict: suite.passed ? .good : .bad,
      word: suite.passed ? "Passed" : "Failed", sentence: suite.conclusion)
    opening = [Line("duration: \(NumberText.seconds(suite.seconds))", depth: 0)]
    let rows = suite.sorted.map { fixture in
      let reason = fixture.knownFailure.map { ": known failure: \($0)" } ?? ""
      let versions = Cell.versions(fixture.from, fixture.to)
      let count = fixture.findings.reduce(0) { $0 + $1.count }
      return Row(
        [.text(fixture.name + reason), versions, .number(count)], Self.role(fixture.state))
    }
    let causes = suite.groups.map { group -> Block in
      let lines = GroupText(group, from: root).linesWithRest(examples: examples).map(advised)
      return .fold(
        Line(lines[0], group.isKnown ? .warning : .error),
        [.lines(lines.dropFirst().map(Line.init(indented:)))])
    }
    let changes = suite.fixtures.compactMap { fixture -> Block? in
      guard let difference = fixture.difference, let base = fixture.base else { return nil }
      return .fold(Line("\(fixture.name): \(base) → \(fixture.to)"), [.difference(difference)])
    }
    sections = [
      Section(
        "fixtures", [.table(Table("Fixtures, failed ones first", ["Fixture", "Version", "Findings"], rows))]),
      Section("findings", causes, noun: "cause"),
      Section("what the migrations change", changes, noun: "fixture"),
      Section(
        "kept containers",
        [.lines(suite.sorted.compactMap { fixture in fixture.kept.map { Line("\(fixture.name): \($0)") } })]),
      Section("notes", [.lines(suite.allNotes.map { Line(advised($0)) })]),
    ]
  }

  private static func role(_ state: FixtureResult.State) -> TextRole {
    switch state {
    case .passed: .passed
    case .failed: .failed
    case .knownFailure: .known
    case .notRun: .notRun
    }
  }
}
