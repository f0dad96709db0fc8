import AppContainer
import ContainerTransaction

/// What is wrong with migrations, as far as it can be told without a container: everything at once.
public struct MigrationValidation: Sendable {
  /// The migrations that can be read.
  public let catalog: MigrationCatalog
  /// What is wrong: with the files, the statements, and with what was released.
  public let problems: [MigrationError]

  /// Reads a directory of migrations and checks all of it.
  ///
  /// - Parameter configuration: tells which databases there are; one that names none is not asked.
  /// - Throws: ``MigrationError`` with code `catalog` when the directory cannot be read.
  public static func run(
    _ directory: String, tool: MigrationTool? = nil, _ configuration: Configuration
  ) throws -> MigrationValidation {
    let (catalog, problems) = try MigrationCatalog.read(directory, tool: tool)
    return MigrationValidation(catalog, configuration, reading: problems)
  }

  /// Checks a plan.
  public static func run(
    _ plan: any MigrationPlan.Type, _ configuration: Configuration
  ) -> MigrationValidation {
    let (catalog, problems) = MigrationCatalog.read(plan)
    return MigrationValidation(catalog, configuration, reading: problems)
  }

  /// Checks migrations.
  ///
  /// - Parameter problems: what kept some of them from being read.
  public init(
    _ catalog: MigrationCatalog, _ configuration: Configuration, reading problems: [MigrationError] = []
  ) {
    self.catalog = catalog
    var found = problems
    found += Self.unknownDatabases(catalog, configuration)
    found += Self.statements(catalog, configuration)
    found += Self.stepsWithoutWayBack(catalog)
    do {
      // Where some cannot be read, it would seem that they were removed.
      found += try Releases.read(catalog.directory).problems(in: catalog, isComplete: problems.isEmpty)
    } catch {
      found.append(MigrationError(reading: error))
    }
    self.problems = found
  }

  private static func unknownDatabases(
    _ catalog: MigrationCatalog, _ configuration: Configuration
  ) -> [MigrationError] {
    let known = configuration.databases.keys.sorted()
    if known.isEmpty { return [] }
    return catalog.migrations.flatMap { migration in
      let steps = (migration.steps + migration.down).compactMap { $0.operation as? RunSQL }
      let assertions = (migration.checks + migration.verifications).compactMap(\.database)
      return (steps.map { ($0.database, $0.position) } + assertions).compactMap { name, position in
        known.contains(name)
          ? nil : MigrationError(reading: StagedContainer.unknown(name, known, at: position))
      }
    }
  }

  /// Other tools' migrations may have no way down, as in these tools.
  private static func stepsWithoutWayBack(_ catalog: MigrationCatalog) -> [MigrationError] {
    if catalog.tool != nil { return [] }
    return catalog.migrations.filter { !$0.isIrreversible }.flatMap(\.stepsWithoutWayBack).map {
      MigrationError(.noWayBack, $0.description)
    }
  }

  private static func statements(
    _ catalog: MigrationCatalog, _ configuration: Configuration
  ) -> [MigrationError] {
    do {
      var check = try StatementCheck(configuration)
      for migration in catalog.migrations { check.add(migration) }
      return check.problems
    } catch {
      return [MigrationError(.sql, "the statements could not be checked: \(MigrationError.text(of: error))")]
    }
  }
}

extension Assertion {
  /// The database that a check asks, and where it stands.
  fileprivate var database: (String, YAMLPosition)? {
    guard case .sql(let assertion) = kind else { return nil }
    return (assertion.database, assertion.position)
  }
}
