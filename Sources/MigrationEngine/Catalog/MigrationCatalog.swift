import AppContainer

/// All migrations of an app, in order, without gaps.
public struct MigrationCatalog: Sendable {
  /// The directory that they were read from, as it was named.
  public let directory: String
  /// The migrations, number 1 first.
  public let migrations: [Migration]

  /// The number of the last one; 0 when there are none.
  public var latest: Int { migrations.last?.number ?? 0 }

  /// The migration of a number.
  public func migration(_ number: Int) -> Migration? {
    number >= 1 && number <= migrations.count ? migrations[number - 1] : nil
  }

  /// What in the migrations only looks like something else to readers of YAML 1.1.
  public var notes: [YAMLNote] { migrations.flatMap(\.notes) }

  /// Reads a directory of migrations: `0001_name.yaml`, `0001_name.sql`, or directories `0001_name` with a
  /// `migration.yaml`. `releases.yaml`, `README.md` and names that start with a dot are left alone.
  ///
  /// - Throws: ``MigrationError`` with code `catalog`, naming file, line and column where there is one.
  public static func load(_ directory: String) throws -> MigrationCatalog {
    do {
      let folder = try Directory(directory)
      var found: [Int: Migration] = [:]
      for bytes in try folder.names() where bytes.first != UInt8(ascii: ".") {
        let entry = String(decoding: bytes, as: UTF8.self)
        if reserved.contains(entry) { continue }
        guard let migration = try read(entry, in: folder, display: directory) else { continue }
        if let other = found.updateValue(migration, forKey: migration.number) {
          throw MigrationError(
            .catalog,
            "two migrations have the number \(migration.number): \(other.identifier) and "
              + "\(migration.identifier); give the newer one the next free number", path: directory)
        }
      }
      return MigrationCatalog(directory: directory, migrations: try ordered(found, directory))
    } catch let error as ContainerError {
      throw MigrationError(.catalog, error.message, path: error.path, cause: error)
    }
  }

  private static let reserved: Set<String> = ["releases.yaml", "README.md"]
  private static let shapes =
    "a migration is called 0001_name.yaml, 0001_name.sql, or is a directory 0001_name with migration.yaml"

  private static func read(_ entry: String, in folder: Directory, display: String) throws -> Migration? {
    let type = try folder.status(ContainerPath(entry))?.type
    let path = display + "/" + entry
    if type == .directory {
      guard let (number, name) = parts(of: entry) else {
        throw MigrationError(.catalog, "not a migration's name; \(shapes)", path: path)
      }
      let files = try MigrationFiles.directory(entry, in: folder, display: display)
      guard let bytes = files.contents["migration.yaml"] else {
        throw MigrationError(.catalog, "the directory has no migration.yaml", path: path)
      }
      let file = files.display("migration.yaml")
      let body = try MigrationParser(files: files).yaml(bytes, file: file)
      return try migration(number, name, files, body, file: file)
    }
    guard type == .file, let dot = entry.lastIndex(of: "."), let (number, name) = parts(of: entry[..<dot])
    else { throw MigrationError(.catalog, "not a migration's name; \(shapes)", path: path) }
    let files = try MigrationFiles.single(entry, in: folder, display: display)
    let bytes = files.contents[entry] ?? []
    switch entry[dot...] {
    case ".yaml":
      return try migration(
        number, name, files, try MigrationParser(files: files).yaml(bytes, file: path), file: path)
    case ".sql":
      return try migration(number, name, files, try MigrationParser.sql(bytes, file: path), file: path)
    default: throw MigrationError(.catalog, "not a migration's name; \(shapes)", path: path)
    }
  }

  private static func migration(
    _ number: Int, _ name: String, _ files: MigrationFiles, _ body: MigrationBody, file: String
  ) throws -> Migration {
    Migration(
      number: number, name: name, file: file, checksum: try files.checksum(), summary: body.summary,
      isIrreversible: body.isIrreversible, notes: body.notes, steps: body.steps, down: body.down,
      checks: body.checks, verifications: body.verifications)
  }

  /// Number and name of `0001_name`: one to nine digits, an underscore, and letters, digits, `_` or `-`.
  private static func parts(of text: some StringProtocol) -> (Int, String)? {
    guard let bar = text.firstIndex(of: "_"), text[..<bar].utf8.count <= 9,
      text[..<bar].allSatisfy({ $0.isASCII && $0.isNumber }), let number = Int(text[..<bar]), number > 0
    else { return nil }
    let name = text[text.index(after: bar)...]
    return isName(name) ? (number, String(name)) : nil
  }

  /// Whether a migration can be called so.
  static func isName(_ name: some StringProtocol) -> Bool {
    !name.isEmpty && name.allSatisfy { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "-" }
  }

  private static func ordered(_ found: [Int: Migration], _ directory: String) throws -> [Migration] {
    let sorted = found.values.sorted { $0.number < $1.number }
    for (index, migration) in sorted.enumerated() where migration.number != index + 1 {
      throw MigrationError(
        .catalog,
        "number \(index + 1) is missing before \(migration.identifier): numbers start at 1 and have no gaps",
        path: directory)
    }
    return sorted
  }
}
