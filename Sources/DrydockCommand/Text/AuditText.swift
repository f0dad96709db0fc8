import Drydock

/// What an audit found, for people and as JSON.
enum AuditText {
  static func write(_ report: AuditReport) {
    Output.line("\(report.app), instance \(report.instance) (\(report.layout.rawValue))")
    Output.line("  \(report.root)")
    for rule in report.rules {
      let findings = report.findings.filter { $0.rule == rule.id }
      Output.line()
      Output.line(
        "\(findings[0].severity.rawValue): \(rule.title) [\(rule.id.rawValue)]",
        TextRole(rawValue: findings[0].severity.rawValue))
      for finding in findings { write(finding, of: rule) }
      Output.line("  why: \(rule.why)")
      Output.advice("  fix: \(rule.fix)")
      if let source = rule.source { Output.line("  see: \(source)") }
    }
    Output.line()
    Output.line(summary(report))
    for off in report.off {
      Output.line(
        "off: \(off.rule.rawValue), \(Output.count(off.findings, "finding")): \(off.reason)".printable)
    }
    for text in report.limits { Output.line("examined in part: \(text)") }
    for text in report.notChecked { Output.line("not examined: \(Advice.added(to: text))") }
    for text in report.unreadable { Output.line("cannot be read: \(text)") }
  }

  private static func write(_ finding: AuditFinding, of rule: AuditRule) {
    Output.line("  \(finding.place.isEmpty ? "" : "\(finding.place)  ")\(finding.message)")
    if finding.count > 1 || !finding.examples.isEmpty {
      let more = finding.count > finding.examples.count && !finding.examples.isEmpty ? ", …" : ""
      let examples = finding.examples.isEmpty ? "" : ": " + finding.examples.joined(separator: ", ") + more
      Output.line("    \(Output.count(finding.count, finding.unit))\(examples)")
    }
    if finding.fix != rule.fix { Output.line("    fix: \(finding.fix)") }
  }

  static func summary(_ report: AuditReport) -> String {
    guard !report.findings.isEmpty else { return "no findings" }
    return report.counts.map { Output.count($0.1, $0.0.rawValue) }.joined(separator: ", ")
  }

  static func document(_ report: AuditReport) -> ResultObject {
    [
      "container": ResultObject(
        dictionaryLiteral: ("app", report.app), ("instance", report.instance), ("layout", report.layout),
        ("root", report.root)),
      "findings": report.findings, "rules": report.rules, "off": report.off, "limits": report.limits,
      "not_checked": report.notChecked, "unreadable": report.unreadable,
      "errors": report.count(.error), "warnings": report.count(.warning), "notes": report.count(.note),
    ]
  }

  static func write(_ rules: [AuditRule], asJSON: Bool) {
    if asJSON { return Output.json(["rules": rules]) }
    for rule in rules {
      Output.line("\(rule.id.rawValue) (\(rule.severity.rawValue)): \(rule.title)")
      Output.line("  why: \(rule.why)")
      Output.advice("  fix: \(rule.fix)")
      if let source = rule.source { Output.line("  see: \(source)") }
    }
  }
}
