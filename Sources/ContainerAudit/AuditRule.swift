import AppContainer

/// What an audit looks for: a typical mistake in how an app stores its data, why it matters, and how to fix it.
public struct AuditRule: Sendable, Codable {
  /// The name in `drydock.yaml` and in reports.
  public let id: AuditRuleID
  /// Unless `drydock.yaml` says otherwise.
  public let severity: AuditSeverity
  /// What it looks for.
  public let title: String
  /// Why that is a mistake.
  public let why: String
  /// What to do, naming the operation of a migration where there is one.
  public let fix: String
  /// The public document that it follows, if any.
  public let source: String?

  init(
    _ id: AuditRuleID, _ severity: AuditSeverity, _ title: String, why: String, fix: String,
    source: String? = nil
  ) {
    (self.id, self.severity, self.title, self.why, self.fix) = (id, severity, title, why, fix)
    self.source = source
  }
}

extension AuditRule {
  /// All rules, by concern.
  public static let all: [AuditRule] =
    secrets + settings + vault + files + databases + versions + declarations

  private static let byID = Dictionary(uniqueKeysWithValues: all.map { ($0.id, $0) })

  /// A page of Apple's documentation.
  static func apple(_ page: String) -> String { "https://developer.apple.com/documentation/\(page)" }

  /// The rule with an id; a test checks that each has one.
  static func with(_ id: AuditRuleID) -> AuditRule {
    byID[id] ?? AuditRule(id, .warning, id.rawValue, why: "", fix: "")
  }
}
