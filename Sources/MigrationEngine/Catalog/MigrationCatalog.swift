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
    if type == .directory { return try readDirectory(entry) }
    guard type == .file else { throw unknown(entry) }
    for (suffix, other) in [(".up.sql", ".down.sql"), (".down.sql", ".up.sql")] where entry.hasSuffix(suffix)
    {
      let stem = String(entry.dropLast(suffix.count))
      guard let name = MigrationName(stem) else { throw unknown(entry) }
      let hasOther = names.contains(stem + other)
      if suffix == ".up.sql" { return try readPair(stem, name, hasDown: hasOther) }
      guard hasOther else {
        throw DrydockError(
          .catalog, "the file has no `.up.sql`: add \(stem)\(other)", path: "\(display)/\(entry)")
      }
      return
    }
    guard let dot = entry.lastIndex(of: "."), let name = MigrationName(entry[..<dot]),
      [".yaml", ".sql"].contains(entry[dot...])
    else { throw unknown(entry) }
    note(name)
    let files = try MigrationFiles(of: [entry], in: folder, display: display)
    let bytes = files.contents[entry] ?? []
    let file = files.display(entry)
    var parser = MigrationParser(files: files)
    let body = try entry[dot...] == ".yaml" ? parser.yaml(bytes, file: file) : parser.sql(bytes, file: file)
    try add(name, files, body, parser.problems, file: file)
  }

  private mutating func readDirectory(_ entry: String) throws {
    guard let name = MigrationName(entry) else { throw unknown(entry) }
    note(name)
    let files = try MigrationFiles(directory: entry, in: folder, display: display)
    guard let bytes = files.contents[MigrationFiles.main] else {
      throw DrydockError(.catalog, "the directory has no migration.yaml", path: "\(display)/\(entry)")
    }
    let file = files.display(MigrationFiles.main)
    var parser = MigrationParser(files: files)
    let body = try parser.yaml(bytes, file: file)
    try add(name, files, body, parser.problems, file: file)
  }

  private mutating func readPair(_ stem: String, _ name: MigrationName, hasDown: Bool) throws {
    note(name)
    let (up, down) = (stem + ".up.sql", stem + ".down.sql")
    var files = try MigrationFiles(of: hasDown ? [up, down] : [up], in: folder, display: display)
    files.down = hasDown ? down : nil
    var parser = MigrationParser(files: files)
    let body = try parser.pair(
      up: files.contents[up] ?? [], down: files.contents[down], file: files.display(up),
      downFile: files.display(down))
    try add(name, files, body, parser.problems, file: files.display(up))
  }

  private mutating func add(
    _ name: MigrationName, _ files: MigrationFiles, _ body: MigrationBody, _ found: [DrydockError],
    file: String
  ) throws {
    let migration = try Migration(number: name.number, name: name.name, file: file, files, body)
    if found.isEmpty { migrations.append(migration) } else { incomplete.append(migration) }
    problems += found
  }

  /// The number of the next new migration.
  var nextNumber: Int { (identifiers.keys.max() ?? 0) + 1 }

  /// The migration of a name, such as `0002_theme` for `theme`, whatever its number; nil when the name is free.
  func migration(named name: String) -> String? {
    identifiers.values.joined().first { $0.drop(while: \.isNumber).dropFirst() == name }
  }

  private mutating func note(_ name: MigrationName) {
    identifiers[name.number, default: []].append(Migration.padded(name.number) + "_" + name.name)
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
