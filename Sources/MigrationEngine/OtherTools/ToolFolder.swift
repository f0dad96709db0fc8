import AppContainer
import DrydockErrors
import FileSystem
import Formats

/// Reads another tool's directory of migrations as that tool does, and collects all errors in it.
struct ToolFolder {
  private(set) var migrations: [Migration] = []
  private(set) var problems: [DrydockError] = []

  private let tool: MigrationTool
  private let display: String

  /// - Throws: `DrydockError` when the directory itself cannot be read.
  init(_ path: String, _ tool: MigrationTool) throws {
    (self.tool, display) = (tool, path)
    let folder = try Directory(path)
    var found: [Int: [ToolFile.Way: String]] = [:]
    var inOrder: [Int] = []
    var others: [String] = []
    for bytes in try folder.names() where bytes.first != UInt8(ascii: ".") {
      let entry = String(decoding: bytes, as: UTF8.self)
      do {
        guard try folder.status(ContainerPath(entry))?.type == .file else { continue }
        guard let file = try ToolFile(entry, tool.format) else {
          others.append(entry)
          continue
        }
        inOrder.append(file.number)
        if let other = found[file.number, default: [:]].updateValue(entry, forKey: file.way) {
          throw DrydockError(
            .catalog,
            tool.format == .room
              ? "\(other) leads to version \(file.number), too: keep one of them"
              : "\(other) has the same number: \(tool.format.rawValue) knows only one")
        }
      } catch {
        add(error, entry)
      }
    }
    for entry in others where tool.format.seemsToBeMigration(entry, inFolderOfNone: found.isEmpty) {
      problems.append(
        DrydockError(.catalog, tool.format.refusal(of: entry), path: display + "/" + entry))
    }
    let newest = found.keys.max()
    for (number, ways) in found.sorted(by: { $0.key < $1.key }) {
      let entry = ways[.whole] ?? ways[.up] ?? ways[.down] ?? ""
      do {
        migrations.append(try read(number, ways, in: folder, isNewest: number == newest))
      } catch {
        add(error, entry)
      }
    }
    checkOrder(inOrder)
    if tool.format == .room { checkChain(found.mapValues { $0[.whole] ?? "" }) }
  }

  private func read(
    _ number: Int, _ ways: [ToolFile.Way: String], in folder: Directory, isNewest: Bool
  ) throws -> Migration {
    let entry = ways[.whole] ?? ways[.up] ?? ways[.down] ?? ""
    var files = try MigrationFiles(of: ways.values.sorted(), in: folder, display: display)
    files.down = ways[.down]
    if entry.hasSuffix(".go") {
      throw DrydockError(.catalog, "a migration in Go: only goose itself can run it")
    }
    let file = try ToolFile(entry, tool.format)
    let operation: RunToolSQL
    if tool.format == .room, let file {
      operation = try room(file, entry, &files, isNewest: isNewest)
    } else {
      let script = try ToolScript(tool.format, ways: ways, files)
      operation = RunToolSQL(
        tool: tool.format, database: tool.database,
        position: YAMLPosition(file: files.display(entry), line: max(1, script.up.firstLine - 1), column: 1),
        up: script.up, down: script.down, upInTransaction: script.upInTransaction,
        downInTransaction: script.downInTransaction)
    }
    var body = MigrationBody()
    body.steps = [MigrationStep(position: operation.position, operation: operation)]
    return try Migration(
      number: number, name: file?.name ?? "", file: files.display(entry), files, body)
  }

