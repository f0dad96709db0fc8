/// The result of a suite in Markdown: the counts, and the findings of each fixture that failed.
package struct MarkdownSummary: Sendable {
  private let result: SuiteResult
  private let root: String?

  /// So many lines of findings: GitHub takes no more than a megabyte.
  static let limit = 2000

  /// - Parameter root: The directory that files are named from, an absolute path; nil to name them as they are.
  package init(_ result: SuiteResult, from root: String? = nil) { (self.result, self.root) = (result, root) }

  /// The text, ending with an empty line.
  package var text: String {
    var lines = ["### \(result.passed ? "✅" : "❌") Migration tests", "", result.counts, ""]
    var rest = Self.limit
    for fixture in result.fixtures where fixture.state == .failed {
      lines += section(fixture.name, fixture.findings, &rest)
    }
    if !result.findings.isEmpty { lines += section("all fixtures together", result.findings, &rest) }
    for fixture in result.fixtures where fixture.state == .knownFailure {
      lines += ["- \(escaped(fixture.name)), a known failure: \(escaped(fixture.knownFailure ?? ""))"]
    }
    return lines.joined(separator: "\n") + "\n\n"
  }

  private func section(_ name: String, _ findings: [FixtureFinding], _ rest: inout Int) -> [String] {
    let lines = findings.flatMap { FindingText($0, from: root).lines }
    let shown = lines.prefix(rest)
    rest -= shown.count
    // Not fenced: a value may have a fence in it.
    return ["<details open><summary><b>\(escaped(name))</b></summary>", "", "<pre>"] + shown.map(escaped)
      + (shown.count < lines.count ? ["… and \(lines.count - shown.count) more lines"] : [])
      + ["</pre>", "", "</details>", ""]
  }

  private func escaped(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
      .split(whereSeparator: \.isNewline).joined(separator: " ")
  }
}
