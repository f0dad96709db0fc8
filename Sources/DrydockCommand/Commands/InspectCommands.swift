import ArgumentParser
import Drydock
import Reports

struct InspectCommand: ProgressSubcommand {
  static let configuration = CommandConfiguration(
    commandName: "inspect", abstract: "Show what a container holds, and what a backup excludes.",
    discussion: "Example: drydock inspect Notes")

  @OptionGroup var container: ContainerOptions
  @Flag(help: "Only list what a backup excludes, with its size on disk and the rule.") var excluded = false
  @Option(
    """
    A compiled Core Data model (NAME.momd, or the VersionInfo.plist in it), to find the version of stores (default: \
    `core-data:` of drydock.yaml).
    """, value: "file")
  var model: String?
  @OptionGroup(title: OptionTitle.reports) var page: HTMLOptions
  @OptionGroup var migrations: CatalogOptions
  @OptionGroup(title: OptionTitle.keys) var deviceKeys: DeviceKeyOptions
  @OptionGroup(title: OptionTitle.limits) var expansion: ExpansionOptions
  @OptionGroup(title: OptionTitle.output) var showing: ProgressOptions

  func run() throws {
    if page.html == nil, let source = DeviceSource.find(at: container.path) {
      return try source.show(container.path, asJSON: common.json)
    }
    try page.reporting("Container", container.path) {
      var configuration = try common.configuration()
      configuration.coreDataModel = model
      try container.reading(configuration, expansion, inspect)
    }
  }

  private func inspect(_ opened: Container) throws {
    var options = try container.wait.transaction(deviceKeys)
    var inspection = try showing.during {
      options.progress = $0
      return try opened.inspect(options: options)
    }
    inspection.root = container.shownRoot(of: opened)
    let pending = try excluded && page.html == nil ? nil : pending(of: opened, inspection, options)
    let report = Report(inspection, pending: pending, advised: { Advice.added(to: $0) })
    try page.write(report)
    if excluded {
      if common.json {
        return Output.json(["excluded": inspection.excluded, "warnings": inspection.warnings])
      }
      list(inspection.excluded)
      return Output.warn(inspection.warnings)
    }
    if common.json { return Output.json(["container": inspection, "pending": pending]) }
    Output.report(report)
    Output.warn(inspection.warnings)
  }

  /// The pending migrations; nil when they are not known.
  private func pending(
    of opened: Container, _ inspection: ContainerInspection, _ options: TransactionOptions
  ) throws -> [String]? {
    guard migrations.areThere(opened.configuration), inspection.schemaVersion != nil else { return nil }
    let plan = try opened.status(migrations.catalog(opened.configuration), options: options)
    guard let unknown = plan.problems.first(where: { $0.code == .unconfirmedVersion }) else {
      return plan.pending.map(\.identifier)
    }
    Output.note("\(unknown.advised)")
    return nil
  }

  private func list(_ excluded: [ContainerInspection.Excluded]) {
    Output.table(
      excluded.map { item in
        [
          item.path.description, "\(NumberText.size(item.diskBytes)) on disk",
          item.pathsBelow == 0 ? "" : "\(NumberText.count(item.pathsBelow, "path")) below",
          item.rule.description,
        ]
      }, indent: "")
  }
}

struct ExplainCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "explain", abstract: "Show whether a backup includes a path, and which rule decides.",
    discussion: """
      The path need not exist: the decision is then made by name alone, for a file, \
      or for a directory when the path ends with a slash.

      Example: drydock explain Notes Library/Caches/thumbnail.png
      """)

  @OptionGroup var container: ContainerOptions
  @Argument(help: ArgumentHelp("A path in the container.", valueName: "path")) var inner: String
  @OptionGroup(title: OptionTitle.limits) var expansion: ExpansionOptions
  @OptionGroup(title: OptionTitle.output) var common: CommonOptions

  func run() throws { try container.reading(common.configuration(), expansion, explain) }

  private func explain(_ opened: Container) throws {
    let path = try ContainerPath(inner)
    let scan = ContainerScan(try opened.open(), rules: ExclusionRules(opened))
    let found = try scan.explain(path, isDirectory: inner.hasSuffix("/"))
    let (exists, exclusion) = (found.kind != nil, found.decision.effective)
    // An inclusion stores the path whatever the rules say.
    let (inclusion, overridden) =
      exclusion == nil ? (found.decision.inclusion, found.decision.exclusion) : (nil, nil)
    let remark = exclusion == nil ? found.kind.flatMap(remark) : nil
    if common.json {
      return Output.json([
        "path": path, "exists": exists, "included": exclusion == nil, "exclusion": exclusion,
        "inclusion": inclusion, "overrides": overridden, "remark": remark,
      ])
    }
    let verb = exclusion == nil ? "include" : "exclude"
    Output.line(
      "\(path): a backup " + (exists ? "\(verb)s it" : "would \(verb) it (it does not exist)"))
    if let exclusion {
      Output.line("  rule: \(exclusion.rule.rawValue), on \(exclusion.origin)")
      Output.line("  \(exclusion.detail)")
    }
    if let inclusion {
      Output.line("  \(inclusion.rule.rawValue), on \(inclusion.origin): \(inclusion.detail)")
    }
    if let overridden { Output.line("  although \(overridden.description), on \(overridden.origin)") }
    if let remark { Output.line("  \(remark)") }
  }

  private func remark(_ kind: ScannedEntry.Kind) -> String? {
    switch kind {
    case .sidecar(let main): "part of the database \(main), which is stored as one file"
    case .special: "a socket, FIFO or device, which archives do not hold"
    case .mount: "another file system is mounted here, which backups do not enter"
    case .file, .directory, .symbolicLink, .database: nil
    }
  }
}
