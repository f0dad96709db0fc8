import Drydock

extension HTMLPage {
  /// The page of an audit: a section for each rule that found something, the most serious first.
  ///
  /// - Parameter advised: adds to a text what the reader can do.
  package init(_ report: AuditReport, advised: @escaping (String) -> String = { $0 }) {
    let counts = report.counts
    let summary = counts.map { NumberText.count($0.1, $0.0.rawValue) }.joined(separator: ", ")
    let verdict: Verdict =
      report.count(.error) > 0
      ? .bad : report.count(.warning) > 0 || !report.unreadable.isEmpty ? .warning : .good
    let rules = NumberText.count(report.rules.count, "rule")
    let places = NumberText.count(report.findings.count, "place")
    var sentence =
      report.findings.isEmpty ? "No rule found anything" : "Found by \(rules) in \(places)"
    // The word has it already, if it is all.
    if counts.count > 1 { sentence += ": \(summary)" }
    if !report.unreadable.isEmpty {
      sentence += "; \(NumberText.count(report.unreadable.count, "place")) could not be read"
    }
    let worst = counts.first.map { NumberText.count($0.1, $0.0.rawValue) }
    self.init(
      kind: "Audit", title: report.app, verdict: verdict,
      word: worst ?? (report.unreadable.isEmpty ? "No findings" : "Incomplete"), sentence: sentence + ".")
    facts = [
      ("Instance", [.plain(report.instance)]), ("Layout", [.plain(report.layout.rawValue)]),
      ("Directory", [.code(report.root)]),
    ]
    sections = AuditSections(report: report, advised: advised).all
  }
}

/// What an audit found as sections of a page.
private struct AuditSections {
  let report: AuditReport
  let advised: (String) -> String

  var all: [HTMLPage.Section] {
    var sections = report.rules.isEmpty ? [] : [overview]
    for (number, rule) in report.rules.enumerated() { sections.append(section(of: rule, number)) }
    if let extent { sections.append(extent) }
    return sections
  }

  private func findings(of rule: AuditRule) -> [AuditFinding] {
    report.findings.filter { $0.rule == rule.id }
  }

  private var overview: HTMLPage.Section {
    let table = HTMLTable(
      "Rules that found something, the most serious first", ["Severity", "Rule", "Name", "#Places"],
      report.rules.enumerated().map { number, rule in
        let findings = findings(of: rule)
        return [
          Self.severity(findings.first?.severity ?? rule.severity),
          HTMLCell(kind: .header, spans: HTMLSpan.prose(rule.title), target: "rule-\(number)"),
          .code(rule.id.rawValue), .number(findings.count),
        ]
      }, noun: ("rule", "rules"))
    return HTMLPage.Section(
      id: "findings", heading: "Findings", detail: NumberText.grouped(report.findings.count),
      blocks: [.table(table)])
  }

  /// A sign and a word: not by a colour alone.
  private static func severity(_ severity: AuditSeverity) -> HTMLCell {
    switch severity {
    case .error: HTMLCell(kind: .removed, spans: [.plain("✕ error")])
    case .warning: HTMLCell(kind: .warned, spans: [.plain("! warning")])
    case .note: HTMLCell(kind: .changed, spans: [.plain("· note")])
    }
  }

  private func section(of rule: AuditRule, _ number: Int) -> HTMLPage.Section {
    let findings = findings(of: rule)
    var facts: [(name: String, value: [HTMLSpan])] = [
      ("Why", HTMLSpan.prose(rule.why)), ("What to do", HTMLSpan.prose(advised(rule.fix))),
    ]
    if let source = rule.source { facts.append(("See", [.plain(source)])) }
    let table = HTMLTable(
      "Places", ["Place", "Finding", "#Number", "Examples"],
      findings.map { finding in
        var message = HTMLSpan.prose(finding.message)
        if finding.fix != rule.fix {
          message += [HTMLSpan(kind: .line, text: ""), .muted(advised(finding.fix))]
        }
        return [
          .headerCode(finding.place.isEmpty ? "–" : finding.place), HTMLCell(spans: message),
          HTMLCell(kind: .number, spans: [.plain(NumberText.count(finding.count, finding.unit))]),
          HTMLCell(kind: .code, spans: finding.examples.map { HTMLSpan(kind: .line, text: $0) }),
        ]
      }, noun: ("place", "places"))
    return HTMLPage.Section(
      id: "rule-\(number)", heading: HTMLSpan.prose(rule.title).map(\.text).joined(),
      detail: "\((findings.first?.severity ?? rule.severity).rawValue) · \(rule.id.rawValue)",
      blocks: [.facts(facts), .table(table)])
  }

  /// What was not examined, or not in full.
  private var extent: HTMLPage.Section? {
    let rows =
      report.unreadable.map { ("Cannot be read", $0) }
      + report.notChecked.map { ("Not examined", advised($0)) }
      + report.limits.map { ("Examined in part", $0) }
      + report.off.map { off in
        ("Rule is off", "\(off.rule.rawValue), \(NumberText.count(off.findings, "finding")): \(off.reason)")
      }
    if rows.isEmpty { return nil }
    let table = HTMLTable(
      "What was not examined, or not in full", ["State", "What"],
      rows.map { [.header($0.0), .prose($0.1)] }, noun: ("line", "lines"))
    return HTMLPage.Section(id: "extent", heading: "Not examined", blocks: [.table(table)])
  }
}

extension AuditReport {
  /// The number of findings of each severity that there are any of, the most serious first.
  package var counts: [(AuditSeverity, Int)] {
    AuditSeverity.allCases.reversed().map { ($0, count($0)) }.filter { $0.1 > 0 }
  }
}

extension AuditFinding {
  /// The path and the item in it; empty when it is about the whole container.
  package var place: String { [path, item].compactMap { $0 }.joined(separator: ": ") }
}
