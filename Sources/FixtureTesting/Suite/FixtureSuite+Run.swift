import FileSystem
import MigrationEngine
import Synchronization

extension FixtureSuite {
  /// Checks them.
  ///
  /// - Parameter progress: is told of each fixture that is done, in the order of their names, on the caller's thread.
  /// - Returns: the results by name; whatever is wrong with a fixture or a migration is a finding there.
  /// - Throws: `DrydockError` when no scratch directory can be made, `DrydockError` when no key can be.
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
      checks.torture(options.tortured, count: options.torture)
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
    let unfinished = proofs.filter { !$0.didRun && $0.result.state == .failed }.map(\.result.name)
    if unfinished.isEmpty {
      result.findings += Coverage.findings(proofs, catalog)
    } else {
      result.notes.append(
        "whether each step has an effect on some fixture was not checked: \(unfinished.joined(separator: ", ")) could "
          + "not be migrated")
    }
    result.findings += try FreshCheck.findings(proofs, catalog, jobs: options.jobs)
  }
}