  /// The statements of a file, or those that Room derives from two schemas. Only derived ones are in the checksum: a newer
  /// Room writes the same schema with other fields.
  private func room(
    _ file: ToolFile, _ entry: String, _ files: inout MigrationFiles, isNewest: Bool
  ) throws -> RunToolSQL {
    let schemas = RoomSchemaFolder(tool.schemas ?? "")
    let position = YAMLPosition(file: files.display(entry), line: 1, column: 1)
    func schema(_ version: Int) throws -> RoomSchema {
      if let schema = try schemas.schema(version) { return schema }
      throw schemas.missing(version, at: position)
    }
    let (from, to) = (file.from ?? 0, file.number)
    // Room validates after the last of the migrations that it runs.
    var step = RoomStep(
      from: from, to: to, source: try schemas.schema(from),
      target: try isNewest ? schema(to) : schemas.schema(to), position: position)
    let up: SQLScript
    if entry.hasSuffix(".auto.yaml") {
      let spec = try RoomAutoSpec(files.contents[entry] ?? [], file: files.display(entry))
      let derived = try RoomAutoMigration(from: schema(from), to: schema(to), spec)
      step.tablesWithForeignKeys = derived.tablesWithForeignKeys
      let text = derived.statements.map { $0 + ";\n" }.joined()
      files.contents["statements"] = Array(text.utf8)
      up = SQLScript(text: text, file: files.display(entry) + " (derived)", firstLine: 1)
    } else {
      up = try ToolScript(.room, ways: [.whole: entry], files).up
    }
    return RunToolSQL(
      tool: .room, database: tool.database, position: position, up: up, down: nil, upInTransaction: true,
      downInTransaction: true, room: step)
  }

  /// Each of Room's migrations starts where the one before ends.
  private mutating func checkChain(_ files: [Int: String]) {
    var last: (number: Int, name: String)?
    for (number, name) in files.sorted(by: { $0.key < $1.key }) {
      guard let from = try? ToolFile(name, .room)?.from else { continue }
      if let last, from != last.number {
        let what =
          from > last.number
          ? "no file migrates from version \(last.number) to \(from)"
          : "it starts at version \(from), inside of \(last.name): each version has one way to the newest"
        problems.append(DrydockError(.catalog, what, path: display + "/" + name))
      }
      last = (number, name)
    }
  }

  /// dbmate runs files in the order of their names, and versions here are in the order of their numbers.
  private mutating func checkOrder(_ numbers: [Int]) {
    guard tool.format == .dbmate, let place = zip(numbers, numbers.dropFirst()).first(where: { $0 > $1 })
    else {
      return
    }
    problems.append(
      DrydockError(
        .catalog,
        "dbmate runs \(place.0) before \(place.1), in the order of the files' names: give their numbers as many digits",
        path: display))
  }

  private mutating func add(_ error: any Error, _ entry: String) {
    var problem = DrydockError(reading: error)
    if problem.path == nil && !problem.message.hasPrefix(display) { problem.path = display + "/" + entry }
    problems.append(problem)
  }
}

/// The name of another tool's file.
struct ToolFile: Equatable {
  enum Way: Sendable, Equatable {
    /// Both directions in sections of the file, or no down statements.
    case whole
    case up
    case down
  }

  /// The version as the tool's table has it, with leading zeros.
  let version: String
  /// The number of the migration: the schema version after it.
  let number: Int
  let name: String
  let way: Way
  /// The version that one of Room's migrations starts at.
  private(set) var from: Int?

  /// Nil for a file that the tool ignores.
  ///
  /// - Throws: `DrydockError` for a file that the tool reads, but whose number cannot be used.
  init?(_ file: String, _ format: MigrationTool.Format) throws {
    guard let parts = Self.parts(file, format) else { return nil }
    (version, name, way) = parts
    guard let number = Int(version), number > 0, number < Int.max else {
      throw DrydockError(
        .catalog, "the number \(version) cannot be a version: it has to be between 1 and \(Int.max - 1)")
    }
    // The file N of SQLDelight leads from version N to the next.
    self.number = format == .sqldelight ? number + 1 : number
    guard format == .room else { return }
    from = Int(file.prefix(while: Self.isDigit))
    guard let from, from > 0, from < number else {
      throw DrydockError(
        .catalog, "a migration of Room leads from a version to a later one, such as 1_2.sql: rename the file")
    }
  }

