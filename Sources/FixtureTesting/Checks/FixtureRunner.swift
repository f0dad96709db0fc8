import AgeEncryption
import AppContainer
import ContainerTransaction
import DrydockErrors
import MigrationEngine

/// Does with a fixture what the commands do with an app's container: makes it, migrates it, takes it back.
package struct FixtureRunner: Sendable {
  /// The migrations to prove.
  package let catalog: MigrationCatalog
  /// What `drydock.yaml` says of the app's containers.
  package let configuration: Configuration
  /// The device's keys: made for this runner, and for no longer.
  package let deviceKeys: DeviceKeys
  /// What hides secrets in all that is told of this run.
  package let redactor = Redactor()

  /// A runner for an app's migrations.
  ///
  /// - Throws: `DrydockError` when no key can be made.
  package init(catalog: MigrationCatalog, configuration: Configuration) throws {
    self.catalog = catalog
    self.configuration = configuration
    deviceKeys = DeviceKeys(try AgeIdentity.generate())
  }

  private var options: TransactionOptions {
    var options = TransactionOptions()
    (options.deviceKeys, options.redactor) = (deviceKeys, redactor)
    // A program that another thread is just starting holds copies of all locks until it runs.
    options.lockTimeout = 5
    return options
  }

  private func stamp(_ stage: StagedContainer) -> MigrationStamp {
    MigrationStamp(tool: "fixture", transaction: stage.transaction)
  }

  // MARK: Making

  /// Makes a fixture's container; one that nothing gives a version is told it, as `drydock baseline` does.
  ///
  /// - Parameter work: The directory to make, which the container is in; it must not exist.
  /// - Throws: `DrydockError` when the container does not have the version that `fixture.yaml` says.
  package func build(_ fixture: Fixture, in work: String) throws -> Container {
    var container = try fixture.build(in: work, configuration: configuration, deviceKeys: deviceKeys)
    container.isScratch = true
    let found = try version(of: container)
    if fixture.isUnmarked, found == nil {
      _ = try Transaction.run(on: container, .baseline, summary: "baseline", options: options) { stage in
        try Baseline.set(fixture.version, catalog: catalog, on: stage, stamp: stamp(stage))
      }
    } else if fixture.isUnmarked || found != fixture.version {
      let said = fixture.isUnmarked ? "nothing says its version" : "it has version \(fixture.version)"
      let has = found.map { "version \($0)" } ?? "none that anything says"
      throw DrydockError(
        .badFixture,
        "fixture.yaml says that \(said), but the container has \(has): correct `version`, `unmarked` or the "
          + "container", path: fixture.directory)
    }
    return container
  }

  /// The version that a container has; nil when nothing says it.
  package func version(of container: Container) throws -> Int? {
    do {
      return try inspect(container) { try DetectedVersion.detect(in: $0, tool: catalog.tool).version }
    } catch let error as DrydockError where error.code == .unknownVersion {
      return nil
    }
  }

  /// Looks at a container, with the device's keys.
  func inspect<Value>(_ container: Container, _ body: (StagedContainer) throws -> Value) throws -> Value {
    try Transaction.inspect(container, options: options, body: body)
  }

  /// What is to be done to a fixture's container, whose version `fixture.yaml` vouches for.
  private func status(of stage: StagedContainer) throws -> MigrationStatus {
    var detected = try DetectedVersion.detect(in: stage, tool: catalog.tool)
    detected.firstContact = nil
    return MigrationStatus(catalog: catalog, detected: detected)
  }

  // MARK: Forwards and back

  /// Brings a container to a version, the latest without one.
  @discardableResult
  package func migrate(
    _ container: Container, to version: Int? = nil
  ) throws -> TransactionOutcome<MigrationReport> {
    try Transaction.run(
      on: container, .migrate, summary: "migrate to \(version ?? catalog.latest)", options: options
    ) { stage in
      try Migrator.run(status(of: stage), to: version, on: stage, stamp: stamp(stage))
    }
  }

  /// Brings a container to the latest version under the eyes of a watch.
  func migrate(_ container: Container, _ watch: inout RunWatch) throws -> TransactionOutcome<MigrationReport>
  {
    try Transaction.run(
      on: container, .migrate, summary: "migrate to \(catalog.latest)", options: options
    ) { stage in
      try watch.begin(on: stage)
      return try Migrator.run(status(of: stage), on: stage, stamp: stamp(stage)) {
        try watch.did($0, on: $1)
      }
    }
  }

  /// Undoes the last transaction, or, when it is a rollback, undoes that.
  func rollBack(_ container: Container, redoing: Bool = false) throws {
    var request = RollingBack.Request()
    request.redoing = redoing
    _ = try RollingBack.run(container, request, catalog, options: options)
  }

  /// Goes down to a version by the migrations' steps.
  func goDown(_ container: Container, to version: Int) throws {
    var options = options
    // What the migrations wrote down is needed until the last of them is taken back.
    (options.undoLimits.count, options.undoLimits.bytes) = (.max, .max)
    var request = RollingBack.Request()
    (request.version, request.bySteps) = (version, true)
    _ = try RollingBack.run(container, request, catalog, options: options)
  }
}
