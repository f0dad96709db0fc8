import ArgumentParser
import Drydock

struct InspectCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "inspect", abstract: "Show what is in a container, and what a backup of it leaves out.",
    discussion: "Example: drydock inspect Notes")

  @OptionGroup var container: ContainerOptions
  @Flag(help: "Only list what a backup leaves out, with its size on disk and its rule.") var excluded = false
  @OptionGroup var migrations: CatalogOptions
  @OptionGroup var deviceKeys: DeviceKeyOptions
  @OptionGroup var expansion: ExpansionOptions
  @OptionGroup var common: CommonOptions

  struct Excluded: Encodable {
    var excluded: [ContainerInspection.Excluded]
    var warnings: [ContainerWarning]
  }

  struct Result: Encodable {
    var container: ContainerInspection
    var pending: [String]?
  }

  /// How many items of a vault a person is shown.
  private static let shownItems = 20

  func run() throws { try container.reading(common.configuration(), expansion, inspect) }

  private func inspect(_ opened: Container) throws {
    let options = try container.transaction().with(deviceKeys)
    var inspection = try opened.inspect(options: options)
    // Where it was unpacked is nobody's business.
    if container.isPacked { inspection.root = realPath(container.path) ?? container.path }
    if excluded {
      if common.json {
        return Output.json(Excluded(excluded: inspection.excluded, warnings: inspection.warnings))
      }
      list(inspection.excluded)
      return Output.warn(inspection.warnings)
    }
    var pending: [String]?
    if migrations.areThere(opened.configuration), inspection.schemaVersion != nil {
      let plan = try opened.status(migrations.catalog(opened.configuration), options: options)
      if let unknown = plan.problems.first(where: { $0.code == .firstContact }) {
        Output.note("drydock: note: \(unknown)")
      } else {
        pending = plan.pending.map(\.identifier)
      }
    }
    if common.json { return Output.json(Result(container: inspection, pending: pending)) }
    write(inspection, pending)
    Output.warn(inspection.warnings)
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
          $0.keys.map { Output.count($0, "key") } ?? "cannot be read" + ($0.problem.map { ": \($0)" } ?? ""),
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
    write(vaultOf: inspection)
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
