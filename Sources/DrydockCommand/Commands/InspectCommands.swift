import ArgumentParser
import Drydock
import Reports

struct InspectCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "inspect", abstract: "Show what a container holds, and what a backup excludes.",
    discussion: "Example: drydock inspect Notes")

  @OptionGroup var container: ContainerOptions
  @Flag(help: "Only list what a backup excludes, with its size on disk and the rule.") var excluded = false
  @Option(
    help: ArgumentHelp(
      """
      A compiled Core Data model (NAME.momd, or the VersionInfo.plist in it), to find the version of stores (default: \
      `core-data:` of drydock.yaml).
      """, valueName: "file"), completion: .file())
  var model: String?
  @OptionGroup(title: OptionTitle.reports) var page: HTMLOptions
  @OptionGroup var migrations: CatalogOptions
  @OptionGroup(title: OptionTitle.keys) var deviceKeys: DeviceKeyOptions
  @OptionGroup(title: OptionTitle.limits) var expansion: ExpansionOptions
  @OptionGroup(title: OptionTitle.output) var showing: ProgressOptions
  @OptionGroup(title: OptionTitle.output) var common: CommonOptions

  /// How many items of a vault are shown as text.
  private static let shownItems = 20

  func run() throws {
    if page.html == nil, let source = DeviceSource.find(at: container.path) {
      return try ImportText.inspect(source, container.path, asJSON: common.json)
    }
    try page.reporting("Container", container.path) {
      var configuration = try common.configuration()
      configuration.coreDataModel = model
      try container.reading(configuration, expansion, inspect)
    }
  }

  private func inspect(_ opened: Container) throws {
    var options = try container.wait.transaction(deviceKeys)
    let display = try showing.display(asJSON: common.json)
    defer { display.end() }
    options.progress = display.progress
    var inspection = try opened.inspect(options: options)
    display.end()
    // The private directory it was unpacked to means nothing to the user.
    if container.isForeign { inspection.root = realPath(container.path) ?? container.path }
    let pending = try excluded && page.html == nil ? nil : pending(of: opened, inspection, options)
    try page.write(
      HTMLPage(
        inspection, pending: pending, problem: inspection.versionProblem.map { Advice.added(to: $0) }))
    if excluded {
      if common.json {
        return Output.json(
          ["excluded": inspection.excluded, "warnings": inspection.warnings])
      }
      list(inspection.excluded)
      return Output.warn(inspection.warnings)
    }
    if common.json { return Output.json(["container": inspection, "pending": pending]) }
    write(inspection, pending)
    Output.warn(inspection.warnings)
  }

  /// The pending migrations; nil when they are not known.
  private func pending(
    of opened: Container, _ inspection: ContainerInspection, _ options: TransactionOptions
  ) throws -> [String]? {
    guard migrations.areThere(opened.configuration), inspection.schemaVersion != nil else { return nil }
    let plan = try opened.status(migrations.catalog(opened.configuration), options: options)
    guard let unknown = plan.problems.first(where: { $0.code == .firstContact }) else {
      return plan.pending.map(\.identifier)
    }
    Output.note("\(unknown.advised)")
    return nil
  }

  private func list(_ excluded: [ContainerInspection.Excluded]) {
    Output.table(
      excluded.map { item in
        [
          item.path.description, "\(Output.size(item.diskBytes)) on disk",
          item.pathsBelow == 0 ? "" : "\(Output.count(item.pathsBelow, "path")) below", item.rule.description,
        ]
      }, indent: "")
  }

  private func write(_ inspection: ContainerInspection, _ pending: [String]?) {
    Output.line("\(inspection.app), instance \(inspection.instance) (\(inspection.layout.rawValue))")
    Output.line("  \(inspection.root)")
    for group in inspection.groups {
      Output.line("group \(group.id)\(group.exists ? "" : " (not there)")\n  \(group.root)")
    }
    let version =
      inspection.schemaVersion.map {
        "\(MigrationReport.version($0, app: inspection.appVersion)), by \(inspection.versionSource ?? "nothing")"
      }
      ?? Advice.added(to: inspection.versionProblem ?? "unknown")
      .replacing("the container's version is unknown", with: "unknown")
    Output.line("schema version: \(version)")
    if let pending {
      Output.line("pending migrations: \(pending.isEmpty ? "none" : pending.joined(separator: ", "))")
    }
    Output.line("settings")
    Output.table(
      inspection.settings.map { file in
        let keys =
          file.keys.map { Output.count($0, "key") } ?? "cannot be read"
          + (file.problem.map { ": \($0)" } ?? "")
        let suite = file.suite.flatMap { $0 == "standard" ? nil : "suite \($0), " } ?? ""
        return [file.path.description, Output.size(file.bytes), suite + keys]
      })
    for file in inspection.settings {
      guard let documents = file.documents else { continue }
      Output.line("  \(file.path): documents in settings")
      Output.table(documents.map { [$0.key, $0.value] }, indent: "    ")
    }
    Output.line("databases")
    Output.table(
      inspection.databases.map { database in
        let log = database.logBytes > 0 ? ", \(Output.size(database.logBytes)) of it in the log" : ""
        return [
          database.path.description, Output.size(database.bytes),
          (database.tables.map { Output.count($0, "table") } ?? "SQLite cannot open it") + log,
        ]
      })
    for database in inspection.databases { write(database) }
    write(vaultOf: inspection)
    Output.line("files\n  \(Output.count(inspection.files, "file")), \(Output.size(inspection.fileBytes))")
    if let protection = inspection.protection {
      Output.line("protection classes")
      Output.table(protection.map { [$0.class, Output.count($0.files, "file")] })
    }
    Output.line("excluded from backups")
    Output.table(
      inspection.excluded.map {
        [
          $0.path.description, "\(Output.count($0.files, "file")), \(Output.size($0.bytes))",
          $0.rule.description,
        ]
      })
  }

  private func write(_ database: ContainerInspection.Database) {
    guard let description = database.description else { return }
    Output.line("  \(database.path): \(description.summary)")
    Output.table(description.facts.map { [$0.name, $0.value] }, indent: "    ")
    Output.table(
      description.entities.map { entity in
        [
          "entity \(entity.name)", entity.rows.map { Output.count($0, "row") } ?? "no table",
          entity.parent.map { "inherits from \($0)" } ?? "",
        ]
      }, indent: "    ")
  }

  private func write(vaultOf inspection: ContainerInspection) {
    guard let vault = inspection.vault else { return }
    let items = inspection.vaultItems.map { [Output.count($0.count, "item")] } ?? []
    let details =
      [Output.size(inspection.vaultBytes ?? 0)] + items + [inspection.vaultEncryption].compactMap { $0 }
    Output.line("vault\n  \(vault)  \(details.joined(separator: ", "))")
    if let problem = inspection.vaultProblem { Output.line("    cannot be opened: \(problem)") }
    let shown = inspection.vaultItems?.prefix(Self.shownItems) ?? []
    for item in shown { Output.line("    \(item)") }
    let more = (inspection.vaultItems?.count ?? 0) - shown.count
    if more > 0 { Output.advice("    … and \(more) more; `drydock vault list` shows all") }
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
      return Output.json(
        [
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
