import AppContainer
import ContainerDiff
import Cryptography
import DrydockErrors
import FileSystem
import Formats

/// A container as text that a reviewer can read: the expected result of a migration.
///
/// A directory with `files.txt` (every path with its type, mode, flags and content), `defaults.yaml` (settings with
/// their types, by file and key), `vault.yaml` (the vault's items) and one `.sql` for each database (its schema, its
/// rows by key). The same container gives the same text.
package struct Golden: Sendable {
  /// The list of paths; a directory that has it is a golden.
  static let list: ContainerPath = "files.txt"
  static let defaults: ContainerPath = "defaults.yaml"
  static let vault: ContainerPath = "vault.yaml"
  static let heading = "# drydock golden 1: type, mode, flags, content, path"

  /// Drydock's own state, wherever a layout has it: no golden holds that.
  static let state = ContainerLayout.allCases.map(\.historyPath.parent) + [ContainerPath.stateDirectory]

  static func isState(_ path: ContainerPath) -> Bool {
    state.contains { path == $0 || path.isInside($0) }
  }

  package let directory: String
  let lines: [ContainerPath: GoldenLine]
  /// Its settings, by file and key, each with the line of the file's name.
  let settings: [ContainerPath: (values: PropertyListDictionary, line: Int)]
  /// The items of its vault; nil when it has no `vault.yaml`.
  let items: [FixtureVaultItem]?

  package static func isGolden(_ path: String) -> Bool {
    guard let directory = try? Directory(path), let status = try? directory.status(list),
      status.type == .file,
      let bytes = try? directory.contents(list)
    else { return false }
    return bytes.starts(with: "# drydock golden ".utf8)
  }

  /// Reads a golden.
  ///
  /// - Throws: `DrydockError`: `malformed` with the line, `badFixture`, or `io`.
  package init(_ path: String) throws {
    directory = path
    let root = try Directory(path)
    lines = try Dictionary(
      Self.lines(in: root).map { ($0.path, $0) }, uniquingKeysWith: { first, _ in first })
    settings = try Self.read(Self.defaults, in: root) { try Self.settings($0) } ?? [:]
    items = try Self.read(Self.vault, in: root) { try FixtureVaultItem.items($0) ?? [] }
    try requireItsFiles(root)
  }

  private static func lines(in root: Directory) throws -> [GoldenLine] {
    let file = root.full(list)
    guard try root.status(list) != nil else {
      throw DrydockError(
        .badFixture, "the golden has no files.txt, which lists its paths; record it anew", path: root.path)
    }
    guard let text = String(validating: try root.contents(list), as: UTF8.self) else {
      throw DrydockError(.badFixture, "the list of paths is not UTF-8", path: file)
    }
    let rows = text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
    guard rows.first.map(String.init) == heading else {
      throw DrydockError(
        .badFixture, "not a golden that this version reads; its first line is not `\(heading)`", path: file)
    }
    let lines = try rows.enumerated().dropFirst().filter { !$1.isEmpty && !$1.hasPrefix("#") }.map {
      number, row in
      guard var line = GoldenLine(String(row)) else {
        throw DrydockError(
          .badFixture, "not type, mode, flags, content and path of one thing", path: file, line: number + 1)
      }
      line.number = number + 1
      return line
    }.sorted { $0.path < $1.path }
    for (line, next) in zip(lines, lines.dropFirst()) where line.path == next.path {
      throw DrydockError(.badFixture, "\(line.path) is there twice", path: file, line: next.number)
    }
    return lines
  }

  var sortedLines: [GoldenLine] { lines.values.sorted { $0.path < $1.path } }

  /// The paths of the files of a golden.
  static func files(_ root: Directory) throws -> Set<ContainerPath> {
    var files = Set(
      try root.names().map(ContainerPath.init(name:)).filter { name in
        [list, defaults, vault].contains(name) || name.nameString.hasSuffix(".sql")
      })
    guard try root.status(GoldenDocument.directory)?.type == .directory else { return files }
    try root.directory(GoldenDocument.directory).walk { entry in
      if entry.status.type == .file { files.insert(GoldenDocument.place(of: entry.path)) }
      return .into
    }
    return files
  }

  /// An error about a line of the list.
  func error(_ message: String, _ line: GoldenLine) -> DrydockError {
    DrydockError(.badFixture, message, path: "\(directory)/\(Self.list)", line: line.number)
  }

  /// What a file says; nil when it is not there.
  private static func read<Value>(
    _ name: ContainerPath, in root: Directory, _ body: (YAMLNode?) throws -> Value
  ) throws -> Value? {
    guard try root.status(name) != nil else { return nil }
    let file = root.full(name)
    do {
      return try body(YAMLDocument(root.contents(name), file: file).root)
    } catch let error as DrydockError where error.message.hasPrefix(file + ":") {
      let (_, line, _, message) = error.located
      throw DrydockError(.badFixture, message, path: file, line: line, cause: error)
    }
  }

  private static func settings(
    _ node: YAMLNode?
  ) throws -> [ContainerPath: (values: PropertyListDictionary, line: Int)] {
    var settings: [ContainerPath: (values: PropertyListDictionary, line: Int)] = [:]
    for pair in try node?.pairs("defaults.yaml").pairs ?? [] {
      guard let path = GoldenLine.path(pair.key.source) else {
        throw pair.keyPosition.error("not a path in a container")
      }
      let values = pair.value.isNull ? [:] : try pair.value.pairs("a settings file").propertyListValues()
      settings[path] = (values, pair.keyPosition.line)
    }
    return settings
  }

  /// A file that is missing, or that nothing refers to, is an editing mistake.
  private func requireItsFiles(_ root: Directory) throws {
    let lines = sortedLines
    let needed = try Set(lines.compactMap { try $0.file })
    for line in lines {
      guard let file = try line.file else { continue }
      guard try root.status(file)?.type == .file else {
        throw error(
          "\(line.path) is in \(file), which the golden lacks; bring the file back or record the golden anew",
          line)
      }
    }
    for line in lines where line.content == Self.defaults.description && settings[line.path] == nil {
      throw error("defaults.yaml has no settings for \(line.path)", line)
    }
    for (path, settings) in settings where self.lines[path]?.kind != .settings {
      throw DrydockError(
        .badFixture, "files.txt does not list \(path) as settings", path: root.full(Self.defaults),
        line: settings.line)
    }
    for name in try root.names().map(ContainerPath.init(name:)) where !needed.contains(name) {
      guard name == Self.vault || name == Self.defaults || name.nameString.hasSuffix(".sql") else { continue }
      throw DrydockError(
        .badFixture, "nothing in files.txt refers to this file; remove it, or record the golden anew",
        path: root.full(name))
    }
  }
}
