import AppStores
import ArchiveFile
import Cryptography
import Dispatch
import FileSystem
import GRDB

/// Rows of a manifest's entries by their numbers, which are in the order of their paths; for one thread. The more rows are asked for
/// that are near to each other, the more are read at once, at last the next ones by another thread meanwhile.
package final class EntryRows<Value: Sendable> {
  private static var longest: Int { 200 }
  /// As far as the next file is behind some directories.
  private static var near: Int64 { 16 }

  let manifest: ManifestReader
  private let read: @Sendable (_ after: Int64, _ limit: Int) throws -> [Value]
  private var page: [Value] = []
  /// The row before those of the page.
  private var start: Int64 = 0
  /// The most rows that were read at once last.
  private var length = 1
  private var ahead: (start: Int64, page: PendingResult<[Value]>)?

  init(
    _ manifest: ManifestReader, read: @escaping @Sendable (_ after: Int64, _ limit: Int) throws -> [Value]
  ) {
    (self.manifest, self.read) = (manifest, read)
  }

  /// A row; nil after the last one.
  package func value(_ row: Int64) throws -> Value? {
    if !isIn(row, start, page.count) {
      let isNear = isIn(row, start - Self.near, page.count + 2 * Int(Self.near))
      length = isNear ? min(4 * length, Self.longest) : 1
      if let ahead, isIn(row, ahead.start, Self.longest) {
        (page, start) = (try ahead.page.take(), ahead.start)
      } else {
        (page, start) = (try read(row - 1, length), row - 1)
      }
      ahead = page.count == Self.longest ? readAhead(after: start + Int64(page.count)) : nil
    }
    return isIn(row, start, page.count) ? page[Int(row - start) - 1] : nil
  }

  private func isIn(_ row: Int64, _ start: Int64, _ count: Int) -> Bool {
    row > start && row <= start + Int64(count)
  }

  private func readAhead(after row: Int64) -> (start: Int64, page: PendingResult<[Value]>) {
    let pending = PendingResult<[Value]>()
    DispatchQueue.global().async { [read] in
      pending.finish(Result { try read(row, Self.longest) })
    }
    return (row, pending)
  }

  /// A row that the manifest must have.
  package func required(_ row: Int64) throws -> Value {
    guard let value = try value(row) else { throw manifest.wrong("no entry \(row)") }
    return value
  }
}

/// Every value of a row is hostile: see ``ManifestRow``.
extension ManifestReader {
  private static let columns = """
    SELECT number, \(ManifestRow.path("e.path", as: "path")), kind, mode, user, "group" AS owners, modified, size, sha256,
      link_target, \(ManifestRow.path("hard_link", as: "hard_link")), flags, device, inode, changed, x.offset AS offset, x.length AS length, x.archive AS archive,
      EXISTS (SELECT 1 FROM attribute a WHERE a.entry = number) AS attributed
    FROM entry e LEFT JOIN extent x ON x.entry = e.number AND x.position = 0
    """

  /// The archive's own entries.
  package func entries() -> EntryRows<ManifestEntry> {
    EntryRows(self) { try self.page(after: $0, $1, Self.columns, self.entry) }
  }

  /// The kinds of its entries, for decisions before anything is read. The entries themselves are checked by
  /// ``entries()``.
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

