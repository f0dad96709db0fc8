import AgeEncryption
import AppContainer
import ContainerDiff
import DrydockErrors
import FileSystem
import Formats
import GRDB

/// A golden, as a side of a comparison.
package struct GoldenSide: ComparisonSide {
  package private(set) var entries: [ComparedEntry] = []
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

  package func digest(of path: ContainerPath) throws -> SHA256.Digest? {
    guard let line = lines[path], try line.file == nil else { return nil }
    guard let digest = line.content.flatMap({ SHA256.Digest(hex: $0) }) else {
      throw golden.error("the file \(path) has no SHA-256", line)
    }
    return digest
  }

  package func settings(of path: ContainerPath) throws -> PropertyListDictionary? {
    golden.settings[path]?.values
  }

  package func vault(of path: ContainerPath) throws -> ComparedVault? {
    guard try lines[path]?.file == Golden.vault else { return nil }
    return golden.items.map { .items($0.map(\.item)) }
  }

  package func databaseDigest(of path: ContainerPath) throws -> DatabaseDigest {
    if let digests = lines[path]?.rawDigests { return .raw(digests) }
    guard let file = try lines[path]?.file else { return .unknown }
    return .image(try ContentDigest.of(file, in: Directory(golden.directory), isDatabase: false))
  }

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

  package func forgetDatabase(_ path: ContainerPath) {}
}

extension Golden {
  /// An error about a line of the list.
  func error(_ message: String, _ line: GoldenLine) -> DrydockError {
    DrydockError(.badFixture, message, path: "\(directory)/\(Self.list)", line: line.number)
  }
}

/// A database made from the SQL of a golden.
enum GoldenDatabase {
  /// What a golden's SQL does: it makes tables and fills them, and reaches no other file.
  private static let words: Set<String> = [
    "BEGIN", "COMMIT", "END", "CREATE", "INSERT", "REPLACE", "DELETE", "UPDATE", "PRAGMA", "WITH", "ALTER",
    "DROP",
  ]

  /// Makes a database.
  ///
  /// - Parameters:
  ///   - sql: The statements.
  ///   - file: Where they are from, for messages.
  ///   - path: The database's path; nothing may be there.
  /// - Throws: `DrydockError` with code `malformed`, with the line.
  static func make(_ sql: String, from file: String, at path: String) throws {
    var configuration = GRDB.Configuration()
    configuration.foreignKeysEnabled = false
    configuration.allowsUnsafeTransactions = true
    // As SQLite itself does: the schemas of real apps have them.
    configuration.acceptsDoubleQuotedStringLiterals = true
    configuration.prepareDatabase {
      try $0.execute(sql: "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA trusted_schema=OFF")
    }
    // Where the statement is that runs: what SQLite knows of places ends with it.
    var statement = ""
    do {
      let queue = try DatabaseQueue(path: path, configuration: configuration)
      defer { try? queue.close() }
      try queue.writeWithoutTransaction { db in
        let statements = try db.allStatements(sql: sql)
        while let next = try statements.next() {
          statement = next.sql
          try check(statement, sql, file)
          try next.execute()
        }
        if db.isInsideTransaction { try db.execute(sql: "COMMIT") }
      }
    } catch let error as DatabaseError {
      // The statement that cannot be compiled is not known before.
      let text = error.sql ?? statement
      throw failure("the SQL fails: \(error.plainMessage)", text, sql, file, cause: error)
    }
  }

  private static func check(_ statement: String, _ sql: String, _ file: String) throws {
    let word = SQLText(statement).firstWord
    guard words.contains(word) || word.isEmpty else {
      throw failure(
        "\(word) is not allowed in a golden's SQL, which only makes and fills tables", statement, sql, file)
    }
  }

  private static func failure(
    _ message: String, _ statement: String, _ sql: String, _ file: String, cause: (any Error)? = nil
  ) -> DrydockError {
    let first = statement.split(separator: "\n").first.map(String.init)
    let line = first.flatMap { first in
      sql.split(separator: "\n", omittingEmptySubsequences: false).lastIndex { $0.hasPrefix(first) }
    }
    return DrydockError(.badFixture, message, path: file, line: line.map { $0 + 1 }, cause: cause)
  }
}

/// A side of a comparison as a golden holds it: without Drydock's own state, with normalized values in the place of volatile
/// ones.
package struct NormalizedSide: ComparisonSide {
  package private(set) var entries: [ComparedEntry] = []
  package private(set) var omitted: [ContainerPath: String]
  private let side: any ComparisonSide
  private let normalizer: ValueNormalizer
  private let settings: Set<ContainerPath>

  /// What a golden would hold of a side.
  ///
  /// - Throws: `DrydockError` with code `malformed` for an invalid pattern.
  package init(_ side: any ComparisonSide, _ volatile: VolatileValues = VolatileValues()) throws {
    self.side = side
    normalizer = try ValueNormalizer(volatile)
    omitted = side.omitted.filter { !Golden.isState($0.key) }
    settings = Set(side.entries.filter { $0.kind == .settings }.map(\.path))
    for entry in side.entries where !Golden.isState(entry.path) {
      var entry = entry
      if normalizer.isVolatile(entry.path, isDirectory: entry.kind == .directory) {
        (entry.hasContent, entry.mode, entry.attributes) = (false, nil, nil)
        if entry.kind == .directory { omitted[entry.path] = "it is volatile" }
      }
      entries.append(entry)
    }
  }

  package func digest(of path: ContainerPath) throws -> SHA256.Digest? {
    if !normalizer.isNothing, settings.contains(path), try side.settings(of: path) != nil { return nil }
    return try side.digest(of: path)
  }

  package func settings(of path: ContainerPath) throws -> PropertyListDictionary? {
    try side.settings(of: path).map(normalizer.settings)
  }

  package func vault(of path: ContainerPath) throws -> ComparedVault? { try side.vault(of: path) }

  package func databaseDigest(of path: ContainerPath) throws -> DatabaseDigest {
    let digest = try side.databaseDigest(of: path)
    if normalizer.isNothing { return digest }
    if case .raw = digest { return digest }
    return .unknown
  }

  package func databaseFile(
    of path: ContainerPath, in scratch: Directory, as name: ContainerPath
  ) throws -> String {
    if normalizer.isNothing { return try side.databaseFile(of: path, in: scratch, as: name) }
    return try ScratchDirectory.withTemporary { folder in
      defer { side.forgetDatabase(path) }
      let lines = try GoldenSQL(
        path: side.databaseFile(of: path, in: folder, as: "database"), normalizer: normalizer
      ).lines()
      let full = scratch.full(name)
      try GoldenDatabase.make(lines.joined(separator: "\n"), from: path.description, at: full)
      return full
    }
  }

  package func forgetDatabase(_ path: ContainerPath) { side.forgetDatabase(path) }
}

extension Golden {
  /// What is volatile in the fixture that the golden is of; nil when it is of none.
  ///
  /// - Throws: what reading the fixture throws.
  package func volatile() throws -> VolatileValues? {
    guard let resolved = realPath(directory), let (expected, _) = try? ContainerPath.split(resolved),
      expected.hasSuffix("/expected"), let (fixture, _) = try? ContainerPath.split(expected),
      FollowedStatus.identity(fixture + "/fixture.yaml") != nil
    else { return nil }
    return try Fixture.load(fixture).volatile
  }
}
