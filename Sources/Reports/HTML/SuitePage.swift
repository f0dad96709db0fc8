import Drydock
import DrydockTesting

extension HTMLPage {
  /// The page of a run of the fixtures.
  ///
  /// - Parameters:
  ///   - root: The directory that files are named from, an absolute path; nil to name them as they are.
  ///   - advised: adds to a message what the reader can do.
  package init(
    _ report: FixtureSuite.Report, from root: String? = nil, advised: @escaping (String) -> String = { $0 }
  ) {
    let groups = report.groups
    let causes = groups.count { !$0.isKnown }
    let overAll = groups.count { !$0.isKnown && $0.fixtures.isEmpty }
    let failed = report.count(.failed)
    var sentence = report.counts
    if causes > 0 {
      sentence += "; \(NumberText.count(causes, "cause"))"
      if overAll > 0 { sentence += ", \(NumberText.grouped(overAll)) of them over all fixtures" }
    }
    self.init(
      kind: "Migration tests",
      title: report.passed
        ? "All fixtures passed"
        : failed == 0
          ? NumberText.count(overAll, "finding over all fixtures", "findings over all fixtures")
          : NumberText.count(failed, "fixture failed", "fixtures failed"),
      verdict: report.passed ? .good : .bad, word: report.passed ? "Passed" : "Failed",
      sentence: sentence + ".")
    let parts = SuiteSections(report: report, root: root, advised: advised)
    facts = [("Duration", [.plain(NumberText.seconds(report.seconds))])]
    sections = [
      parts.findings(groups.filter { !$0.isKnown }, "findings", "Findings"), parts.fixtures,
      parts.findings(groups.filter(\.isKnown), "known", "Known failures"), parts.changes, parts.notes,
    ].compactMap { $0 }
  }
}

/// The result of a suite as sections of a page.
private struct SuiteSections {
  let report: FixtureSuite.Report
  let root: String?
  let advised: (String) -> String

  /// Files are named in messages, too.
  private func named(_ text: String) -> String {
    guard let root, root != "/" else { return text }
    return text.replacing(root.hasSuffix("/") ? root : root + "/", with: "")
  }

  // MARK: Fixtures

  var fixtures: HTMLPage.Section {
    let longest = report.fixtures.map { UInt64(max(0, $0.seconds) * 1000) }.max() ?? 0
    let table = HTMLTable(
      "Fixtures, failed ones first", ["Result", "Fixture", "Description", "Versions", "#Findings", "Time"],
      report.sorted.map { fixture in
        var time = HTMLCell.text(NumberText.seconds(fixture.seconds))
        time.bar = HTMLBar(parts: [(.plain, UInt64(max(0, fixture.seconds) * 1000))], largest: longest)
        return [
          Self.result(fixture.state), .headerCode(fixture.name), description(fixture),
          .text(fixture.state == .notRun ? "" : "\(fixture.from) → \(fixture.to)"),
          .number(fixture.findings.count), time,
        ]
      }, noun: ("fixture", "fixtures"))
    return HTMLPage.Section(
      id: "fixtures", heading: "Fixtures", detail: NumberText.grouped(report.fixtures.count),
      blocks: [.table(table)])
  }

  private static func result(_ state: FixtureResult.State) -> HTMLCell {
    switch state {
    case .passed: HTMLCell(kind: .added, spans: [.plain("✓ passed")])
    case .failed: HTMLCell(kind: .removed, spans: [.plain("✕ failed")])
    case .knownFailure: HTMLCell(kind: .changed, spans: [.plain("! known failure")])
    case .notRun: HTMLCell(spans: [.muted("not run")])
    }
  }

  private func description(_ fixture: FixtureResult) -> HTMLCell {
    var spans = [HTMLSpan(kind: .line, text: fixture.summary)]
    if let reason = fixture.knownFailure { spans.append(HTMLSpan(kind: .line, text: "known: \(reason)")) }
    if let kept = fixture.kept { spans.append(.muted("containers kept in \(named(kept))")) }
    return HTMLCell(spans: spans)
  }

  // MARK: Findings

  func findings(_ groups: [FindingGroup], _ id: String, _ heading: String) -> HTMLPage.Section? {
    if groups.isEmpty { return nil }
    var blocks: [HTMLBlock] = []
    for group in groups.prefix(HTMLTable.limit / 10) { blocks += self.blocks(of: group) }
    let more = groups.count - HTMLTable.limit / 10
    if more > 0 {
      blocks.append(
        .paragraph([.muted("\(NumberText.count(more, "more cause is", "more causes are")) not on this page")])
      )
    }
    return HTMLPage.Section(
      id: id, heading: heading, detail: NumberText.count(groups.count, "cause"), blocks: blocks)
  }

