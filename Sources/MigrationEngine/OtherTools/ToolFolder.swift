import AppContainer
import DrydockErrors
import FileSystem
import Formats

/// Reads another tool's folder of migrations as that tool does, and finds everything that is wrong with it.
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
            .catalog, "\(other) has the same number: \(tool.format.rawValue) knows only one")
        }
      } catch {
        add(error, entry)
      }
    }
    for entry in others where tool.format.seemsToBeMigration(entry, inFolderOfNone: found.isEmpty) {
      problems.append(
        DrydockError(.catalog, tool.format.refusal(of: entry), path: display + "/" + entry))
    }
    for (number, ways) in found.sorted(by: { $0.key < $1.key }) {
      let entry = ways[.whole] ?? ways[.up] ?? ways[.down] ?? ""
      do {
        migrations.append(try read(number, ways, in: folder))
      } catch {
        add(error, entry)
      }
    }
    checkOrder(inOrder)
  }

  private func read(_ number: Int, _ ways: [ToolFile.Way: String], in folder: Directory) throws -> Migration {
    let entry = ways[.whole] ?? ways[.up] ?? ways[.down] ?? ""
    var files = try MigrationFiles.single(entry, in: folder, display: display)
    for other in ways.values where other != entry {
      files.contents[other] = try folder.contents(ContainerPath(other))
    }
    if entry.hasSuffix(".go") {
      throw DrydockError(.catalog, "a migration in Go: only goose itself can run it")
    }
    let script = try ToolScript(tool.format, ways: ways, files)
    var body = MigrationBody()
    let position = YAMLPosition(file: files.display(entry), line: max(1, script.up.firstLine - 1), column: 1)
    let operation = RunToolSQL(
      tool: tool.format, database: tool.database, position: position, up: script.up, down: script.down,
      upInTransaction: script.upInTransaction, downInTransaction: script.downInTransaction)
    body.steps = [MigrationStep(position: position, operation: operation)]
    let name = try ToolFile(entry, tool.format)?.name ?? ""
    var migration = Migration(
      number: number, name: name, file: files.display(entry), checksum: try files.checksum(), body)
    migration.checksumWithoutDown = try files.checksum(without: ways[.down])
    return migration
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
