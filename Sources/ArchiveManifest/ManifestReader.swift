import AppContainer
import AppStores
import ArchiveFile
import Cryptography
import DrydockErrors
import FileSystem
import Foundation
import GRDB
import SystemPackage

/// Reads an archive's own manifest, which is treated as hostile: its bytes are checked against the archive's record, its
/// schema against ours, and its copy is in an unlinked file. That of an incremental archive has only what differs from its
/// parent's: see ``Manifest``.
package final class ManifestReader: Sendable {
  private let queue: DatabaseQueue
  /// The archive's header.
  package let header: ArchiveHeader
  let tarSize: UInt64
  /// Bytes of the archive's file.
  package let fileSize: UInt64
  /// The file that it is read from, for messages.
  package let path: String
  /// The archives that extents are in, by their numbers; 0 is this one.
  let archives: [Int64: ArchiveID]
  private let size: UInt64

  package var archive: ArchiveID { header.archive }
  var isIncremental: Bool { header.parent != nil }

  /// - Throws: `DrydockError` with code `damaged`, and what reading the archive throws.
  package convenience init(_ reader: ArchiveReader, _ header: ArchiveHeader, path: String) throws {
    try self.init(
      header, tarSize: reader.tarSize, fileSize: reader.fileSize, path: path, size: reader.manifest.length
    ) { file in
      try reader.readManifest { _ = try file.writeAll($0) }
    }
  }

  /// - Parameters:
  ///   - size: of the manifest.
  ///   - write: writes the manifest's bytes into a file.
  package init(
    _ header: ArchiveHeader, tarSize: UInt64, fileSize: UInt64, path: String, size: UInt64,
    write: (FileDescriptor) throws -> Void
  ) throws {
    (self.header, self.tarSize, self.fileSize, self.path, self.size) = (header, tarSize, fileSize, path, size)
    do {
      queue = try DatabaseQueue.manifest(path, write: write)
      archives = try queue.read { try Self.archives($0, of: header, path) }
    } catch let error as DatabaseError {
      throw Self.damaged(error, path)
    }
  }

  /// The archives that extents are in, by their numbers.
  private static func archives(
    _ db: Database, of header: ArchiveHeader, _ path: String
  ) throws -> [Int64: ArchiveID] {
    var archives: [Int64: ArchiveID] = [0: header.archive]
    let rows = try Row.fetchCursor(
      db, sql: "SELECT number, archive FROM required LIMIT \(Manifest.longestChain + 1)")
    while let row = try rows.next().map(ManifestRow.init) {
      guard let number = row.integer("number"), number > 0, header.parent != nil,
        let id = row.text("archive").flatMap(ArchiveID.init), id != header.archive,
        archives.count <= Manifest.longestChain
      else { throw DrydockError(.damaged, "its manifest requires an invalid archive", path: path) }
      archives[number] = id
    }
    return archives
  }

  private static func damaged(_ error: DatabaseError, _ path: String) -> DrydockError {
    // A failure of the disk that holds the copy does not mean that the archive is damaged.
    if error.resultCode == .SQLITE_FULL || error.resultCode == .SQLITE_IOERR {
      return DrydockError(
        .io, "its manifest cannot be read in \(NSTemporaryDirectory()): \(error.plainMessage)", path: path,
        cause: error)
    }
    return DrydockError(
      .damaged, "its manifest cannot be read: \(error.plainMessage)", path: path, cause: error)
  }

  func read<T>(_ body: (Database) throws -> T) throws -> T {
    do {
      return try queue.read(body)
    } catch let error as DatabaseError {
      throw Self.damaged(error, path)
    }
  }

  func wrong(_ what: String) -> DrydockError {
    DrydockError(.damaged, "its manifest has \(what)", path: path)
  }

  /// Visits rows one by one: a hostile manifest may have any number of them.
  func rows(_ sql: String, _ body: (ManifestRow) throws -> Void) throws {
    try read { db in
      let rows = try Row.fetchCursor(db, sql: sql)
      while let row = try rows.next() { try body(ManifestRow(row)) }
    }
  }

  // MARK: Properties

  private func property(_ name: String) throws -> ManifestRow? {
    try read { try Row.fetchOne($0, sql: "SELECT value FROM property WHERE name = ?", arguments: [name]) }
      .map(ManifestRow.init)
  }

  private func hasProperty(_ name: String) throws -> Bool {
    guard let row = try property(name) else { return false }
    guard row.integer("value") == 1 else { throw wrong("an invalid property") }
    return true
  }

  /// The snapshot id, and the archive that the manifest says it belongs to.
  ///
  /// - Throws: `DrydockError` with code `damaged` also for another format than the header's, and for an unknown property: it could
  ///   change what the others mean.
  package func properties() throws -> (snapshot: String, archive: String) {
    guard try property("format")?.integer("value") == Int64(header.format) else {
      throw wrong("another format than the archive's header")
    }
    // Compared by SQLite, which sees a text after a NUL.
    let names = ManifestSchema.properties.map { "'\($0)'" }.joined(separator: ",")
    let unknown = "SELECT 1 FROM property WHERE typeof(name) <> 'text' OR name NOT IN (\(names)) LIMIT 1"
    guard try read({ try Int.fetchOne($0, sql: unknown) }) == nil else { throw wrong("an unknown property") }
    guard let snapshot = try property("snapshot")?.text("value"),
      let archive = try property("archive")?.text("value")
    else { throw wrong("no snapshot id") }
    return (snapshot, archive)
  }

  /// Whether paths were stored although a rule excludes them (`snapshot --include-excluded`): such a path is an entry,
  /// and it or a directory above is in ``excluded()`` too.
  func storesExcluded() throws -> Bool { try hasProperty(ManifestSchema.storesExcluded) }

  /// Whether excluded and skipped paths are those of the parent's manifest.
  func inheritsOmitted() throws -> Bool {
    let inherits = try hasProperty(ManifestSchema.inheritsOmitted)
    guard isIncremental || !inherits else { throw wrong("an invalid property") }
    return inherits
  }

  /// What identifies the recipients of the archive; nil when it is not encrypted, or to a passphrase.
  package func recipients() throws -> SHA256.Digest? {
    try property(ManifestSchema.recipients)?.digest("value")
  }

  /// Where the vault's items are; nil when the archive has none. Their hash does not let anyone test guesses: the
  /// device's random name is in the content.
  package func vault() throws -> MemberLocation? {
    let rows = try [ManifestSchema.vaultOffset, ManifestSchema.vaultLength, ManifestSchema.vaultHash]
      .map(property)
    if rows.allSatisfy({ $0 == nil }) { return nil }
    guard let offset = rows[0]?.unsigned("value", UInt64.self),
      let length = rows[1]?.unsigned("value", UInt64.self),
      let digest = rows[2]?.digest("value"),
      offset % 512 == 0, offset <= tarSize, length <= tarSize - offset, length <= Vault.sizeLimit
    else { throw wrong("an invalid place of the vault's items") }
    return MemberLocation(offset: offset, length: length, sha256: digest)
  }

  // MARK: Sizes

  /// The most memory that a restore takes for the manifest's content: a multiple of its text, and for each row what was
  /// measured.
  package func memory() throws -> UInt64 {
    try read { db in
      let count = { (table: String) in
        UInt64(try Int.fetchOne(db, sql: "SELECT count(*) FROM \(table)") ?? 0)
      }
      let others = try ["attribute", "excluded", "skipped", "superseded", "extent WHERE position > 0"].map(
        count
      )
      .reduce(0, +)
      return try Self.memory(ofText: size) + Self.memoryOfEntry * count("entry")
        + Self.memoryOfRow * others
    }
  }

  private static let memoryOfEntry: UInt64 = 3000, memoryOfRow: UInt64 = 500

  /// Bytes of memory for the text of a manifest of a size; one long text is in memory several times.
  package static func memory(ofText size: UInt64) -> UInt64 { size > UInt64.max / 8 ? .max / 2 : size * 4 }

  /// Bytes of the content of its entries.
  func contentSize() throws -> UInt64 {
    try read { db in
      // As a real number, for sizes that are made to overflow.
      let bytes = try Double.fetchOne(db, sql: "SELECT total(size) FROM entry WHERE hard_link IS NULL") ?? 0
      return UInt64(max(0, min(bytes, 0x1p62)))
    }
  }

  /// A row of the hashes of blocks that follow each other in the tar stream.
  typealias BlockRow = (start: UInt64, size: UInt64, hashes: [UInt8])

  /// The hashes of the blocks in a range of the archive's tar stream; false when they are not stored.
  ///
  /// - Parameter last: the row that was used last: a range of changed blocks is often a part of the same one.
  func addBlocks(in extent: Extent, to blocks: inout BlockHashes, _ last: inout BlockRow?) throws -> Bool {
    let size = UInt64(blocks.blockSize)
    var (position, rest) = (extent.offset, extent.length)
    while rest > 0 {
      if last.map({
        position < $0.start || position >= $0.start + UInt64($0.hashes.count / BlockHashes.length) * size
      }) ?? true {
        last = try blockRow(at: position)
      }
      guard let row = last, row.size == size, (position - row.start) % size == 0 else { return false }
      let found = UInt64(row.hashes.count / BlockHashes.length)
      let first = (position - row.start) / size
      guard first < found else { return false }
      let count = min(found - first, (rest + size - 1) / size)
      let bytes = Int(first) * BlockHashes.length..<Int(first + count) * BlockHashes.length
      blocks.append(encoded: row.hashes[bytes])
      position += count * size
      rest -= min(rest, count * size)
    }
    return true
  }

  private func blockRow(at offset: UInt64) throws -> BlockRow? {
    try read { db in
      let statement = try db.cachedStatement(
        sql: "SELECT offset, size, hashes FROM block WHERE offset <= ? ORDER BY offset DESC LIMIT 1")
      guard let row = try Row.fetchOne(statement, arguments: [Int64(offset)]).map(ManifestRow.init),
        let start = row.unsigned("offset", UInt64.self), let size = row.unsigned("size", UInt64.self),
        size > 0,
        let hashes = row.bytes("hashes")
      else { return nil }
      return (start, size, hashes)
    }
  }

  // MARK: What differs from the parent's manifest

  /// The paths of the parent's manifest that the snapshot does not have.
  func removed() throws -> Set<ContainerPath> {
    var paths: Set<ContainerPath> = []
    try rows("SELECT \(ManifestRow.path("path", as: "path")) FROM removed") { row in
      guard let path = row.path("path") else { throw wrong("an invalid removed path") }
      paths.insert(path)
    }
    guard isIncremental || paths.isEmpty else { throw wrong("removed paths, though it has no parent") }
    return paths
  }

  /// What a database's sidecars were at the capture.
  func captureState(of path: ContainerPath) throws -> DatabaseCaptureState {
    try read { db in
      guard let number = try number(of: path, db),
        let row = try Row.fetchOne(
          db, sql: "SELECT sidecars, log FROM capture WHERE entry = ?", arguments: [number]
        ).map(ManifestRow.init)
      else { return DatabaseCaptureState() }
      return DatabaseCaptureState(
        sidecars: row.digest("sidecars"),
        log: row.bytes("log").flatMap(LogPosition.init(bytes:)))
    }
  }

  // MARK: Paths without an entry

  func excluded() throws -> [ExcludedPath] {
    var paths: [ExcludedPath] = []
    try rows(
      """
      SELECT \(ManifestRow.path("path", as: "path")), rule, \(ManifestRow.path("origin", as: "origin")), detail
      FROM excluded ORDER BY rowid
      """
    ) { row in
      guard let path = row.path("path"), let origin = row.path("origin"), let detail = row.text("detail"),
        let rule = row.text("rule").flatMap(Exclusion.Rule.init(rawValue:))
      else { throw wrong("an invalid excluded path") }
      paths.append(
        ExcludedPath(path: path, exclusion: Exclusion(rule: rule, origin: origin, detail: detail)))
    }
    return paths
  }

  func skipped() throws -> [SkippedPath] {
    var paths: [SkippedPath] = []
    try rows("SELECT \(ManifestRow.path("path", as: "path")), reason FROM skipped ORDER BY rowid") { row in
      guard let path = row.path("path"),
        let reason = row.text("reason").flatMap(SkippedPath.Reason.init(rawValue:))
      else { throw wrong("an invalid skipped path") }
      paths.append(SkippedPath(path: path, reason: reason))
    }
    return paths
  }

  /// Content offsets of members that a later one of the same name replaces.
  package func replacedMembers() throws -> [UInt64: (path: ContainerPath, length: UInt64)] {
    var members: [UInt64: (path: ContainerPath, length: UInt64)] = [:]
    try rows("SELECT offset, length, \(ManifestRow.path("path", as: "path")) FROM superseded") { row in
      guard let offset = row.unsigned("offset", UInt64.self), let path = row.path("path"),
        let length = row.unsigned("length", UInt64.self)
      else { throw wrong("an invalid replaced member") }
      members[offset] = (path, length)
    }
    return members
  }
}
