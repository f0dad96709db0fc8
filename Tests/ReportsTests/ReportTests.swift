@testable import DrydockTesting
@testable import Reports
import Testing

@Suite("Reports of a suite")
struct ReportTests {
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
  func values() {
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

  @Test("GitHub's annotations name the file in the repository, and nothing in them ends the command")
  func annotations() {
    let lines = GitHubAnnotations(ReportSamples.everything, workspace: "/repo", directory: "/repo/app").lines
    #expect(lines.count == 5, "two findings, the broken fixture, the known one, and one over all")
    #expect(
      lines[0] == """
        ::error file=Fixtures/v1/expected/6/defaults.yaml,line=12,title=fixture v1%3A golden::golden: Library/p.plist: \
        theme: another value%0A  expected  "light"%0A  found     "dark"%0A  first after 0002_rename_settings%0A  \
        Fixtures/v1/expected/6/defaults.yaml:12
        """)
    #expect(lines[1].hasPrefix("::error file=Fixtures/v1/fixture.yaml,title=fixture v1%3A down::down: a & b"))
    #expect(
      lines[3].hasPrefix("::notice file=Fixtures/known/fixture.yaml,title=fixture known::known failure: "))
    // What is named from the working directory is found in the repository.
    #expect(
      lines[4].hasPrefix("::error file=app/Migrations/0002_rename_settings.yaml,line=5,title=all fixtures%3A")
    )
    for line in lines { #expect(!line.unicodeScalars.contains { $0 == "\n" || $0 == "\r" }, "\(line)") }
  }

  @Test("Percent signs, colons and commas of names come back as they were")
  func escaping() {
    var finding = FixtureResult.Finding(.golden, "100% of a, b: c")
    finding.file = "/repo/Fixtures/100%,a:b/fixture.yaml"
    let result = FixtureSuite.Report(
      fixtures: [ReportSamples.fixture("100%,a:b", .failed, [finding])], findings: [], notes: [], seconds: 0)
    #expect(
      GitHubAnnotations(result, workspace: "/repo", directory: "/repo").lines == [
        """
        ::error file=Fixtures/100%25%2Ca%3Ab/fixture.yaml,title=fixture 100%25%2Ca%3Ab%3A golden::golden: 100%25 of a, \
        b: c%0A  Fixtures/100%25,a:b/fixture.yaml
        """
      ])
  }

  @Test("The summary has the counts and each failure, and its text is only text")
  func summary() {
    let text = MarkdownSummary(ReportSamples.everything, from: "/repo").text
    #expect(
      text.hasPrefix(
        "### ❌ Migration tests\n\n5 fixtures: 1 passed, 2 failed, 1 known failure, 1 not run\n\n"))
    #expect(text.contains("<b>v1</b>") && text.contains("\n  Fixtures/v1/expected/6/defaults.yaml:12\n"))
    #expect(text.contains("a &amp; b &lt;c&gt;") && !text.contains("<c>"))
    #expect(text.contains("<b>all fixtures together</b>"))
    let passed = FixtureSuite.Report(
      fixtures: [ReportSamples.fixture("v0", .passed)], findings: [], notes: [], seconds: 0)
    #expect(MarkdownSummary(passed).text == "### ✅ Migration tests\n\n1 fixture: 1 passed\n\n\n")
  }

  @Test("A summary of very many findings ends")
  func longSummary() {
    let findings = Array(repeating: ReportSamples.wrong, count: 10_000)
    let result = FixtureSuite.Report(
      fixtures: [ReportSamples.fixture("v1", .failed, findings)], findings: [], notes: [], seconds: 0)
    let text = MarkdownSummary(result).text
    #expect(text.utf8.count < 1_000_000 && text.contains("… and 48000 more lines"))
  }
}
