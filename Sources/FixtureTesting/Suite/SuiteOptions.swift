/// What of the fixtures is checked, and how.
public struct SuiteOptions: Sendable {
  /// Patterns of names of fixtures, such as `v*`; empty for all.
  public var filter: [String] = []
  /// How many fixtures are checked at once.
  public var jobs = 1
  /// Whether the first failure ends the run.
  public var failsFast = false
  /// A directory that takes the containers of failures; nil when they are removed.
  public var keep: String?
  /// How often the migration of each fixture is killed.
  public var torture = 0
  /// The program that is killed: its path and the arguments before the container's path.
  public var tortured: [String] = []

  /// All fixtures, one after the other.
  public init() {}
}
