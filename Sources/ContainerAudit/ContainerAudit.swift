import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem
import GRDB

/// How a container is audited.
public struct AuditOptions: Sendable {
  /// The lock, the device keys that open the vault, and the progress.
  public var transaction = TransactionOptions()
  /// What the app declares, to be compared with what the container has.
  public var app: AppDeclaration?

  /// All rules, without what the app declares.
  public init() {}
}

/// What an audit knows of the container so far, and where its rules report.
struct AuditContext {
  let container: Container
  let staged: StagedContainer
  let app: AppDeclaration?
  var findings: FindingCollector
  /// What the container holds that an app may have to declare.
  var facts = ContainerFacts()
  var limits: [String] = [], notChecked: [String] = [], unreadable: [String] = []
  /// The bytes of documents that are still searched.
  var budget: UInt64 = Self.documentBudget

  static let documentBudget: UInt64 = 1 << 30

  /// Notes a part of the container that could not be examined: a finding of nothing would be false.
  mutating func skip(_ path: ContainerPath, _ error: any Error) {
    let reason = DrydockError.reason(of: error)
    // Encrypted ones are as expected, damaged ones are not.
    if (error as? DatabaseError)?.resultCode == .SQLITE_CORRUPT {
      unreadable.append("\(path): \(reason)")
      return
    }
    switch (error as? DrydockError)?.code {
    case .notFound, .missing: break
    case .permission, .io: unreadable.append("\(path): \(reason)")
    default: notChecked.append("\(path): \(reason)")
    }
  }
}

/// Audits a container: one walk over its files, each read once, with bounded memory.
package struct Audit {
  private var context: AuditContext
  private var files: FileRules

  /// Audits a container, which may be in use. Nothing in it changes, and databases are never opened in place.
  package static func run(on container: Container, options: AuditOptions) throws -> AuditReport {
    let staged = try DiscardedStage(on: container, options: options.transaction)
    var audit = Audit(container, staged, options)
    try audit.walk()
    return audit.report()
  }

  private init(_ container: Container, _ staged: StagedContainer, _ options: AuditOptions) {
    let configuration = container.configuration.audit
    context = AuditContext(
      container: container, staged: staged, app: options.app,
      findings: FindingCollector(configuration, options.transaction.redactor))
    files = FileRules(container, policy: options.app?.defaultProtection)
  }

  private mutating func walk() throws {
    let container = context.container
    var excluded: [(ContainerPath, Exclusion)] = []
    var scan = ContainerScan(
      context.staged.live, rules: ExclusionRules(container), entersExcluded: true)
    context.staged.progress?.begin(.inspect)
    while let entry = try scan.nextEntry(unreadable: { context.skip($0, $1) }) {
      context.staged.progress?.add(files: 1)
      // Drydock's own files are not the app's.
      if entry.exclusion?.rule == .state || entry.path.isInside(container.historyPath.parent) { continue }
      if let exclusion = entry.exclusion, excluded.last.map({ !entry.path.isInside($0.0) }) ?? true {
        excluded.append((entry.path, exclusion))
      }
      files.visit(entry, &context)
      visit(entry)
    }
    files.finish(&context)
    context.findUserData(in: excluded)
    context.checkVersions()
    if let app = context.app { DeclarationRules(app).check(&context) }
  }

  private mutating func visit(_ entry: ScannedEntry) {
    let container = context.container
    switch entry.kind {
    case .database(let unit):
      // What the system may delete needs no care; what is backed up does.
      if entry.exclusion == nil { DatabaseRules(unit, entry.status).check(&context) }
    case .file where entry.path == container.vaultPath: context.checkVault()
    case .file where container.isSettings(entry.path):
      SettingsRules(entry.path, entry.status, isExcluded: entry.exclusion != nil).check(&context)
    case .file: DocumentRules(entry).check(&context)
    default: break
    }
  }

  private func report() -> AuditReport {
    let container = context.container
    let (findings, off) = context.findings.result()
    return AuditReport(
      root: container.root, app: container.app, instance: container.instance, layout: container.layout,
      findings: findings, off: off, limits: context.limits.map(context.findings.shown),
      notChecked: (context.notChecked + (context.app?.notes ?? [])).map(context.findings.shown),
      unreadable: context.unreadable.map(context.findings.shown))
  }
}
