import Drydock

extension SARIFLog {
  /// The findings of an audit, at the files of the container or of the app. Rules that are off are left out.
  package init(_ report: AuditReport, root: String, directory: String) {
    self.init(
      report.findings.map { finding in
        let place = finding.path.map { path in
          // The files that an app declares something in are not in the container.
          Place(finding.isInApp ? path : report.root + (path == "." ? "" : "/" + path), note: finding.item)
        }
        var lines = [[finding.item, finding.message].compactMap { $0 }.joined(separator: ": ")]
        if finding.count > 1 || !finding.examples.isEmpty {
          let examples = finding.examples.isEmpty ? "" : ": " + finding.examples.joined(separator: ", ")
          lines.append("\(finding.count) \(finding.unit)\(finding.count == 1 ? "" : "s")\(examples)")
        }
        lines.append("fix: \(finding.fix)")
        var result = Result(
          Self.rule(finding.rule), Level(finding.severity), lines.joined(separator: "\n"), at: place)
        result.fingerprint = [finding.rule.rawValue, finding.path ?? "", finding.item ?? ""].joined(
          separator: " | ")
        return result
      },
      rules: AuditRule.all.map { Rule(Self.rule($0.id), "\($0.title): \($0.why).") }, root: root,
      directory: directory)
  }

  private static func rule(_ id: AuditRuleID) -> String { "audit/\(id.rawValue)" }
}

extension SARIFLog.Level {
  fileprivate init(_ severity: AuditSeverity) {
    switch severity {
    case .note: self = .note
    case .warning: self = .warning
    case .error: self = .error
    }
  }
}
