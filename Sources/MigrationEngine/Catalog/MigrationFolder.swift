import AgeEncryption
import DrydockErrors
import FileSystem

/// Reads a directory of migrations, and finds everything that is wrong with it, not the first thing only.
struct MigrationFolder {
  private(set) var migrations: [Migration] = []
  /// What is wrong, files in the order of their names, then the numbers.
  private(set) var problems: [DrydockError] = []

  private let folder: Directory
  private let display: String
  /// Also of migrations that cannot be read: a number is not missing because its file has a mistake in it.
  private var identifiers: [Int: [String]] = [:]

  /// `releases.yaml` is what `drydock release` writes.
  private static let reserved: Set<String> = ["releases.yaml", "README.md"]
  private static let shapes =
    "a migration is called 0001_name.yaml, 0001_name.sql, 0001_name.up.sql with 0001_name.down.sql, or is a directory "
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
          .catalog, "the way down has no way up: add \(stem)\(other)", path: "\(display)/\(entry)")
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
    if entry[dot...] == ".yaml" {
      try add(name, files, yaml: bytes, file: file)
    } else {
      try add(name, files, MigrationParser.sql(bytes, file: file), file: file)
    }
  }

  private mutating func readDirectory(_ entry: String) throws {
    guard let name = MigrationName(entry) else { throw unknown(entry) }
    note(name)
    let files = try MigrationFiles.directory(entry, in: folder, display: display)
    guard let bytes = files.contents["migration.yaml"] else {
      throw DrydockError(.catalog, "the directory has no migration.yaml", path: "\(display)/\(entry)")
    }
    try add(name, files, yaml: bytes, file: files.display("migration.yaml"))
  }

  private mutating func readPair(_ stem: String, _ name: MigrationName, hasDown: Bool) throws {
    note(name)
    let (up, down) = (stem + ".up.sql", stem + ".down.sql")
    var files = try MigrationFiles.single(up, in: folder, display: display)
    if hasDown { files.contents[down] = try folder.contents(ContainerPath(down)) }
    let body = try MigrationParser.pair(
      up: files.contents[up] ?? [], down: files.contents[down], file: files.display(up),
      downFile: files.display(down))
    try add(name, files, body, file: files.display(up))
    migrations[migrations.count - 1].checksumWithoutDown = try files.checksum(without: down)
  }

  private mutating func add(
    _ name: MigrationName, _ files: MigrationFiles, yaml bytes: [UInt8], file: String
  ) throws {
    var parser = MigrationParser(files: files)
    let body = try parser.yaml(bytes, file: file)
    guard parser.problems.isEmpty else { return problems.append(contentsOf: parser.problems) }
    try add(name, files, body, file: file)
  }

  private mutating func add(
    _ name: MigrationName, _ files: MigrationFiles, _ body: MigrationBody, file: String
  ) throws {
    migrations.append(
      Migration(number: name.number, name: name.name, file: file, checksum: try files.checksum(), body))
  }

  /// The number of the next new migration.
  var nextNumber: Int { (identifiers.keys.max() ?? 0) + 1 }

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
