import AppContainer
import ContainerTransaction

/// Writes a side of a comparison (a container, an archive) down as a golden. Values are written as they are, secrets
/// too: goldens are of made-up containers.
public struct GoldenWriter {
  private let side: any ComparisonSide
  private let target: Directory
  private var lines: [GoldenLine] = []
  private var defaults: [String] = []
  private var names: Set<String> = []

  /// Writes a golden.
  ///
  /// - Parameter directory: the directory to write into; it must be there and have none of the golden's files.
  /// - Throws: `ContainerError`, and what reading the side throws; `FixtureError` with code `notBuilt` for a database
  ///   that SQLite cannot open.
  public static func write(_ side: any ComparisonSide, to directory: String) throws {
    var writer = GoldenWriter(side: side, target: try Directory(directory))
    try writer.write()
  }

  private init(side: any ComparisonSide, target: Directory) {
    self.side = side
    self.target = target
  }

  private mutating func write() throws {
    for entry in side.entries { lines.append(try line(entry)) }
    for (path, reason) in side.omitted {
      var line = GoldenLine(path: path, type: GoldenLine.excluded)
      line.content = reason.split(separator: ":").first.map { GoldenText.escaped(Array($0.utf8), " ") }
      lines.append(line)
    }
    lines.sort { $0.path < $1.path }
    try create(Golden.list, [Golden.heading] + lines.map(\.text))
    if !defaults.isEmpty { try create(Golden.defaults, defaults) }
  }

  private func create(_ path: ContainerPath, _ lines: [String]) throws {
    try target.create(path, lines.flatMap { Array($0.utf8) + [UInt8(ascii: "\n")] }, mode: 0o644)
  }

  private mutating func line(_ entry: ComparedEntry) throws -> GoldenLine {
    var line = GoldenLine(path: entry.path, type: entry.kind.rawValue)
    // A link's mode says nothing.
    line.mode = entry.kind == .link ? nil : entry.mode
    line.flags = entry.attributes ?? [:]
    switch entry.kind {
    case .directory, .other: break
    case .link: line.content = entry.linkTarget.map { GoldenText.escaped($0, " ") }
    case .file, .vault: line.content = try side.digest(of: entry.path)?.hex
    case .settings:
      guard let values = try side.settings(of: entry.path), let yaml = GoldenYAML.lines(values) else {
        // Nothing that can be written as settings: compared as a file.
        line.type = ComparedEntry.Kind.file.rawValue
        line.content = try side.digest(of: entry.path)?.hex
        return line
      }
      defaults.append("\(GoldenYAML.quoted(GoldenText.text(entry.path))):" + (yaml.isEmpty ? " {}" : ""))
      defaults += yaml
      line.content = Golden.defaults.description
    case .database:
      let name = sqlName(entry.path)
      line.content = name
      try writeDatabase(entry.path, to: ContainerPath(name))
    }
    return line
  }

  private mutating func sqlName(_ path: ContainerPath) -> String {
    let plain = path.nameString.map {
      $0.isASCII && ($0.isLetter || $0.isNumber || "._-".contains($0)) ? $0 : "-"
    }
    let stem = String(plain.drop { $0 == "." })
    var name = "\(stem.isEmpty ? "database" : stem).sql"
    var number = 2
    while !names.insert(name).inserted {
      name = "\(stem)-\(number).sql"
      number += 1
    }
    return name
  }

  private func writeDatabase(_ path: ContainerPath, to file: ContainerPath) throws {
    try ScratchDirectory.withTemporary { scratch in
      defer { side.forgetDatabase(path) }
      do {
        let database = try side.databaseFile(of: path, in: scratch, as: "database")
        try create(file, GoldenSQL(database).lines())
      } catch let error as ContainerError where error.code == .malformed {
        throw FixtureError(
          .notBuilt, "a golden cannot hold this database: \(error.message)", path: path.description,
          cause: error)
      }
    }
  }
}
