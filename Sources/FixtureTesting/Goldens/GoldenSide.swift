import AgeEncryption
import AppContainer
import ContainerTransaction
import GRDB

/// A golden, as a side of a comparison.
public struct GoldenSide: ComparisonSide {
  /// See ``ComparisonSide``.
  public private(set) var entries: [ComparedEntry] = []
  /// See ``ComparisonSide``.
  public private(set) var omitted: [ContainerPath: String] = [:]
  private let golden: Golden
  private let lines: [ContainerPath: GoldenLine]

  /// A side from a golden.
  ///
  /// - Throws: `FixtureError` with code `malformed`.
  public init(_ golden: Golden) throws {
    self.golden = golden
    lines = Dictionary(golden.lines.map { ($0.path, $0) }, uniquingKeysWith: { a, _ in a })
    for line in golden.lines {
      if let kind = ComparedEntry.Kind(rawValue: line.type) {
        entries.append(try Self.entry(line, kind, golden))
      } else {
        omitted[line.path] = line.content ?? "left out by the golden"
      }
    }
  }

  private static func entry(
    _ line: GoldenLine, _ kind: ComparedEntry.Kind, _ golden: Golden
  ) throws -> ComparedEntry {
    var entry = ComparedEntry(line.path, kind)
    entry.mode = line.mode
    if kind != .other { entry.attributes = line.flags }
    if kind == .link {
      guard let target = line.content.flatMap(GoldenText.unescaped) else {
        throw FixtureError(.malformed, "the link \(line.path) has no target", path: golden.directory)
      }
      entry.linkTarget = target
    }
    return entry
  }

  /// See ``ComparisonSide``.
  public func digest(of path: ContainerPath) throws -> SHA256.Digest? {
    guard let line = lines[path], line.type != ComparedEntry.Kind.settings.rawValue else { return nil }
    guard let digest = line.content.flatMap({ SHA256.Digest(hex: $0) }) else {
      throw FixtureError(.malformed, "the file \(path) has no SHA-256", path: golden.directory)
    }
    return digest
  }

  /// See ``ComparisonSide``.
  public func settings(of path: ContainerPath) throws -> [String: PropertyListValue]? {
    golden.settings[path]
  }

  /// See ``ComparisonSide``: a golden has its digest only.
  public func sealedVault(of path: ContainerPath) throws -> [UInt8]? { nil }

  /// See ``ComparisonSide``.
  public func databaseDigest(of path: ContainerPath) throws -> DatabaseDigest { .unknown }

  /// See ``ComparisonSide``: a database made from the golden's SQL.
  public func databaseFile(
    of path: ContainerPath, in scratch: Directory, as name: ContainerPath
  ) throws -> String {
    guard let source = try lines[path]?.content.map({ try ContainerPath($0) }) else {
      throw FixtureError(.malformed, "the database \(path) has no SQL", path: golden.directory)
    }
    let root = try Directory(golden.directory)
    guard try root.status(source) != nil else {
      throw FixtureError(.malformed, "the golden lacks the SQL of \(path)", path: root.full(source))
    }
    guard let sql = String(validating: try root.contents(source, limit: 1 << 30), as: UTF8.self) else {
      throw FixtureError(.malformed, "the SQL is not UTF-8", path: root.full(source))
    }
    let full = scratch.full(name)
    var configuration = GRDB.Configuration()
    configuration.foreignKeysEnabled = false
    configuration.allowsUnsafeTransactions = true
    configuration.prepareDatabase { try $0.execute(sql: "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF") }
    do {
      let queue = try DatabaseQueue(path: full, configuration: configuration)
      defer { try? queue.close() }
      try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
    } catch let error as DatabaseError {
      throw FixtureError(
        .malformed, "the SQL fails: \(error.plainMessage)", path: root.full(source), cause: error)
    }
    return full
  }

  /// See ``ComparisonSide``.
  public func forgetDatabase(_ path: ContainerPath) {}
}
