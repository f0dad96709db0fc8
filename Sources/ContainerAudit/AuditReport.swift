import AppContainer
import AppStores
import FileSystem

/// What a rule found in one place: a file, a directory, a column, never a single row.
public struct AuditFinding: Sendable, Codable {
  /// The rule that found it.
  public var rule: AuditRuleID
  /// How bad it is.
  public var severity: AuditSeverity
  /// The file or directory in the container, or the file that the app declares something in.
  public var path: String?
  /// The part of it, such as `task.title`, without values.
  public var item: String?
  /// What is wrong at this place.
  public var message: String
  /// How often, and of what: `row`, `file`, `setting`.
  public var count: Int
  /// What the count counts.
  public var unit: String
  /// Up to three of them.
  public var examples: [String]
  /// How it is fixed.
  public var fix: String

  /// Whether the path is that of a file of the app, not of the container.
  package var isInApp: Bool {
    // These two are at the data that the app does not declare.
    ![.dataTypeNotDeclared, .cloudNotEntitled].contains(rule)
      && AuditRule.declarations.contains { $0.id == rule }
  }
}

/// The result of an audit.
public struct AuditReport: Sendable, Codable {
  /// A rule that `drydock.yaml` switches off, why, and how many findings it would have.
  public struct Off: Sendable, Codable {
    /// The rule that is off.
    public var rule: AuditRuleID
    /// Why, as `drydock.yaml` says.
    public var reason: String
    /// How many findings that hides.
    public var findings: Int
  }

  /// Where the container is, and whose it is.
  public var root: String, app: String, instance: String, layout: ContainerLayout
  /// The most serious first, then in the order of the rules.
  public var findings: [AuditFinding] = []
  /// Rules that `drydock.yaml` turns off.
  public var off: [Off] = []
  /// What was examined in part only, since it is large.
  public var limits: [String] = []
  /// What was not examined, and why.
  public var notChecked: [String] = []
  /// What could not be read: the report is incomplete.
  public var unreadable: [String] = []

  /// The number of findings of a severity.
  public func count(_ severity: AuditSeverity) -> Int { findings.count { $0.severity == severity } }

  /// The rules that found something, in the order of the findings.
  public var rules: [AuditRule] {
    var seen: Set<AuditRuleID> = []
    return findings.filter { seen.insert($0.rule).inserted }.map { AuditRule.with($0.rule) }
  }
}

/// Collects findings: one for each rule and place, whose secrets are redacted.
struct FindingCollector {
  private struct Place: Hashable {
    var rule: AuditRuleID
    var path, item: String?
  }

  private let redactor: Redactor
  private let configuration: AuditConfiguration
  private var places: [Place: Int] = [:]
  private var findings: [AuditFinding] = []

  init(_ configuration: AuditConfiguration, _ redactor: Redactor) {
    (self.configuration, self.redactor) = (configuration, redactor)
  }

  /// Adds to the finding of a rule in a place.
  ///
  /// - Parameter examples: of what is counted; the first three are kept.
  mutating func add(
    _ rule: AuditRuleID, _ path: String?, item: String? = nil, _ message: String, count: Int = 1,
    unit: String = "file", example: String? = nil, examples: [String] = [], fix: String? = nil
  ) {
    let place = Place(rule: rule, path: path, item: item)
    let number: Int
    if let known = places[place] {
      number = known
      findings[number].count += count
    } else {
      number = findings.count
      places[place] = number
      let rule = AuditRule.with(rule)
      findings.append(
        AuditFinding(
          rule: rule.id, severity: severity(of: rule), path: path.map(shown), item: item.map(shown),
          message: shown(message), count: count, unit: unit, examples: [], fix: fix ?? rule.fix))
    }
    let all = findings[number].examples + (examples + [example].compactMap { $0 }).map(shown)
    findings[number].examples = Array(all.prefix(3))
  }

  /// Names of tables, keys and classes are hostile: they may be secrets, have control characters, or be long.
  func shown(_ text: String) -> String {
    let cut = text.count > Self.longest ? text.prefix(Self.longest) + "…" : text[...]
    return ContainerPath.printable(Array(redactor.shown(message: String(cut)).utf8))
  }

  private static let longest = 300

  private func severity(of rule: AuditRule) -> AuditSeverity {
    if case .severity(let severity) = configuration.rules[rule.id] { severity } else { rule.severity }
  }

  /// The findings, the most serious first, and the rules that are off.
  func result() -> (findings: [AuditFinding], off: [AuditReport.Off]) {
    let off = AuditRuleID.allCases.compactMap { rule -> AuditReport.Off? in
      guard case .off(let reason) = configuration.rules[rule] else { return nil }
      return AuditReport.Off(rule: rule, reason: reason, findings: findings.count { $0.rule == rule })
    }
    let silent = Set(off.map(\.rule))
    let order = Dictionary(
      uniqueKeysWithValues: AuditRuleID.allCases.enumerated().map { ($0.element, $0.offset) })
    let shown = findings.filter { !silent.contains($0.rule) }.sorted { left, right in
      if left.severity != right.severity { return left.severity > right.severity }
      if left.rule != right.rule { return order[left.rule, default: 0] < order[right.rule, default: 0] }
      return (left.path ?? "", left.item ?? "") < (right.path ?? "", right.item ?? "")
    }
    return (shown, off)
  }
}
