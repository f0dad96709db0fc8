import ArgumentParser
import Drydock
import Reports

struct AuditCommand: ProgressSubcommand {
  static let configuration = CommandConfiguration(
    commandName: "audit", abstract: "Find typical mistakes in how an app stores its data.",
    discussion: """
      Rules look for secrets in the clear, oversized settings, weak keychain classes, \
      caches in backups, damaged databases and others; with --app also at what the app \
      declares. `audit:` in drydock.yaml switches a rule off, with a reason, or changes \
      its severity. The container may be in use. It is only read, but an interrupted \
      command on it is completed or reverted first.

      Examples:
        drydock audit Notes
        drydock audit Notes --app Notes.ipa --fail-on error --sarif drydock.sarif
        drydock audit Notes --html audit.html
        drydock audit --all Customers --run 4711 --shard 3/8 --result 3.jsonl
        drydock audit --rules
      """)

  @OptionGroup var container: ContainersOptions
  @Option("Compare with what this app declares: X.app or an .ipa.", value: "path", completion: .file())
  var app: String?
  @Option("The app's PrivacyInfo.xcprivacy.", value: "file") var privacyManifest: String?
  @Option("The app's Info.plist.", value: "file") var info: String?
  @Option("The app's entitlements, a property list.", value: "file") var entitlements: String?
  @Option(
    "Exit with 4 if there are findings of this severity or higher (default: findings do not change the exit code).",
    value: "severity")
  var failOn: AuditSeverity?
  @Flag(help: "List all rules, without auditing anything.") var rules = false
  @OptionGroup(title: OptionTitle.reports) var log: SARIFOption
  @OptionGroup(title: OptionTitle.reports) var page: HTMLOptions
  @OptionGroup(title: OptionTitle.keys) var deviceKeys: DeviceKeyOptions
  @OptionGroup(title: OptionTitle.limits) var expansion: ExpansionOptions
  @OptionGroup(title: OptionTitle.output) var showing: ProgressOptions

  func validate() throws {
    let isGiven = container.path != nil || container.all != nil
    if rules, isGiven { throw ValidationError("--rules lists all rules, and takes no container") }
    if rules, log.sarif != nil { throw ValidationError("--rules lists all rules, and finds nothing") }
    if rules, page.html != nil { throw ValidationError("--html shows an audit, and --rules makes none") }
    if !rules, !isGiven { throw ValidationError("give a container, --all or --rules") }
    if container.all != nil, log.sarif != nil || page.html != nil {
      throw ValidationError("--sarif and --html go with one container; `drydock summary` merges results")
    }
  }

  func run() throws {
    if rules {
      if common.json { return Output.json(["rules": AuditRule.all]) }
      return Output.report(Report(AuditRule.all, advised: Self.advised))
    }
    if let batch = try container.batch(common.configuration(), "audit", asJSON: common.json) {
      return try run(batch)
    }
    let one = container.one
    let reports = try PipelineReports(log)
    try page.reporting("Audit", one.path) {
      let options = try options()
      try one.reading(common.configuration(), expansion) { opened in
        try audit(opened, one, options, reports)
      }
    }
  }

  private static func advised(_ text: String) -> String { Program.current.named(Advice.added(to: text)) }

  private static func document(_ report: AuditReport) -> ResultObject {
    [
      "container": ResultObject(
        dictionaryLiteral: ("app", report.app), ("instance", report.instance), ("layout", report.layout),
        ("root", report.root)),
      "findings": report.findings, "rules": report.rules, "off": report.off, "limits": report.limits,
      "not_checked": report.notChecked, "unreadable": report.unreadable,
      "errors": report.count(.error), "warnings": report.count(.warning), "notes": report.count(.note),
    ]
  }

  private func declaration() throws -> AppDeclaration? {
    let bundle = try app.map { try AppDeclaration.read($0, limit: expansion.limit()) }
    guard info != nil || privacyManifest != nil || entitlements != nil else { return bundle }
    let files = try AppDeclaration(
      info: info, privacyManifest: privacyManifest, entitlements: entitlements)
    return bundle?.replacing(with: files) ?? files
  }

  private func options() throws -> AuditOptions {
    var options = AuditOptions()
    options.transaction = try container.wait.transaction(deviceKeys)
    options.app = try declaration()
    return options
  }

  private func audit(
    _ opened: Container, _ one: ContainerOptions, _ options: AuditOptions,
    _ reports: PipelineReports
  ) throws {
    var options = options
    var report = try showing.during {
      options.transaction.progress = $0
      return try opened.audit(options)
    }
    report.root = one.shownRoot(of: opened)
    try reports.write(report)
    let shown = Report(report, advised: Self.advised)
    try page.write(shown)
    if common.json {
      Output.json(Self.document(report))
    } else {
      Output.report(shown, isSpaced: true)
    }
    if let failOn, report.findings.contains(where: { $0.severity >= failOn }) {
      throw ExitStatus.validation.code
    }
    if !report.unreadable.isEmpty { throw ExitStatus.incomplete.code }
  }
}

extension AuditCommand {
  /// Audits every container of a batch.
  private func run(_ batch: Batch) throws {
    let options = try options()
    let summary = try batch.run(showing, .inspect) { [failOn] container in
      let report = try container.audit(options)
      var result = BatchResult(
        state: .unchanged, text: report.summary, document: Self.document(report))
      if let failOn,
        let worst = report.findings.filter({ $0.severity >= failOn }).max(by: { $0.severity < $1.severity })
      {
        (result.state, result.exit) = (.failed, .validation)
        result.failure = Failure(.validation, worst.rule.rawValue, worst.message, worst.path)
      } else if !report.unreadable.isEmpty {
        result.exit = .incomplete
        result.text += "; \(NumberText.count(report.unreadable.count, "place")) could not be read, exit 3"
      }
      return result
    }
    try batch.finish(summary)
  }
}

extension AuditSeverity: ExpressibleByArgument {
  public static var allValueStrings: [String] { [Self.warning, .error].map(\.rawValue) }

  public init?(argument: String) {
    guard Self.allValueStrings.contains(argument) else { return nil }
    self.init(rawValue: argument)
  }
}
