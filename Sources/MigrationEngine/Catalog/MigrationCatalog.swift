import AppContainer
import DrydockErrors
import FileSystem
import Formats

/// All migrations of an app, in order.
public struct MigrationCatalog: Sendable {
  /// The path of the directory, as it was given.
  package let directory: String
  /// The migrations, numbers ascending. Drydock's own start at 1 and have no gaps; other tools' numbers may be times.
  public let migrations: [Migration]
  /// The other tool whose files they are; nil for Drydock's own.
  package internal(set) var tool: MigrationTool? = nil

  /// The number of the last one; 0 when there are none.
  public var latest: Int { migrations.last?.number ?? 0 }

  package var numbers: [Int] { migrations.map(\.number) }

  package func migration(_ number: Int) -> Migration? {
    migrations.first { $0.number == number }
  }

  /// Whether a container can have this version: 0, the version before the first migration, or the number of a migration.
  package func hasVersion(_ version: Int) -> Bool {
    version == 0 || version == base || migration(version) != nil
  }

  /// Notes about scalars that mean something else in YAML 1.1.
  package var notes: [YAMLNote] { migrations.flatMap(\.notes) }

  /// What may not be intended in the migrations.
  public var warnings: [String] {
    migrations.isEmpty && !directory.isEmpty ? ["\(directory): the directory has no migration"] : []
  }

  /// Reads a directory of migrations: `0001_name.yaml`, `0001_name.sql`, pairs of `0001_name.up.sql` and
  /// `0001_name.down.sql`, or directories `0001_name` with a `migration.yaml`. `releases.yaml`, `README.md` and names
  /// that start with a dot are ignored.
  ///
  /// - Parameter tool: another tool, whose files the directory has.
  /// - Throws: ``DrydockError`` with code `catalog`, naming file, line and column where there is one.
  package static func load(_ directory: String, tool: MigrationTool? = nil) throws -> MigrationCatalog {
    let (catalog, _, problems) = try read(directory, tool: tool)
    if let problem = problems.first { throw problem }
    return catalog
  }

  /// Reads a directory of migrations, and collects all errors in it.
  ///
  /// - Throws: ``DrydockError`` with code `catalog` when the directory itself cannot be read.
  ///
  /// - Returns: also the migrations with errors, with what could be read of them.
  static func read(
    _ directory: String, tool: MigrationTool? = nil
  ) throws -> (MigrationCatalog, incomplete: [Migration], problems: [DrydockError]) {
    guard FollowedStatus.identity(directory) != nil else {
      throw DrydockError(.catalog, "no migrations yet: the directory does not exist", path: directory)
    }
    do {
      if let tool {
        let folder = try ToolFolder(directory, tool)
        return (
          MigrationCatalog(directory: directory, migrations: folder.migrations, tool: tool),
          folder.incomplete, folder.problems
        )
      }
      let folder = try MigrationFolder(directory)
      return (
        MigrationCatalog(directory: directory, migrations: folder.migrations), folder.incomplete,
        folder.problems
      )
    } catch let error as DrydockError {
      throw DrydockError(reading: error)
    }
  }
}

extension MigrationCatalog {
  /// The empty catalog of a directory that does not exist yet.
  package init(none directory: String) { self.init(directory: directory, migrations: []) }
}

/// Reads a directory of migrations, and collects all errors in it.
struct MigrationFolder {
  private(set) var migrations: [Migration] = []
  /// Migrations with errors, with what could be read of them.
  private(set) var incomplete: [Migration] = []
  /// The errors: of files in the order of their names, then of numbers.
  private(set) var problems: [DrydockError] = []

  private let folder: Directory
  private let display: String
  /// Of migrations that cannot be read, too, so that their numbers are not reported as missing.
  private var identifiers: [Int: [String]] = [:]

  private static let reserved: Set<String> = ["releases.yaml", "README.md"]
  private static let shapes =
    "a migration is named 0001_name.yaml, 0001_name.sql, 0001_name.up.sql with 0001_name.down.sql, or is a directory "
    + "0001_name with migration.yaml"

