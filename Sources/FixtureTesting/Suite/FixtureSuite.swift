import AgeEncryption
import AppContainer
import DrydockErrors
import FileSystem
import Foundation
import MigrationEngine
import Synchronization

/// Checks migrations on fixtures: on each, and over all of them.
package struct FixtureSuite: Sendable {
  /// The fixtures that are checked, by name.
  package let fixtures: [Fixture]
  /// Whether these are all fixtures of the app, so that what must be true over all of them can be checked.
  package let isWhole: Bool

  let catalog: MigrationCatalog
  let releases: Releases
  let configuration: ContainerConfiguration
  let options: SuiteOptions

  /// The fixtures of a directory, or of it those that the options' filter names.
  ///
  /// - Throws: `DrydockError` (with `file:line:column`) for an invalid fixture;
  ///   `DrydockError` with code `notFound` when none is there, or none matches the filter: a check of nothing must not
  ///   pass.
  package init(
    catalog: MigrationCatalog, releases: Releases, configuration: ContainerConfiguration, directory: String,
    options: SuiteOptions = SuiteOptions()
  ) throws {
    let all = try Fixture.all(in: directory)
    try self.init(
      catalog: catalog, releases: releases, configuration: configuration, fixtures: all,
      isWhole: options.filter.isEmpty, options: options)
  }

  /// Fixtures that were chosen by hand; what must be true over all fixtures is left out.
  ///
  /// - Throws: `DrydockError` with code `notFound` when the options' filter names none of them.
  package init(
    catalog: MigrationCatalog, releases: Releases, configuration: ContainerConfiguration, fixtures: [Fixture],
    options: SuiteOptions = SuiteOptions()
  ) throws {
    try self.init(
      catalog: catalog, releases: releases, configuration: configuration, fixtures: fixtures, isWhole: false,
      options: options)
  }

  private init(
    catalog: MigrationCatalog, releases: Releases, configuration: ContainerConfiguration, fixtures: [Fixture],
    isWhole: Bool, options: SuiteOptions
  ) throws {
    self.fixtures = try Self.chosen(fixtures, options.filter)
    (self.catalog, self.releases, self.configuration) = (catalog, releases, configuration)
    (self.isWhole, self.options) = (isWhole, options)
  }

  private static func chosen(_ fixtures: [Fixture], _ filter: [String]) throws -> [Fixture] {
    guard !filter.isEmpty else { return fixtures }
    let patterns = PatternList(filter)
    let chosen = fixtures.filter { fixture in
      let path = ContainerPath(name: Array(fixture.name.utf8))
      guard case .matched = patterns.verdict(of: path, isDirectory: true) else { return false }
      return true
    }
    guard !chosen.isEmpty else {
      throw DrydockError(
        .notFound,
        "no fixture is called \(filter.map { "“\($0)”" }.joined(separator: " or ")); there are "
          + fixtures.prefix(10).map(\.name).joined(separator: ", ") + (fixtures.count > 10 ? ", …" : ""))
    }
    return chosen
  }
}

/// What of the fixtures is checked, and how.
package struct SuiteOptions: Sendable {
  /// Patterns of names of fixtures, such as `v*`; empty for all.
  package var filter: [String] = []
  /// How many fixtures are checked at once.
  package var jobs = 1
  /// Whether the first failure ends the run.
  package var failsFast = false
  /// A directory that takes the containers of failures; nil when they are removed.
  package var keep: String?

  /// All fixtures, one after the other.
  package init() {}
}

extension FixtureSuite {
  /// Checks them.
  ///
  /// - Parameter progress: called for each fixture that is done, in the order of their names, on the caller's thread.
  /// - Returns: the results by name; whatever is wrong with a fixture or a migration is a finding there.
  /// - Throws: `DrydockError` when no temporary directory or no key can be made.
  package func run(progress: (FixtureResult) -> Void = { _ in }) throws -> SuiteResult {
    let start = ContinuousClock.now
    let runner = try FixtureRunner(catalog: catalog, configuration: configuration)
    return try ScratchDirectory.withTemporary { scratch in
      var proofs: [FixtureProof] = []
      let hasFailed = Mutex(false)
      OrderedWork.run(Array(fixtures.enumerated()), jobs: options.jobs) { number, fixture in
        if options.failsFast && hasFailed.withLock({ $0 }) { return FixtureProof(notRun: fixture, catalog) }
        // Two that were chosen by hand may have the same name.
        let name = ContainerPath(name: Array("\(number + 1)".utf8))
        let proof = prove(fixture, runner) {
          try scratch.createDirectory(name, mode: 0o700)
          return try scratch.directory(name)
        }
        if proof.result.state == .failed { hasFailed.withLock { $0 = true } }
        return proof
      } deliver: { _, proof in
        progress(proof.result)
        proofs.append(proof)
      }
      var result = SuiteResult(
        fixtures: proofs.map(\.result), findings: [], notes: [],
        seconds: (ContinuousClock.now - start) / .seconds(1))
      try checkTogether(proofs, &result)
      result.seconds = (ContinuousClock.now - start) / .seconds(1)
      return result
    }
  }

  private func prove(
    _ fixture: Fixture, _ runner: FixtureRunner, in scratch: () throws -> Directory
  ) -> FixtureProof {
    let start = ContinuousClock.now
    var proof = FixtureProof(notRun: fixture, catalog)
    do {
      let work = FixtureWork(fixture: fixture, runner: runner, scratch: try scratch())
      var checks = FixtureChecks(work, freshVersions: fixture.isFresh ? freshVersions : [])
      checks.run()
      proof.take(checks)
      if proof.result.state == .failed, let keep = options.keep { proof.keep(work, in: keep) }
      try work.removeContainers()
    } catch {
      proof.result.findings.append(FixtureFinding(.build, FixtureChecks.text(of: error)))
      proof.result.state = .failed
    }
    proof.result.seconds = (ContinuousClock.now - start) / .seconds(1)
    return proof
  }

