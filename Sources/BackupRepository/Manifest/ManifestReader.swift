import AgeEncryption
import AppContainer
import ArchiveFile
import Foundation
import GRDB

/// An archive's manifest, read for hostile: its bytes are checked against the archive's own record, its schema
/// against ours, and it lives in a file that has no name any more.
public final class ManifestReader {
  private let queue: DatabaseQueue
  private let path: String

  /// Takes the manifest out of an archive.
  ///
  /// - Throws: ``RepositoryError`` with code `damaged`, and what reading the archive throws.
  init(_ reader: ArchiveReader, path: String) throws {
    self.path = path
    let base = try Directory(NSTemporaryDirectory())
    let folder = try ContainerPath(".drydock-manifest-\(ArchiveID.new())")
    try base.createDirectory(folder)
    defer { try? base.removeTree(folder) }
    let private_ = try base.directory(folder)
    let name: ContainerPath = "manifest.sqlite"
    let file = try private_.createFile(name)
    do {
      defer { try? file.close() }
      try reader.readManifest { _ = try file.writeAll($0) }
    }
    var configuration = GRDB.Configuration()
    configuration.readonly = true
    configuration.prepareDatabase {
      try $0.execute(sql: "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0")
    }
    do {
      queue = try DatabaseQueue(path: private_.full(name), configuration: configuration)
      let schema = try queue.read { db in
        try String.fetchAll(db, sql: "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
      }
      guard schema == ManifestSchema.statements else {
        throw RepositoryError(.damaged, "its manifest has other tables than the format says", path: path)
      }
    } catch let error as DatabaseError {
      throw Self.damaged(error, path)
    }
  }

  private static func damaged(_ error: DatabaseError, _ path: String) -> RepositoryError {
    RepositoryError(.damaged, "its manifest cannot be read: \(error.plainMessage)", path: path, cause: error)
  }

  private func read<T>(_ body: (Database) throws -> T) throws -> T {
    do {
      return try queue.read(body)
    } catch let error as DatabaseError {
      throw Self.damaged(error, path)
    }
  }

  private func wrong(_ what: String) -> RepositoryError {
    RepositoryError(.damaged, "its manifest has \(what)", path: path)
  }

  // MARK: Properties

  /// The snapshot id, and the archive that the manifest says it belongs to.
  func properties() throws -> (snapshot: String, archive: String) {
    try read { db in
      let values = try Row.fetchAll(db, sql: "SELECT name, value FROM property")
        .reduce(into: [String: String]()) { $0[$1["name"]] = String.fromDatabaseValue($1["value"]) }
      guard let snapshot = values["snapshot"], let archive = values["archive"] else {
        throw wrong("no snapshot id")
      }
      return (snapshot, archive)
    }
  }

  /// The number of stored paths, and the bytes of their content.
  public func totals() throws -> (entries: Int, bytes: UInt64) {
    try read { db in
      let row = try Row.fetchOne(db, sql: "SELECT count(*), coalesce(sum(size), 0) FROM entry")
      return (row?[0] ?? 0, UInt64(max(0, row?[1] ?? Int64(0))))
    }
  }

  // MARK: Entries

  private static let columns = """
    SELECT e.path, kind, mode, user, "group", modified, size, sha256, link_target, hard_link, device, inode, changed,
      x.offset AS offset, x.length AS length
    FROM entry e LEFT JOIN extent x ON x.path = e.path AND x.position = 0
    """

  /// Visits all entries in the order they were stored: parents first.
  public func entries(_ visit: (ManifestEntry) throws -> Void) throws {
    // The attributes of a page of entries come with one query; the visit runs outside of any.
    var last: Int64 = 0
    while true {
      let page = try read { db in
        try Row.fetchAll(
          db,
          sql: Self.columns.replacing("SELECT ", with: "SELECT e.rowid AS number, ", maxReplacements: 1)
            + " WHERE e.rowid > ? ORDER BY e.rowid LIMIT 1000", arguments: [last]
        ).map { row in (row["number"] as Int64, try entry(row, db)) }
      }
      guard let end = page.last?.0 else { return }
      for (_, entry) in page { try visit(entry) }
      last = end
    }
  }

  /// One entry; nil when the archive does not have the path.
  public func entry(_ path: ContainerPath) throws -> ManifestEntry? {
    try read { db in
      try Row.fetchOne(db, sql: Self.columns + " WHERE e.path = ?", arguments: [PathValue(path)])
        .map { try entry($0, db) }
    }
  }

  private func entry(_ row: Row, _ db: Database) throws -> ManifestEntry {
    guard let path = PathValue.fromDatabaseValue(row["path"])?.path else {
      throw wrong("a path that is none")
    }
    guard let kind = ManifestEntry.Kind(rawValue: row["kind"]),
      let size = UInt64(exactly: row["size"] as Int64),
      let mode = UInt16(exactly: row["mode"] as Int64), mode <= 0o7777,
      let user = UInt32(exactly: row["user"] as Int64), let group = UInt32(exactly: row["group"] as Int64)
    else { throw wrong("an entry that makes no sense (\(path))") }
    let attributes = try Row.fetchAll(
      db, sql: "SELECT name, value FROM attribute WHERE path = ? ORDER BY name", arguments: [PathValue(path)])
    let digest = (row["sha256"] as Data?).flatMap { SHA256.Digest(bytes: $0) }
    var entry = ManifestEntry(
      path: path, kind: kind,
      metadata: FileMetadata(
        mode: mode, user: user, group: group, modified: row["modified"],
        attributes: attributes.map {
          ExtendedAttribute(name: $0["name"], value: [UInt8]($0["value"] as Data))
        }),
      size: size, digest: digest, linkTarget: (row["link_target"] as Data?).map { [UInt8]($0) },
      identity: FileIdentity(
        device: UInt64(bitPattern: row["device"]), inode: UInt64(bitPattern: row["inode"])),
      changed: row["changed"])
    if !(row["hard_link"] as DatabaseValue).isNull {
      entry.hardLink = PathValue.fromDatabaseValue(row["hard_link"])?.path
    }
    if let offset = row["offset"] as Int64? {
      guard let offset = UInt64(exactly: offset), row["length"] as Int64? == Int64(exactly: size) else {
        throw wrong("a place of content that does not fit its size (\(path))")
      }
      entry.offset = offset
    }
    guard !entry.isFile || (digest != nil && (size == 0 || entry.offset != nil || entry.hardLink != nil)),
      kind != .symbolicLink || entry.linkTarget != nil
    else { throw wrong("an entry without content (\(path))") }
    return entry
  }

  // MARK: What is not stored

  /// The paths that a rule kept out, by path.
  public func excluded() throws -> [ExcludedPath] {
    try read { db in
      try Row.fetchAll(db, sql: "SELECT path, rule, origin, detail FROM excluded ORDER BY rowid").map { row in
        guard let path = PathValue.fromDatabaseValue(row["path"])?.path,
          let origin = PathValue.fromDatabaseValue(row["origin"])?.path,
          let rule = Exclusion.Rule(rawValue: row["rule"])
        else { throw wrong("an excluded path that makes no sense") }
        return ExcludedPath(
          path: path, exclusion: Exclusion(rule: rule, origin: origin, detail: row["detail"]))
      }
    }
  }

  /// The paths that could not be stored.
  public func skipped() throws -> [SkippedPath] {
    try read { db in
      try Row.fetchAll(db, sql: "SELECT path, reason FROM skipped ORDER BY rowid").map { row in
        guard let path = PathValue.fromDatabaseValue(row["path"])?.path,
          let reason = SkippedPath.Reason(rawValue: row["reason"])
        else { throw wrong("a skipped path that makes no sense") }
        return SkippedPath(path: path, reason: reason)
      }
    }
  }

  /// Content offsets of members that a later one of the same name replaces.
  func superseded() throws -> [UInt64: ContainerPath] {
    try read { db in
      try Row.fetchAll(db, sql: "SELECT offset, path FROM superseded").reduce(into: [:]) { result, row in
        guard let offset = UInt64(exactly: row["offset"] as Int64),
          let path = PathValue.fromDatabaseValue(row["path"])?.path
        else { throw wrong("a replaced member that makes no sense") }
        result[offset] = path
      }
    }
  }
}
