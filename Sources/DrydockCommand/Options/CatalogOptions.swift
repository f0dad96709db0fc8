import ArgumentParser
import Drydock
import Foundation

/// The migrations of another tool.
struct ToolOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The format of the migration files, if another tool's.", valueName: "tool",
      visibility: CatalogOptions.visibility))
  var format: MigrationTool.Format?

  @Option(
    help: ArgumentHelp(
      "The database in drydock.yaml that they change.", valueName: "name",
      visibility: CatalogOptions.visibility))
  var database: String?
}

struct CatalogOptions: ParsableArguments {
  @Option(
    name: [.short, .long],
    help: ArgumentHelp(
      "The directory of migrations (default: `migrations:` of drydock.yaml, or Migrations).",
      valueName: "directory",
      visibility: Self.visibility), completion: .directory)
  var migrations: String?

  @OptionGroup(title: OptionTitle.tool) var other: ToolOptions

  /// A program with a plan needs no directory.
  fileprivate static var visibility: ArgumentVisibility { Program.current.plan == nil ? .default : .hidden }

  /// The other tool whose files the migrations are; nil for Drydock's own.
  func tool(_ configuration: ContainerConfiguration) throws -> MigrationTool? {
    let configured = configuration.migrationTool
    guard let format = other.format ?? configured?.format else { return nil }
    guard format != .room || configured?.schemas != nil else {
      throw UsageError(
        "the format room needs the exported schemas: name their directory in drydock.yaml, as "
          + "`migrations: {path: …, format: room, database: …, schemas: …}`")
    }
    return try MigrationTool(
      format,
      database: knownDatabase(
        other.database ?? configured?.database, configuration,
        for: "files of \(format.rawValue) are for one database"),
      schemas: configured?.schemas, sources: configured?.sources)
  }

  /// A database of drydock.yaml, by its name; without one, the only one.
  func knownDatabase(
    _ name: String?, _ configuration: ContainerConfiguration, for reason: String
  ) throws -> String {
    let known = configuration.databases.keys.sorted()
    guard let name = name ?? (known.count == 1 ? known[0] : nil) else {
      throw UsageError(
        "\(reason): name it with --database"
          + (known.isEmpty ? "; drydock.yaml names none" : ": " + known.joined(separator: ", ")))
    }
    guard known.contains(name) else {
      throw UsageError("drydock.yaml has no database \(name); \(NearestWord.hint(for: name, among: known))")
    }
    return name
  }

  /// Whether there are any yet: a directory that no option names need not exist.
  func areThere(_ configuration: ContainerConfiguration) -> Bool {
    if Program.current.plan != nil || migrations ?? Environment["MIGRATIONS"] != nil { return true }
    return FollowedStatus.identity(directory(configuration)) != nil
  }

  /// The directory of migration files, which need not exist.
  private func directory(_ configuration: ContainerConfiguration) -> String {
    migrations ?? Environment["MIGRATIONS"] ?? configuration.migrations
      ?? configuration.directory(named: "Migrations")
  }

  /// The directory of migration files.
  ///
  /// - Throws: `UsageError` for a program with a plan.
  func requiredDirectory(_ configuration: ContainerConfiguration) throws -> String {
    if let plan = Program.current.plan {
      throw UsageError("the migrations of \(Program.current.name) are in Swift, in \(plan), not in files")
    }
    return directory(configuration)
  }

  /// The plan that the program brings with it, if it does.
  func plan() throws -> (any MigrationPlan.Type)? {
    guard let plan = Program.current.plan else { return nil }
    guard migrations == nil else {
      throw UsageError("\(Program.current.name) has built-in migrations: leave -m out")
    }
    return plan
  }

  /// The migrations, or an empty catalog with a note where there are none yet.
  func catalogIfThere(_ configuration: ContainerConfiguration) throws -> MigrationCatalog {
    if areThere(configuration) { return try catalog(configuration) }
    let directory = directory(configuration)
    Output.note("\(directory): no migrations yet; `drydock new NAME` creates the first one")
    return MigrationCatalog(none: directory)
  }

  /// A missing directory of migrations may be another project's: the working directory is the wrong one.
  func noteMissingProject(_ configuration: ContainerConfiguration) {
    guard configuration.file == nil, !areThere(configuration) else { return }
    Output.note("no drydock.yaml is here or above: is this the app's project?")
  }

  func catalog(_ configuration: ContainerConfiguration) throws -> MigrationCatalog {
    if let plan = try plan() { return try MigrationCatalog(plan) }
    noteMissingProject(configuration)
    let catalog = try MigrationCatalog.load(requiredDirectory(configuration), tool: tool(configuration))
    for warning in catalog.warnings { Output.warning("\(warning)") }
    for note in catalog.notes { Output.note("\(note)") }
    return catalog
  }
}

extension MigrationTool.Format: ExpressibleByArgument {}