  /// The versions that the app itself wrote a container of.
  private var freshVersions: Set<Int> { Set(fixtures.filter(\.isFresh).map(\.version)) }

  private func checkTogether(_ proofs: [FixtureProof], _ result: inout SuiteResult) throws {
    guard isWhole else {
      return result.notes.append(
        "cross-fixture checks skipped: only some fixtures were selected")
    }
    if proofs.contains(where: { $0.result.state == .notRun }) {
      return result.notes.append(
        "cross-fixture checks skipped: the first failure ended the run")
    }
    result.findings += ReleaseCheck.findings(fixtures, releases, catalog)
    let unfinished = proofs.filter { !$0.didRun && $0.result.state == .failed }.map(\.result.name)
    if unfinished.isEmpty {
      result.findings += Coverage.findings(proofs, catalog)
    } else {
      result.notes.append(
        "coverage of steps not checked: \(unfinished.joined(separator: ", ")) could not be migrated")
    }
    result.findings += try FreshCheck.findings(proofs, catalog, jobs: options.jobs)
  }
}

/// What the checks of one fixture found, and what the checks over all need to know of it.
struct FixtureProof: Sendable {
  let fixture: Fixture
  var result: FixtureResult
  var effective: Set<StepOutline> = []
  var didRun = false
  var shapes: [Int: String] = [:]

  init(notRun fixture: Fixture, _ catalog: MigrationCatalog) {
    self.fixture = fixture
    result = FixtureResult(
      name: fixture.name, summary: fixture.summary, directory: fixture.directory, from: fixture.version,
      to: catalog.latest, state: .notRun, findings: [], knownFailure: fixture.knownFailure, seconds: 0)
  }

  mutating func take(_ checks: FixtureChecks) {
    (effective, didRun, shapes) = (checks.effective, checks.didRun, checks.shapes)
    (result.findings, result.notes) = (checks.findings, checks.notes)
    result.state = result.findings.isEmpty ? .passed : .failed
    guard let why = fixture.knownFailure else { return }
    guard result.findings.isEmpty else { return result.state = .knownFailure }
    var finding = FixtureFinding(
      .known, "the fixture passes now: remove `known-failure` from fixture.yaml")
    (finding.expected, finding.file) = (why, fixture.directory + "/fixture.yaml")
    (result.findings, result.state) = ([finding], .failed)
  }

  /// Keeps the container for inspection, where there is one.
  mutating func keep(_ work: FixtureWork, in directory: String) {
    if result.findings.contains(where: { $0.check == .build }) { return }
    do {
      result.kept = try KeptContainer(work, in: directory).path
    } catch {
      result.notes.append("the container could not be kept: \(FixtureChecks.text(of: error))")
    }
  }
}

/// The container of a failed fixture, kept for inspection: migrated as far as possible, with the key that opens
/// its vault.
struct KeptContainer {
  /// The directory with `container` and `device-key.txt`.
  let path: String

  /// Makes it. What an earlier run kept stays: the next free name is taken.
  ///
  /// - Parameter directory: is made when it does not exist.
  init(_ work: FixtureWork, in directory: String) throws {
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    let parent = try Directory(directory)
    let name = work.fixture.name
    var free = name
    var number = 2
    while try parent.status(ContainerPath(name: Array(free.utf8))) != nil {
      free = "\(name)-\(number)"
      number += 1
    }
    path = directory + "/" + free
    let container = try work.runner.build(work.fixture, in: path)
    try SecretFile.create(
      path + "/device-key.txt",
      KeyFile.text(of: work.runner.deviceKeys.present, created: Date().ISO8601Format()))
    // One that cannot be migrated is kept unchanged.
    _ = try? work.runner.migrate(container)
  }
}

extension FixtureSuite {
  /// The goldens recorded for one fixture.
  package struct Recording: Sendable {
    package var fixture: String
    /// Its goldens by version; empty when it has none to be.
    package var goldens: [RecordedGolden] = []
    package var problem: (any Error)?
  }

  /// Writes and updates the goldens of the fixtures, one fixture after the other; what was recorded before a problem stays.
  /// A fixture that must fail to migrate has no goldens, and neither has one that does.
  ///
  /// To check the fixtures with their new goldens, load them again.
  ///
  /// - Parameter progress: called for each fixture that is done.
  /// - Throws: `DrydockError` when no device key can be made.
  package func record(progress: (Recording) -> Void = { _ in }) throws -> [Recording] {
    let runner = try FixtureRunner(catalog: catalog, configuration: configuration)
    return fixtures.filter(\.expectsSuccess).map { fixture in
      var recording = Recording(fixture: fixture.name)
      do { recording.goldens = try record(fixture, runner) } catch { recording.problem = error }
      progress(recording)
      return recording
    }
  }

  private func record(_ fixture: Fixture, _ runner: FixtureRunner) throws -> [RecordedGolden] {
    let recorder = GoldenRecorder(
      fixture, latest: catalog.latest, releases: releases, deviceKeys: runner.deviceKeys,
      redactor: runner.redactor)
    return try ScratchDirectory.withTemporary { scratch in
      let container = try runner.build(fixture, in: scratch.full("container"))
      // Versions are asked for from the lowest on: it is one container that is migrated on and on.
      return try recorder.record { version in
        // Of its own version it is as it was made, without even a history.
        if version > fixture.version { try runner.migrate(container, to: version) }
        return container
      }
    }
  }
}
