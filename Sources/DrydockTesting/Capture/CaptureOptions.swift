import AppContainer
import FileSystem

/// What of a container a fixture keeps, and what is made up in it.
package struct CaptureOptions: Sendable {
  /// The most rows that are kept of each table.
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
  /// Names that a container must have, whatever its data are.
  private(set) var known: Set<String> = []
  /// The schema version, for a container that does not say it.
  package var version: Int?

  /// Secrets are made up, and nothing else.
  package init() {}

  /// What leaves a path out.
  func drops(_ path: ContainerPath, isDirectory: Bool = false) -> Bool {
    Self.matches(dropped, path, isDirectory)
  }

  /// Whether a file's content is made up.
  func replaces(_ path: ContainerPath) -> Bool { Self.matches(files, path, false) }

  /// Names that stay although a replaced value is in them.
  var keptNames: Set<String> { known.union(kept) }

  /// Whether a file is kept that cannot be searched.
  func keeps(_ path: ContainerPath) -> Bool { Self.matches(kept, path, false) }

  /// Whether a column's values are made up, and whether they are kept though they cannot be searched. SQL ignores
  /// the case.
  func replaces(column: String) -> Bool { columns.contains { $0.lowercased() == column.lowercased() } }
  func keeps(column: String) -> Bool { kept.contains { $0.lowercased() == column.lowercased() } }

  /// With the names that a container must have.
  func knowing(_ container: Container) -> CaptureOptions {
    let configuration = container.configuration
    var paths: [ContainerPath] = [container.vaultPath, container.historyPath]
    paths += [container.standardDefaults].compactMap { $0 } + configuration.defaults.values
    paths += configuration.databases.values.flatMap { $0 }
    var options = self
    options.known = [
      "Documents", "Library", "Preferences", "Application Support", "files", "databases", "shared_prefs",
    ]
    options.known.formUnion(paths.flatMap { $0.components.map { String(decoding: $0, as: UTF8.self) } })
    options.known.formUnion(configuration.groups.keys)
    return options
  }

  private static func matches(_ patterns: [String], _ path: ContainerPath, _ isDirectory: Bool) -> Bool {
    guard !patterns.isEmpty else { return false }
    let list = PatternList(patterns)
    // What is said of a directory holds for all below it.
    let above = path.ancestors.filter { !$0.isRoot }
    return ([path] + above).contains { candidate in
      if case .matched = list.verdict(of: candidate, isDirectory: isDirectory || candidate != path) {
        true
      } else {
        false
      }
    }
  }
}

/// What of a container is in a fixture that was captured from it, and what was made up or left out. No value is in it.
package struct CaptureReport: Sendable, Codable {
  package struct Replaced: Sendable, Codable, Equatable {
    /// A file; with the key or the column behind a colon.
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
    /// Rows that are kept, and rows that there were.
    package var kept: Int, of: Int
  }

  package struct Dropped: Sendable, Codable, Equatable {
    package var path: String, reason: String
  }

  package var directory: String
  package var version: Int
  /// Whether nothing in the container says it.
  package var isUnmarked: Bool
  /// Numbers of files, of settings files, of vault items.
  package var files = 0, settings = 0, vaultItems = 0
  package var tables: [Table] = []
  package var replaced: [Replaced] = []
  package var dropped: [Dropped] = []
  /// Binary files that are in the fixture as they were.
  package var binaries: [String] = []
  /// What a person should know of it.
  package var notes: [String] = []
}
