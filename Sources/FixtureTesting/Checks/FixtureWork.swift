import AppContainer
import FileSystem
import MigrationEngine

/// One fixture in work: makes its containers, as many as its checks need, each in a place of its own.
struct FixtureWork {
  let fixture: Fixture
  let runner: FixtureRunner
  /// Where the containers and what is written down of them go.
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

  /// Makes the fixture's container anew.
  ///
  /// - Parameter name: What it is for; each is used once.
  func container(_ name: String) throws -> Container {
    try runner.build(fixture, in: path("container-" + name))
  }

  /// Removes the containers; what was written down of them stays.
  func removeContainers() throws {
    for name in try scratch.names() where name.starts(with: "container-".utf8) {
      try scratch.removeTree(ContainerPath(name: name))
    }
  }

  /// Writes a container down as a golden in the scratch directory.
  ///
  /// - Returns: the golden's directory.
  func write(_ container: Container, as name: String) throws -> String {
    let directory = path(name)
    try GoldenCheck.write(
      container, to: directory, volatile: fixture.volatile, deviceKeys: runner.deviceKeys)
    return directory
  }

  /// Where a container is not what a golden says.
  ///
  /// - Parameter check: What the findings are about.
  func findings(
    _ container: Container, against golden: String, _ check: FixtureFinding.Check = .golden
  ) throws -> [FixtureFinding] {
    try GoldenCheck.findings(
      container, against: golden, volatile: fixture.volatile, deviceKeys: runner.deviceKeys,
      redactor: runner.redactor
    ).map { finding in
      var finding = finding
      finding.check = check
      return finding
    }
  }

  /// Where a container differs from what was written down in this run, however it is written.
  ///
  /// - Parameter name: The golden that the container is written down as.
  func differences(
    _ container: Container, from golden: String, as name: String
  ) throws -> [FixtureFinding] {
    let found = try write(container, as: name)
    if try GoldenText.isSame(golden, found) { return [] }
    return try ScratchDirectory.with("compared-", in: scratch) { scratch in
      let comparison = try GoldenComparison(golden, found, fixture.volatile, runner.redactor, in: scratch)
      return comparison.difference.isEmpty ? [] : try comparison.findings()
    }
  }

  /// Where a container is not as `expect` says.
  func expectationFindings(_ container: Container) throws -> [FixtureFinding] {
    guard let expectation else { return [] }
    return try runner.inspect(container) { try expectation.findings(in: $0) }
  }

  /// Takes what `expect` compares with the container as it is now, before it is migrated.
  ///
  /// - Returns: what cannot be taken.
  mutating func takeExpectation(before container: Container) throws -> [FixtureFinding] {
    guard let expected = expectation else { return [] }
    let (known, findings) = try runner.inspect(container) { try expected.knowing(before: $0) }
    expectation = known
    return findings
  }

  /// All that can be told of a container.
  func state(of container: Container) throws -> ExactState {
    try runner.inspect(container) { try ExactState(of: $0.live) }
  }

  /// The numbers of migrations above a version, up to another.
  func migrations(above low: Int, upTo high: Int) -> [Int] {
    catalog.numbers.filter { $0 > low && $0 <= high }
  }
}
