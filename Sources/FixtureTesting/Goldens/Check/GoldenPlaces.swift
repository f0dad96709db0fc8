import ContainerDiff
import FileSystem
import Formats

/// A line of a golden's file.
struct GoldenPlace {
  var file: String
  /// From 1; nil when it is not known.
  var line: Int?
}

/// Where in a golden's files it says what it says.
struct GoldenPlaces {
  private let golden: Golden
  private let files: [ContainerPath: GoldenLine]
  private let databases: [ContainerPath: GoldenSQLPlaces]

  init(_ golden: Golden) throws {
    self.golden = golden
    files = Dictionary(golden.lines.map { ($0.path, $0) }, uniquingKeysWith: { first, _ in first })
    let directory = try Directory(golden.directory)
    var databases: [ContainerPath: GoldenSQLPlaces] = [:]
    for line in golden.lines where line.kind == .database {
      guard let file = try line.file else { continue }
      databases[line.path] = GoldenSQLPlaces(
        String(decoding: try directory.contents(file, limit: 1 << 30), as: UTF8.self),
        file: directory.full(file))
    }
    self.databases = databases
  }

  /// The line of a path in the list; the list alone for a path that it does not have.
  func path(_ path: ContainerPath) -> GoldenPlace {
    GoldenPlace(file: "\(golden.directory)/\(Golden.list)", line: files[path]?.number)
  }

  /// The line of a setting, or of its file's name.
  func setting(_ key: ExactText, of file: ContainerPath) -> GoldenPlace {
    guard let settings = golden.settings[file] else { return path(file) }
    return GoldenPlace(
      file: "\(golden.directory)/\(Golden.defaults)", line: settings.lines[key] ?? settings.line)
  }

  /// The line where a vault's item starts.
  func item(of finding: FixtureFinding) -> GoldenPlace {
    guard let items = golden.items else { return GoldenPlace(file: "\(golden.directory)/\(Golden.list)") }
    let item = items.first { finding.place?.hasSuffix(": \($0.item.id)") == true }
    return GoldenPlace(file: "\(golden.directory)/\(Golden.vault)", line: item?.position.line)
  }

  /// The line where a table, index, view or trigger is made.
  func object(_ kind: String, _ name: String, of database: ContainerPath) -> GoldenPlace {
    databases[database]?.object(kind, name) ?? path(database)
  }

  /// The line of a row, or of its table.
  func row(_ row: ContainerDifference.Row, of table: String, in database: ContainerPath) -> GoldenPlace {
    databases[database]?.row(row, of: table) ?? path(database)
  }
}