  /// - Throws: `DrydockError` when the directory itself cannot be read.
  init(_ path: String) throws {
    (folder, display) = (try Directory(path), path)
    let names = try folder.names().filter { $0.first != UInt8(ascii: ".") }
      .map { String(decoding: $0, as: UTF8.self) }
    for entry in names where !Self.reserved.contains(entry) {
      do {
        try read(entry, among: names)
      } catch {
        problems.append(DrydockError(reading: error))
      }
    }
    migrations.sort { $0.number < $1.number }
    checkNumbers()
  }

  private mutating func read(_ entry: String, among names: [String]) throws {
    let type = try folder.status(ContainerPath(entry))?.type
    let isDirectory = type == .directory
    let suffix = isDirectory ? "" : [".up.sql", ".down.sql", ".yaml", ".sql"].first(where: entry.hasSuffix)
    guard isDirectory || type == .file, let suffix, let name = MigrationName(entry.dropLast(suffix.count))
    else { throw unknown(entry) }
    let (up, down) = (entry.dropLast(suffix.count) + ".up.sql", entry.dropLast(suffix.count) + ".down.sql")
    if suffix == ".down.sql" {
      if names.contains(String(up)) { return }
      throw DrydockError(
        .catalog, "the file has no `.up.sql`: add \(up)", path: "\(display)/\(entry)")
    }
    identifiers[name.number, default: []].append(Migration.padded(name.number) + "_" + name.name)
    let pair = suffix == ".up.sql" && names.contains(String(down)) ? String(down) : nil
    var files =
      try isDirectory
      ? MigrationFiles(directory: entry, in: folder, display: display)
      : MigrationFiles(of: [entry] + [pair].compactMap(\.self), in: folder, display: display)
    files.down = pair
    let main = isDirectory ? MigrationFiles.main : entry
    guard let bytes = files.contents[main] else {
      throw DrydockError(.catalog, "the directory has no migration.yaml", path: "\(display)/\(entry)")
    }
    let file = files.display(main)
    var parser = MigrationParser(files: files)
    let body =
      switch suffix {
      case ".up.sql":
        try parser.pair(
          up: bytes, down: pair.flatMap { files.contents[$0] }, file: file,
          downFile: files.display(String(down)))
      case ".sql": try parser.sql(bytes, file: file)
      default: try parser.yaml(bytes, file: file)
      }
    let migration = try Migration(number: name.number, name: name.name, file: file, files, body)
    if parser.problems.isEmpty { migrations.append(migration) } else { incomplete.append(migration) }
    problems += parser.problems
  }

  /// The number of the next new migration.
  var nextNumber: Int { (identifiers.keys.max() ?? 0) + 1 }

  /// The migration of a name, such as `0002_theme` for `theme`, whatever its number; nil when the name is free.
  func migration(named name: String) -> String? {
    identifiers.values.joined().first { $0.drop(while: \.isNumber).dropFirst() == name }
  }

  private mutating func checkNumbers() {
    var next = 1
    for (number, names) in identifiers.sorted(by: { $0.key < $1.key }) {
      if names.count > 1 {
        problem(
          "two migrations have the number \(number): \(names.joined(separator: " and ")); give the newer one the next "
            + "free number")
      }
      if number > next {
        let missing =
          number == next + 1 ? "number \(next) is missing" : "numbers \(next) to \(number - 1) are missing"
        problem("\(missing) before \(names[0]): numbers start at 1 and have no gaps")
      }
      next = number + 1
    }
  }

  private mutating func problem(_ message: String) {
    problems.append(DrydockError(.catalog, message, path: display))
  }

  private func unknown(_ entry: String) -> DrydockError {
    DrydockError(.catalog, "not a migration's name; \(Self.shapes)", path: "\(display)/\(entry)")
  }
}

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
