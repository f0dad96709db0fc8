import ContainerTransaction

/// What recording did with a golden.
public struct RecordedGolden: Sendable, Codable {
  /// What became of it.
  public enum Change: String, Sendable, Codable {
    case written, updated, unchanged
    /// It was of a version that is neither the latest nor released.
    case removed
  }

  /// The fixture's name.
  public var fixture: String
  /// The schema version.
  public var version: Int
  /// Its directory.
  public var directory: String
  /// What became of it.
  public var change: Change
  /// What the new one says differently, secrets hidden; nothing when only the way changed in which it is written. Nil when
  /// there was none before that can be read, or when it was removed or is unchanged.
  public var difference: ContainerDifference?
}
