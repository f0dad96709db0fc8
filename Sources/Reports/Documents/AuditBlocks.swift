import Drydock

extension Report {
  /// What an audit found: a section for each rule, the most serious first.
  ///
  /// - Parameter advised: adds to a text what the reader can do.
  package init(_ audit: AuditReport, advised: (String) -> String = { $0 }) {
    let isComplete = audit.unreadable.isEmpty
    self.init(
      kind: "Audit", title: audit.app,
      verdict: audit.count(.error) > 0 ? .bad : audit.count(.warning) > 0 || !isComplete ? .warning : .good,
      word: audit.findings.isEmpty && !isComplete ? "Incomplete" : audit.summary,
      sentence: audit.findings.isEmpty
        ? "no rule found anything"
        : "found by \(NumberText.count(audit.rules.count, "rule")) in "
          + NumberText.count(audit.findings.count, "place"))
    opening = [
      Line("\(audit.app), instance \(audit.instance) (\(audit.layout.rawValue))", depth: 0), Line(audit.root),
    ]
    sections = audit.rules.map { rule in
      let findings = audit.findings.filter { $0.rule == rule.id }
      let severity = findings[0].severity.rawValue
      return Section(
        "\(severity): \(rule.title) [\(rule.id.rawValue)]",
        [.lines(findings.flatMap { Self.lines($0, of: rule) }), .lines(Self.lines(rule, advised))],
        TextRole(rawValue: severity))
    }
    let off = audit.off.map { off in
      "off: \(off.rule.rawValue), \(NumberText.count(off.findings, "finding")): \(off.reason)".printable
    }
    let rest =
      off + audit.limits.map { "examined in part: \($0)" }
      + audit.notChecked.map { "not examined: \(advised($0))" }
      + audit.unreadable.map { "cannot be read: \($0)" }
    sections.append(Section(audit.summary, [.lines(rest.map { Line($0, depth: 0) })]))
  }

  /// All rules.
  package init(_ rules: [AuditRule], advised: (String) -> String) {
    self.init(kind: "Audit", title: "Rules", verdict: .good, word: "", sentence: "")
    sections = rules.map { rule in
      Section(
        "\(rule.id.rawValue) (\(rule.severity.rawValue)): \(rule.title)", [.lines(Self.lines(rule, advised))])
    }
  }

  private static func lines(_ rule: AuditRule, _ advised: (String) -> String) -> [Line] {
    [Line("why: \(rule.why)"), Line("fix: \(advised(rule.fix))")]
      + (rule.source.map { [Line("see: \($0)")] } ?? [])
  }

  private static func lines(_ finding: AuditFinding, of rule: AuditRule) -> [Line] {
    let place = [finding.path, finding.item].compactMap { $0 }.joined(separator: ": ")
    var lines = [Line((place.isEmpty ? "" : "\(place)  ") + finding.message)]
    if finding.count > 1 || !finding.examples.isEmpty {
      let more = finding.count > finding.examples.count && !finding.examples.isEmpty ? ", …" : ""
      let examples = finding.examples.isEmpty ? "" : ": " + finding.examples.joined(separator: ", ") + more
      lines.append(Line(NumberText.count(finding.count, finding.unit) + examples, depth: 2))
    }
    if finding.fix != rule.fix { lines.append(Line("fix: \(finding.fix)", depth: 2)) }
    return lines
  }
}

extension AuditReport {
  /// The number of findings of each severity, the most serious first: `1 error, 2 notes`.
  package var summary: String {
    let counts = AuditSeverity.allCases.reversed().filter { count($0) > 0 }
      .map { NumberText.count(count($0), $0.rawValue) }
    return counts.isEmpty ? "no findings" : counts.joined(separator: ", ")
  }
}
