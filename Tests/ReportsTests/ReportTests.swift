@testable import DrydockTesting
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
}
