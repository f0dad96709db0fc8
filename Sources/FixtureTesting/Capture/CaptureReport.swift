import AppContainer

/// What of a container is in a fixture that was captured from it, and what was made up or left out. No value is in it.
public struct CaptureReport: Sendable, Codable {
  /// What was replaced in one place.
  public struct Replaced: Sendable, Codable, Equatable {
    /// A file; with the key or the column behind a colon.
    public var place: String
    /// Values that look like secrets, or are the vault's.
    public var secrets = 0
    /// Values that were chosen.
    public var chosen = 0
    /// Values that hold one that was replaced elsewhere.
    public var others = 0

    init(place: String) { self.place = place }
  }

  /// One table.
  public struct Table: Sendable, Codable, Equatable {
    /// The database's path, and the table.
    public var database: String, table: String
    /// Rows that are kept, and rows that there were.
    public var kept: Int, of: Int
  }

  /// What was left out.
  public struct Dropped: Sendable, Codable, Equatable {
    /// Its path, and why.
    public var path: String, reason: String
  }

  /// The fixture's directory.
  public var directory: String
  /// The container's schema version.
  public var version: Int
  /// Whether nothing in the container says it.
  public var isUnmarked: Bool
  /// Numbers of files, of settings files, of vault items.
  public var files = 0, settings = 0, vaultItems = 0
  /// Tables of databases.
  public var tables: [Table] = []
  /// What was replaced, by place.
  public var replaced: [Replaced] = []
  /// What was left out.
  public var dropped: [Dropped] = []
  /// Binary files that are in the fixture as they were.
  public var binaries: [String] = []
  /// What a person should know of it.
  public var notes: [String] = []
}
