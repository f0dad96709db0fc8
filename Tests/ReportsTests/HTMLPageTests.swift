import Foundation
@testable import Reports
import Testing
import Formats

@Suite("Pages of HTML") struct HTMLPageTests {
  private func shown(_ text: String) -> String { HTML.escaped(text) }

  @Test("Characters that act instead of being seen are spelled out")
  func text() {
    #expect(shown("plain <b> & \"q\" 'x'") == "plain &lt;b&gt; &amp; &quot;q&quot; &#39;x&#39;")
    #expect(
      shown("a\u{202E}b\u{2066}\u{200F}\u{FEFF}\u{E0041}")
        == "a\\u{202e}b\\u{2066}\\u{200f}\\u{feff}\\u{e0041}")
    #expect(shown("\u{0}\u{1B}[1m\n\r\t\u{2028}") == "\\u{0}\\u{1b}[1m\\n\\r\\t\\u{2028}")
    #expect(shown("👩‍👧 é שלום ☕️") == "👩‍👧 é שלום ☕️", "and letters are not")
    let marks = String(repeating: "\u{351}", count: 6)
    #expect(
      shown("Z" + marks) == "Z" + marks.unicodeScalars.prefix(4).map(String.init).joined()
        + "\\u{351}\\u{351}")
  }

  @Test("A long text is cut, and its length is given")
  func long() {
    #expect(shown(String(repeating: "x", count: 1000)).count == 1000)
    let cut = shown(String(repeating: "é", count: 1_048_576))
    #expect(cut.hasPrefix("ééé") && cut.hasSuffix("é… (1,048,576 characters)") && cut.count < 1100)
  }

  /// To Swift, a quote and an accent are one character; to a browser, the quote ends an attribute.
  @Test("Markup with combining marks is escaped")
  func combining() {
    let page = HTMLPage(
      Report(failed: "x", title: "\"\u{301} <\u{301}b \u{D4E}' \u{1F3FB}&\u{FE0F}", lines: []))
    let html = page.html()
    let title = html.firstMatch(of: #/<h1>(.*)</h1>/#)?.output.1 ?? ""
    #expect(title == "&quot;\u{301} &lt;\u{301}b \u{D4E}&#39; \u{1F3FB}&amp;\u{FE0F}", "\(title)")
  }

  @Test("Of markup, the literals are as they are, and every value is escaped")
  func markup() {
    let value = "<b>\"'&"
    let inner: HTML = "<i>\(value)</i>"
    let outer: HTML = "<p class=\"\(value)\">\(inner)\([inner])</p>"
    let text = "&lt;b&gt;&quot;&#39;&amp;"
    #expect(outer.source == "<p class=\"\(text)\"><i>\(text)</i><i>\(text)</i></p>")
    let page = HTMLPage(Report(failed: "{{word}}", title: "{{#sections}}", lines: ["{{{title}}}"])).html()
    #expect(page.contains("<h1>{{#sections}}</h1>") && page.contains("<span>{{{title}}}</span>"))
    #expect(!HTMLStyle.text.source.contains("<"))
  }

  @Test("A sentence begins with a capital letter, and words in backquotes are code")
  func prose() {
    func shown(_ text: String) -> String { HTML.prose(text, isSentence: true).source }
    #expect(
      shown("move it: `vault.rename`, or `x`") == "Move it: <code>vault.rename</code>, or <code>x</code>")
    #expect(
      shown("`theme` is text") == "<code>theme</code> is text" && shown("trip.status: x") == "trip.status: x")
    #expect(shown("an odd ` is a text") == "an odd ` is a text" && shown("").isEmpty)
  }

  @Test("The page allows its own style, and nothing else")
  func policy() throws {
    let html = HTMLPage(Report(failed: "x", title: "y", lines: [])).html()
    let policy = try #require(html.firstMatch(of: #/Content-Security-Policy" content="([^"]*)"/#)).output.1
    #expect(policy.hasPrefix("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe"))
    #expect(
      !html.contains("http:") && !html.contains("https:") && !html.contains("url(")
        && !html.contains("style=\""))
  }

  @Test("Numbers and sizes are readable")
  func numbers() {
    #expect(
      [0, 999, 1000, 1_234_567, -12_000].map(NumberText.grouped) == [
        "0", "999", "1,000", "1,234,567", "−12,000",
      ])
    #expect(
      [0, 999, 1400, 9949, 12_300, 999_499, 999_500, 5_000_000_000].map(NumberText.size)
        == ["0 B", "999 B", "1.4 kB", "9.9 kB", "12 kB", "999 kB", "1.0 MB", "5.0 GB"])
    #expect(NumberText.size(.max) == "18,447 PB" && NumberText.count(1, "row") == "1 row")
  }

  @Test("Of two values the words are marked that differ, unless they have little in common")
  func values() {
    let (before, after) = TextComparison.values("see \"long\" notes, 12", "see \"short\" notes, 13")
    #expect(
      before.source == "see &quot;<mark>long</mark>&quot; notes, <mark>12</mark>"
        && after.source == "see &quot;<mark>short</mark>&quot; notes, <mark>13</mark>")
    #expect(TextComparison.values("light", "dark").before.source == "light")
    #expect(TextComparison.values("same", "same").after.source == "same")
    let long = String(repeating: "word ", count: 100_000)
    #expect(
      !TextComparison.values(long, long + "x").after.source.contains("<mark>"), "what is cut is not compared")
  }

  @Test("A table's definition is compared column by column")
  func schema() {
    let before = SQLLines(
      "CREATE TABLE task(id INTEGER PRIMARY KEY, title TEXT DEFAULT 'a, (b', CHECK (id IN (1, 2)) )")
    #expect(
      before.lines == [
        "CREATE TABLE task(", "  id INTEGER PRIMARY KEY,", "  title TEXT DEFAULT 'a, (b',",
        "  CHECK (id IN (1, 2))", ")",
      ])
    let after = SQLLines(
      "CREATE TABLE task (\n  id INTEGER PRIMARY KEY, -- the key\n  title TEXT , notes TEXT) STRICT")
    #expect(
      after.lines == [
        "CREATE TABLE task (", "  id INTEGER PRIMARY KEY,", "  -- the key", "  title TEXT,", "  notes TEXT",
        ") STRICT",
      ])
    #expect(
      SQLLines("CREATE VIEW v AS\n\tSELECT 1 \n\n FROM t").lines == [
        "CREATE VIEW v AS", "  SELECT 1", " FROM t",
      ])
    #expect(
      SQLLines("CREATE TABLE t(a, --\u{200D} the   key\n b /* it's, (one) */, c\u{A0}d)").lines == [
        "CREATE TABLE t(", "  a,", "  --\u{200D} the   key", "  b /* it's, (one) */,", "  c\u{A0}d", ")",
      ], "a comment ends its line whatever follows the dashes, and has no commas of its own")
    let lines = TextComparison.lines(["a", "b,", "c"], ["a", "b", "d"])
    #expect(lines.map(\.kind) == [.same, .same, .removed, .added], "a comma at the end is no change")
    #expect(TextComparison.lines([], ["x"]).map(\.kind) == [.added])
    #expect(SQLLines("").lines.isEmpty && SQLLines("CREATE TABLE t('").lines == ["CREATE TABLE t(", "  '"])
    #expect(
      SQLLines("CREATE VIEW v AS\n" + String(repeating: "x\n", count: 5000)).lines.count == SQLLines.limit + 1
    )
  }

  @Test("Long parts without a change are left out")
  func gaps() {
    #expect(
      TextComparison.lines(["1", "2", "3", "4", "5", "6", "a"], ["1", "2", "3", "4", "5", "6"]).allSatisfy {
        $0.kind != .gap
      }, "but not a few lines")
    let before = (0..<50).map { "column\($0)" }
    var after = before
    after[25] = "other"
    let lines = TextComparison.lines(before, after)
    #expect(lines.map(\.kind).filter { $0 == .same }.count == 6 && lines.first?.kind == .gap)
    #expect(lines.first?.text.source == "… 22 lines without a change")
  }

  @Test("Thousands of rows are folded, and what is beyond the limit is counted")
  func folding() throws {
    var rows = (0..<5000).map { Report.Row([.text("row \($0)")]) }
    var report = Report(failed: "x", title: "y", lines: [])
    func html() -> String {
      report.sections = [Report.Section("A", [.table(Report.Table("Rows", ["Name"], rows))])]
      return HTMLPage(report).html()
    }
    let long = html()
    #expect(long.split(separator: "<th scope=\"row\">").count == HTMLPage.limit + 1)
    let fold = try #require(long.range(of: "<details><summary>1,980 more rows</summary>"))
    #expect(long[..<fold.lowerBound].contains("row 19<") && !long[..<fold.lowerBound].contains("row 20<"))
    #expect(long.contains("3,000 more rows are not on this page"))
    rows = Array(rows.prefix(25))
    #expect(!html().contains("<details"), "a few rows are not folded")
  }

  @Test("Thousands of lines are folded below the line that they belong to")
  func foldingLines() throws {
    let lines = [Report.Line("head", depth: 0)] + (0..<5000).map { Report.Line("line \($0)") }
    var report = Report(failed: "x", title: "y", lines: [])
    report.sections = [Report.Section("A", [.lines(lines)])]
    let html = HTMLPage(report).html()
    #expect(html.split(separator: "<li>").count == HTMLPage.limit + 2)
    let fold = try #require(html.range(of: "<details><summary>1,980 more lines</summary>"))
    #expect(html[..<fold.lowerBound].contains("line 19<") && !html[..<fold.lowerBound].contains("line 20<"))
    #expect(html.contains("3,000 more lines are not on this page"))
  }

  @Test("All rows of a difference together have a limit")
  func budget() throws {
    var difference = try PageSamples.difference(texts: PageSamples.plain, rows: 500)
    let database = difference.databases[0]
    difference.databases = (0..<10).map { _ in database }
    var report = Report(failed: "x", title: "y", lines: [])
    report.sections = [Report.Section("A", [.difference(difference)])]
    let html = HTMLPage(report).html()
    let count = html.split(separator: "<li>").count
    #expect(count > 5000 && count < 5500, "\(count)")
    #expect(html.contains("more lines are not on this page"))
  }
}
