import ArgumentParser
import Drydock
import DrydockTesting

struct NewCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "new", abstract: "Create a migration from a template, with the next free number.",
    discussion: """
      Prints the path of the file to edit. --sql is for a database in drydock.yaml; \
      with several, --database names one.

      Examples:
        drydock new task_colours
        drydock new task_colours --sql --database notes
        drydock new import_photos --directory
      """)

  @Argument(help: "What the migration does, such as rename_theme: letters, digits, `_` and `-`.")
  var name: String
  @OptionGroup var migrations: CatalogOptions
  @Flag(help: "Create a SQL migration instead of a YAML file.") var sql = false
  @Flag(help: "Create a directory, for a migration with several files.") var directory = false
  @OptionGroup(title: OptionTitle.output) var common: CommonOptions

  func validate() throws {
    if sql && directory { throw ValidationError("either --sql or --directory") }
    if migrations.other.database != nil && !sql { throw ValidationError("--database goes with --sql") }
  }

  func run() throws {
    try refuseSecret(as: name)
    let configuration = try common.configuration()
    let folder = try migrations.requiredDirectory(configuration)
    if let tool = try migrations.tool(configuration) {
      throw UsageError("the files are of \(tool.format.rawValue): make new ones as that tool does")
    }
    let path = try NewMigration.create(name, form(configuration), in: folder)
    if common.json { return Output.json(["path": path]) }
    Output.line(path)
  }

  private func form(_ configuration: ContainerConfiguration) throws -> NewMigration.Form {
    if directory { return .directory }
    guard sql else { return .steps }
    // Before drydock.yaml names databases, any name will do.
    if let database = migrations.other.database, configuration.databases.isEmpty {
      return .sql(database: database)
    }
    return try .sql(
      database: migrations.knownDatabase(
        migrations.other.database, configuration, for: "a SQL file is for one database"))
  }
}

struct ReleaseCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "release", abstract: "Record the migrations as released: from then on they must not change.",
    discussion: """
      Appends the release's name, its schema version and the checksums of the \
      migrations that are new in it to releases.yaml beside them. `drydock validate` \
      then fails if one of them is modified or removed, or another inserted. Warns \
      of fixtures and goldens that `drydock test` requires of a release.

      Example: drydock release 2.5.0 -m Migrations
      """)

  @Argument(help: "The release, such as 2.5.0.") var name: String
  @OptionGroup var migrations: CatalogOptions
  @OptionGroup(title: OptionTitle.output) var common: CommonOptions

  func run() throws {
    try refuseSecret(as: name)
    let configuration = try common.configuration()
    _ = try migrations.requiredDirectory(configuration)
    let found = try migrations.validation(configuration)
    try found.throwUnlessClean(asJSON: common.json)
    var releases = try Releases.read(found.catalog.directory)
    let release = try releases.add(name, found.catalog)
    let numbers = release.migrations.map(\.number)
    let warnings = warnings(found.catalog, configuration)
    if common.json {
      return Output.json([
        "release": release.name, "version": release.version, "migrations": numbers, "warnings": warnings,
      ])
    }
    Output.line(
      "release \(release.name) has version \(release.version), with \(NumberText.count(numbers.count, "new migration"))"
    )
    for warning in warnings { Output.warning(Advice.added(to: warning).printable) }
  }

  /// What `drydock test` will ask for; nothing where there are no fixtures.
  private func warnings(_ catalog: MigrationCatalog, _ configuration: ContainerConfiguration) -> [String] {
    numberWarnings(catalog, configuration) + fixtureWarnings(catalog, configuration)
  }

  /// A container that the released app writes itself has no history: only the app's number says its version.
  private func numberWarnings(
    _ catalog: MigrationCatalog, _ configuration: ContainerConfiguration
  ) -> [String] {
    configuration.versionMarkers.filter { !$0.at.isEmpty && $0.at.keys.allSatisfy { $0 == 0 } }.map {
      "\($0.place.name) has one number in drydock.yaml, that of version 0: a container that the new app writes itself "
        + "would count as old; let the app write another number, and add it, as in at: {0: …, \(catalog.latest): …}"
    }
  }

  private func fixtureWarnings(
    _ catalog: MigrationCatalog, _ configuration: ContainerConfiguration
  ) -> [String] {
    let directory = FixtureOptions.directory(nil, configuration)
    do {
      let suite = try FixtureSuite(catalog, fixtures: directory, configuration: configuration)
      return try suite.releaseDemands.map(\.message)
    } catch let error as DrydockError where [.malformed, .badFixture].contains(error.code) {
      return ["\(error)"]
    } catch {
      return []
    }
  }
}

struct ValidateCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "validate", abstract: "Check the migration files; needs no container.",
    discussion: """
      Reports all problems at once: unreadable files, unknown operations, missing or \
      duplicate numbers, SQL that SQLite cannot parse, irreversible steps, destructive \
      statements without a stated reason, and migrations modified, removed or inserted \
      since the release. In GitHub Actions they are also shown at their lines.

      Examples:
        drydock validate -m Migrations
        drydock validate --sarif drydock.sarif
      """)

  @OptionGroup var migrations: CatalogOptions
  @OptionGroup(title: OptionTitle.reports) var log: SARIFOption
  @OptionGroup(title: OptionTitle.output) var common: CommonOptions

  func run() throws {
    let reports = try PipelineReports(log)
    let found = try migrations.validation(common.configuration())
    try reports.write(found)
    let catalog = found.catalog
    if common.json {
      let migrations = catalog.migrations.map { migration -> ResultObject in
        [
          "number": migration.number, "name": migration.name, "summary": migration.summary,
          "checksum": migration.checksum.hex,
        ]
      }
      let problems = found.problems.map { problem -> ResultObject in
        let (file, line, column, _) = problem.located
        return [
          "code": problem.code.rawValue, "message": problem.advised.message, "path": problem.path,
          "file": file, "line": line, "column": column,
        ]
      }
      Output.json([
        "migrations": migrations, "notes": found.notes.map(\.description),
        "warnings": found.problems.isEmpty ? catalog.warnings : [], "problems": problems,
      ])
    } else if found.problems.isEmpty {
      Output.line("\(NumberText.count(catalog.migrations.count, "migration")), in order")
      Output.table(catalog.migrations.map { [$0.identifier, $0.summary ?? ""] })
    }
    try found.throwUnlessClean()
  }
}

extension CatalogOptions {
  /// The migrations with all their problems; prints their notes.
  func validation(_ configuration: ContainerConfiguration) throws -> MigrationValidation {
    let found =
      if let plan = try plan() { MigrationValidation.run(plan, configuration) } else {
        try MigrationValidation.run(
          requiredDirectory(configuration), tool: tool(configuration), configuration)
      }
    if found.problems.isEmpty {
      for warning in found.catalog.warnings { Output.warning("\(warning)") }
    }
    for note in found.notes { Output.note("\(note)") }
    return found
  }
}

extension MigrationValidation {
  /// Reports each problem, and ends the program when there is one.
  ///
  /// - Parameter asJSON: whether the first problem is the result of the command, as a document.
  func throwUnlessClean(asJSON: Bool = false) throws {
    let failures = problems.map(Failure.init)
    for failure in failures { Output.error(failure.text) }
    guard let first = failures.first else { return }
    if asJSON { Output.json(["error": first.detail(status: .validation)]) }
    throw ExitStatus.validation.code
  }
}
