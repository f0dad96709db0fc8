import ContainerDiff

/// What recording did with a golden.
package struct RecordedGolden: Sendable, Codable {
  /// What became of it.
  package enum Change: String, Sendable, Codable {
    case written, updated, unchanged
    /// It was of a version that is neither the latest nor released.
    case removed
  }

  /// The fixture's name.
  package var fixture: String
  /// The schema version.
  package var version: Int
  /// Its directory.
  package var directory: String
  /// What became of it.
  package var change: Change
  /// What the new one says differently, secrets hidden; nothing when only the way changed in which it is written. Nil when
  /// there was none before that can be read, or when it was removed or is unchanged.
  package var difference: ContainerDifference?
}