  private static func parts(
    _ file: String, _ format: MigrationTool.Format
  ) -> (version: String, name: String, way: Way)? {
    switch format {
    case .dbmate:
      guard file.hasSuffix(".sql"), let (digits, rest) = number(at: file.dropLast(4)) else { return nil }
      return (digits, trimmed(rest), .whole)
    case .golangMigrate:
      guard let (digits, rest) = number(at: file[...]), rest.first == "_",
        let match = rest.wholeMatch(of: #/_(.*)\.(up|down)\..*/#)
      else { return nil }
      return (digits, String(match.1), match.2 == "up" ? .up : .down)
    case .goose:
      guard file.hasSuffix(".sql") || (file.hasSuffix(".go") && !file.hasSuffix("_test.go")),
        let (digits, rest) = number(at: file[...]), rest.first == "_", let dot = rest.lastIndex(of: ".")
      else { return nil }
      return (digits, trimmed(rest[..<dot]), .whole)
    case .sqldelight:
      guard file.hasSuffix(".sqm"), let start = file.firstIndex(where: isDigit) else { return nil }
      let version = file[start...].dropLast(4).prefix { isDigit($0) || ",:.-_T ".contains($0) }
      return (version.filter(isDigit), file, .whole)
    case .room:
      guard let match = file.wholeMatch(of: #/[0-9]+_([0-9]+)([_-].*)?\.(sql|auto\.yaml)/#) else {
        return nil
      }
      return (String(match.1), file, .whole)
    }
  }

  private static func isDigit(_ character: Character) -> Bool { character.isASCII && character.isNumber }

  private static func number(at text: Substring) -> (digits: String, rest: Substring)? {
    let digits = text.prefix(while: isDigit)
    return digits.isEmpty ? nil : (String(digits), text[digits.endIndex...])
  }

  /// The name without the separators after the number.
  private static func trimmed(_ text: Substring) -> String { String(text.drop { "_-. ".contains($0) }) }
}

extension MigrationTool.Format {
  /// An example of its migrations' names.
  private var pattern: String {
    switch self {
    case .dbmate: "20260101120000_name.sql"
    case .golangMigrate: "000001_name.up.sql with 000001_name.down.sql"
    case .goose: "00001_name.sql"
    case .sqldelight: "1.sqm"
    case .room: "1_2.sql or 1_2.auto.yaml"
    }
  }

  /// Whether a file that the tool ignores was probably meant as a migration.
  ///
  /// - Parameter inFolderOfNone: whether the directory has no migration at all: then every SQL file was.
  func seemsToBeMigration(_ file: String, inFolderOfNone: Bool) -> Bool {
    let name = file.lowercased()
    if self == .sqldelight, name.hasSuffix(".sqm") { return true }
    if self == .room, name.hasSuffix(".yaml") || name.hasSuffix(".yml"), name.first?.isNumber == true {
      return true
    }
    guard name.hasSuffix(".sql") || name.hasSuffix(".sqm") else { return false }
    return inFolderOfNone || (self != .sqldelight && name.first?.isNumber == true)
  }

  /// The error for such a file, with the expected names.
  func refusal(of file: String) -> String {
    let fitting = Self.allCases.filter { $0 != self && (try? ToolFile(file, $0)).flatMap(\.self) != nil }
    let hint =
      fitting.isEmpty
      ? "" : "; the name fits \(fitting.map(\.rawValue).joined(separator: " or ")), see `format`"
    return
      "\(rawValue) would not run this file: its migrations are named \(pattern)\(hint); rename it, or move it out"
  }
}

extension RoomSchemaFolder {
  /// The error about a version whose schema is needed.
  func missing(_ version: Int, at position: YAMLPosition) -> DrydockError {
    position.error(
      "\(path) has no \(version).json: export the schema of version \(version) (`room.schemaLocation`)",
      code: .catalog)
  }
}

extension MigrationTool {
  /// The version of a migration as the tool's table has it.
  func version(of migration: Migration) -> String {
    let file = migration.file.split(separator: "/").last.map(String.init) ?? ""
    return (try? ToolFile(file, format))?.version ?? String(migration.number)
  }
}
