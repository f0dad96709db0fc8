import AgeEncryption
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

  /// Whether a container can have this version: 0, or the number of a migration.
  package func hasVersion(_ version: Int) -> Bool { version == 0 || migration(version) != nil }

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
          MigrationCatalog(directory: directory, migrations: folder.migrations, tool: tool), [],
          folder.problems
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
    let files = try MigrationFiles.single(entry, in: folder, display: display)
    let bytes = files.contents[entry] ?? []
    let file = files.display(entry)
    var parser = MigrationParser(files: files)
    let body = try entry[dot...] == ".yaml" ? parser.yaml(bytes, file: file) : parser.sql(bytes, file: file)
    try add(name, files, body, parser.problems, file: file)
  }

  private mutating func readDirectory(_ entry: String) throws {
    guard let name = MigrationName(entry) else { throw unknown(entry) }
    note(name)
    let files = try MigrationFiles.directory(entry, in: folder, display: display)
    guard let bytes = files.contents["migration.yaml"] else {
      throw DrydockError(.catalog, "the directory has no migration.yaml", path: "\(display)/\(entry)")
    }
    let file = files.display("migration.yaml")
    var parser = MigrationParser(files: files)
    let body = try parser.yaml(bytes, file: file)
    try add(name, files, body, parser.problems, file: file)
  }

  private mutating func readPair(_ stem: String, _ name: MigrationName, hasDown: Bool) throws {
    note(name)
    let (up, down) = (stem + ".up.sql", stem + ".down.sql")
    var files = try MigrationFiles.single(up, in: folder, display: display)
    if hasDown { files.contents[down] = try folder.contents(ContainerPath(down)) }
    var parser = MigrationParser(files: files)
    let body = try parser.pair(
      up: files.contents[up] ?? [], down: files.contents[down], file: files.display(up),
      downFile: files.display(down))
    try add(
      name, files, body, parser.problems, file: files.display(up),
      checksumWithoutDown: files.checksum(without: down))
  }

  private mutating func add(
    _ name: MigrationName, _ files: MigrationFiles, _ body: MigrationBody, _ found: [DrydockError],
    file: String, checksumWithoutDown: SHA256.Digest? = nil
  ) throws {
    var migration = Migration(
      number: name.number, name: name.name, file: file, checksum: try files.checksum(), body)
    migration.checksumWithoutDown = checksumWithoutDown
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

extension Migration {
  init(number: Int, name: String, file: String, checksum: SHA256.Digest, _ body: MigrationBody) {
    self.init(
      number: number, name: name, file: file, checksum: checksum, summary: body.summary,
      isIrreversible: body.isIrreversible, notes: body.notes, steps: body.steps, down: body.down,
      checks: body.checks, verifications: body.verifications)
  }
}

/// The files of one migration, which the checksum covers.
struct MigrationFiles: Sendable {
  /// By the path inside the migration's directory; a single file by its name.
  var contents: [String: [UInt8]] = [:]
  /// The directory that holds them, for messages.
  var directory: String
  /// Whether the migration is a directory of files.
  var isDirectory: Bool

  /// The path of a file for messages.
  func display(_ name: String) -> String { directory.isEmpty ? name : directory + "/" + name }

  /// SHA-256 over every file in the order of the names: length and bytes of the name, length and bytes of the
  /// content, lengths as 64 bits big-endian, so that no two sets of files give the same input.
  func checksum() throws -> SHA256.Digest {
    let digest = try SHA256()
    for (name, bytes) in contents.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
      for part in [Array(name.utf8), bytes] {
        withUnsafeBytes(of: UInt64(part.count).bigEndian) { digest.update($0) }
        part.withUnsafeBytes { digest.update($0) }
      }
    }
    return try digest.finalize()
  }

  /// The checksum without one of the files; nil when there is no such file.
  func checksum(without name: String?) throws -> SHA256.Digest? {
    guard let name, contents.count > 1, contents[name] != nil else { return nil }
    var rest = self
    rest.contents[name] = nil
    return try rest.checksum()
  }

  /// The content of a file that a step names.
  func bytes(of name: String, namedAt position: YAMLPosition) throws -> [UInt8] {
    guard isDirectory else {
      throw position.error(
        "`\(name)` is another file: make the migration a directory with migration.yaml and its files")
    }
    guard let bytes = contents[name] else {
      throw position.error(
        "the migration has no file `\(name)`; " + NearestWord.hint(for: name, among: Array(contents.keys)))
    }
    return bytes
  }

  /// The text of a file that a step names.
  func text(of name: String, namedAt position: YAMLPosition) throws -> [UInt8] {
    guard let text = Self.text(try bytes(of: name, namedAt: position)) else {
      throw position.error("the file `\(name)` is not UTF-8")
    }
    return text
  }

  /// The text of a UTF-8 file, without a byte order mark; nil when it is something else.
  static func text(_ bytes: [UInt8]) -> [UInt8]? {
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    let text = bytes.starts(with: mark) ? Array(bytes.dropFirst(3)) : bytes
    return String(validating: text, as: UTF8.self) == nil ? nil : text
  }
}

extension MigrationFiles {
  static func single(_ name: String, in folder: Directory, display: String) throws -> MigrationFiles {
    let bytes = try folder.contents(ContainerPath(name))
    return MigrationFiles(contents: [name: bytes], directory: display, isDirectory: false)
  }

  /// Reads a directory's files at every depth, except names that start with a dot.
  static func directory(_ name: String, in folder: Directory, display: String) throws -> MigrationFiles {
    var files = MigrationFiles(directory: display + "/" + name, isDirectory: true)
    try files.add(try folder.directory(ContainerPath(name)), prefix: "")
    return files
  }

  private mutating func add(_ directory: Directory, prefix: String) throws {
    for bytes in try directory.names() where bytes.first != UInt8(ascii: ".") {
      guard let name = String(validating: bytes, as: UTF8.self) else {
        throw DrydockError(.catalog, "a file name is not UTF-8: rename it", path: display(prefix))
      }
      let path = try ContainerPath(name)
      switch try directory.status(path)?.type {
      case .directory: try add(try directory.directory(path), prefix: prefix + name + "/")
      case .file: contents[prefix + name] = try directory.contents(path)
      default:
        throw DrydockError(
          .catalog, "neither a file nor a directory: a migration consists of files",
          path: display(prefix + name))
      }
    }
  }
}
