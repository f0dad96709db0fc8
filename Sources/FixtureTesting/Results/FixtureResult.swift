/// What the checks of one fixture found.
public struct FixtureResult: Sendable, Codable {
  /// How a fixture came out.
  public enum State: String, Sendable, Codable {
    case passed, failed
    /// It fails, and `fixture.yaml` says so.
    case knownFailure = "known-failure"
    /// It was not run: another one failed before, and the first failure was to be the last.
    case notRun = "not-run"
  }

  /// The fixture's name.
  public var name: String
  /// What it is, in its author's words.
  public var summary: String
  /// Its directory, as it was named.
  public var directory: String
  /// Its schema version, and the one that it was migrated to.
  public var from: Int, to: Int
  /// How it came out.
  public var state: State
  /// What is wrong; empty when it passed.
  public var findings: [FixtureFinding]
  /// What could not be checked, and why.
  public var notes: [String] = []
  /// Why it is known to fail.
  public var knownFailure: String?
  /// How long it took.
  public var seconds: Double
  /// Where the containers of a failure are kept.
  public var kept: String?
}
