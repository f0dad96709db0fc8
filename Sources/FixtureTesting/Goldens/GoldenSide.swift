import AgeEncryption
import AppContainer
import ContainerDiff
import DrydockErrors
import FileSystem
import Formats

/// A golden, as a side of a comparison.
package struct GoldenSide: ComparisonSide {
  /// See ``ComparisonSide``.
  package private(set) var entries: [ComparedEntry] = []
  /// See ``ComparisonSide``.
  package private(set) var omitted: [ContainerPath: String] = [:]
  private let golden: Golden
  private let lines: [ContainerPath: GoldenLine]

  /// A side from a golden.
  ///
  /// - Throws: `DrydockError` with code `malformed`.
  package init(_ golden: Golden) throws {
    self.golden = golden
    lines = Dictionary(golden.lines.map { ($0.path, $0) }, uniquingKeysWith: { a, _ in a })
    for line in golden.lines {
      if let kind = line.kind {
        entries.append(try Self.entry(line, kind, golden))
        if kind == .directory, line.isVolatile { omitted[line.path] = "it is volatile" }
      } else {
        let reason = line.content.flatMap(GoldenText.unescaped).map { String(decoding: $0, as: UTF8.self) }
        omitted[line.path] = reason ?? "left out by the golden"
      }
    }
  }

  private static func entry(
    _ line: GoldenLine, _ kind: ComparedEntry.Kind, _ golden: Golden
  ) throws -> ComparedEntry {
    var entry = ComparedEntry(line.path, kind)
    if line.isVolatile {
      entry.hasContent = false
      return entry
    }
    entry.mode = line.mode
    if kind != .other { entry.attributes = line.flags }
    if kind == .link {
      guard let target = line.content.flatMap(GoldenText.unescaped) else {
        throw golden.error("the link \(line.path) has no target", line)
      }
      entry.linkTarget = target
    }
    return entry
  }

  /// See ``ComparisonSide``.
  package func digest(of path: ContainerPath) throws -> SHA256.Digest? {
    guard let line = lines[path], try line.file == nil else { return nil }
    guard let digest = line.content.flatMap({ SHA256.Digest(hex: $0) }) else {
      throw golden.error("the file \(path) has no SHA-256", line)
    }
    return digest
  }

  /// See ``ComparisonSide``.
  package func settings(of path: ContainerPath) throws -> PropertyListDictionary? {
    golden.settings[path]?.values
  }

  /// See ``ComparisonSide``.
  package func vault(of path: ContainerPath) throws -> ComparedVault? {
    guard try lines[path]?.file == Golden.vault else { return nil }
    return golden.items.map { .items($0.map(\.item)) }
  }

  /// See ``ComparisonSide``: the digest of its SQL, which tells whether two goldens have the same.
  package func databaseDigest(of path: ContainerPath) throws -> DatabaseDigest {
    if let digests = lines[path]?.rawDigests { return .raw(digests) }
    guard let file = try lines[path]?.file else { return .unknown }
    return .image(try ContentDigest.of(file, in: Directory(golden.directory), isDatabase: false))
  }

  /// See ``ComparisonSide``: a database made from the golden's SQL.
  package func databaseFile(
    of path: ContainerPath, in scratch: Directory, as name: ContainerPath
  ) throws -> String {
    guard let line = lines[path], line.rawDigests == nil else {
      throw DrydockError(
        .malformed, "SQLite could not open it when the golden was written", path: path.description)
    }
    guard let source = try line.file else { throw golden.error("the database \(path) has no SQL", line) }
    let root = try Directory(golden.directory)
    guard let sql = String(validating: try root.contents(source, limit: 1 << 30), as: UTF8.self) else {
      throw DrydockError(.badFixture, "the SQL is not UTF-8", path: root.full(source))
    }
    let full = scratch.full(name)
    try GoldenDatabase.make(sql, from: root.full(source), at: full)
    return full
  }

  /// See ``ComparisonSide``.
  package func forgetDatabase(_ path: ContainerPath) {}
}

extension Golden {
  /// An error about a line of the list.
  func error(_ message: String, _ line: GoldenLine) -> DrydockError {
    DrydockError(.badFixture, message, path: "\(directory)/\(Self.list)", line: line.number)
  }
}
