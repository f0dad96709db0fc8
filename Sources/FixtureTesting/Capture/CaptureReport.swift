import AppContainer

/// What of a container is in a fixture that was captured from it, and what was made up or left out. No value is in it.
package struct CaptureReport: Sendable, Codable {
  /// What was replaced in one place.
  package struct Replaced: Sendable, Codable, Equatable {
    /// A file; with the key or the column behind a colon.
    package var place: String
    /// Values that look like secrets, or are the vault's.
    package var secrets = 0
    /// Values that were chosen.
    package var chosen = 0
    /// Values that hold one that was replaced elsewhere.
    package var others = 0

    init(place: String) { self.place = place }
  }

  /// One table.
  package struct Table: Sendable, Codable, Equatable {
    /// The database's path, and the table.
    package var database: String, table: String
    /// Rows that are kept, and rows that there were.
    package var kept: Int, of: Int
  }

  /// What was left out.
  package struct Dropped: Sendable, Codable, Equatable {
    /// Its path, and why.
    package var path: String, reason: String
  }

  /// The fixture's directory.
  package var directory: String
  /// The container's schema version.
  package var version: Int
  /// Whether nothing in the container says it.
  package var isUnmarked: Bool
  /// Numbers of files, of settings files, of vault items.
  package var files = 0, settings = 0, vaultItems = 0
  /// Tables of databases.
  package var tables: [Table] = []
  /// What was replaced, by place.
  package var replaced: [Replaced] = []
  /// What was left out.
  package var dropped: [Dropped] = []
  /// Binary files that are in the fixture as they were.
  package var binaries: [String] = []
  /// What a person should know of it.
  package var notes: [String] = []
}
