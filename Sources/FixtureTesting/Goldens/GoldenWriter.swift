import AppContainer
import ContainerDiff
import FileSystem

/// Writes a side of a comparison (a container, an archive) down as a golden. Values are written as they are, secrets
/// too: goldens are of made-up containers.
package struct GoldenWriter {
  private let side: any ComparisonSide
  private let target: Directory
  private let neutral: NeutralValues
  private let deviceKeys: DeviceKeys?
  private var lines: [GoldenLine] = []
  private var defaults: [String] = []
  private var vault: [String] = []
  private var names: Set<String> = []

  /// Writes a golden.
  ///
  /// - Parameters:
  ///   - directory: The directory to write into; it must be there and have none of the golden's files.
  ///   - volatile: What is another value in each run: neutral words of the same type stand in its place.
  ///   - deviceKeys: What opens the vault; without it the golden has the sealed file's digest, which is another one
  ///     after each sealing.
  /// - Throws: `DrydockError`, and what reading the side throws; `DrydockError` with code `malformed` for a pattern that
  ///   is none.
  package static func write(
    _ side: any ComparisonSide, to directory: String, volatile: VolatileValues = VolatileValues(),
    deviceKeys: DeviceKeys? = nil
  ) throws {
    var writer = GoldenWriter(
      side: side, target: try Directory(directory), neutral: try NeutralValues(volatile),
      deviceKeys: deviceKeys)
    try writer.write()
  }

  private init(side: any ComparisonSide, target: Directory, neutral: NeutralValues, deviceKeys: DeviceKeys?) {
    (self.side, self.target, self.neutral, self.deviceKeys) = (side, target, neutral, deviceKeys)
  }

  private mutating func write() throws {
    var volatile: ContainerPath?
    for entry in side.entries where !Golden.isState(entry.path) {
      // What is in a directory that is another one in each run is not listed.
      if let above = volatile, entry.path.isInside(above) { continue }
      let isDirectory = entry.kind == .directory
      if !entry.hasContent || neutral.isVolatile(entry.path, isDirectory: isDirectory) {
        if isDirectory { volatile = entry.path }
        lines.append(GoldenLine(volatile: entry))
      } else {
        lines.append(try line(entry))
      }
    }
    let hidden = Set(lines.filter(\.isVolatile).map(\.path))
    for (path, reason) in side.omitted
    where !Golden.isState(path) && !hidden.contains(path) && !path.ancestors.contains(where: hidden.contains)
    {
      var line = GoldenLine(path: path, type: GoldenLine.excluded)
      line.content = reason.split(separator: ":").first.map { GoldenText.escaped(Array($0.utf8), " ") }
      lines.append(line)
    }
    lines.sort { $0.path < $1.path }
    try create(Golden.list, [Golden.heading] + lines.map(\.text))
    if !defaults.isEmpty { try create(Golden.defaults, defaults) }
    if !vault.isEmpty { try create(Golden.vault, vault) }
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
    case .file: line.content = try side.digest(of: entry.path)?.hex
    case .vault: line.content = try writeVault(entry.path)
    case .settings:
      guard let values = try side.settings(of: entry.path),
        let yaml = GoldenYAML.lines(neutral.settings(values))
      else {
        // Nothing that can be written as settings: compared as a file.
        line.type = ComparedEntry.Kind.file.rawValue
        line.content = try side.digest(of: entry.path)?.hex
        return line
      }
      defaults.append("\(GoldenYAML.quoted(GoldenText.text(entry.path))):" + (yaml.isEmpty ? " {}" : ""))
      defaults += yaml
      line.content = Golden.defaults.description
    case .database:
      if case .raw(let digests) = try side.databaseDigest(of: entry.path) {
        line.rawDigests = digests
      } else {
        let name = sqlName(entry.path)
        line.content = name
        try writeDatabase(entry.path, to: ContainerPath(name))
      }
    }
    return line
  }

  // MARK: Vault

  private mutating func writeVault(_ path: ContainerPath) throws -> String? {
    let items: [VaultItem]
    switch try side.vault(of: path) {
    case .items(let listed): items = listed
    case .sealed(let bytes):
      guard let deviceKeys else { return try side.digest(of: path)?.hex }
      items = try Vault(opening: bytes, with: deviceKeys, path: path.description).sorted
    case nil: return try side.digest(of: path)?.hex
    }
    vault = GoldenVault.lines(items, neutral)
    return Golden.vault.description
  }

  // MARK: Databases

  private mutating func sqlName(_ path: ContainerPath) -> String {
    let plain = path.nameString.map {
      $0.isASCII && ($0.isLetter || $0.isNumber || "._-".contains($0)) ? $0 : "-"
    }
    let stem = String(plain.drop { $0 == "." })
    var name = "\(stem.isEmpty ? "database" : stem).sql"
    var number = 2
    // A file system may take names for the same that differ in case only.
    while !names.insert(name.lowercased()).inserted {
      name = "\(stem.isEmpty ? "database" : stem)-\(number).sql"
      number += 1
    }
    return name
  }

  private func writeDatabase(_ path: ContainerPath, to file: ContainerPath) throws {
    let copy: ContainerPath = ".database"
    defer {
      side.forgetDatabase(path)
      try? target.removeFile(copy, missingIsFine: true)
    }
    let database = try side.databaseFile(of: path, in: target, as: copy)
    try create(file, GoldenSQL(path: database, neutral: neutral).lines())
  }
}
