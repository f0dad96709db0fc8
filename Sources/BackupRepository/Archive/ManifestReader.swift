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
  private let path: String
  let archive: Archive.ID
  let tarSize: UInt64
  let isIncremental: Bool
  /// The archives that extents are in, by their numbers; 0 is this one.
  let archives: [Int64: Archive.ID]
  private let size: UInt64

  /// - Parameter header: the archive's.
  /// - Throws: `DrydockError` with code `damaged`, and what reading the archive throws.
  convenience init(_ reader: ArchiveReader, _ header: Archive.Header, path: String) throws {
    try self.init(
      archive: header.archive, isIncremental: header.parent != nil, tarSize: reader.tarSize, path: path,
      size: reader.manifest.length
    ) { file in
      try reader.readManifest { _ = try file.writeAll($0) }
    }
  }

  /// - Parameter write: writes the manifest's bytes into a file.
  init(
    archive: Archive.ID, isIncremental: Bool = false, tarSize: UInt64, path: String, size: UInt64 = 0,
    write: (FileDescriptor) throws -> Void
  ) throws {
    self.path = path
    self.size = size
    self.archive = archive
    self.tarSize = tarSize
    self.isIncremental = isIncremental
    do {
      queue = try ManifestFile.open(path, write: write)
      archives = try queue.read {
        try Self.archives($0, besides: archive, isIncremental: isIncremental, path)
      }
    } catch let error as DatabaseError {
      throw Self.damaged(error, path)
    }
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

  /// The snapshot id, and the archive that the manifest says it belongs to.
  func properties() throws -> (snapshot: String, archive: String) {
    try read { db in
      let value = { (name: String) in
        try Row.fetchOne(db, sql: "SELECT value FROM property WHERE name = ?", arguments: [name])
          .flatMap { ManifestRow($0).text("value") }
      }
      guard let snapshot = try value("snapshot"), let archive = try value("archive") else {
        throw wrong("no snapshot id")
      }
      return (snapshot, archive)
    }
  }

  /// The most memory that a restore takes for the manifest's content: a multiple of its text, and for each row what was
  /// measured.
  func memory() throws -> UInt64 {
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
  static func memory(ofText size: UInt64) -> UInt64 { size > UInt64.max / 8 ? .max / 2 : size * 4 }

  /// Bytes of the content of its entries.
  func contentSize() throws -> UInt64 {
    try read { db in
      // As a real number, for sizes that are made to overflow.
      let bytes = try Double.fetchOne(db, sql: "SELECT total(size) FROM entry WHERE hard_link IS NULL") ?? 0
      return UInt64(max(0, min(bytes, 0x1p62)))
    }
  }

  /// Whether paths were stored although a rule excludes them (`snapshot --include-excluded`): such a path is an entry,
  /// and it or a directory above is in ``excluded()`` too.
  package func storesExcluded() throws -> Bool {
    try read { db in
      let row = try Row.fetchOne(
        db, sql: "SELECT value FROM property WHERE name = ?", arguments: [ManifestSchema.storesExcluded])
      guard let row else { return false }
      guard ManifestRow(row).integer("value") == 1 else { throw wrong("an invalid property") }
      return true
    }
  }

  /// Where the vault's items are; nil when the archive has none.
  func vault() throws -> VaultMember? {
    let names = [ManifestSchema.vaultOffset, ManifestSchema.vaultLength, ManifestSchema.vaultHash]
    let rows = try names.map { name in
      try read { try Row.fetchOne($0, sql: "SELECT value FROM property WHERE name = ?", arguments: [name]) }
        .map(ManifestRow.init)
    }
    if rows.allSatisfy({ $0 == nil }) { return nil }
    guard let offset = rows[0]?.unsigned("value", UInt64.self),
      let length = rows[1]?.unsigned("value", UInt64.self),
      let digest = rows[2]?.bytes("value").flatMap({ SHA256.Digest(bytes: $0) }),
      offset % 512 == 0, offset <= tarSize, length <= tarSize - offset, length <= Vault.sizeLimit
    else { throw wrong("an invalid place of the vault's items") }
    return VaultMember(offset: offset, length: length, digest: digest)
  }

  private static let columns = """
    SELECT number, \(ManifestRow.path("e.path", as: "path")), kind, mode, user, "group" AS owners, modified, size, sha256,
      link_target, \(ManifestRow.path("hard_link", as: "hard_link")), flags, device, inode, changed, x.offset AS offset, x.length AS length, x.archive AS archive
    FROM entry e LEFT JOIN extent x ON x.entry = e.number AND x.position = 0
    """

  /// The archive's own entries, one after the other.
  func cursor() -> Cursor { Cursor(self) }

  /// Reads entries in the order of their paths, which is the order they are stored in. Those of a page come with one query.
  struct Cursor {
    private let reader: ManifestReader
    private var page: ArraySlice<ManifestEntry> = []
    private var last: Int64 = 0
    /// The row of the entry that came last.
    private(set) var row: Int64 = 0
    private var previous: ContainerPath?
    /// Contents lie in the order of the entries and share no bytes, so that a small archive cannot hold the same large
    /// content a million times.
    private var free: UInt64 = 0

    fileprivate init(_ reader: ManifestReader) { self.reader = reader }

    /// - Throws: `DrydockError` with code `damaged` when an entry is invalid, out of order, or shares bytes with another one.
    mutating func next() throws -> ManifestEntry? {
      if page.isEmpty { (page, last) = try reader.page(after: last) }
      guard let entry = page.popFirst() else {
        guard try reader.vault().map({ $0.offset >= free }) ?? true else {
          throw reader.wrong("overlapping content (the vault's items)")
        }
        return nil
      }
      guard previous.map({ $0 < entry.path }) ?? true else {
        throw reader.wrong("entries out of order (\(entry.path))")
      }
      previous = entry.path
      row += 1
      if let content = entry.extents.member(in: reader.archive) {
        guard content.offset >= free else { throw reader.wrong("overlapping content (\(entry.path))") }
        free = content.offset + content.length
      }
      return entry
    }
  }

  /// Entries by their rows, for one thread. They are read in pages: the next one is usually a neighbour.
  final class Pages {
    private let reader: ManifestReader
    private var page: ArraySlice<ManifestEntry> = []
    /// The row before those of the page.
    private var start: Int64 = 0

    init(_ reader: ManifestReader) { self.reader = reader }

    func entry(row: Int64) throws -> ManifestEntry {
      if row <= start || row > start + Int64(page.count) {
        (page, start) = (try reader.page(after: row - 1, limit: 100).0, row - 1)
      }
      guard row > start, row <= start + Int64(page.count) else { throw reader.wrong("no entry \(row)") }
      return page[Int(row - start) - 1]
    }
  }

  private func page(
    after last: Int64, limit: Int = 1000
  ) throws -> (ArraySlice<ManifestEntry>, Int64) {
    try read { db in
      var page: [ManifestEntry] = []
      var end = last
      let rows = try Row.fetchCursor(
        db, sql: Self.columns + " WHERE number > ? ORDER BY number LIMIT ?", arguments: [last, limit])
      while let row = try rows.next().map(ManifestRow.init) {
        // They are found by halving.
        guard row.integer("number") == end + 1 else { throw wrong("entries without consecutive numbers") }
        end += 1
        page.append(try entry(row, db))
      }
      return (page[...], end)
    }
  }

  /// Visits the kind of each stored path, in the order of the paths, for decisions before anything is read. The entries
  /// themselves are checked by ``Cursor``.
  func kinds(_ visit: (ContainerPath, ManifestEntry.Kind) throws -> Void) throws {
    try rows("SELECT \(ManifestRow.path("path", as: "path")), kind FROM entry ORDER BY rowid") { row in
      guard let path = row.path("path"),
        let kind = row.text("kind").flatMap(ManifestEntry.Kind.init(rawValue:))
      else { throw wrong("an invalid entry") }
      try visit(path, kind)
    }
  }

  /// The stored directories whose own flag excludes them, and the flag's rule: an explicit include brought them in.
  func flaggedDirectories() throws -> [ContainerPath: Exclusion.Rule] {
    var flagged: [ContainerPath: Exclusion.Rule] = [:]
    let sql =
      Self.columns + """
         WHERE kind = 'directory' AND (flags <> '' OR EXISTS (SELECT 1 FROM attribute a WHERE a.entry = number))
        """
    try read { db in
      let rows = try Row.fetchCursor(db, sql: sql)
      while let row = try rows.next() {
        let entry = try entry(ManifestRow(row), db)
        if !entry.path.isRoot, let rule = entry.metadata.exclusionFlags.first { flagged[entry.path] = rule }
      }
    }
    return flagged
  }

  /// One entry; nil when the archive does not have the path.
  package func entry(_ path: ContainerPath) throws -> ManifestEntry? {
    try read { db in try find(path, db).map { try entry($0, db) } }
  }

  /// An entry by its row, as ``contents(_:)`` gives it.
  func entry(row: Int64) throws -> ManifestEntry? {
    try read { db in try self.row(row, db).map { try entry($0, db) } }
  }

  /// Visits the row, the size and the hash of each entry that has content.
  func contents(_ visit: (Int64, UInt64, SHA256.Digest) throws -> Void) throws {
    try rows(
      """
      SELECT number, size, sha256 FROM entry JOIN extent ON entry = number AND position = 0
      """
    ) { row in
      guard let number = row.integer("number"), let size = row.unsigned("size", UInt64.self),
        let digest = row.bytes("sha256").flatMap({ SHA256.Digest(bytes: $0) })
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

  /// The number of a path's entry, found by halving: an index of the paths would be a fifth of an archive of small files.
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
      size: size, digest: row.bytes("sha256").flatMap { SHA256.Digest(bytes: $0) },
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
        sidecars: row.bytes("sidecars").flatMap { SHA256.Digest(bytes: $0) },
        log: row.bytes("log").flatMap(LogPosition.init(bytes:)))
    }
  }

  /// What identifies the recipients of the archive; nil when it is not encrypted, or to a passphrase.
  func recipients() throws -> SHA256.Digest? {
    try read {
      try Row.fetchOne(
        $0, sql: "SELECT value FROM property WHERE name = ?", arguments: [ManifestSchema.recipients])
    }.flatMap { ManifestRow($0).bytes("value") }.flatMap { SHA256.Digest(bytes: $0) }
  }

  /// Whether excluded and skipped paths are those of the parent's manifest.
  func inheritsOmitted() throws -> Bool {
    let row = try read {
      try Row.fetchOne(
        $0, sql: "SELECT value FROM property WHERE name = ?", arguments: [ManifestSchema.inheritsOmitted])
    }
    guard let row else { return false }
    guard isIncremental, ManifestRow(row).integer("value") == 1 else { throw wrong("an invalid property") }
    return true
  }

  // MARK: Paths without an entry

  package func excluded() throws -> [ExcludedPath] {
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

  package func skipped() throws -> [SkippedPath] {
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
  func superseded() throws -> [UInt64: SupersededMember] {
    var members: [UInt64: SupersededMember] = [:]
    try rows("SELECT offset, length, \(ManifestRow.path("path", as: "path")) FROM superseded") { row in
      guard let offset = row.unsigned("offset", UInt64.self), let path = row.path("path"),
        let length = row.unsigned("length", UInt64.self)
      else { throw wrong("an invalid replaced member") }
      members[offset] = SupersededMember(path: path, length: length)
    }
    return members
  }

  /// Visits rows one by one: a hostile manifest may have any number of them.
  private func rows(_ sql: String, _ body: (ManifestRow) throws -> Void) throws {
    try read { db in
      let rows = try Row.fetchCursor(db, sql: sql)
      while let row = try rows.next() { try body(ManifestRow(row)) }
    }
  }
}
