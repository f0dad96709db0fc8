/// What the checks of all fixtures found.
package struct SuiteResult: Sendable, Codable {
  /// The results, by the fixtures' names.
  package var fixtures: [FixtureResult]
  /// What is wrong with the fixtures as a whole: steps that none exercises, releases that none stands for, migrated
  /// containers that are not like fresh ones.
  package var findings: [FixtureFinding]
  /// What could not be checked over all fixtures, and why: some were filtered out.
  package var notes: [String]
  /// How long it took.
  package var seconds: Double

  /// Whether nothing failed that is not known to.
  package var passed: Bool {
    findings.isEmpty && fixtures.allSatisfy { $0.state == .passed || $0.state == .knownFailure }
  }
}
