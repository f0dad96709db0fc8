import AppStores
import ContainerDiff
import Cryptography
import DrydockErrors
import FileSystem
import Formats

extension Golden: ComparisonSide {
  package func walk() throws -> SideWalk {
    var entries: [ComparedEntry] = []
    var omitted: [ContainerPath: String] = [:]
    for line in sortedLines {
      if let kind = line.kind {
        entries.append(try entry(line, kind))
        if kind == .directory, line.isVolatile { omitted[line.path] = "it is volatile" }
      } else {
        let reason = line.content.flatMap(GoldenLine.unescaped).map { String(decoding: $0, as: UTF8.self) }
        omitted[line.path] = reason ?? "left out by the golden"
      }
    }
    return walk(entries, omitting: omitted)
  }

  private func entry(_ line: GoldenLine, _ kind: ComparedEntry.Kind) throws -> ComparedEntry {
    var entry = ComparedEntry(line.path, kind)
    if line.isVolatile {
      entry.hasContent = false
      return entry
    }
    entry.mode = line.mode
    if kind != .other { entry.attributes = line.flags }
    if kind == .link {
      guard let target = line.content.flatMap(GoldenLine.unescaped) else {
        throw error("the link \(line.path) has no target", line)
      }
      entry.linkTarget = target
    }
    return entry
  }

  package func digest(of entry: ComparedEntry) throws -> SHA256.Digest? {
    guard let line = lines[entry.path], try line.file == nil else { return nil }
    guard let digest = line.content.flatMap({ SHA256.Digest(hex: $0) }) else {
      throw error("the file \(entry.path) has no SHA-256", line)
    }
    return digest
  }

  /// A JSON document's; the golden has nothing but the digest of other files.
  package func contents(of entry: ComparedEntry) throws -> [UInt8]? {
    let root = try Directory(directory)
    let place = GoldenDocument.place(of: entry.path)
    return try root.status(place)?.type == .file ? root.contents(place) : nil
  }

  package func settings(of path: ContainerPath) throws -> PropertyListDictionary? {
    settings[path]?.values
  }

  package func vault(of path: ContainerPath) throws -> ComparedVault? {
    guard try lines[path]?.file == Self.vault else { return nil }
    return items.map { .items($0.map(\.item)) }
  }

  package func databaseDigest(of path: ContainerPath) throws -> DatabaseDigest {
    if let digests = lines[path]?.rawDigests { return .raw(digests) }
    guard let file = try lines[path]?.file else { return .unknown }
    return .image(try ContentHash.of(file, in: Directory(directory), isDatabase: false))
  }

  package func databaseFile(
    of path: ContainerPath, in scratch: Directory, as name: ContainerPath
  ) throws -> String {
    guard let line = lines[path], line.rawDigests == nil else {
      throw DrydockError(
        .malformed, "SQLite could not open it when the golden was written", path: path.description)
    }
    guard let source = try line.file else { throw error("the database \(path) has no SQL", line) }
    try SQLDump(source, in: Directory(directory)).build(
      at: scratch.full(name),
      preparing: """
        PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA trusted_schema=OFF; PRAGMA foreign_keys=OFF
        """)
    return scratch.full(name)
  }

  package func forgetDatabase(_ path: ContainerPath) {}
}

/// A side of a comparison as a golden holds it: without Drydock's own state, with normalized values in the place of
/// volatile ones.
package struct NormalizedSide: ComparisonSide {
  private(set) var entries: [ComparedEntry] = []
  private(set) var omitted: [ContainerPath: String]
  /// Directories of which only the path counts.
  private(set) var volatileDirectories: Set<ContainerPath> = []
  let normalizer: ValueNormalizer
  private let side: any ComparisonSide

  /// What a golden would hold of a side.
  ///
  /// - Throws: `DrydockError` with code `badFixture` for an invalid pattern.
  package init(_ side: any ComparisonSide, _ volatile: VolatileValues = VolatileValues()) throws {
    self.side = side
    normalizer = try ValueNormalizer(volatile)
    let listed = try side.listed(side.walk())
    omitted = listed.omitted.filter { !Golden.isState($0.key) }
    for entry in listed.entries where !Golden.isState(entry.path) {
      var entry = entry
      if !entry.hasContent || normalizer.isVolatile(entry.path, isDirectory: entry.kind == .directory) {
        (entry.hasContent, entry.mode, entry.attributes) = (false, nil, nil)
        if entry.kind == .directory {
          omitted[entry.path] = "it is volatile"
          volatileDirectories.insert(entry.path)
        }
      }
      entries.append(entry)
    }
  }

  package func walk() -> SideWalk { walk(entries, omitting: omitted) }

  package func digest(of entry: ComparedEntry) throws -> SHA256.Digest? {
    if !normalizer.isNothing, try side.settings(of: entry.path) != nil { return nil }
    return try side.digest(of: entry)
  }

  package func contents(of entry: ComparedEntry) throws -> [UInt8]? {
    try document(of: entry).map { Array($0.text.utf8) } ?? side.contents(of: entry)
  }

  /// A file as a JSON document; nil for other files, and where only the digest is known.
  func document(of entry: ComparedEntry) throws -> GoldenDocument? {
    guard GoldenDocument.isCandidate(entry) else { return nil }
    return try side.contents(of: entry).flatMap { GoldenDocument($0, normalizer) }
  }

  package func settings(of path: ContainerPath) throws -> PropertyListDictionary? {
    try side.settings(of: path).map(normalizer.settings)
  }

  package func vault(of path: ContainerPath) throws -> ComparedVault? { try side.vault(of: path) }

  package func databaseDigest(of path: ContainerPath) throws -> DatabaseDigest {
    let digest = try side.databaseDigest(of: path)
    if case .raw = digest { return digest }
    return normalizer.isNothing ? digest : .unknown
  }

  /// The database with its volatile values.
  func plainDatabaseFile(of path: ContainerPath, in scratch: Directory) throws -> String {
    try side.databaseFile(of: path, in: scratch, as: "database")
  }

  package func databaseFile(
    of path: ContainerPath, in scratch: Directory, as name: ContainerPath
  ) throws -> String {
    if normalizer.isNothing { return try side.databaseFile(of: path, in: scratch, as: name) }
    let temporary = try ScratchDirectory.temporary()
    defer { side.forgetDatabase(path) }
    let sql = try GoldenText.sql(
      of: plainDatabaseFile(of: path, in: temporary.directory), at: path, normalizer)
    try SQLDump(sql, from: path.description).build(
      at: scratch.full(name), preparing: "PRAGMA synchronous=OFF; PRAGMA foreign_keys=OFF")
    return scratch.full(name)
  }

  package func forgetDatabase(_ path: ContainerPath) { side.forgetDatabase(path) }
}

extension Golden {
  /// What is volatile in the fixture that the golden is of; nil when it is of none.
  package func volatile() throws -> VolatileValues? {
    guard let resolved = realPath(directory), let (expected, _) = try? ContainerPath.split(resolved),
      expected.hasSuffix("/expected"), let (fixture, _) = try? ContainerPath.split(expected),
      FollowedStatus.identity(fixture + "/fixture.yaml") != nil
    else { return nil }
    return try Fixture.load(fixture).volatile
  }
}
