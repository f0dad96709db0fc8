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
  /// What stays although nobody can look into it or it is like a replaced value: patterns of files, `TABLE.COLUMN`,
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

  /// Whether a file stays that nobody can look into.
  func keeps(_ path: ContainerPath) -> Bool { Self.matches(kept, path, false) }

  /// Whether a column's values are made up, and whether it stays though nobody can look into it. SQL takes capitals for
  /// small letters.
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
