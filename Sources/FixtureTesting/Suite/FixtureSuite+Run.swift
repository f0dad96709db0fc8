import AppContainer
import MigrationEngine
import Synchronization

extension FixtureSuite {
  /// Checks them.
  ///
  /// - Parameter progress: is told of each fixture that is done, in the order of their names, on the caller's thread.
  /// - Returns: the results by name; whatever is wrong with a fixture or a migration is a finding there.
  /// - Throws: `ContainerError` when no scratch directory can be made, `AgeError` when no key can be.
  public func run(progress: (FixtureResult) -> Void = { _ in }) throws -> SuiteResult {
    let start = ContinuousClock.now
    let runner = try FixtureRunner(catalog: catalog, configuration: configuration)
    return try ScratchDirectory.withTemporary { scratch in
      var proofs: [FixtureProof] = []
      let hasFailed = Mutex(false)
      OrderedWork.run(fixtures, jobs: options.jobs) { fixture in
        if options.failsFast && hasFailed.withLock({ $0 }) { return FixtureProof(notRun: fixture, catalog) }
        let proof = prove(fixture, runner, scratch)
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

  private func prove(_ fixture: Fixture, _ runner: FixtureRunner, _ scratch: Directory) -> FixtureProof {
    let start = ContinuousClock.now
    var proof = FixtureProof(notRun: fixture, catalog)
    do {
      let name = ContainerPath(name: Array(fixture.name.utf8))
      try scratch.createDirectories(name, mode: 0o700)
      let work = FixtureWork(fixture: fixture, runner: runner, scratch: try scratch.directory(name))
      var checks = FixtureChecks(work, freshVersions: fixture.isFresh ? freshVersions : [])
      checks.run()
      checks.torture(options.tortured, count: options.torture)
      proof.take(checks)
      try work.removeContainers()
      if proof.result.state == .failed, let keep = options.keep {
        proof.result.kept = try KeptContainer(work, in: keep).path
      }
    } catch {
      proof.result.findings.append(FixtureChecks.finding(error, .build, fixture))
      proof.result.state = .failed
    }
    proof.result.seconds = (ContinuousClock.now - start) / .seconds(1)
    return proof
  }

  /// The versions that the app itself wrote a container of.
  private var freshVersions: Set<Int> { Set(fixtures.filter(\.isFresh).map(\.version)) }

  /// What must be true over all fixtures.
  private func checkTogether(_ proofs: [FixtureProof], _ result: inout SuiteResult) throws {
    guard isWhole else {
      return result.notes.append(
        "what must be true over all fixtures was not checked: these are not all of them")
    }
    if proofs.contains(where: { $0.result.state == .notRun }) {
      return result.notes.append(
        "what must be true over all fixtures was not checked: the first failure ended the run")
    }
    result.findings += ReleaseCheck.findings(fixtures, releases, catalog)
    let unfinished = proofs.filter { !$0.didRun }.map(\.result.name)
    if unfinished.isEmpty {
      result.findings += Coverage.findings(proofs, catalog)
    } else {
      result.notes.append(
        "whether each step has an effect on some fixture was not checked: \(unfinished.joined(separator: ", ")) could "
          + "not be migrated")
    }
    result.findings += try FreshCheck.findings(proofs, catalog)
  }
}

/// What the checks of one fixture found, and what the checks over all need to know of it.
struct FixtureProof: Sendable {
  let fixture: Fixture
  var result: FixtureResult
  /// See ``FixtureChecks``.
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
      .known, "it passes now, and fixture.yaml says that it fails: take `known-failure` out")
    (finding.expected, finding.file) = (why, fixture.directory + "/fixture.yaml")
    (result.findings, result.state) = ([finding], .failed)
  }
}
