@testable import ContainerDiff
@testable import DrydockTesting
import Foundation
@testable import Reports
import Testing

@Suite("The report in Markdown") struct MarkdownTests {
  private func text(_ fixtures: [FixtureResult], _ notes: [String] = []) -> String {
    let suite = FixtureSuite.Report(fixtures: fixtures, findings: [], notes: notes, seconds: 0)
    return Markdown(Report(suite, from: "/repo")).text
  }

  @Test("It has the verdict, a table of the fixtures, those that failed first, and a section for each cause")
  func document() {
    let text = Markdown(Report(ReportSamples.everything, from: "/repo")).text
    #expect(
      text.hasPrefix(
        """
        ### ❌ Migration tests

        5 fixtures: 1 passed, 2 failed, 1 known failure, 1 not run; 1 cross-fixture finding: FAILED

        | | Fixture | Version | Findings |
        |---|---|---|---:|
        | ❌ | v1 | 1 → 6 | 2 |

        """))
    #expect(
      text.contains(
        """
        <details open><summary>❌ <code>golden: Library/p.plist: theme: another value</code></summary>

        <pre>
          expected  "light"
          found     "dark"
          first after 0002_rename_settings
          Fixtures/v1/expected/6/defaults.yaml:12
          in v1
        </pre>

        </details>

        """))
    #expect(text.components(separatedBy: "<details").count == 6 && text.contains("<summary>⚠️ <code>rollback"))
    #expect(
      self.text([ReportSamples.fixture("v0", .passed)]) == """
        ### ✅ Migration tests

        1 fixture: 1 passed

        | | Fixture | Version | Findings |
        |---|---|---|---:|
        | ✅ | v0 | 1 → 6 | 0 |


        """)
  }

  @Test("What the migrations change in a fixture is a section, in the page too")
  func changes() throws {
    var table = ContainerDifference.Table(name: "task", added: 0, removed: 0, changed: 2)
    let figures = ContainerDifference.ColumnValues.Figures(nulls: 0, distinct: 3, longest: 9)
    table.columns = [
      .init(
        name: "title", change: .changed, changed: 2, before: figures,
        after: .init(nulls: 1, distinct: 2, longest: 9)),
      .init(name: "city", change: .added, after: figures, samples: ["\"<b>\""]),
    ]
    var fixture = ReportSamples.fixture("v0", .passed)
    (fixture.base, fixture.difference) = (5, ContainerDifference())
    fixture.difference?.databases = [.init(path: "Documents/a.sqlite", change: .changed, tables: [table])]
    #expect(
      text([fixture]).hasSuffix(
        """
        <details><summary><code>v0: 5 → 6</code></summary>

        <pre>
        database Documents/a.sqlite
          ~ rows of task: 2 changed
              ~ title: 2 values differ, NULL 0 → 1, distinct 3 → 2
              + city: NULL 0, distinct 3, longest 9: "&lt;b&gt;"
        </pre>

        </details>


        """))
    let suite = FixtureSuite.Report(fixtures: [fixture], findings: [], notes: [], seconds: 0)
    let html = HTMLPage(Report(suite)).html(program: "drydock")
    #expect(html.contains("0 → 1") && html.contains("3 → 2") && !html.contains("<b>"))
  }

  @Test("A difference that is in no fold, and a table that is in one, are folded")
  func folded() throws {
    let difference = ContainerDifference()
    let opening = [Report.Line("a: Notes", depth: 0)]
    var report = Report(comparing: ("a", "b"), opening, difference, compared: 1, notCompared: [])
    report.sections[1] = .init(
      "more",
      [.fold(.init("rows"), [.table(.init("Rows", ["Name", "Count"], [.init([.text("a"), .number(1)])]))])])
    let text = Markdown(report).text
    #expect(
      text.contains("<summary><code>changes</code></summary>\n\n<pre>\nnothing changes\n</pre>"), "\(text)")
    #expect(text.contains("<summary><code>rows</code></summary>\n\n<pre>\na  1\n</pre>"), "\(text)")
  }

  static let hostile = [
    "@someone and #123", "</pre></details><script>alert(1)</script>", "```\n# heading", "| a | b |",
    "[link](https://example.com) ![image](https://example.com/x.png)", "a\u{202E}b\u{2066}c", "<!-- -->",
    "&lt;b&gt; &#64;someone", "`code` **bold** ~~gone~~", "\n\n- item\n\n",
    "https://example.com www.example.com", "</code>", ":tada:", "x\\|y",
  ]

  /// What GitHub would act on is looked for outside of elements `code` and `pre`, where it looks for nothing.
  @Test("No value is a mention, a number of an issue, a link or an element", arguments: hostile)
  func harmless(_ value: String) {
    var finding = FixtureResult.Finding(.golden, value, place: value)
    (finding.expected, finding.found, finding.migration) = (value, value, value)
    (finding.file, finding.cause) = (value, FixtureResult.Finding.Cause(file: value))
    var fixture = ReportSamples.fixture(value, .failed, [finding])
    fixture.notes = [value]
    var known = ReportSamples.fixture("k" + value, .knownFailure, [finding])
    known.knownFailure = value
    let text = text([fixture, known], [value])
    let outside = text.replacing(#/<code>(?:&#\d+;|[^<>|`*_\[\]~@#\\:.\n&])*<\/code>/#, with: "C")
      .replacing(#/<summary>(?:❌|⚠️) <code>[^<>\n]*<\/code><\/summary>/#, with: "S")
      .replacing(#/<pre>\n[^<>]*\n<\/pre>/#, with: "P")
    #expect(
      outside.wholeMatch(
        of:
          #/### ❌ Migration tests\n\n[a-z0-9,: ]+: FAILED\n\n\| \| Fixture \| Version \| Findings \|\n\|---\|---\|---\|---:\|\n\| ❌ \| C \| 1 → 6 \| 1 \|\n\| ⚠️ \| C \| 1 → 6 \| 1 \|\n\n(?:<details open>S\n\nP\n\n<\/details>\n\n){2}(?:- C\n){2}\n/#
      ) != nil, "\(outside)\n---\n\(text)")
    for scalar in ["\u{202E}", "\u{2066}"] as [Unicode.Scalar] {
      #expect(!text.unicodeScalars.contains(scalar))
    }
  }

  @Test("It is never longer than GitHub takes, and says what it leaves out")
  func long() {
    // Several times what is shown of a text, and of all of them.
    let mega = String(repeating: "<&|é🥛", count: 300)
    for count in [1, 10, 60] {
      let fixtures = (0..<count).map { number in
        var finding = FixtureResult.Finding(.golden, "\(mega) \(number)", place: "\(number) \(mega)")
        (finding.expected, finding.found) = (mega, "x" + mega)
        var fixture = ReportSamples.fixture("\(number)\(mega)", .failed, [finding, ReportSamples.wrong])
        fixture.notes = [mega]
        return fixture
      }
      let text = text(fixtures, [mega])
      #expect(text.utf8.count <= Markdown.limit && text.utf8.count > 3000, "\(text.utf8.count)")
      let opened = text.components(separatedBy: "<details").count
      #expect(opened == text.components(separatedBy: "</details>").count && opened > 1)
      if count == 60 {
        #expect(text.contains(" more causes: see the complete report") && text.contains("\n… and "))
      }
    }
    let many = (0..<1500).map { ReportSamples.fixture("v\($0)", .passed) }
    let text = text(many)
    #expect(text.utf8.count <= Markdown.limit && text.contains(" more\n"))
  }
}
