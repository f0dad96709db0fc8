import ArgumentParser
import Drydock

struct InspectCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "inspect", abstract: "Show what is in a container, and what a backup of it leaves out.",
    discussion: "Example: drydock inspect Notes")

  @OptionGroup var container: ContainerOptions
  @OptionGroup var migrations: MigrationOptions
  @OptionGroup var common: CommonOptions

  struct Result: Encodable {
    var container: ContainerInspection
    var pending: [String]?
  }

  func run() throws {
    let configuration = try common.configuration()
    let opened = try container.open(common)
    let options = try container.transaction()
    let inspection = try ContainerInspection(opened, options: options)
    var pending: [String]?
    if migrations.directory(configuration) != nil, inspection.schemaVersion != nil {
      pending = try Migrating.plan(opened, migrations.catalog(configuration), options: options).pending.map(
        \.identifier)
    }
    if common.json { return Output.json(Result(container: inspection, pending: pending)) }
    write(inspection, pending)
  }

  private func write(_ inspection: ContainerInspection, _ pending: [String]?) {
    Output.line("\(inspection.app), instance \(inspection.instance) (\(inspection.layout.rawValue))")
    Output.line("  \(inspection.root)")
    let version =
      inspection.schemaVersion.map { "\($0), by \(inspection.versionSource ?? "nothing")" }
      ?? "unknown: \(inspection.versionProblem ?? "nothing says it")"
    Output.line("schema version: \(version)")
    if let pending {
      Output.line("pending migrations: \(pending.isEmpty ? "none" : pending.joined(separator: ", "))")
    }
    Output.line("settings")
    Output.table(
      inspection.settings.map {
        [
          $0.path.description, Output.size($0.bytes),
          $0.keys.map { Output.count($0, "key") } ?? "cannot be read",
        ]
      })
    Output.line("databases")
    Output.table(
      inspection.databases.map { database in
        let log = database.logBytes > 0 ? ", \(Output.size(database.logBytes)) of it in the log" : ""
        return [
          database.path.description, Output.size(database.bytes),
          (database.tables.map { Output.count($0, "table") } ?? "SQLite cannot open it") + log,
        ]
      })
    if let vault = inspection.vault {
      Output.line("vault\n  \(vault)  \(Output.size(inspection.vaultBytes ?? 0))")
    }
    Output.line("files\n  \(Output.count(inspection.files, "file")), \(Output.size(inspection.fileBytes))")
    Output.line("a backup leaves out")
    Output.table(
      inspection.excluded.map {
        [
          $0.path.description, "\(Output.count($0.files, "file")), \(Output.size($0.bytes))",
          $0.rule.description,
        ]
      })
  }
}

struct ExplainCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "explain", abstract: "Tell whether a backup takes a path, and which rule decides.",
    discussion: "Example: drydock explain Notes Library/Caches/thumbnail.png")

  @OptionGroup var container: ContainerOptions
  @Argument(help: ArgumentHelp("A path in the container.", valueName: "path")) var inner: String
  @OptionGroup var common: CommonOptions

  struct Result: Encodable {
    var path: ContainerPath
    var included: Bool
    var exclusion: Exclusion?
  }

  func run() throws {
    let opened = try container.open(common)
    let path = try ContainerPath(inner)
    var found: ScannedEntry?
    let scan = ContainerScan(try Directory(opened.root), rules: ExclusionRules(opened), entersExcluded: true)
    try scan.visit { if $0.path == path { found = $0 } }
    guard let found else {
      throw ContainerError(.notFound, "not in the container; check the path", path: path.description)
    }
    let result = Result(path: path, included: found.exclusion == nil, exclusion: found.exclusion)
    if common.json { return Output.json(result) }
    guard let exclusion = found.exclusion else { return Output.line("\(path): a backup takes it") }
    Output.line("\(path): a backup leaves it out")
    Output.line("  rule: \(exclusion.rule.rawValue), on \(exclusion.origin)")
    Output.line("  \(exclusion.detail)")
  }
}
