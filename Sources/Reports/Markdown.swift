import Drydock

/// A report in Markdown, for a comment on a pull request or a job's summary: the verdict, and the sections without their headings.
///
/// Values are in blocks of HTML, which Markdown does not read, or have every sign with a meaning written as a character
/// reference: no value can be a link, a mention, an image or the end of its block.
package struct Markdown: Sendable {
  /// GitHub takes no longer comment; it counts characters, of which there are not more than bytes.
  package static let limit = 65_536
  /// What is left out is said in less than this.
  private static let reserve = 500
  /// So many parts are unfolded, and so many lines of one are shown.
  static let open = 3
  private static let lines = 60

  /// The document, at most ``limit`` bytes long.
  package private(set) var text: String

  package init(_ report: Report) {
    text = "### \(report.verdict == .good ? "✅" : "❌") \(Self.inline(report.title))\n\n\(report.sentence)\n\n"
    for section in report.allSections { add(section) }
  }

  private mutating func add(_ section: Report.Section) {
    var folds: [String] = []
    for block in section.blocks {
      switch block {
      case .lines(let lines), .list(let lines, _, _):
        add(lines.map { "- \(Self.mark($0.role).map { "\($0) " } ?? "")\(Self.inline($0.text))\n" })
      case .table(let table): add(table)
      case .difference: folds.append(Self.fold(section.heading, [block], isOpen: false))
      case .fold(let line, let blocks): folds.append(Self.fold(line, blocks, isOpen: folds.count < Self.open))
      }
    }
    let end = Self.limit - Self.reserve
    var shown = 0
    // Those that come later may be shorter, but the order would be lost.
    while shown < folds.count, text.utf8.count + folds[shown].utf8.count <= end {
      text += folds[shown]
      shown += 1
    }
    let omitted = folds.count - shown
    if omitted > 0 {
      text += "\(omitted) more \(section.noun)\(omitted == 1 ? "" : "s"): see the complete report.\n\n"
    }
  }

  private mutating func add(_ table: Report.Table) {
    let hasRoles = table.rows.contains { $0.role != nil }
    let titles = (hasRoles ? [""] : []) + table.columns
    let kinds =
      (hasRoles ? ["---"] : [])
      + table.columns.indices.map { column in
        if case .number? = table.rows.first?.cells[column] { "---:" } else { "---" }
      }
    let header =
      titles.map { $0.isEmpty ? "| " : "| \($0) " }.joined() + "|\n|\(kinds.joined(separator: "|"))|\n"
    let rows = table.rows.map { row in
      let mark = hasRoles ? [Self.mark(row.role) ?? ""] : []
      return "| \((mark + row.cells.map(Self.cell)).joined(separator: " | ")) |\n"
    }
    let end = min(text.utf8.count + Self.limit / 3, Self.limit - Self.reserve)
    add(rows, header: header, upTo: end, limit: table.limit)
  }

  /// Adds rows as long as there is room, and the number of the others.
  private mutating func add(
    _ rows: [String], header: String = "", upTo end: Int = limit - reserve, limit: Int = .max
  ) {
    if rows.isEmpty { return }
    text += header
    var count = text.utf8.count
    let shown = rows.prefix(limit).prefix { row in
      count += row.utf8.count
      return count <= end
    }
    text += shown.joined()
    text += String.more(rows.count - shown.count).map { "\n\($0)\n\n" } ?? "\n"
  }

  private static func mark(_ role: TextRole?) -> String? {
    switch role {
    case .passed: "✅"
    case .failed, .error: "❌"
    case .known, .warning: "⚠️"
    case .notRun: "➖"
    default: nil
    }
  }

  private static func cell(_ cell: Report.Cell) -> String {
    switch cell {
    case .text(let text): inline(text)
    case .number(let number): NumberText.grouped(number)
    case .words(let words): words
    }
  }

  /// Lines that a reader unfolds.
  private static func fold(_ line: Report.Line, _ blocks: [Report.Block], isOpen: Bool) -> String {
    let mark = mark(line.role).map { "\($0) " } ?? ""
    // What has no verdict is folded.
    return """
      <details\(isOpen && line.role != nil ? " open" : "")><summary>\(mark)<code>\(html(line.text))</code></summary>

      <pre>
      \(blocks.flatMap(texts).map(html).lines(Self.lines).joined(separator: "\n"))
      </pre>

      </details>


      """
  }

  private static func texts(_ block: Report.Block) -> [String] {
    switch block {
    case .lines(let lines), .list(let lines, _, _): lines.map(text)
    case .table(let table): table.rows.map { $0.cells.map(\.text).joined(separator: "  ") }
    case .difference(let difference):
      difference.isEmpty ? ["nothing changes"] : difference.lines(limit: 20).flatMap(\.texts)
    case .fold(let line, let blocks): [text(line)] + blocks.flatMap(texts)
    }
  }

  private static func text(_ line: Report.Line) -> String {
    String(repeating: "  ", count: line.depth) + line.text
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
  private static func inline(_ text: String) -> String {
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
