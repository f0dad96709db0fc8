import Foundation
import Testing

@testable import DrydockTesting

@Suite("Findings and their groups by cause") struct GroupTests {
  private typealias Finding = FixtureResult.Finding

  private static func row(
    _ id: Int, _ expected: String? = "\"done\"", _ found: String? = "\"draft\"",
    _ check: Finding.Check = .golden, since migration: String? = "0007_trip_rebuild"
  ) -> Finding {
    var finding = Finding(
      check, "the column has another value", place: "Documents/a.db: trip, id \(id): status")
    (finding.expected, finding.found, finding.migration) = (expected, found, migration)
    (finding.pattern, finding.noun) = ("Documents/a.db: trip.status", "row")
    if check == .golden { (finding.file, finding.line) = ("/repo/Fixtures/v1/expected/7/a.sql", id) }
    if migration != nil {
      finding.cause = Finding.Cause(file: "/repo/Migrations/0007_trip_rebuild.yaml", line: 3)
    }
    return finding
  }

  /// Twenty rows, and the number of the others.
  private static func rows(_ count: Int) -> [Finding] {
    var rest = row(21)
    (rest.count, rest.kind, rest.message) = (count - 20, rest.message, "\(count - 20) more rows differ")
    rest.place = rest.pattern
    return (1...20).map { row($0) } + [rest]
  }

  private func groups(_ fixtures: [(String, [Finding])], _ together: [Finding] = []) -> [FindingGroup] {
    FixtureSuite.Report(
      fixtures: fixtures.map { ReportSamples.fixture($0.0, $0.1.isEmpty ? .passed : .failed, $0.1) },
      findings: together, notes: [], seconds: 0
    ).groups
  }

