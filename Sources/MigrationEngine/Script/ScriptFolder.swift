import FileSystem

/// The private directory beside the copy that a script works on: the migration's files, as the checksum covers them, and
/// room for temporary files.
struct ScriptFolder {
  private static let migration: ContainerPath = "migration"
  private static let temporary: ContainerPath = "tmp"

  /// The variables that say where it is.
  let variables: [String: String]
  private let directory: Directory

  init(in work: Directory, _ files: MigrationFiles) throws {
    directory = work
    try work.createDirectory(Self.temporary)
    var variables = ["TMPDIR": work.full(Self.temporary)]
    if files.isDirectory {
      try work.createDirectory(Self.migration)
      for (name, bytes) in files.contents {
        let path = try ContainerPath(Self.migration.description + "/" + name)
        try work.createDirectories(path.parent)
        // Whether a file was executable where it came from, version control and packages forget.
        try work.create(path, bytes, mode: 0o700)
      }
      variables["DRYDOCK_MIGRATION"] = work.full(Self.migration)
    }
    self.variables = variables
  }

  /// The absolute path of a migration's file, or a program as it was named.
  func executable(of command: ScriptCommand) -> String {
    switch command.kind {
    case .file(let name): directory.full(Self.migration) + "/" + name
    case .program(let name): name
    }
  }
}
