import AgeEncryption
import AppContainer
import AppStores
import ContainerDiff
import ContainerTransaction
import Cryptography
import Drydock
import DrydockErrors
import FileSystem
import MigrationEngine

/// Does with a fixture what the commands do with an app's container: makes, migrates and rolls it back.
package struct FixtureRunner: Sendable {
  package let catalog: MigrationCatalog
  /// What `drydock.yaml` says of the app's containers.
  package let configuration: ContainerConfiguration
  package let deviceKeys: DeviceKeys
  /// Hides secrets in all messages of this run.
  package let redactor = Redactor()
  /// So many rows of a column are listed in findings, and the rest is counted.
  let rowLimit: Int

  /// A runner for an app's migrations, with new device keys by default.
  package init(
    catalog: MigrationCatalog, configuration: ContainerConfiguration, deviceKeys: DeviceKeys? = nil,
    rowLimit: Int = FixtureSuite.Options.rowLimit
  ) throws {
    (self.catalog, self.configuration, self.rowLimit) = (catalog, configuration, rowLimit)
    self.deviceKeys = try deviceKeys ?? DeviceKeys(AgeIdentity.generate())
  }

  private var options: TransactionOptions {
    var options = TransactionOptions()
    (options.deviceKeys, options.redactor) = (deviceKeys, redactor)
    // A child process that another thread starts has copies of all locks until it runs.
    options.lockTimeout = 5
    return options
  }

  private func stamp(_ stage: StagedContainer) -> MigrationStamp {
    MigrationStamp(tool: "fixture", transaction: stage.transaction)
  }

  // MARK: Making

  /// Makes a fixture's container; an unmarked one gets its version as a baseline.
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

  /// The version of a container; nil when nothing says it.
  package func version(of container: Container) throws -> Int? {
    do {
      return try DetectedVersion.detect(in: stage(on: container), tool: catalog.tool).version
    } catch let error as DrydockError where error.code == .unknownVersion {
      return nil
    }
  }

  /// A stage to read a container, with the device's keys.
  func stage(on container: Container) throws -> DiscardedStage {
    try DiscardedStage(on: container, options: options)
  }

  /// The pending migrations of a fixture's container; its version is the one that `fixture.yaml` says.
  private func status(of stage: StagedContainer) throws -> MigrationStatus {
    var detected = try DetectedVersion.detect(in: stage, tool: catalog.tool)
    detected.unconfirmedVersion = nil
    // What a modified migration does to the fixtures is found by their checks.
    return MigrationStatus(catalog: catalog, detected: detected, checkingReleases: false)
  }

  // MARK: Forwards and back

  /// Migrates a container, to the latest version by default.
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

  /// What migrating a container to a version would change, without Drydock's history.
  func difference(of container: Container, to version: Int) throws -> ContainerDifference {
    let stage = try stage(on: container)
    _ = try Migrator.run(status(of: stage), to: version, on: stage, stamp: stamp(stage))
    var difference = try stage.difference(rowLimit: rowLimit)
    difference.files.removeAll { container.isHistory($0.path) }
    return difference
  }

  /// Migrates a container to the latest version, and records what each step changes.
  func migrate(_ container: Container, _ watch: inout RunWatch) throws -> TransactionOutcome<MigrationReport>
  {
    try Transaction.run(
      on: container, .migrate, summary: "migrate to \(catalog.latest)", options: options
    ) { stage in
      try watch.begin(on: stage)
      // An optional closure cannot capture an `inout` parameter.
      var running = watch
      defer { watch = running }
      let report = try Migrator.run(status(of: stage), on: stage, stamp: stamp(stage)) {
        try running.did($0, on: $1)
      }
      try running.endMigration(on: stage)
      return report
    }
  }

  /// Undoes the last transaction, or, when it is a rollback, undoes that.
  func rollBack(_ container: Container, redoing: Bool = false) throws {
    let request: MigrationRollback.Request = redoing ? .redo : .lastTransaction
    _ = try MigrationRollback.run(container, request, catalog, options: options)
  }

  /// Reverts to a version by the migrations' down steps.
  func goDown(_ container: Container, to version: Int) throws {
    var options = options
    // The undo entries of the migrations are needed until the last of them is reverted.
    (options.undoLimits.count, options.undoLimits.bytes) = (.max, .max)
    _ = try MigrationRollback.run(container, .downSteps(to: version), catalog, options: options)
  }
}

/// One fixture while it is checked: makes as many containers as the checks need, each in a separate directory.
struct FixtureWork {
  let fixture: Fixture
  let runner: FixtureRunner
  /// The directory of the containers and of their goldens.
  let scratch: Directory
  /// The fixture's `expect`; with the rows before migrating once these are known.
  private var expectation: FixtureExpectation?

  init(fixture: Fixture, runner: FixtureRunner, scratch: Directory) {
    (self.fixture, self.runner, self.scratch) = (fixture, runner, scratch)
    expectation = fixture.expectation
  }

  var catalog: MigrationCatalog { runner.catalog }

  /// The path of something in the scratch directory.
  func path(_ name: String) -> String { scratch.path + "/" + name }

  /// Makes a new container of the fixture.
  ///
  /// - Parameter name: What it is for; each is used once.
  func container(_ name: String) throws -> Container {
    try runner.build(fixture, in: path("container-" + name))
  }

  /// Makes a new container, migrates it from version to version, and calls a body at each; the first may be the fixture's own.
  func migrating(
    _ name: String, to versions: some Sequence<Int>, _ body: (Int, Container) throws -> Void
  ) throws {
    let container = try container(name)
    for version in versions.sorted() {
      if version > fixture.version { try runner.migrate(container, to: version) }
      try body(version, container)
    }
  }

  /// Removes the containers; the goldens of this run stay.
  func removeContainers() throws {
    for name in try scratch.names() where name.starts(with: "container-".utf8) {
      try scratch.removeTree(ContainerPath(name: name))
    }
  }

  /// A container as the text of a golden.
  func text(of container: Container) throws -> GoldenText {
    try GoldenText(of: container, volatile: fixture.volatile, deviceKeys: runner.deviceKeys)
  }

  /// Where a container is not what a golden says.
  func findings(_ container: Container, against golden: String) throws -> [Finding] {
    try text(of: container).findings(
      against: golden, volatile: fixture.volatile, redactor: runner.redactor, rowLimit: runner.rowLimit)
  }

  /// Where a container is not as `expect` says.
  func expectationFindings(_ container: Container) throws -> [Finding] {
    guard let expectation else { return [] }
    return try expectation.findings(in: runner.stage(on: container))
  }

  /// Takes what `expect` compares with the container as it is now, before it is migrated.
  ///
  /// - Returns: what cannot be taken.
  mutating func takeExpectation(before container: Container) throws -> [Finding] {
    guard let expected = expectation else { return [] }
    let (known, findings) = try expected.knowing(before: runner.stage(on: container))
    expectation = known
    return findings
  }

  func state(of container: Container) throws -> ExactState {
    try ExactState(of: runner.stage(on: container).live)
  }

  /// The numbers of migrations above a version, up to another.
  func migrations(above low: Int, upTo high: Int) -> [Int] {
    catalog.numbers.filter { $0 > low && $0 <= high }
  }
}
