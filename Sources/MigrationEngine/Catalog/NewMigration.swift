import DrydockErrors
import FileSystem

/// Creates the files of a new migration.
package enum NewMigration {
  package enum Form: Sendable {
    case steps
    case sql(database: String)
    case directory
  }

  /// Writes a template with the next free number. A missing directory of migrations is created.
  ///
  /// - Returns: the path of the file to edit.
  /// - Throws: ``DrydockError``: `usage` for an invalid name; `exists` for a name that another migration has; `io`.
  package static func create(_ name: String, _ form: Form, in path: String) throws -> String {
    guard MigrationName.isName(name) else {
      let better = name.lowercased().map { $0.isLetter || $0.isNumber ? $0 : "_" }
      throw DrydockError(
        .usage,
        "a migration's name has letters, digits, `_` and `-`"
          + (name.isEmpty ? "" : ", such as \(String(better))"))
    }
    let directory = try Directory.opened(creating: path)
    let folder = try MigrationFolder(path)
    if let taken = folder.migration(named: name) {
      throw DrydockError(
        .exists, "the name is taken by \(taken): edit that, or give the new migration another name",
        path: path)
    }
    let next = folder.nextNumber
    let stem = Migration.padded(next) + "_" + name
    let words = name.replacing("_", with: " ")
    let summary = words.prefix(1).uppercased() + words.dropFirst()
    let (file, text) =
      switch form {
      case .steps: (stem + ".yaml", steps(summary))
      case .sql(let database): (stem + ".sql", sql(summary, database))
      case .directory: (stem + "/migration.yaml", steps(summary))
      }
    if case .directory = form { try directory.createDirectory(ContainerPath(stem), mode: 0o755) }
    try directory.create(ContainerPath(file), Array(text.utf8), mode: 0o644)
    return path + "/" + file
  }

  private static func steps(_ summary: String) -> String {
    """
    description: "\(summary)"
    # What is done, in this order; the guide on migrations lists all operations.
    #   - defaults.rename: {keys: {user_name: username}}
    steps: []
    # What must be so afterwards.
    #   - defaults: {key: username, exists: string}
    verify: []

    """
  }

  private static func sql(_ summary: String, _ database: String) -> String {
    """
    -- drydock: database \(database)
    -- drydock: description \(summary)
    -- migrate:up

    -- migrate:down

    """
  }
}
