@_exported import Drydock
import FileSystem
import Foundation
import MigrationEngine
import Synchronization

/// Tests an app's migrations on fixtures, which are containers of old versions, written as text.
///
/// The commands `drydock test` and `drydock fixture` call the same functions. In a test:
///
/// ```swift
/// let suite = try FixtureSuite(MigrationCatalog.load("Migrations"), fixtures: "Fixtures")
/// let result = try suite.run()
/// #expect(result.passed, "\(result)")
/// ```
///
/// | Noun | Verbs |
/// |---|---|
/// | ``FixtureSuite`` | `run`, `record`, `container(of:in:)` |
/// | ``Fixture`` | `load`, `all(in:)` |
/// | ``FixtureSuite/Report`` | what was found, with text for people |
public struct FixtureSuite: Sendable {
  /// The fixtures that are checked, by name.
  public let fixtures: [Fixture]
  /// The fixtures with their present goldens: `record` writes them.
  var current: [Fixture] { get throws { try fixtures.map { try $0.withPresentGoldens() } } }
  /// Whether these are all fixtures of the app, so that what must be true over all of them can be checked.
  private(set) var isWhole = false
  let catalog: MigrationCatalog
  let releases: Releases
  let configuration: ContainerConfiguration
  let options: FixtureSuite.Options

  /// The fixtures of a directory, or of it those that the options' filter names. `releases.yaml` beside the migrations
  /// says which versions are released.
  ///
  /// - Parameters:
  ///   - catalog: the migrations: a directory's, or those of a `MigrationPlan`.
  ///   - directory: has a directory for each fixture.
  ///   - configuration: what `drydock.yaml` says of the app's containers.
  /// - Throws: `DrydockError` with code `badFixture`, or `malformed` with the position, for an invalid fixture; with code `notFound`
  ///   when none is there, or none matches the filter: a check of nothing must not pass.
  public init(
    _ catalog: MigrationCatalog, fixtures directory: String,
    configuration: ContainerConfiguration = ContainerConfiguration(),
    options: FixtureSuite.Options = FixtureSuite.Options()
  ) throws {
    try self.init(
      catalog, fixtures: Fixture.all(in: directory), configuration: configuration, options: options)
    isWhole = options.filter.isEmpty && options.shard?.count ?? 1 == 1
  }

  /// Fixtures that were chosen; what must be true over all fixtures is not checked.
  ///
  /// - Throws: `DrydockError` with code `notFound` when the options' filter names none of them.
  public init(
    _ catalog: MigrationCatalog, fixtures: [Fixture],
    configuration: ContainerConfiguration = ContainerConfiguration(),
    options: FixtureSuite.Options = FixtureSuite.Options()
  ) throws {
    (self.catalog, self.configuration, self.options) = (catalog, configuration, options)
    releases = try Releases.read(catalog.directory)
    let patterns = PatternList(options.filter)
    let selected = fixtures.filter { fixture in
      let path = ContainerPath(name: Array(fixture.name.utf8))
      return options.filter.isEmpty || patterns.contains(path, isDirectory: true)
    }
    // A shard may have none of them.
    self.fixtures = selected.filter { options.shard?.contains($0.name) ?? true }
    guard selected.isEmpty else { return }
    throw DrydockError(
      .notFound,
      "no fixture is called \(options.filter.map { "“\($0)”" }.joined(separator: " or ")); there are "
        + fixtures.prefix(10).map(\.name).joined(separator: ", ") + (fixtures.count > 10 ? ", …" : ""))
  }

