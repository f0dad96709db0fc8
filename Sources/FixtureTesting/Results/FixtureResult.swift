/// What the checks of one fixture found.
package struct FixtureResult: Sendable, Codable {
  /// How a fixture came out.
  package enum State: String, Sendable, Codable {
    case passed, failed
    /// It fails, and `fixture.yaml` says so.
    case knownFailure = "known-failure"
    /// It was not run: another one failed before, and the first failure was to be the last.
    case notRun = "not-run"
  }

  /// The fixture's name.
  package var name: String
  /// What it is, in its author's words.
  package var summary: String
  /// Its directory, as it was named.
  package var directory: String
  /// Its schema version, and the one that it was migrated to.
  package var from: Int, to: Int
  /// How it came out.
  package var state: State
  /// What is wrong; empty when it passed.
  package var findings: [FixtureFinding]
  /// What could not be checked, and why.
  package var notes: [String] = []
  /// Why it is known to fail.
  package var knownFailure: String?
  /// How long it took.
  package var seconds: Double
  /// Where the containers of a failure are kept.
  package var kept: String?
}
