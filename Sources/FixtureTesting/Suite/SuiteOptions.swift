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
  /// How often the migration of each fixture is killed.
  package var torture = 0
  /// The program that is killed: its path and the arguments before the container's path.
  package var tortured: [String] = []

  /// All fixtures, one after the other.
  package init() {}
}
