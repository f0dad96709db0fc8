import AppContainer
import ContainerTransaction
import DrydockErrors
import Formats

/// What is wrong with migrations, as far as it can be told without a container: everything at once.
package struct MigrationValidation: Sendable {
  /// The migrations that can be read.
  package let catalog: MigrationCatalog
  /// What is wrong: with the files, the statements, and with what was released.
  package let problems: [DrydockError]

  /// Reads a directory of migrations and checks all of it.
  ///
  /// - Parameter configuration: tells which databases there are; one that names none is not asked.
  /// - Throws: ``DrydockError`` with code `catalog` when the directory cannot be read.
  package static func run(
    _ directory: String, tool: MigrationTool? = nil, _ configuration: Configuration
  ) throws -> MigrationValidation {
    let (catalog, problems) = try MigrationCatalog.read(directory, tool: tool)
    return MigrationValidation(catalog, configuration, reading: problems)
  }

  /// Checks a plan.
  package static func run(
    _ plan: any MigrationPlan.Type, _ configuration: Configuration
  ) -> MigrationValidation {
    let (catalog, problems) = MigrationCatalog.read(plan)
    return MigrationValidation(catalog, configuration, reading: problems)
  }

  /// Checks migrations.
  ///
  /// - Parameter problems: what kept some of them from being read.
  package init(
    _ catalog: MigrationCatalog, _ configuration: Configuration, reading problems: [DrydockError] = []
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
      found.append(DrydockError(reading: error))
    }
    self.problems = found
  }

  private static func unknownDatabases(
    _ catalog: MigrationCatalog, _ configuration: Configuration
  ) -> [DrydockError] {
    let known = configuration.databases.keys.sorted()
    if known.isEmpty { return [] }
    return catalog.migrations.flatMap { migration in
      let steps = (migration.steps + migration.down).compactMap { $0.operation as? RunSQL }
      let assertions = (migration.checks + migration.verifications).compactMap(\.database)
      return (steps.map { ($0.database, $0.position) } + assertions).compactMap { name, position in
        known.contains(name)
          ? nil : DrydockError(reading: StagedContainer.unknown(name, known, at: position))
      }
    }
  }

  /// Other tools' migrations may have no way down, as in these tools.
  private static func stepsWithoutWayBack(_ catalog: MigrationCatalog) -> [DrydockError] {
    if catalog.tool != nil { return [] }
    return catalog.migrations.filter { !$0.isIrreversible }.flatMap(\.stepsWithoutWayBack).map {
      DrydockError(.irreversible, $0.description)
    }
  }

  private static func statements(
    _ catalog: MigrationCatalog, _ configuration: Configuration
  ) -> [DrydockError] {
    do {
      var check = try StatementCheck(configuration)
      for migration in catalog.migrations { check.add(migration) }
      return check.problems
    } catch {
      return [DrydockError(.sql, "the statements could not be checked: \(DrydockError.text(of: error))")]
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
