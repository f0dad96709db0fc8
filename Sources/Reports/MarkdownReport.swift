import Drydock
import DrydockTesting

/// The result of a suite in Markdown, for a comment on a pull request or a job's summary: the verdict, a table of the
/// fixtures, and a section for each cause.
///
/// Values are in blocks of HTML, which Markdown does not read, or have every sign with a meaning written as a character
/// reference: no value can be a link, a mention, an image or the end of its block.
package struct MarkdownReport: Sendable {
  /// GitHub takes no longer comment; it counts characters, of which there are not more than bytes.
  package static let limit = 65_536

  private let result: FixtureSuite.Report
  private let groups: [FindingGroup]
  private let root: String?

  /// - Parameter root: The directory that files are named from, an absolute path; nil to name them as they are.
  package init(_ result: FixtureSuite.Report, from root: String? = nil) {
    (self.result, self.root) = (result, root)
    groups = result.groups
  }

  /// The document, at most ``limit`` bytes long.
  package var text: String {
    var text = "### \(result.passed ? "✅" : "❌") Migration tests\n\n\(result.conclusion)\n\n"
    // What is left out is said in less than this.
    let end = Self.limit - 500
    add(
      tableRows, header: "| | Fixture | Version | Findings |\n|---|---|---|---:|\n", to: &text, upTo: end / 3)
    var shown = 0
    for group in groups {
      let section = section(group, isOpen: shown < 3)
      // The causes that come later may be shorter, but the order would be lost.
      if text.utf8.count + section.utf8.count > end { break }
      text += section
      shown += 1
    }
    let omitted = groups.count - shown
    if omitted > 0 {
      text += "\(omitted) more \(omitted == 1 ? "cause" : "causes"): see the complete report.\n\n"
    }
    var left = 0
    for fixture in result.fixtures {
      guard let section = section(fixture) else { continue }
      if text.utf8.count + section.utf8.count > end { left += 1 } else { text += section }
    }
    if left > 0 { text += "What the migrations change in \(left) more: see the complete report.\n\n" }
    let notes =
      result.notes
      + result.fixtures.flatMap { fixture in
        fixture.notes.map { "\(fixture.name): \($0)" }
      }
    add(notes.map { "- \(Self.inline($0))\n" }, header: "", to: &text, upTo: end)
    return text
  }

  /// Adds rows as long as there is room, and the number of the others.
  private func add(_ rows: [String], header: String, to text: inout String, upTo end: Int) {
    if rows.isEmpty { return }
    text += header
    var count = text.utf8.count
    let shown = rows.prefix { row in
      count += row.utf8.count
      return count <= end
    }
    text += shown.joined()
    text += shown.count < rows.count ? "\nand \(rows.count - shown.count) more\n\n" : "\n"
  }

  private var tableRows: [String] {
    result.sorted.map { fixture in
      let mark = [.passed: "✅", .failed: "❌", .knownFailure: "⚠️", .notRun: "➖"][fixture.state] ?? ""
      let reason = fixture.knownFailure.map { ": known failure: \($0)" } ?? ""
      let count = fixture.findings.reduce(0) { $0 + $1.count }
      return
        "| \(mark) | \(Self.inline(fixture.name + reason)) | \(fixture.from) → \(fixture.to) | \(count) |\n"
    }
  }

  private func section(_ group: FindingGroup, isOpen: Bool) -> String {
    let text = GroupText(group, from: root)
    let mark = group.isKnown ? "⚠️" : "❌"
    var lines = text.lines().dropFirst().map { Self.html($0) }
    let rest = text.rest()
    if rest > 0 { lines.append("  … and \(rest) more") }
    return fold("\(mark) <code>\(Self.html(text.headline))</code>", lines.prefix(40), isOpen: isOpen)
  }

  /// What the migrations change in a fixture; nil when it is not known.
  private func section(_ fixture: FixtureResult) -> String? {
    guard let difference = fixture.difference, let base = fixture.base else { return nil }
    let lines = DifferenceText(difference, limit: 20).lines.map { Self.html($0) }
    return fold(
      "<code>\(Self.html(fixture.name))</code>: \(base) → \(fixture.to)",
      lines.isEmpty ? ["nothing changes"] : lines.lines(60))
  }

  /// Lines that a reader unfolds.
  private func fold(_ summary: String, _ lines: some Sequence<String>, isOpen: Bool = false) -> String {
    """
    <details\(isOpen ? " open" : "")><summary>\(summary)</summary>

    <pre>
    \(lines.joined(separator: "\n"))
    </pre>

    </details>


    """
  }

  /// So much of one text is shown.
  private static let longest = 500

  private static func shortened(_ text: String) -> String {
    let isLong = text.utf8.count > longest
    let text = (isLong ? String(text.prefix(longest)) + "…" : text)
    return text.split(whereSeparator: \.isNewline).joined(separator: " ").printable
  }

  /// Text in a block of HTML.
  private static func html(_ text: String) -> String {
    shortened(text).replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
  }

  /// Text in a paragraph or a cell. In an element `code`, GitHub looks for no mentions and numbers of issues.
  static func inline(_ text: String) -> String {
    let text = shortened(text)
    let isPlain = { (scalar: Unicode.Scalar) in
      scalar.isASCII && scalar.properties.isAlphabetic || ("0"..."9").contains(scalar)
        || " ,-".unicodeScalars.contains(scalar)
    }
    // A dash at the beginning would be a list.
    if text.unicodeScalars.allSatisfy(isPlain), text.first.map({ $0.isLetter || $0.isNumber }) == true {
      return text
    }
    let escaped = text.unicodeScalars.map { $0.isASCII && !isPlain($0) ? "&#\($0.value);" : String($0) }
    return "<code>\(escaped.joined())</code>"
  }
}
