import ArgumentParser
import Drydock
import Reports

struct AuditCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "audit", abstract: "Find typical mistakes in how an app stores its data.",
    discussion: """
      Rules look for secrets in the clear, oversized settings, weak keychain classes,
      caches in backups, damaged databases and others; with --app also at what the app
      declares. `audit:` in drydock.yaml switches a rule off, with a reason, or changes
      its severity. Nothing is changed, and the container may be in use.

      Examples:
        drydock audit Notes
        drydock audit Notes --app Notes.ipa --fail-on error --sarif drydock.sarif
        drydock audit Notes --html audit.html
        drydock audit --rules
      """)

  @Argument(
    help: ArgumentHelp(
      """
      The container: the directory with one app's data, or an .xcappdata bundle; also a .zip, .tar, .tar.gz or .tar.zst \
      of one.
      """, valueName: "container"))
  var path: String?
  @Option(
    name: .customLong("container"),
    help: ArgumentHelp(
      "Name of this instance; by default its container ID, or the directory's name.", valueName: "name"))
  var instance: String?
  @Option(
    help: ArgumentHelp("Compare with what this app declares: X.app or an .ipa.", valueName: "path"),
    completion: .file())
  var app: String?
  @Option(help: ArgumentHelp("The app's PrivacyInfo.xcprivacy.", valueName: "file"), completion: .file())
  var privacyManifest: String?
  @Option(help: ArgumentHelp("The app's Info.plist.", valueName: "file"), completion: .file())
  var info: String?
  @Option(
    help: ArgumentHelp("The app's entitlements, a property list.", valueName: "file"), completion: .file())
  var entitlements: String?
  @Option(
    help: ArgumentHelp(
      "Exit with 4 when there are findings of this severity or a higher one: warning or error.",
      valueName: "severity"))
  var failOn: AuditSeverity?
  @Flag(help: "List all rules, without auditing anything.") var rules = false
  @OptionGroup var log: SARIFOption
  @OptionGroup var page: HTMLOptions
  @OptionGroup var wait: WaitOptions
  @OptionGroup var deviceKeys: DeviceKeyOptions
  @OptionGroup var expansion: ExpansionOptions
  @OptionGroup var showing: ProgressOptions
  @OptionGroup var common: CommonOptions

  func validate() throws {
    if rules, path != nil { throw ValidationError("--rules lists all rules, and takes no container") }
    if rules, log.sarif != nil { throw ValidationError("--rules lists all rules, and finds nothing") }
    if rules, page.html != nil { throw ValidationError("--html shows an audit, and --rules makes none") }
    if !rules, path == nil { throw ValidationError("give a container, or --rules") }
  }

  func run() throws {
    if rules { return AuditText.write(AuditRule.all, asJSON: common.json) }
    var container = ContainerOptions()
    (container.path, container.instance, container.wait) = (path ?? "", instance, wait)
    let reports = try PipelineReports(log)
    try page.reporting("Audit", container.path) {
      let declared = try declaration()
      try container.reading(common.configuration(), expansion) { opened in
        try audit(opened, container, declared, reports)
      }
    }
  }

  private func declaration() throws -> AppDeclaration? {
    let bundle = try app.map { try AppDeclaration.read($0, limit: expansion.limit()) }
    guard info != nil || privacyManifest != nil || entitlements != nil else { return bundle }
    let files = try AppDeclaration(
      info: info, privacyManifest: privacyManifest, entitlements: entitlements)
    return bundle?.replacing(with: files) ?? files
  }

  private func audit(
    _ opened: Container, _ container: ContainerOptions, _ declared: AppDeclaration?,
    _ reports: PipelineReports
  ) throws {
    var options = AuditOptions()
    options.transaction = try wait.transaction(deviceKeys)
    options.app = declared
    let display = try showing.display(asJSON: common.json)
    defer { display.end() }
    options.transaction.progress = display.progress
    var report = try opened.audit(options)
    display.end()
    // The private directory it was unpacked to means nothing to the user.
    if container.isForeign { report.root = realPath(container.path) ?? container.path }
    try reports.write(report)
    try page.write(HTMLPage(report, advised: { Advice.added(to: $0) }))
    if common.json {
      Output.json(AuditText.document(report))
    } else {
      AuditText.write(report)
    }
    if let failOn, report.findings.contains(where: { $0.severity >= failOn }) {
      throw ExitStatus.validation.code
    }
    if !report.unreadable.isEmpty { throw ExitStatus.incomplete.code }
  }
}

extension AuditSeverity: ExpressibleByArgument {
  public static var allValueStrings: [String] { [Self.warning, .error].map(\.rawValue) }

  public init?(argument: String) {
    guard Self.allValueStrings.contains(argument) else { return nil }
    self.init(rawValue: argument)
  }
}
