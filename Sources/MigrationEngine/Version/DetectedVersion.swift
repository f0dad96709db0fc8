/// Which version a container has, and how that was found out.
public struct DetectedVersion: Sendable, Equatable {
  /// What said it.
  public enum Source: Sendable, Equatable, CustomStringConvertible {
    /// The history of migrations.
    case history
    /// A version marker of the app, named in words.
    case marker(String)
    /// There is nothing in the container yet.
    case newContainer

    /// Words for people: "the history", "the setting `x`", "a new container".
    public var description: String {
      switch self {
      case .history: "the history"
      case .marker(let name): name
      case .newContainer: "a new container"
      }
    }
  }

  /// The schema version.
  public var version: Int
  /// What said it.
  public var source: Source
  /// The history as it is in the container; empty when there is none.
  public var history: MigrationHistory
  /// The numbers that the app migrated itself, beyond the history: to be recorded.
  public var byTheApp: [Int]
}