  private func page<Value: Sendable>(
    after last: Int64, _ limit: Int, _ columns: String, _ decode: (ManifestRow, Database) throws -> Value
  ) throws -> [Value] {
    try read { db in
      var page: [Value] = []
      let statement = try db.cachedStatement(sql: columns + " WHERE number >= ? ORDER BY number LIMIT ?")
      // Rows numbered below 1 are refused, too.
      let rows = try Row.fetchCursor(statement, arguments: [last == 0 ? .min : last + 1, limit])
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

  /// Where the tar stream has contents, from the first to the last; what is in front of them and behind them is a header or the
  /// manifest. A place that is not an entry's is refused: nothing compares it with the tar.
  func contentRange() throws -> Range<UInt64> {
    var range = UInt64(0)..<0
    try rows(
      """
      SELECT min(offset) FILTER (WHERE archive = 0) AS start, max(offset + length) FILTER (WHERE archive = 0) AS stop,
        max(typeof(length) <> 'integer' OR length < 1) AS is_invalid, coalesce(sum(length), 0) AS bytes,
        (SELECT coalesce(sum(size), 0) FROM entry WHERE hard_link IS NULL) AS size
      FROM extent
      """
    ) { row in
      guard row.integer("is_invalid") != 1, let bytes = row.integer("bytes"), bytes == row.integer("size")
      else { throw wrong("places that are not its entries'") }
      if row.isNull("start") { return }
      // A sum that overflows is a real number.
      guard let start = row.unsigned("start", UInt64.self), let stop = row.unsigned("stop", UInt64.self),
        start < stop
      else { throw wrong("an invalid place of content") }
      range = start..<stop
    }
    return range
  }

  /// Visits the numbers of the entries with content in the archive itself, and where in the tar stream that starts, in
  /// their order.
  ///
  /// - Returns: the number of the last entry.
  func ownContents(_ visit: (UInt32, UInt64) throws -> Void) throws -> UInt32 {
    try rows(
      """
      SELECT number, min(offset) AS start FROM entry JOIN extent ON entry = number WHERE archive = 0
      GROUP BY number ORDER BY number
      """
    ) { row in
      guard let number = row.unsigned("number", UInt32.self), number > 0,
        let start = row.unsigned("start", UInt64.self)
      else { throw wrong("an invalid place of content") }
      try visit(number, start)
    }
    let last = try read { try Int64.fetchOne($0, sql: "SELECT max(number) FROM entry") } ?? 0
    guard (0..<Int64(UInt32.max)).contains(last) else { throw wrong("entries without consecutive numbers") }
    return UInt32(last)
  }

  private func find(_ path: ContainerPath, _ db: Database) throws -> ManifestRow? {
    try number(of: path, db).flatMap { try row($0, db) }
  }

  private func row(_ number: Int64, _ db: Database) throws -> ManifestRow? {
    let statement = try db.cachedStatement(sql: Self.columns + " WHERE number = ?")
    return try Row.fetchOne(statement, arguments: [number]).map(ManifestRow.init)
  }

  /// The number of a path's entry, by binary search: an index of the paths would be a fifth of an archive of small
  /// files.
  func number(of path: ContainerPath, _ db: Database) throws -> Int64? {
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
        attributes: row.integer("attributed") == 1
          ? try attributes(of: path, row.integer("number") ?? 0, db) : [], isNoDump: !flags.isEmpty),
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

  /// The places of a content: concatenated they have its size. Those in this archive are one member's content.
  private func extents(_ row: ManifestRow, size: UInt64, of path: ContainerPath, _ db: Database) throws
    -> Extents
  {
    let invalid = { self.wrong("an invalid place of content (\(path))") }
    var (extents, position, own) = (Extents(), UInt64(0), UInt64?.none)
    func add(_ number: Int64?, _ offset: Int64?, _ length: Int64?) throws {
      guard let offset = offset.flatMap({ UInt64(exactly: $0) }),
        let length = length.flatMap({ UInt64(exactly: $0) }),
        length > 0, length <= size - position, let source = number.flatMap({ archives[$0] })
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
    try add(row.integer("archive"), row.integer("offset"), row.integer("length"))
    guard position < size else { return extents }
    let statement = try db.cachedStatement(
      sql:
        "SELECT position, archive, offset, length FROM extent WHERE entry = ? AND position > 0 ORDER BY position"
    )
    let rows = try Row.fetchCursor(statement, arguments: [row.integer("number")])
    // A database may have thousands: their columns are not found by their names.
    while let row = try rows.next().map(ManifestRow.init) {
      guard row.integer(at: 0) == Int64(exactly: position) else { throw invalid() }
      try add(row.integer(at: 1), row.integer(at: 2), row.integer(at: 3))
    }
    guard position == size else { throw invalid() }
    return extents
  }

  private func attributes(
    of path: ContainerPath, _ number: Int64, _ db: Database
  ) throws -> [ExtendedAttribute] {
    let statement = try db.cachedStatement(
      sql: "SELECT \(ManifestRow.path("name", as: "name")), value FROM attribute WHERE entry = ? ORDER BY 1")
    return try Row.fetchAll(statement, arguments: [number]).map(ManifestRow.init).map { row in
      guard row.text("name_type") == "text", let bytes = row.bytes("name"), !bytes.isEmpty,
        !bytes.contains(0),
        let name = String(validating: bytes, as: UTF8.self), let value = row.bytes("value")
      else { throw wrong("an invalid attribute (\(path))") }
      return ExtendedAttribute(name: name, value: value)
    }
  }
}
