import MigrationEngine

/// The place in a migration that an error names: `file:line:column: …`.
struct MigrationPlace {
  /// The migration, such as `0002_rename_settings`.
  let migration: String
  /// Its file, and the line from 1.
  let file: String, line: Int?

  /// Finds the place at the start of a message; nil when it is about no migration.
  init?(in message: String, _ catalog: MigrationCatalog) {
    for migration in catalog.migrations {
      // Migrations in Swift share a file, so that the line tells which it is.
      guard let step = migration.outline.first(where: { message.hasPrefix("\($0.position):") }) else {
        continue
      }
      (self.migration, file, line) = (migration.identifier, step.position.file, step.position.line)
      return
    }
    guard message.hasPrefix(catalog.directory + "/") else { return nil }
    // A colon may be part of the directory's name.
    let rest = message.dropFirst(catalog.directory.count + 1)
    let parts = rest.split(separator: ":", maxSplits: 3, omittingEmptySubsequences: false)
    guard let name = parts.first,
      let found = catalog.migrations.first(where: { name.hasPrefix($0.identifier) })
    else { return nil }
    migration = found.identifier
    file = "\(catalog.directory)/\(name)"
    line = parts.count > 1 ? Int(parts[1]) : nil
  }
}
