import BackupRepository
import DrydockTesting

/// The result of a suite as commands of GitHub Actions, which show each finding at its line of the repository.
package struct GitHubAnnotations: Sendable {
  private let result: FixtureSuite.Report
  private let workspace: String
  private let directory: String

  /// - Parameters:
  ///   - workspace: The repository's directory, which GitHub names files from; an absolute path.
  ///   - directory: The working directory, which relative names of files begin at; an absolute path.
  package init(_ result: FixtureSuite.Report, workspace: String, directory: String) {
    (self.result, self.workspace, self.directory) = (result, workspace, directory)
  }

  /// A command each: an error for what fails, a notice for a known failure.
  package var lines: [String] {
    result.fixtures.flatMap(lines) + result.findings.map { error($0, of: "all fixtures") }
  }

  private func lines(_ fixture: FixtureResult) -> [String] {
    switch fixture.state {
    case .passed, .notRun: []
    case .failed: fixture.findings.map { error($0, of: "fixture \(fixture.name)", in: fixture.directory) }
    case .knownFailure:
      [
        command(
          "notice", file: fixture.directory + "/fixture.yaml", line: nil, title: "fixture \(fixture.name)",
          "known failure: \(fixture.knownFailure ?? "")")
      ]
    }
  }

  /// What no file says is shown at the fixture's own.
  private func error(_ finding: FixtureResult.Finding, of subject: String, in fixture: String? = nil)
    -> String
  {
    command(
      "error", file: finding.file ?? fixture.map { $0 + "/fixture.yaml" },
      line: finding.file == nil ? nil : finding.line,
      title: "\(subject): \(finding.check.rawValue)",
      FindingText(finding, from: workspace).lines.joined(separator: "\n"))
  }

  private func command(
    _ name: String, file: String?, line: Int?, title: String, _ message: String
  ) -> String {
    var properties: [String] = []
    if let file { properties.append("file=\(property(inRepository(file)))") }
    if let line { properties.append("line=\(line)") }
    properties.append("title=\(property(title.printable))")
    return "::\(name) \(properties.joined(separator: ","))::\(data(message))"
  }

  private func inRepository(_ file: String) -> String {
    let absolute = file.hasPrefix("/") ? file : directory + "/" + file
    return FindingText.path(absolute, from: workspace)
  }

  /// A line break would end the command. By scalars: a carriage return and a line feed are one character.
  private func data(_ text: String) -> String { escaped(text, ["%", "\r", "\n"]) }

  private func property(_ text: String) -> String { escaped(text, ["%", "\r", "\n", ":", ","]) }

  /// As GitHub's runner takes it back: `%` and two digits.
  private func escaped(_ text: String, _ special: Set<Unicode.Scalar>) -> String {
    text.unicodeScalars.map { scalar in
      guard special.contains(scalar) else { return String(scalar) }
      let digits = String(scalar.value, radix: 16, uppercase: true)
      return "%" + (digits.count < 2 ? "0" : "") + digits
    }.joined()
  }
}

/// The result of a suite in Markdown: the counts, and the findings of each fixture that failed.
package struct MarkdownSummary: Sendable {
  private let result: FixtureSuite.Report
  private let root: String?

  /// So many lines of findings: GitHub takes no more than a megabyte.
  static let limit = 2000

  /// - Parameter root: The directory that files are named from, an absolute path; nil to name them as they are.
  package init(_ result: FixtureSuite.Report, from root: String? = nil) {
    (self.result, self.root) = (result, root)
  }

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

  private func section(_ name: String, _ findings: [FixtureResult.Finding], _ rest: inout Int) -> [String] {
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
