import AppContainer
import AppFrameworks
import DrydockErrors
import FileSystem
import Formats

/// Reads another tool's directory of migrations as that tool does, and collects all errors in it. Beside a migration may be
/// steps of Drydock, which belong to it: `NUMBER_name.yaml`, or a directory `NUMBER_name` with `migration.yaml`.
struct ToolFolder {
  private(set) var migrations: [Migration] = []
  /// Migrations with errors in the steps beside them, with what could be read of these.
  private(set) var incomplete: [Migration] = []
  private(set) var problems: [DrydockError] = []

  private let tool: MigrationTool
  private let display: String

  /// - Throws: `DrydockError` when the directory itself cannot be read.
  init(_ path: String, _ tool: MigrationTool) throws {
    (self.tool, display) = (tool, path)
    let folder = try Directory(path)
    var found: [Int: [ToolFile.Way: String]] = [:]
    var inOrder: [Int] = []
    var steps: [Int: String] = [:]
    var others: [String] = []
    for bytes in try folder.names() where bytes.first != UInt8(ascii: ".") {
      let entry = String(decoding: bytes, as: UTF8.self)
      do {
        guard let name = try folder.migrationFile(entry) else { continue }
        if let number = ToolFile.numberOfSteps(name, tool.format) {
          if let other = steps.updateValue(name, forKey: number) {
            throw DrydockError(
              .catalog, "\(other) has steps for the version \(number), too: put all of them into one file")
          }
          continue
        }
        guard let file = try ToolFile(name, tool.format) else {
          others.append(name)
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
    for (number, main) in steps.sorted(by: { $0.key < $1.key }) where found[number] == nil {
      add(tool.format.lacksMigration(number, for: main, among: found.keys), main)
    }
    let newest = found.keys.max()
    for (number, ways) in found.sorted(by: { $0.key < $1.key }) {
      let entry = ways[.whole] ?? ways[.up] ?? ways[.down] ?? ""
      do {
        try read(number, ways, steps[number], in: folder, isNewest: number == newest)
      } catch {
        add(error, entry)
      }
    }
    checkOrder(inOrder)
    if tool.format == .room { checkChain(found.mapValues { $0[.whole] ?? "" }) }
  }

  private mutating func read(
    _ number: Int, _ ways: [ToolFile.Way: String], _ steps: String?, in folder: Directory, isNewest: Bool
  ) throws {
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
        script: script)
    }
    let before = problems.count
    var body = try steps.map { try self.steps($0, beside: entry, in: folder, &files) } ?? MigrationBody()
    body.steps.insert(MigrationStep(position: operation.position, name: "sql", operation: operation), at: 0)
    let migration = try Migration(
      number: number, name: file?.name ?? "", file: files.display(entry), files, body)
    if problems.count == before { migrations.append(migration) } else { incomplete.append(migration) }
  }

  /// The steps beside a migration, whose files belong to it.
  private mutating func steps(
    _ main: String, beside entry: String, in folder: Directory, _ files: inout MigrationFiles
  ) throws -> MigrationBody {
    let parent = main.split(separator: "/").dropLast().first.map(String.init)
    let own =
      try parent.map { try MigrationFiles(directory: $0, in: folder, display: display) }
      ?? MigrationFiles(of: [main], in: folder, display: display)
    let name = parent == nil ? main : MigrationFiles.main
    var parser = MigrationParser(files: own)
    let body = try parser.yaml(own.contents[name] ?? [], file: own.display(name))
    problems += parser.problems
    for step in body.steps + body.down {
      // With settings as a table they are for what the tool cannot do.
      guard case .sql(let sql) = step.operation.kind, sql.database.name == tool.database, sql.defaults == nil
      else {
        continue
      }
      let error = sql.database.position.error(
        "statements on the database \(tool.database) belong in the migration of \(tool.format.rawValue), which runs "
          + "before these steps: move them to \(entry)")
      problems.append(DrydockError(reading: error))
    }
    for (name, bytes) in own.used { files.contents[(parent.map { $0 + "/" } ?? "") + name] = bytes }
    return body
  }

  /// The statements of a file, or those that Room derives from two schemas. Only derived ones are in the checksum: a newer
  /// Room writes the same schema with other fields.
  private func room(
    _ file: ToolFile, _ entry: String, _ files: inout MigrationFiles, isNewest: Bool
  ) throws -> RunToolSQL {
    let folder = tool.schemas ?? ""
    let position = YAMLPosition(file: files.display(entry), line: 1, column: 1)
    func schema(_ version: Int) throws -> RoomSchema {
      if let schema = try RoomSchema.exported(version, to: folder) { return schema }
      throw RoomSchema.missing(version, in: folder, at: position)
    }
    let (from, to) = (file.from ?? 0, file.number)
    // Room validates after the last of the migrations that it runs.
    var step = RoomStep(
      from: from, to: to, source: try RoomSchema.exported(from, to: folder),
      target: try isNewest ? schema(to) : RoomSchema.exported(to, to: folder), position: position)
    let script: ToolScript
    if entry.hasSuffix(".auto.yaml") {
      let spec = try RoomAutoSpec(files.contents[entry] ?? [], file: files.display(entry))
      let derived = try RoomAutoMigration(from: schema(from), to: schema(to), spec)
      step.tablesWithForeignKeys = derived.tablesWithForeignKeys
      let text = derived.statements.map { $0 + ";\n" }.joined()
      files.contents["statements"] = Array(text.utf8)
      script = ToolScript(
        up: SQLScript(text: text, file: files.display(entry) + " (derived)", firstLine: 1))
    } else {
      script = try ToolScript(.room, ways: [.whole: entry], files)
    }
    return RunToolSQL(
      tool: .room, database: tool.database, position: position, script: script, room: step)
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

  /// The version whose steps a file has; nil when it has none. Of `1_2.yaml` Room's users would expect those of version 2.
  static func numberOfSteps(_ file: String, _ format: MigrationTool.Format) -> Int? {
    guard let stem = file.split(separator: "/").first, file.hasSuffix(".yaml"),
      format != .room || stem.prefixMatch(of: #/[0-9]+_[0-9]+([_.-]|$)/#) == nil
    else { return nil }
    let isFile = stem.endIndex == file.endIndex
    return MigrationName(isFile ? stem.dropLast(5) : stem, digits: 18)?.number
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
    if Self.isYAML(name), name.first?.isNumber == true { return true }
    guard name.hasSuffix(".sql") || name.hasSuffix(".sqm") else { return false }
    return inFolderOfNone || (self != .sqldelight && name.first?.isNumber == true)
  }

  private static func isYAML(_ name: String) -> Bool { name.hasSuffix(".yaml") || name.hasSuffix(".yml") }

  /// The error for such a file, with the expected names.
  func refusal(of file: String) -> String {
    let fitting = Self.allCases.filter { $0 != self && (try? ToolFile(file, $0)).flatMap(\.self) != nil }
    let hint =
      fitting.isEmpty
      ? "" : "; the name fits \(fitting.map(\.rawValue).joined(separator: " or ")), see `format`"
    return
      "\(rawValue) would not run this file: its migrations are named \(pattern)\(hint)"
      + (Self.isYAML(file.lowercased()) ? ", and steps beside that of version 2 are named 2_name.yaml" : "")
      + "; rename it, or move it out"
  }

  /// The error for steps beside no migration.
  func lacksMigration(_ number: Int, for steps: String, among numbers: some Sequence<Int>) -> DrydockError {
    let stem = steps.prefix { $0 != "." && $0 != "/" }
    let before = numbers.filter { $0 < number }.max() ?? number - 1
    let name =
      switch self {
      case .dbmate, .goose: "\(stem).sql"
      case .golangMigrate: "\(stem).up.sql"
      case .sqldelight: "\(number - 1).sqm"
      case .room: "\(before)_\(number).sql"
      }
    // The app makes the database of the first version.
    let hint = usesUserVersion && before < 1 ? "" : "add an empty one, such as \(name), or "
    return DrydockError(
      .catalog,
      "steps for the version \(number), and no migration of \(rawValue) has it: \(hint)correct the number")
  }
}

extension Directory {
  /// The path of a file, or of `migration.yaml` in a directory; nil for anything else.
  fileprivate func migrationFile(_ entry: String) throws -> String? {
    let type = try status(ContainerPath(entry))?.type
    guard type == .directory else { return type == .file ? entry : nil }
    return try migrationFile(entry + "/" + MigrationFiles.main)
  }
}

extension RoomSchema {
  /// The error about a version whose schema is needed.
  static func missing(_ version: Int, in folder: String, at position: YAMLPosition) -> DrydockError {
    position.error(
      "\(folder) has no \(version).json: export the schema of version \(version) (`room.schemaLocation`)",
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
