import AppContainer

/// A container written down as text that a reviewer can read: what one must look like.
///
/// A directory with `files.txt` (every path with its type, mode, flags and content), `defaults.yaml` (settings with
/// their types, by file and key) and one `.sql` for each database (its schema, its rows by key). The same container
/// gives the same text.
public struct Golden: Sendable {
  /// The list of paths; a directory that has it is a golden.
  static let list: ContainerPath = "files.txt"
  static let defaults: ContainerPath = "defaults.yaml"
  /// The first line of the list.
  static let heading = "# drydock golden 1: type, mode, flags, content, path"

  /// The golden's directory.
  public let directory: String
  /// Its paths, sorted.
  let lines: [GoldenLine]
  /// Its settings, by file and key.
  let settings: [ContainerPath: [String: PropertyListValue]]

  /// Whether a directory is a golden.
  public static func isGolden(_ path: String) -> Bool {
    guard let directory = try? Directory(path), let status = try? directory.status(list),
      status.type == .file,
      let bytes = try? directory.contents(list)
    else { return false }
    return bytes.starts(with: "# drydock golden ".utf8)
  }

  /// Reads a golden.
  ///
  /// - Throws: `FixtureError` with code `malformed`, or `ContainerError` with `file:line:column`.
  public init(_ path: String) throws {
    directory = path
    let root = try Directory(path)
    let file = root.full(Self.list)
    guard let text = String(validating: try root.contents(Self.list), as: UTF8.self) else {
      throw FixtureError(.malformed, "the list of paths is not UTF-8", path: file)
    }
    let rows = text.split(separator: "\n", omittingEmptySubsequences: false)
    guard rows.first.map(String.init) == Self.heading else {
      throw FixtureError(
        .malformed, "not a golden that this version reads; its first line is not `\(Self.heading)`",
        path: file)
    }
    lines = try rows.enumerated().dropFirst().filter { !$1.isEmpty && !$1.hasPrefix("#") }.map {
      number, row in
      guard let line = GoldenLine(String(row)) else {
        throw FixtureError(
          .malformed, "\(file):\(number + 1):1: not type, mode, flags, content and path of one thing",
          path: file)
      }
      return line
    }.sorted { $0.path < $1.path }
    for (line, next) in zip(lines, lines.dropFirst()) where line.path == next.path {
      throw FixtureError(.malformed, "\(line.path) is there twice", path: file)
    }
    settings = try Self.settings(in: root)
  }

  private static func settings(in root: Directory) throws -> [ContainerPath: [String: PropertyListValue]] {
    guard try root.status(defaults) != nil else { return [:] }
    let file = root.full(defaults)
    let document = try YAMLDocument(root.contents(defaults), file: file)
    var settings: [ContainerPath: [String: PropertyListValue]] = [:]
    for pair in try document.root?.pairs("defaults.yaml").pairs ?? [] {
      guard let path = GoldenText.path(pair.key.source) else {
        throw pair.keyPosition.error("not a path in a container")
      }
      settings[path] = try pair.value.isNull ? [:] : pair.value.pairs("a settings file").propertyListValues()
    }
    return settings
  }
}
