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
  private let archives: [Int64: ArchiveID]
  private let size: UInt64

  package var archive: ArchiveID { header.archive }
  private var isIncremental: Bool { header.parent != nil }

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
      queue = try ManifestFile.open(path, write: write)
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

  private func read<T>(_ body: (Database) throws -> T) throws -> T {
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
  private func rows(_ sql: String, _ body: (ManifestRow) throws -> Void) throws {
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
  package func properties() throws -> (snapshot: String, archive: String) {
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

  /// Where the vault's items are; nil when the archive has none.
  package func vault() throws -> VaultMember? {
    let rows = try [ManifestSchema.vaultOffset, ManifestSchema.vaultLength, ManifestSchema.vaultHash]
      .map(property)
    if rows.allSatisfy({ $0 == nil }) { return nil }
    guard let offset = rows[0]?.unsigned("value", UInt64.self),
      let length = rows[1]?.unsigned("value", UInt64.self),
      let digest = rows[2]?.digest("value"),
      offset % 512 == 0, offset <= tarSize, length <= tarSize - offset, length <= Vault.sizeLimit
    else { throw wrong("an invalid place of the vault's items") }
    return VaultMember(offset: offset, length: length, digest: digest)
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

  // MARK: Entries

  private static let columns = """
    SELECT number, \(ManifestRow.path("e.path", as: "path")), kind, mode, user, "group" AS owners, modified, size, sha256,
      link_target, \(ManifestRow.path("hard_link", as: "hard_link")), flags, device, inode, changed, x.offset AS offset, x.length AS length, x.archive AS archive
    FROM entry e LEFT JOIN extent x ON x.entry = e.number AND x.position = 0
    """

  /// The archive's own entries.
  package func entries() -> EntryRows<ManifestEntry> {
    EntryRows(self) { try self.page(after: $0, $1, Self.columns, self.entry) }
  }

  /// The kinds of its entries, for decisions before anything is read. The entries themselves are checked by ``entries()``.
  ///
  /// - Returns: also whether it is a directory with a flag or attributes, one of which may exclude it.
  func kinds() -> EntryRows<(path: ContainerPath, kind: ManifestEntry.Kind, mayBeFlagged: Bool)> {
    let columns = """
      SELECT number, \(ManifestRow.path("path", as: "path")), kind, kind = 'directory' AND
        (flags <> '' OR EXISTS (SELECT 1 FROM attribute a WHERE a.entry = number)) AS marked
      FROM entry
      """
    return EntryRows(self) {
      try self.page(after: $0, $1, columns) { row, _ in
        guard let path = row.path("path"),
          let kind = row.text("kind").flatMap(ManifestEntry.Kind.init(rawValue:))
        else { throw self.wrong("an invalid entry") }
        return (path, kind, row.integer("marked") == 1)
      }
    }
  }

  private func page<Value>(
    after last: Int64, _ limit: Int, _ columns: String, _ decode: (ManifestRow, Database) throws -> Value
  ) throws -> [Value] {
    try read { db in
      var page: [Value] = []
      let statement = try db.cachedStatement(sql: columns + " WHERE number > ? ORDER BY number LIMIT ?")
      let rows = try Row.fetchCursor(statement, arguments: [last, limit])
      while let row = try rows.next().map(ManifestRow.init) {
        // They are found by binary search.
        guard row.integer("number") == last + Int64(page.count) + 1 else {
          throw wrong("entries without consecutive numbers")
        }
        page.append(try decode(row, db))
      }
      return page
    }
  }

  /// One entry; nil when the archive does not have the path.
  func entry(_ path: ContainerPath) throws -> ManifestEntry? {
    try read { db in try find(path, db).map { try entry($0, db) } }
  }

  /// Visits the row, the size and the hash of each entry that has content.
  package func contents(_ visit: (Int64, UInt64, SHA256.Digest) throws -> Void) throws {
    try rows(
      """
      SELECT number, size, sha256 FROM entry JOIN extent ON entry = number AND position = 0
      """
    ) { row in
      // Readers keep a number in 40 bits.
      guard let number = row.integer("number"), (1..<1 << 40).contains(number),
        let size = row.unsigned("size", UInt64.self),
        let digest = row.digest("sha256")
      else { throw wrong("an invalid entry") }
      try visit(number, size, digest)
    }
  }

  private func find(_ path: ContainerPath, _ db: Database) throws -> ManifestRow? {
    try number(of: path, db).flatMap { try row($0, db) }
  }

  private func row(_ number: Int64, _ db: Database) throws -> ManifestRow? {
    let statement = try db.cachedStatement(sql: Self.columns + " WHERE number = ?")
    return try Row.fetchOne(statement, arguments: [number]).map(ManifestRow.init)
  }

  /// The number of a path's entry, by binary search: an index of the paths would be a fifth of an archive of small files.
  private func number(of path: ContainerPath, _ db: Database) throws -> Int64? {
    let statement = try db.cachedStatement(
      sql: "SELECT \(ManifestRow.path("path", as: "path")) FROM entry WHERE number = ?")
    var (low, high) = (Int64(1), try Int64.fetchOne(db, sql: "SELECT max(number) FROM entry") ?? 0)
    while low <= high {
      let middle = low + (high - low) / 2
      guard let found = try Row.fetchOne(statement, arguments: [middle]).map(ManifestRow.init)?.path("path")
      else { throw wrong("entries without consecutive numbers") }
      if found == path { return middle }
      if found < path { low = middle + 1 } else { high = middle - 1 }
    }
    return nil
  }

  private func entry(_ row: ManifestRow, _ db: Database) throws -> ManifestEntry {
    guard let path = row.path("path") else { throw wrong("an invalid path") }
    guard (try? MemberName.validate(MemberNames(groups: []).name(of: path))) != nil else {
      throw wrong("a path that is too long or too deep for a member's name")
    }
    guard let kind = row.text("kind").flatMap(ManifestEntry.Kind.init(rawValue:)),
      let size = row.unsigned("size", UInt64.self),
      let mode = row.unsigned("mode", UInt16.self), mode <= 0o7777,
      let user = row.unsigned("user", UInt32.self), let group = row.unsigned("owners", UInt32.self),
      let modified = row.integer("modified"), let changed = row.integer("changed"),
      let device = row.integer("device"), let inode = row.integer("inode"),
      let flags = row.text("flags"),
      flags.isEmpty || (flags == ManifestSchema.noDump && kind != .symbolicLink)
    else { throw wrong("an invalid entry (\(path))") }
    var entry = ManifestEntry(
      path: path, kind: kind,
      metadata: FileMetadata(
        mode: mode, user: user, group: group, modified: modified,
        attributes: try attributes(of: path, row.integer("number") ?? 0, db), isNoDump: !flags.isEmpty),
      size: size, digest: row.digest("sha256"),
      linkTarget: row.bytes("link_target"),
      identity: FileIdentity(device: UInt64(bitPattern: device), inode: UInt64(bitPattern: inode)),
      changed: changed)
    if !row.isNull("offset") {
      guard entry.isFile, row.isNull("hard_link"), size > 0 else {
        throw wrong("an invalid place of content (\(path))")
      }
      entry.extents = try extents(row, size: size, of: path, db)
    }
    if !row.isNull("hard_link") {
      guard entry.isFile, let first = row.path("hard_link"), first < path else {
        throw wrong("an invalid hard link (\(path))")
      }
      entry.hardLink = first
      // The tar has a member of the link only when it has one of the first name's whole content.
      if let target = try find(first, db) {
        let isSingle = target.isNull("length") || target.integer("length") == target.integer("size")
        entry.linkArchive = isSingle ? archives[target.integer("archive") ?? 0] : nil
      } else if !isIncremental {
        throw wrong("a hard link to something else (\(path))")
      }
    }
    try checkContent(of: entry)
    return entry
  }

  private func checkContent(of entry: ManifestEntry) throws {
    let isComplete =
      entry.isFile
      ? entry.digest != nil && (entry.size == 0 || !entry.extents.isEmpty || entry.hardLink != nil)
      : entry.size == 0 && entry.extents.isEmpty
    let hasTarget = entry.linkTarget.map { !$0.isEmpty && !$0.contains(0) } ?? false
    guard isComplete, hasTarget == (entry.kind == .symbolicLink) else {
      throw wrong("an entry with missing or unexpected content (\(entry.path))")
    }
  }

  /// The places of a content: one behind the other they have its size. Those in this archive are one member's content.
  private func extents(_ row: ManifestRow, size: UInt64, of path: ContainerPath, _ db: Database) throws
    -> Extents
  {
    let invalid = { self.wrong("an invalid place of content (\(path))") }
    var (extents, position, own) = (Extents(), UInt64(0), UInt64?.none)
    func add(_ row: ManifestRow) throws {
      guard let offset = row.unsigned("offset", UInt64.self),
        let length = row.unsigned("length", UInt64.self),
        length > 0, length <= size - position, let source = row.integer("archive").flatMap({ archives[$0] })
      else { throw invalid() }
      if source == archive {
        guard offset <= tarSize, length <= tarSize - offset, own.map({ $0 == offset }) ?? (offset % 512 == 0)
        else { throw invalid() }
        own = offset + length
      } else {
        // Whether the other archive has that place is checked where both are known.
        guard isIncremental, offset < 1 << 62, length < 1 << 62 else { throw invalid() }
      }
      extents.append(Extent(archive: source, offset: offset, length: length))
      position += length
    }
    try add(row)
    guard position < size else { return extents }
    let statement = try db.cachedStatement(
      sql:
        "SELECT position, archive, offset, length FROM extent WHERE entry = ? AND position > 0 ORDER BY position"
    )
    let rows = try Row.fetchCursor(statement, arguments: [row.integer("number")])
    while let row = try rows.next().map(ManifestRow.init) {
      guard row.unsigned("position", UInt64.self) == position else { throw invalid() }
      try add(row)
    }
    guard position == size else { throw invalid() }
    return extents
  }

  private func attributes(
    of path: ContainerPath, _ number: Int64, _ db: Database
  ) throws -> [ExtendedAttribute] {
    let statement = try db.cachedStatement(
      sql: "SELECT name, value FROM attribute WHERE entry = ? ORDER BY name")
    return try Row.fetchAll(statement, arguments: [number]).map(ManifestRow.init).map { row in
      guard let name = row.text("name"), !name.isEmpty, !name.utf8.contains(0), let value = row.bytes("value")
      else { throw wrong("an invalid attribute (\(path))") }
      return ExtendedAttribute(name: name, value: value)
    }
  }

  /// The hashes of the blocks in a range of the archive's tar stream; false when they are not stored.
  func addBlocks(in extent: Extent, to blocks: inout BlockHashes) throws -> Bool {
    try read { db in
      let statement = try db.cachedStatement(
        sql: "SELECT offset, size, hashes FROM block WHERE offset <= ? ORDER BY offset DESC LIMIT 1")
      let size = UInt64(blocks.blockSize)
      var (position, rest) = (extent.offset, extent.length)
      while rest > 0 {
        guard let row = try Row.fetchOne(statement, arguments: [Int64(position)]).map(ManifestRow.init),
          let start = row.unsigned("offset", UInt64.self), row.unsigned("size", UInt64.self) == size,
          let hashes = row.bytes("hashes"), (position - start) % size == 0
        else { return false }
        let found = UInt64(hashes.count / BlockHashes.length)
        let first = (position - start) / size
        guard first < found else { return false }
        let count = min(found - first, (rest + size - 1) / size)
        let bytes = Int(first) * BlockHashes.length..<Int(first + count) * BlockHashes.length
        blocks.append(encoded: hashes[bytes])
        position += count * size
        rest -= min(rest, count * size)
      }
      return true
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
  package func superseded() throws -> [UInt64: (path: ContainerPath, length: UInt64)] {
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
