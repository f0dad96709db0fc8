import AgeEncryption
import AppContainer
import ContainerTransaction
import MigrationEngine

/// Proves migrations on fixtures: builds a container, migrates it, and looks at what came out.
public struct FixtureRunner: Sendable {
  /// The migrations to prove.
  public let catalog: MigrationCatalog
  /// What `drydock.yaml` says of the app's containers.
  public let configuration: Configuration
  /// The device's keys: made for this runner, and for no longer.
  public let deviceKeys: DeviceKeys

  private let stamp = MigrationStamp(tool: "fixture", transaction: "fixture")

  /// A runner for an app's migrations.
  ///
  /// - Throws: `AgeError` when no key can be made.
  public init(catalog: MigrationCatalog, configuration: Configuration) throws {
    self.catalog = catalog
    self.configuration = configuration
    deviceKeys = DeviceKeys(try AgeIdentity.generate())
  }

  /// Makes a fixture's container; one that nothing gives a version is told it, as `drydock baseline` does.
  ///
  /// - Parameter work: The directory to make, which the container is in; it must not exist.
  /// - Throws: `FixtureError` when the container does not have the version that `fixture.yaml` says.
  public func build(_ fixture: Fixture, in work: String) throws -> Container {
    let container = try fixture.build(in: work, configuration: configuration, deviceKeys: deviceKeys)
    let found: Int?
    do {
      found = try Transaction.inspect(container) {
        try DetectedVersion.detect(in: $0, tool: catalog.tool).version
      }
    } catch let error as MigrationError where error.code == .unknownVersion {
      found = nil
    }
    if fixture.isUnmarked, found == nil {
      _ = try Transaction.run(on: container, .baseline, summary: "baseline") { stage in
        try Baseline.set(fixture.version, catalog: catalog, on: stage, stamp: stamp)
      }
    } else if fixture.isUnmarked || found != fixture.version {
      let said = fixture.isUnmarked ? "nothing says its version" : "it has version \(fixture.version)"
      let has = found.map { "version \($0)" } ?? "none that anything says"
      throw FixtureError(
        .malformed,
        "fixture.yaml says that \(said), but the container has \(has): correct `version`, `unmarked` or the "
          + "container", path: fixture.directory)
    }
    return container
  }

  /// Brings a container to the latest version.
  public func migrate(_ container: Container) throws -> TransactionOutcome<MigrationReport> {
    var options = TransactionOptions()
    options.deviceKeys = deviceKeys
    return try Transaction.run(
      on: container, .migrate, summary: "migrate to \(catalog.latest)", options: options
    ) { stage in
      let plan = try MigrationStatus(catalog, of: stage)
      return try Migrator.run(plan, on: stage, stamp: stamp)
    }
  }

  /// What is wrong with what the migrations make of a fixture; empty when all is as expected.
  ///
  /// - Parameter work: The directory to make the container in; it must not exist, and it stays.
  public func findings(_ fixture: Fixture, in work: String) throws -> [FixtureFinding] {
    let container = try build(fixture, in: work)
    do {
      let report = try migrate(container).value
      guard fixture.expectsSuccess else {
        return [FixtureFinding(.expectation, "migrating succeeded, expected an error")]
      }
      var findings: [FixtureFinding] = []
      if report.to != catalog.latest {
        findings.append(FixtureFinding(.migration, "the version is \(report.to), not \(catalog.latest)"))
      }
      findings += try fixture.expectation?.findings(in: container, deviceKeys: deviceKeys) ?? []
      let again = try migrate(container)
      if again.transaction != nil {
        findings.append(FixtureFinding(.again, "migrating again changed \(again.changes) paths"))
      }
      return findings
    } catch let error where !fixture.expectsSuccess {
      let message = "\(error)"
      return (fixture.expectation?.error ?? []).filter { !message.contains($0) }
        .map { FixtureFinding(.expectation, "the error does not say “\($0)”: \(message)") }
    }
  }
}