  /// Checks each fixture, and all of them together: builds its container, migrates it, and compares it with its goldens
  /// and expectations; migrates it again, rolls it back, and reverts it by down steps.
  ///
  /// - Parameter progress: called for each fixture that is done, in the order of their names, on the caller's thread.
  /// - Returns: the results by name; whatever is wrong with a fixture or a migration is a finding there.
  /// - Throws: `DrydockError` when no temporary directory or no key can be made.
  public func run(progress: (FixtureResult) -> Void = { _ in }) throws -> FixtureSuite.Report {
    let start = ContinuousClock.now
    let runner = try FixtureRunner(
      catalog: catalog, configuration: configuration, rowLimit: options.rowLimit)
    let temporary = try ScratchDirectory.temporary()
    let scratch = temporary.directory
    var checked: [CheckedFixture] = []
    let hasFailed = Mutex(false)
    OrderedWork.run(Array(try current.enumerated()), jobs: options.jobs) { number, fixture in
      if options.failsFast && hasFailed.withLock({ $0 }) { return CheckedFixture(notRun: fixture, catalog) }
      // Two that were chosen by hand may have the same name.
      let name = ContainerPath(name: Array("\(number + 1)".utf8))
      let one = check(fixture, runner) {
        try scratch.createDirectory(name, mode: 0o700)
        return try scratch.directory(name)
      }
      if one.result.state == .failed { hasFailed.withLock { $0 = true } }
      return one
    } deliver: { _, one in
      progress(one.result)
      checked.append(one)
    }
    var result = FixtureSuite.Report(fixtures: checked.map(\.result), findings: [], notes: [], seconds: 0)
    try checkTogether(checked, &result)
    result.seconds = (ContinuousClock.now - start) / .seconds(1)
    return result
  }

  /// Writes the goldens of the latest version, and those that released versions lack, one fixture after the other. A
  /// released golden is never changed. A fixture that must fail to migrate has no goldens.
  ///
  /// Review the difference of the files, as any change of a test.
  ///
  /// - Parameter progress: called for each fixture with its goldens, or with what went wrong.
  /// - Returns: the goldens of all fixtures.
  /// - Throws: the first error of a fixture, after all were tried: `DrydockError` with code `frozen` when the golden of
  ///   a released version would change. A fixture whose goldens cannot be recorded is unchanged.
  @discardableResult
  public func record(
    progress: (Fixture, Result<[FixtureSuite.Golden], any Error>) -> Void = { _, _ in }
  ) throws -> [FixtureSuite.Golden] {
    let runner = try FixtureRunner(catalog: catalog, configuration: configuration)
    let results = try current.filter(\.expectsSuccess).map { fixture in
      let result = Result { try record(fixture, runner) }
      progress(fixture, result)
      return result
    }
    return try results.flatMap { try $0.get() }
  }

  /// Builds a fixture's container, to try something on it. It has the version that `fixture.yaml` says.
  ///
  /// - Parameters:
  ///   - directory: is made; the container and its groups are in it, and nothing outside is touched.
  ///   - deviceKeys: to whom the vault is sealed; a new key by default.
  /// - Throws: `DrydockError` with code `notBuilt` when the directory exists, with code `badFixture` when the container
  ///   cannot be built, or has another version.
  public func container(
    of fixture: Fixture, in directory: String, deviceKeys: DeviceKeys? = nil
  ) throws -> Container {
    try FixtureRunner(catalog: catalog, configuration: configuration, deviceKeys: deviceKeys)
      .build(fixture, in: directory)
  }
}

extension FixtureSuite {
  /// Which fixtures are checked, and how.
  public struct Options: Sendable {
    /// Patterns of names of fixtures, such as `v*`; empty for all.
    public var filter: [String] = []
    /// How many fixtures are checked at once.
    public var jobs = 1
    /// Whether the first failure ends the run.
    public var failsFast = false
    /// A directory that takes the containers of failures; nil when they are removed.
    public var keep: String?
    /// The part of the fixtures that is checked; nil for all. What must be true over all fixtures is not checked then.
    package var shard: Shard?
    /// Whether results have what the migrations change, for a reviewer.
    public var showsDifference = false
    /// So many rows of a column are listed in findings, and the rest is counted.
    package var rowLimit = Self.rowLimit

    package static let rowLimit = 20

    /// All fixtures, one after the other.
    public init() {}
  }
}
