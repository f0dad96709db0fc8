import AppContainer
import FileSystem

/// Which data of a container a fixture keeps, and which is made up.
package struct CaptureOptions: Sendable {
  /// The most rows to keep of each table.
  package var rows = 100
  /// Columns whose values are made up, as `TABLE.COLUMN`.
  package var columns: Set<String> = []
  /// Keys of settings and documents whose values are made up, and attributes of vault items.
  package var keys: Set<String> = []
  /// Patterns of files whose content is made up.
  package var files: [String] = []
  /// Patterns of files that are left out.
  package var dropped: [String] = []
  /// What is kept although it cannot be searched or equals a replaced value: patterns of files, `TABLE.COLUMN`,
  /// names of tables, columns, keys or files.
  package var kept: [String] = []
  /// The schema version, for a container that does not show it.
  package var version: Int?

  /// Secrets are made up, and nothing else.
  package init() {}

  /// Whether a pattern matches a path, or a directory above it.
  static func matches(_ patterns: [String], _ path: ContainerPath, isDirectory: Bool = false) -> Bool {
    let list = PatternList(patterns)
    return ([path] + path.ancestors.filter { !$0.isRoot }).contains { candidate in
      list.contains(candidate, isDirectory: isDirectory || candidate != path)
    }
  }

  /// Whether a list has a column. SQL ignores the case.
  static func lists(_ columns: some Sequence<String>, _ column: String) -> Bool {
    columns.contains { $0.lowercased() == column.lowercased() }
  }
}

/// What a captured fixture contains, and what was made up or left out; without any value.
package struct CaptureReport: Sendable, Codable {
  package struct Replaced: Sendable, Codable, Equatable {
    /// A file; with the key or the column after a colon.
    package var place: String
    /// Values that look like secrets, or are the vault's.
    package var secrets = 0
    /// Values that were chosen.
    package var chosen = 0
    /// Values that contain one replaced in another place.
    package var others = 0

    init(place: String) { self.place = place }
  }

  package struct Table: Sendable, Codable, Equatable {
    package var database: String, table: String
    /// The number of rows in the fixture, and in the container.
    package var kept: Int, of: Int
  }

  package struct Dropped: Sendable, Codable, Equatable {
    package var path: String, reason: String
  }

  package var directory: String
  package var version: Int
  /// Whether nothing in the container shows it.
  package var isUnmarked: Bool
  /// The numbers of files, settings files and vault items.
  package var files = 0, settings = 0, vaultItems = 0
  package var tables: [Table] = []
  package var replaced: [Replaced] = []
  package var dropped: [Dropped] = []
  /// Binary files that are in the fixture unchanged.
  package var binaries: [String] = []
  /// Notes for a reviewer.
  package var notes: [String] = []
}