  private func blocks(of group: FindingGroup) -> [HTMLBlock] {
    let lines = named(advised(group.message)).split(whereSeparator: \.isNewline).map(String.init)
    let message = HTMLSpan.prose(lines.first ?? group.checks.map(\.rawValue).joined(separator: ", "))
    var blocks: [HTMLBlock] = [.heading(3, group.place.map { [.code(named($0))] } ?? message)]
    if group.place != nil { blocks.append(.paragraph(message)) }
    if lines.count > 1 {
      blocks.append(.lines(lines.dropFirst().map { HTMLLine(kind: .same, spans: [.plain($0)]) }))
    }
    blocks.append(.facts(facts(of: group)))
    if let values = group.values {
      let (expected, found) = TextComparison.values(values.expected ?? "nothing", values.found ?? "nothing")
      blocks.append(.sides([("Expected", expected), ("Found", found)]))
    }
    if !group.isOnePlace || group.values == nil && group.leading.contains(where: Self.hasValues) {
      blocks.append(.table(examples(of: group)))
    }
    return blocks
  }

  private static func hasValues(_ member: FindingGroup.Member) -> Bool {
    member.finding.expected != nil || member.finding.found != nil
  }

  private func facts(of group: FindingGroup) -> [(name: String, value: [HTMLSpan])] {
    var facts: [(name: String, value: [HTMLSpan])] = []
    if group.count > 1 {
      let noun = group.leading.first?.finding.noun ?? "finding"
      facts.append(("Number", [.plain(NumberText.count(group.count, noun))]))
    }
    if let migration = group.migration {
      let place = group.cause.map { cause in named(cause.file) + (cause.line.map { ":\($0)" } ?? "") }
      // Of several it is not known which one.
      let name = migration.contains(" ") ? "Somewhere in" : "Since"
      facts.append((name, [.code(migration)] + (place.map { [.plain(" "), .muted($0)] } ?? [])))
    } else if let cause = group.cause {
      facts.append(("Migration", [.code(named(cause.file) + (cause.line.map { ":\($0)" } ?? ""))]))
    }
    let names = group.fixtures
    if !names.isEmpty {
      facts.append(("Fixtures", [.plain(names.map(\.name).listed(20))]))
    }
    facts.append(("Found by", [.plain(group.checks.map(\.rawValue).joined(separator: ", "))]))
    let expectation = group.leading.first?.finding
    if let file = expectation?.file {
      facts.append(("Expected by", [.code(named(file) + (expectation?.line.map { ":\($0)" } ?? ""))]))
    }
    return facts
  }

  private func examples(of group: FindingGroup) -> HTMLTable {
    var table = HTMLTable(
      "Expected and found", ["Fixture", "Place", "Expected", "Found"],
      group.leading.map { member in
        let (expected, found) = TextComparison.values(
          member.finding.expected ?? "nothing", member.finding.found ?? "nothing")
        let count = member.finding.count
        let place = member.finding.place.map(named) ?? ""
        return [
          .text(member.fixture ?? "all"),
          HTMLCell(
            kind: .header,
            spans: [.code(place)]
              + (count > 1 ? [.muted(" \(NumberText.count(count, member.finding.noun ?? "finding"))")] : [])),
          HTMLCell(kind: .code, spans: Self.hasValues(member) ? expected : []),
          HTMLCell(kind: .code, spans: Self.hasValues(member) ? found : []),
        ]
      }, noun: ("place", "places"))
    table.showsCaption = true
    return table
  }

  // MARK: Changes

  /// What the migrations change in each fixture, for a reviewer.
  var changes: HTMLPage.Section? {
    let blocks = report.fixtures.compactMap { fixture -> HTMLBlock? in
      guard let difference = fixture.difference, let base = fixture.base else { return nil }
      let sections = DifferenceSections(difference: difference, stores: [])
      return .fold(
        summary: [
          .code(fixture.name),
          .muted(" \(base) → \(fixture.to): \(difference.isEmpty ? "nothing" : difference.summary)"),
        ],
        isOpen: false, sections.all.flatMap { [.heading(3, [.plain($0.heading)])] + $0.blocks })
    }
    return blocks.isEmpty
      ? nil
      : HTMLPage.Section(
        id: "changes", heading: "Changes", detail: "what the migrations change", blocks: blocks)
  }

  // MARK: Notes

  /// Each once, with the fixtures that it is about.
  var notes: HTMLPage.Section? {
    let notes = report.notes.map { (text: $0, fixtures: [String]()) } + report.fixtureNotes
    if notes.isEmpty { return nil }
    let items = notes.prefix(HTMLTable.limit).map { text, fixtures -> [HTMLSpan] in
      let subject = fixtures.isEmpty ? "" : " " + fixtures.listed(3)
      return HTMLSpan.prose(named(advised(text))) + [.muted(subject)]
    }
    return HTMLPage.Section(
      id: "notes", heading: "Notes", detail: "what could not be checked, and why", blocks: [.list(items)])
  }
}
