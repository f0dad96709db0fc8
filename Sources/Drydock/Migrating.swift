import ContainerTransaction
import MigrationEngine

/// Runs migrations over a container: all that are pending, in one transaction.
public enum Migrating {
  /// The container's version and what is pending, without changing anything.
  ///
  /// - Throws: `MigrationError` with code `unknownVersion` when nothing says which version it is.
  public static func plan(
    _ container: Container, _ catalog: MigrationCatalog, options: TransactionOptions = TransactionOptions()
  ) throws -> MigrationPlan {
    try Transaction.inspect(container, options: options) {
      MigrationPlan(catalog: catalog, detected: try DetectedVersion.detect(in: $0))
    }
  }

  /// Migrates.
  ///
  /// - Parameter version: where to stop; the latest when nil.
  /// - Throws: `MigrationError`, `TransactionError`, `ContainerError`; nothing has changed then.
  public static func run(
    _ container: Container, _ catalog: MigrationCatalog, to version: Int? = nil,
    options: TransactionOptions = TransactionOptions()
  ) throws -> TransactionOutcome<MigrationReport> {
    let plan = try plan(container, catalog, options: options)
    let names = try plan.pending(to: version).map(\.identifier)
    // A container that is up to date may be in use: there is nothing to refuse.
    if names.isEmpty && plan.detected.byTheApp.isEmpty {
      return TransactionOutcome(
        unchanged: try dryRun(container, catalog, to: version, options: options).value)
    }
    let summary =
      names.isEmpty ? "recorded what the app migrated itself" : "ran \(names.joined(separator: ", "))"
    return try Transaction.run(on: container, .migrate, summary: summary, options: options) {
      try migrate($0, catalog, version)
    }
  }

  /// Migrates a stage that is thrown away, and tells the difference that the real run would make.
  public static func dryRun(
    _ container: Container, _ catalog: MigrationCatalog, to version: Int? = nil,
    options: TransactionOptions = TransactionOptions()
  ) throws -> DryRunOutcome<MigrationReport> {
    try Transaction.dryRun(on: container, options: options) { try migrate($0, catalog, version) }
  }

  /// Says which version a container has, without running anything.
  public static func baseline(
    _ container: Container, _ catalog: MigrationCatalog, version: Int,
    options: TransactionOptions = TransactionOptions()
  ) throws -> TransactionOutcome<[String]> {
    // A version that does not exist is refused before a transaction begins.
    _ = try Transaction.inspect(container, options: options) {
      try Baseline.set(version, catalog: catalog, on: $0, stamp: stamp($0))
    }
    return try Transaction.run(on: container, .baseline, summary: "set version \(version)", options: options)
    {
      try Baseline.set(version, catalog: catalog, on: $0, stamp: stamp($0))
    }
  }

  /// The schema version as far as it can be known without migrations, or what keeps it from being known: a
  /// container whose settings or history are damaged is backed up all the same.
  public static func schemaVersion(
    of container: Container, options: TransactionOptions = TransactionOptions()
  ) throws -> (number: Int?, problem: String?) {
    try Transaction.inspect(container, options: options) { schemaVersion(in: $0) }
  }

  static func schemaVersion(in staged: StagedContainer) -> (number: Int?, problem: String?) {
    do {
      return (try DetectedVersion.detect(in: staged).version, nil)
    } catch let error as MigrationError where error.code == .unknownVersion {
      return (nil, nil)
    } catch {
      return (nil, String(describing: error))
    }
  }

  /// Migrates what a stage holds.
  static func migrate(
    _ staged: StagedContainer, _ catalog: MigrationCatalog, _ version: Int?
  ) throws -> MigrationReport {
    let plan = MigrationPlan(catalog: catalog, detected: try DetectedVersion.detect(in: staged))
    return try Migrator.run(plan, to: version, on: staged, stamp: stamp(staged))
  }

  private static func stamp(_ staged: StagedContainer) -> MigrationStamp {
    MigrationStamp(tool: DrydockVersion.tool, transaction: staged.transaction)
  }
}
