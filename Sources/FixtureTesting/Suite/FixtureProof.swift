import MigrationEngine

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

  /// Keeps the container for a person to look at, where there is one.
  mutating func keep(_ work: FixtureWork, in directory: String) {
    if result.findings.contains(where: { $0.check == .build }) { return }
    do {
      result.kept = try KeptContainer(work, in: directory).path
    } catch {
      result.notes.append("the container could not be kept: \(FixtureChecks.text(of: error))")
    }
  }
}
