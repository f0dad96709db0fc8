import AgeEncryption
import DrydockErrors
import FileSystem
import Foundation
import MigrationEngine

extension FixtureSuite {
  func check(
    _ fixture: Fixture, _ runner: FixtureRunner, in scratch: () throws -> Directory
  ) -> CheckedFixture {
    let start = ContinuousClock.now
    var checked = CheckedFixture(notRun: fixture, catalog)
    do {
      let work = FixtureWork(fixture: fixture, runner: runner, scratch: try scratch())
      var checks = FixtureChecks(work, freshVersions: fixture.isFresh ? freshVersions : [])
      checks.run()
      checked = checks.checked
      checked.conclude()
      if options.showsDifference, fixture.expectsSuccess, checked.didRun { checked.compare(work) }
      if checked.result.state == .failed, let keep = options.keep { checked.keep(work, in: keep) }
      try work.removeContainers()
    } catch {
      checked.result.findings.append(Finding(.build, DrydockError.text(of: error)))
      checked.result.state = .failed
    }
    checked.result.seconds = (ContinuousClock.now - start) / .seconds(1)
    return checked
  }

  /// The versions that the app itself wrote a container of.
  private var freshVersions: Set<Int> { Set(fixtures.filter(\.isFresh).map(\.version)) }

  func checkTogether(_ checked: [CheckedFixture], _ result: inout FixtureSuite.Report) throws {
    guard isWhole else {
      return result.notes.append(
        "cross-fixture checks skipped: only some fixtures were selected")
    }
    if checked.contains(where: { $0.result.state == .notRun }) {
      return result.notes.append(
        "cross-fixture checks skipped: the first failure ended the run")
    }
    result.findings += releaseFindings
    let unfinished = checked.filter { !$0.didRun && $0.result.state == .failed }.map(\.result.name)
    if unfinished.isEmpty {
      result.findings += coverageFindings(checked)
      result.notes += unusedLosses(checked)
    } else {
      result.notes.append(
        "coverage of steps not checked: \(unfinished.joined(separator: ", ")) could not be migrated")
    }
    result.findings += freshFindings(checked)
    // A fixture that fails may not have come to its down migrations.
    guard checked.allSatisfy({ $0.result.state == .passed }) else { return }
    let needed = checked.reduce(into: Set<DownLoss>()) { $0.formUnion($1.downLosses) }
    result.notes += DownLoss.all(of: catalog.migrations).filter { !needed.contains($0) }.map(\.unneededNote)
  }
}

/// What the checks of one fixture found, and what the checks over all need to know of it.
struct CheckedFixture: Sendable {
  let fixture: Fixture
  var result: FixtureResult
  /// The steps of migrations that had an effect.
  var effective: Set<StepOutline> = []
  /// What steps lost unannounced, by the migrations' numbers.
  var lost: [Int: Set<String>] = [:]
  /// Whether the container could be made and migrated as it was to be: only then its steps count.
  var didRun = false
  /// The container at versions of which there is a fresh one, without its rows.
  var shapes: [Int: [GoldenEntry]] = [:]
  /// The announced losses of down migrations that occurred.
  var downLosses: Set<DownLoss> = []

  init(notRun fixture: Fixture, _ catalog: MigrationCatalog) {
    self.fixture = fixture
    result = FixtureResult(
      name: fixture.name, summary: fixture.summary, directory: fixture.directory, from: fixture.version,
      to: catalog.latest, state: .notRun, findings: [], knownFailure: fixture.knownFailure, seconds: 0)
  }

  /// Sets the state by what was found.
  mutating func conclude() {
    result.state = result.findings.isEmpty ? .passed : .failed
    guard let why = fixture.knownFailure else { return }
    guard result.findings.isEmpty else { return result.state = .knownFailure }
    let finding = Finding(
      .known, "the fixture passes now: remove `known-failure` from fixture.yaml", expected: why,
      file: fixture.file)
    (result.findings, result.state) = ([finding], .failed)
  }

  /// Finds what the migrations change from the last version before that has a golden on.
  mutating func compare(_ work: FixtureWork) {
    let latest = work.catalog.latest
    guard let base = fixture.base(of: latest) else { return }
    do {
      let container = try work.container("difference")
      if base > fixture.version { try work.runner.migrate(container, to: base) }
      (result.base, result.difference) = (base, try work.runner.difference(of: container, to: latest))
    } catch {
      result.notes.append("what the migrations change could not be shown: \(DrydockError.text(of: error))")
    }
  }

  /// Keeps the container for inspection, where there is one: migrated as far as possible, with the key that opens its
  /// vault.
  mutating func keep(_ work: FixtureWork, in directory: String) {
    if result.findings.contains(where: { $0.check == .build }) { return }
    do {
      try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
      // What an earlier run kept stays: the next free name is taken.
      let names = (1...).lazy.map { $0 == 1 ? work.fixture.name : "\(work.fixture.name)-\($0)" }
      let path = names.map { "\(directory)/\($0)" }.first { !FileManager.default.fileExists(atPath: $0) }
      guard let path else { return }
      let container = try work.runner.build(work.fixture, in: path)
      try SecretFile.create(
        path + "/device-key.txt",
        KeyFile.text(of: work.runner.deviceKeys.present, created: Date().ISO8601Format()))
      // A container that cannot be migrated is kept unchanged.
      _ = try? work.runner.migrate(container)
      result.kept = path
    } catch {
      result.notes.append("the container could not be kept: \(DrydockError.text(of: error))")
    }
  }
}

extension FixtureSuite {
  func record(_ fixture: Fixture, _ runner: FixtureRunner) throws -> [FixtureSuite.Golden] {
    let recorder = GoldenRecorder(
      fixture, latest: catalog.latest, releases: releases, deviceKeys: runner.deviceKeys,
      redactor: runner.redactor)
    let temporary = try ScratchDirectory.temporary()
    let scratch = temporary.directory
    let container = try runner.build(fixture, in: scratch.full("container"))
    // Versions are asked for from the lowest on: it is one container that is migrated on and on.
    return try recorder.record { version in
      // Of its own version it is as it was made, without even a history.
      if version > fixture.version { try runner.migrate(container, to: version) }
      return container
    } migrating: {
      try runner.difference(of: $0, to: $1)
    }
  }
}
