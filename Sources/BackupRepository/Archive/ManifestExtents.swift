import AppStores
import DrydockErrors
import FileSystem
import GRDB

/// Where contents are, and the hashes of their blocks, as an archive's own manifest has them.
extension ManifestReader {
  /// The archives that extents are in, by their numbers.
  static func archives(
    _ db: Database, besides own: Archive.ID, isIncremental: Bool, _ path: String
  ) throws -> [Int64: Archive.ID] {
    var archives: [Int64: Archive.ID] = [0: own]
    let rows = try Row.fetchCursor(
      db, sql: "SELECT number, archive FROM required LIMIT \(Archive.longestChain + 1)")
    while let row = try rows.next().map(ManifestRow.init) {
      guard let number = row.integer("number"), number > 0, isIncremental,
        let id = row.text("archive").flatMap(Archive.ID.init), id != own,
        archives.count <= Archive.longestChain
      else { throw DrydockError(.damaged, "its manifest requires an invalid archive", path: path) }
      archives[number] = id
    }
    return archives
  }

  /// The places of a content: one behind the other they have its size. Those in this archive are one member's content.
  func extents(_ row: ManifestRow, size: UInt64, of path: ContainerPath, _ db: Database) throws
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
}
