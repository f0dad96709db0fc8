import Drydock
import Foundation

/// A report as a page of HTML in one file, which asks for nothing else: neither a network, nor a script.
package struct HTMLPage {
  /// So many lines and rows are seen at once; more of them are folded, and those beyond the limit are only counted.
  package static let shown = 20
  static let limit = 2000
  /// So many rows of a table are in a difference, of each kind, and so many lines of rows and columns in a page.
  package static let rowLimit = 500
  private static let rowBudget = 5000
  /// So many names and values are in a line.
  private static let partLimit = 60

  private let report: Report
  private var budget = Self.rowBudget

  package init(_ report: Report) { self.report = report }

  package func html(time: Date = Date(), program: String = "drydock") -> String {
    var page = self
    return page.document(time, program).source
  }

  private mutating func document(_ time: Date, _ program: String) -> HTML {
    let made = time.formatted(
      Date.ISO8601FormatStyle(dateSeparator: .dash, dateTimeSeparator: .space, timeZone: .gmt).year().month()
        .day().time(includingFractionalSeconds: false))
    let sections = report.allSections.enumerated().map { section($1, $0) }
    return """
      <!DOCTYPE html>
      <html lang="en">
      <head>
      <meta charset="utf-8">
      <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-\(HTMLStyle.hash)'; base-uri 'none'; form-action 'none'">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <meta name="color-scheme" content="light dark">
      <meta name="referrer" content="no-referrer">
      <title>\(report.title) – \(report.kind)</title>
      <style>\(HTMLStyle.text)</style>
      </head>
      <body>
      <header class="\(report.verdict.rawValue)">
      <p class="kind">\(report.kind)</p>
      <h1>\(report.title)</h1>
      <p class="verdict"><strong>\(report.word)</strong> <span>\(.prose(report.sentence, isSentence: true))</span></p>
      \(list(report.opening))</header>
      <main>
      \(sections)</main>
      <footer>
      <p>Made \(made) UTC by \(program). Secrets are hidden; other values are the user’s data.</p>
      </footer>
      </body>
      </html>

      """
  }

  private mutating func section(_ section: Report.Section, _ number: Int) -> HTML {
    var blocks: [HTML] = []
    for (index, block) in section.blocks.prefix(Self.limit / 10).enumerated() {
      blocks.append(self.block(block, isOpen: index < Markdown.open))
    }
    if blocks.allSatisfy(\.source.isEmpty) { return "" }
    let more = Self.more(section.blocks.count - Self.limit / 10, section.noun)
    let heading = HTML.prose(section.heading.text, isSentence: true)
    return """
      <section aria-labelledby="section-\(number)">
      <h2 id="section-\(number)">\(heading)</h2>
      \(blocks)\(more)</section>

      """
  }

  private mutating func block(_ block: Report.Block, isOpen: Bool = false) -> HTML {
    switch block {
    case .lines(let lines), .list(let lines, _, _): return list(lines)
    case .table(let table): return self.table(table)
    case .difference(let difference): return self.difference(difference)
    case .fold(let line, let blocks):
      let content = blocks.map { self.block($0) }
      let summary = Self.mark(line.role) + .prose(line.text)
      // What has no verdict is folded.
      let open: HTML = isOpen && line.role != nil ? " open" : ""
      return "<details\(open)><summary>\(summary)</summary>\n\(content)</details>\n"
    }
  }

  // MARK: Lines

  private struct Item {
    var depth: Int
    var markup: HTML
  }

  private func list(_ lines: [Report.Line]) -> HTML {
    Self.list(
      lines.filter { !$0.text.isEmpty }.map {
        Item(depth: $0.depth, markup: Self.text(Self.mark($0.role) + .prose($0.text)))
      }[...])
  }

  /// Each line with those below it.
  private static func list(_ items: ArraySlice<Item>) -> HTML {
    guard let depth = items.first?.depth else { return "" }
    var parts: [ArraySlice<Item>] = []
    var rest = items
    while !rest.isEmpty {
      let end = rest.dropFirst().firstIndex { $0.depth <= depth } ?? rest.endIndex
      parts.append(rest[..<end])
      rest = rest[end...]
    }
    let (shown, folded, omitted) = divide(parts)
    func lines(_ parts: [ArraySlice<Item>]) -> HTML { "<ul class=\"lines\">\n\(parts.map(line))</ul>\n" }
    let more = fold(folded.count, "more line", lines(folded))
    return "\(lines(shown))\(more)\(Self.more(omitted, "line"))"
  }

  /// What is seen only when a reader unfolds it.
  private static func fold(_ count: Int, _ noun: String, _ content: @autoclosure () -> HTML) -> HTML {
    count == 0
      ? "" : "<details><summary>\(NumberText.count(count, noun))</summary>\n\(content())</details>\n"
  }

  private static func text(_ markup: HTML) -> HTML { "<span class=\"text\">\(markup)</span>" }

  private static func line(_ items: ArraySlice<Item>) -> HTML {
    guard let first = items.first else { return "" }
    return "<li>\(first.markup)\(list(items.dropFirst()))</li>\n"
  }

  /// A fold for a few lines would hide them for nothing.
  private static func divide<Part>(_ parts: [Part]) -> (shown: [Part], folded: [Part], omitted: Int) {
    let count = parts.count <= shown + shown / 2 ? parts.count : shown
    return (
      Array(parts.prefix(count)), Array(parts.prefix(limit).dropFirst(count)), max(0, parts.count - limit)
    )
  }

  private static func more(_ count: Int, _ noun: String) -> HTML {
    if count <= 0 { return "" }
    return
      "<p class=\"muted\">\(NumberText.count(count, "more \(noun) is", "more \(noun)s are")) not on this page</p>\n"
  }

  /// A sign, where the text says what it is, or a sign and a word.
  private static func mark(_ role: TextRole?) -> HTML {
    switch role {
    case nil: ""
    case .error: "<span class=\"removed\">✕</span> "
    case .warning: "<span class=\"warned\">!</span> "
    case .note: "<span class=\"changed\">·</span> "
    case .added: "<span class=\"added\">+</span> "
    case .removed: "<span class=\"removed\">−</span> "
    case .changed: "<span class=\"changed\">~</span> "
    case .passed: "<span class=\"added\">✓</span> passed"
    case .failed: "<span class=\"removed\">✕</span> failed"
    case .known: "<span class=\"warned\">!</span> known failure"
    case .notRun: "<span class=\"muted\">not run</span>"
    }
  }

  // MARK: Tables

  private func table(_ table: Report.Table) -> HTML {
    let (shown, folded, _) = Self.divide(Array(table.rows.prefix(table.limit)))
    if shown.isEmpty { return "" }
    let more = Self.fold(
      folded.count, "more row", part(table, table.caption + ", continued", folded))
    let rest = Self.more(table.rows.count - min(table.limit, Self.limit), "row")
    return "\(part(table, table.caption, shown))\(more)\(rest)"
  }

  private func part(_ table: Report.Table, _ caption: String, _ rows: [Report.Row]) -> HTML {
    let hasRoles = table.rows.contains { $0.role != nil }
    let columns = table.columns.indices.map { column -> HTML in
      "<th scope=\"col\"\(Self.numberClass(rows.first?.cells[column]))>\(table.columns[column])</th>"
    }
    let lines = rows.map { row -> HTML in
      let cells = row.cells.enumerated().map { cell($1, isHeader: $0 == 0) }
      let mark: HTML = hasRoles ? "<td class=\"mark\">\(Self.mark(row.role))</td>" : ""
      return "<tr>\(mark)\(cells)</tr>\n"
    }
    let result: HTML = hasRoles ? "<th scope=\"col\">Result</th>" : ""
    return """
      <div class="scroll" role="group" aria-label="\(caption)" tabindex="0">
      <table>
      <caption class="hidden">\(caption)</caption>
      <thead><tr>\(result)\(columns)</tr></thead>
      <tbody>
      \(lines)</tbody>
      </table>
      </div>

      """
  }

  private static func numberClass(_ cell: Report.Cell?) -> HTML {
    if case .number? = cell { " class=\"number\"" } else { "" }
  }

  private func cell(_ cell: Report.Cell, isHeader: Bool) -> HTML {
    let content: HTML =
      switch cell {
      case .text(let text), .words(let text): "\(text)"
      case .number(let number): "\(NumberText.grouped(number))"
      }
    return isHeader
      ? "<th scope=\"row\">\(content)</th>" : "<td\(Self.numberClass(cell))>\(content)</td>"
  }

  // MARK: Differences

  private mutating func difference(_ difference: ContainerDifference) -> HTML {
    if difference.isEmpty { return list([Report.Line("nothing changes")]) }
    var (items, omitted) = ([Item](), 0)
    for line in difference.lines() {
      if line.depth == 2, budget == 0 {
        omitted += 1
        continue
      }
      if line.depth == 2 { budget -= 1 }
      items.append(Item(depth: line.depth, markup: Self.line(line)))
    }
    return Self.list(items[...]) + Self.more(omitted, "line")
  }

  private static func line(_ line: DifferenceLine) -> HTML {
    var parts: [HTML] = []
    for part in line.parts.prefix(Self.partLimit) {
      switch part {
      case .text(let text): parts.append("\(text)")
      case .values(let before?, let after?):
        let marked = TextComparison.values(before, after)
        parts.append(": <del>\(marked.before)</del> → <ins>\(marked.after)</ins>")
      case .values(nil, let after?): parts.append(": <ins>\(after)</ins>")
      case .values(let before?, nil): parts.append(" (was <del>\(before)</del>)")
      case .values(nil, nil): break
      case .sql(let before, let after, _):
        let lines = TextComparison.lines(SQLLines(before ?? "").lines, SQLLines(after ?? "").lines)
        return "<pre class=\"lines\">\(lines.map(\.html))</pre>\n"
      }
    }
    let more: HTML =
      line.parts.count > Self.partLimit ? " and \(line.parts.count - Self.partLimit) more" : ""
    return text(mark(line.change.flatMap { TextRole(rawValue: $0.rawValue) }) + "\(parts)\(more)")
  }
}
