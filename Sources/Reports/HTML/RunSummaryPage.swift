import Drydock

extension HTMLPage {
  /// The page of a run over many containers.
  package init(_ summary: RunSummary) {
    let failed = summary.failures.reduce(0) { $0 + $1.count }
    let word =
      failed > 0
      ? "\(NumberText.grouped(failed)) failed" : summary.isIncomplete ? "Incomplete" : "No failures"
    self.init(
      kind: "Run over many containers", title: summary.title,
      verdict: failed > 0 ? .bad : summary.isIncomplete ? .warning : .good, word: word,
      sentence: summary.conclusion + ".")
    facts = [
      ("Files", [.plain(NumberText.grouped(summary.files))]),
      ("Time of all", [.plain(NumberText.seconds(summary.seconds))]),
    ]
    if let first = summary.firstDone, let last = summary.lastDone {
      facts.append(("First and last done", [.plain("\(first), \(last)")]))
    }
    for run in summary.runs.prefix(RunSummary.examples) { facts.append(("Run", [.code(run)])) }
    let more = summary.runs.count - RunSummary.examples
    if more > 0 { facts.append(("More runs", [.plain(NumberText.grouped(more))])) }
    sections = [
      Self.gaps(summary), Self.failures(summary), Self.states(summary), Self.versions(summary),
      Self.shards(summary), Self.slowest(summary), Self.problems(summary),
    ].compactMap { $0 }
  }

  /// So many rows of a table are in the page: files may have a cause or a version for each container.
  private static let limit = 100

  private static func section(
    _ id: String, _ heading: String, _ caption: String, _ columns: [String], _ rows: [[HTMLCell]],
    of total: Int? = nil
  ) -> Section? {
    if rows.isEmpty { return nil }
    var table = HTMLTable(caption, columns, Array(rows.prefix(limit)), of: total ?? rows.count)
    table.isNarrow = columns.count < 4
    return Section(id: id, heading: heading, blocks: [.table(table)])
  }

  private static func gaps(_ summary: RunSummary) -> Section? {
    let texts = summary.gaps + [summary.repetition].compactMap { $0 }
    if texts.isEmpty { return nil }
    return Section(id: "gaps", heading: "What is missing", blocks: [.list(texts.map(HTMLSpan.prose))])
  }

  private static func failures(_ summary: RunSummary) -> Section? {
    section(
      "failures", "Failures", "Failures by cause, the most frequent first",
      ["Cause", "#Containers", "#Exit code", "Example"],
      summary.failures.map { cause in
        let message = cause.message.map { [.plain(": ")] + [HTMLSpan.plain($0)] } ?? []
        return [
          .headerCode(cause.code), .number(cause.count), .number(cause.exitCode),
          HTMLCell(spans: [.code(cause.container)] + message),
        ]
      })
  }

  private static func states(_ summary: RunSummary) -> Section? {
    section(
      "states", "Containers", "Containers by state", ["State", "#Containers"],
      RunState.allCases.filter { summary.count($0) > 0 }.map {
        [.header($0.rawValue), .number(summary.count($0))]
      })
  }

  private static func versions(_ summary: RunSummary) -> Section? {
    section(
      "versions", "Versions", "Schema versions before and after", ["Before → after", "#Containers"],
      summary.versions.map { [.header($0.text), .number($0.count)] })
  }

  private static func shards(_ summary: RunSummary) -> Section? {
    section(
      "shards", "Shards", "Shards by command and run",
      ["Command", "Run", "#Shards", "#Complete", "#Not finished", "#Missing"],
      summary.shards.map {
        [
          .headerCode($0.command), .text($0.run), .number($0.count), .number($0.complete),
          .number($0.incompleteCount),
          .number($0.missingCount),
        ]
      })
  }

  private static func slowest(_ summary: RunSummary) -> Section? {
    section(
      "slowest", "Slowest", "The slowest containers", ["Container", "#Time"],
      summary.slowest.map {
        [
          .headerCode($0.container),
          HTMLCell(kind: .number, spans: [.plain(NumberText.seconds($0.seconds))]),
        ]
      })
  }

  private static func problems(_ summary: RunSummary) -> Section? {
    section(
      "problems", "Lines that do not count", "Lines and files that do not count",
      ["File", "#Line", "Reason"],
      summary.problems.map {
        [.headerCode($0.file), $0.line.map { .number($0) } ?? .text("–"), .text($0.message)]
      }, of: summary.problemCount)
  }
}