  @Test("Rows of one column in several fixtures are one group, with their true number and three examples")
  func rows() throws {
    let found = groups([("v1", Self.rows(106)), ("v2", Self.rows(100))])
    let group = try #require(found.first)
    #expect(found.count == 1 && group.count == 206 && group.place == "Documents/a.db: trip.status")
    #expect(group.fixtures.map(\.name) == ["v1", "v2"] && group.fixtures.map(\.count) == [106, 100])
    #expect(
      GroupText(group, from: "/repo").lines() == [
        "golden: Documents/a.db: trip.status: 206 rows, \"done\" → \"draft\"; since 0007_trip_rebuild",
        "  caused by Migrations/0007_trip_rebuild.yaml:3", "  in v1 (106), v2 (100)",
        "  trip, id 1: status  (v1, Fixtures/v1/expected/7/a.sql:1)",
        "  trip, id 2: status  (v1, Fixtures/v1/expected/7/a.sql:2)",
        "  trip, id 3: status  (v1, Fixtures/v1/expected/7/a.sql:3)",
      ])
    #expect(GroupText(group).rest() == 203)
    #expect(
      GroupText(group).lines(examples: .max).count == 3 + 40 && GroupText(group).rest(examples: .max) == 166)
  }

  @Test("Different values are in the examples, and the message in the headline")
  func values() throws {
    let group = try #require(groups([("v1", [Self.row(1), Self.row(2, "1", nil)])]).first)
    let lines = GroupText(group).lines()
    #expect(group.values == nil)
    #expect(lines[0].hasSuffix("trip.status: 2 rows: the column has another value; since 0007_trip_rebuild"))
    #expect(lines[3].hasPrefix("  trip, id 1: status: \"done\" → \"draft\"  (v1, "))
    #expect(lines[4].hasPrefix("  trip, id 2: status: 1 → nothing  (v1, "))
  }

  @Test("What the down migrations, `expect` and fresh containers find at the same place is not another group")
  func otherChecks() throws {
    var fresh = Finding(
      .fresh, "v1, migrated, is not like v7", place: "Documents/a.db: table trip, column status")
    var golden = Finding(.golden, "the column definition differs", place: fresh.place)
    (golden.expected, fresh.expected) = ("TEXT", "TEXT")
    // The down migrations find it where the database was before it moved.
    var down = Self.row(1, "\"done\"", "\"draft\"", .down, since: "0003_move")
    down.pattern = "Library/old.db: trip.status"
    let found = groups([("v1", [Self.row(1), golden, down]), ("v2", [down])], [fresh])
    #expect(found.map(\.checks) == [[.golden, .down], [.golden, .fresh], [.down]])
    #expect(found[0].count == 1 && found[2].fixtures.map(\.name) == ["v2"])
    #expect(GroupText(found[0]).lines().contains("  also found by down"))
  }

  @Test("Rows that a step loses are one group with those that the golden misses")
  func lostRows() {
    var lost = Finding(.lostRows, "rows are lost after the step sql", place: "Documents/a.db: trip")
    (lost.expected, lost.found, lost.migration) = ("206 rows", "0 rows", "0007_trip_rebuild")
    (lost.count, lost.noun) = (206, "row")
    var absent = Self.row(1, "status \"done\"", nil)
    (absent.message, absent.pattern) = ("the row is absent", "Documents/a.db: trip")
    var other = absent
    other.migration = "0005_other"
    #expect(groups([("v1", [absent, lost])]).map(\.checks) == [[.lostRows, .golden]])
    #expect(groups([("v1", [other, lost])]).count == 2, "another migration")
    #expect(groups([("v1", [lost]), ("v2", [absent])]).count == 2, "another fixture, which lost none")
    #expect(groups([("v1", [absent, lost])]).first?.count == 206)
  }

  @Test("Another migration, place or kind is another group, and so is a known failure")
  func apart() {
    var place = Self.row(1)
    place.pattern = "Documents/a.db: trip.title"
    var kind = Self.row(1)
    kind.message = "the row is absent"
    let found = groups([
      ("v1", [Self.row(1), Self.row(1, since: "0006_other"), Self.row(1, since: nil), place, kind])
    ])
    #expect(found.count == 5)
    var known = ReportSamples.fixture("v2", .knownFailure, [Self.row(1)])
    known.knownFailure = "issue 7"
    let report = FixtureSuite.Report(
      fixtures: [known, ReportSamples.fixture("v3", .failed, [Self.row(1)])], findings: [], notes: [],
      seconds: 0)
    #expect(report.groups.map(\.isKnown) == [false, true], "known failures come last")
  }

  @Test(
    "A step that fails with another text in each fixture is one group, and steps without effect are several")
  func steps() {
    func failure(_ text: String) -> Finding {
      var finding = Finding(.migration, "Migrations/0007.yaml:3:5: \(text)")
      (finding.migration, finding.file, finding.line) = ("0007_trip_rebuild", "Migrations/0007.yaml", 3)
      finding.cause = Finding.Cause(file: "Migrations/0007.yaml", line: 3)
      return finding
    }
    let found = groups([("v1", [failure("id 1 is not unique")]), ("v2", [failure("id 2 is not unique")])])
    #expect(found.count == 1)
    #expect(
      found.first.map { GroupText($0).lines() } == [
        "migration: Migrations/0007.yaml:3:5: id 1 is not unique", "  first after 0007_trip_rebuild",
        "  Migrations/0007.yaml:3", "  in v1, v2",
        "  Migrations/0007.yaml:3:5: id 2 is not unique  (v2, Migrations/0007.yaml:3)",
      ])
    func unused(_ line: Int) -> Finding {
      var finding = Finding(.coverage, "the step sql changes nothing in any fixture")
      (finding.migration, finding.cause) = ("0007", Finding.Cause(file: "Migrations/0007.yaml", line: line))
      return finding
    }
    #expect(groups([], [unused(1), unused(2)]).count == 2)
  }

  @Test("The last line is the verdict")
  func conclusion() {
    func text(_ states: [FixtureResult.State], _ findings: [Finding] = []) -> String {
      FixtureSuite.Report(
        fixtures: states.map { ReportSamples.fixture("v1", $0) }, findings: findings, notes: [], seconds: 0
      ).conclusion
    }
    let finding = Finding(.coverage, "unused")
    #expect(text([.passed]) == "1 fixture: 1 passed")
    #expect(text([.passed, .knownFailure]) == "2 fixtures: 1 passed, 1 known failure")
    #expect(text([.passed, .failed]) == "2 fixtures: 1 passed, 1 failed: FAILED")
    #expect(text([.passed], [finding]) == "1 fixture: 1 passed; 1 cross-fixture finding: FAILED")
    #expect(text([.passed], [finding, finding]) == "1 fixture: 1 passed; 2 cross-fixture findings: FAILED")
    #expect(text([.failed, .notRun]) == "2 fixtures: 1 failed, 1 not run: FAILED")
  }

  @Test("In JSON a group has its checks, number of rows, values, cause and fixtures")
  func json() throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let group = try #require(groups([("v1", Self.rows(106))]).first)
    #expect(
      String(decoding: try encoder.encode(group), as: UTF8.self) == """
        {"cause":{"file":"/repo/Migrations/0007_trip_rebuild.yaml","line":3},"checks":["golden"],"count":106,\
        "expected":"\\"done\\"","fixtures":[{"count":106,"name":"v1"}],"found":"\\"draft\\"","known":false,\
        "message":"the column has another value","migration":"0007_trip_rebuild",\
        "place":"Documents/a.db: trip.status"}
        """)
  }

  @Test("A finding is told in lines: what, where, expected, found, since when, by which file")
  func finding() {
    #expect(
      FindingText(ReportSamples.wrong, from: "/repo").lines == [
        "golden: Library/p.plist: theme: another value", "  expected  \"light\"", "  found     \"dark\"",
        "  first after 0002_rename_settings", "  Fixtures/v1/expected/6/defaults.yaml:12",
      ])
    #expect(FindingText(ReportSamples.wrong).lines.last == "  /repo/Fixtures/v1/expected/6/defaults.yaml:12")
    #expect(FindingText(ReportSamples.wrong, from: "/re").lines.last?.hasPrefix("  /repo") == true)
  }

  @Test("Files in a message are named from the directory, too")
  func message() {
    let finding = FixtureResult.Finding(.build, "/repo/Fixtures/v1: no container; see /other/repo/x")
    #expect(
      FindingText(finding, from: "/repo").lines == ["build: Fixtures/v1: no container; see /other/repo/x"])
    #expect(FindingText(finding, from: "/").lines == ["build: \(finding.message)"])
  }

  @Test("What is not there is called so, and what the message says is not said again")
  func absentValues() {
    var finding = FixtureResult.Finding(.expectation, "the key is absent")
    #expect(FindingText(finding).lines == ["expectation: the key is absent"])
    finding.expected = "1"
    #expect(FindingText(finding).lines.dropFirst() == ["  expected  1", "  found     nothing"])
  }

  @Test("Of long values the part is shown where they differ, of both from the same place")
  func longValues() {
    var finding = FixtureResult.Finding(.golden, "another value")
    let head = String(repeating: "x", count: 1000)
    (finding.expected, finding.found) = (head + "A" + head, head + "B")
    let context = String(repeating: "x", count: 40)
    let tail = String(repeating: "x", count: 119)
    #expect(
      FindingText(finding).lines.dropFirst() == [
        "  expected  …\(context)A\(tail)…", "  found     …\(context)B",
      ])
    // One is the beginning of the other.
    (finding.expected, finding.found) = (head, head + "end")
    #expect(
      FindingText(finding).lines.dropFirst() == ["  expected  …\(context)", "  found     …\(context)end"])
  }

  @Test("No line break and no control character gets through, and no line of a message looks like a command")
  func hostileText() {
    var finding = FixtureResult.Finding(
      .build, "script failed:\r\n::set-env::x\n\nend\u{1B}[31m", place: "a\nb")
    finding.found = "one\ntwo"
    #expect(
      FindingText(finding).lines == [
        "build: a\\u{a}b: script failed:", "  | ::set-env::x", "  | ", "  | end\\u{1b}[31m",
        "  expected  nothing", "  found     one\\u{a}two",
      ])
  }
}
