import AppStores
import ArchiveFile
import Cryptography
import FileSystem

/// Stores the content of databases and large files: by reference where an earlier archive has it, else only the blocks that
/// changed since the parent's snapshot, else whole.
struct LargeContents {
  let archive: ArchiveWriter
  let manifest: ManifestWriter
  let names: MemberNames
  let reader: StableReader
  let former: ParentSnapshot?

  /// A content with fewer bytes is stored whole: a member and the places of its blocks take more than they save.
  static let smallestChanged: UInt64 = 64 << 10

  /// Stores a content, and sets the entry's digest and places.
  ///
  /// - Parameters:
  ///   - entry: with its size.
  ///   - earlier: the parent's entry of the path.
  ///   - hasSameMain: whether the main file of a database is as it was at the parent's capture.
  ///   - isSettled: whether a content with that digest was read whole, and nothing has changed while it was.
  /// - Returns: false when it changed while it was read.
  func store(
    _ content: StableReader.Content, of entry: inout ManifestEntry, since earlier: ManifestEntry?,
    hasSameMain: Bool = false, isSettled: (HashedContent) throws -> Bool
  ) throws -> Bool {
    let former = try earlier.flatMap { try formerContent($0, like: entry, content) }
    var known: HashedContent?
    if let former, hasSameMain, let added = try addedPages(of: content, since: former) {
      known = try reader.hash(content, former.blocks, changed: added)
    } else if try former != nil || self.former?.hasContent(ofSize: content.size) ?? false {
      known = try reader.stream(content, into: nil)
    }
    if let known {
      guard try isSettled(known) else { return false }
      if let places = try self.former?.places(
        of: known.digest, size: entry.size, isDatabase: entry.kind == .database, earlier: earlier)
      {
        (entry.digest, entry.extents) = (known.digest, places)
        return true
      }
      if let former, let blocks = known.blocks,
        let isStored = try storeChanged(content, &entry, blocks, known, since: former)
      {
        return isStored
      }
    }
    return try storeWhole(content, &entry, isSettled)
  }

  // MARK: What changed

  /// The parent's content of a path.
  private struct Former {
    var entry: ManifestEntry
    var blocks: BlockHashes
  }

  private func formerContent(
    _ earlier: ManifestEntry, like entry: ManifestEntry, _ content: StableReader.Content
  ) throws -> Former? {
    guard let former, earlier.kind == entry.kind, earlier.hardLink == nil,
      min(earlier.size, content.size) >= Self.smallestChanged, let blockSize = content.blockSize,
      let blocks = try former.manifest.blocks(of: earlier, blockSize: blockSize)
    else { return nil }
    return Former(entry: earlier, blocks: blocks)
  }

  /// The pages that a database's log got since the parent's capture; nil when others may have changed, too.
  private func addedPages(of content: StableReader.Content, since former: Former) throws -> [Int]? {
    guard case .database(let pages) = content,
      let position = try self.former?.manifest.captureState(of: former.entry.path).log
    else { return nil }
    return try pages.pages(since: position)
  }

  /// Stores the blocks that changed.
  ///
  /// - Returns: nil when that would save little.
  private func storeChanged(
    _ content: StableReader.Content, _ entry: inout ManifestEntry, _ blocks: BlockHashes,
    _ known: HashedContent, since former: Former
  ) throws -> Bool? {
    let runs = blocks.changed(since: former.blocks)
    let size = UInt64(blocks.blockSize)
    let ranges = runs.map { UInt64($0.lowerBound) * size..<min(UInt64($0.upperBound) * size, content.size) }
    let length = ranges.reduce(0) { $0 + UInt64($1.count) }
    guard length <= content.size / 2, let name = names.pagesName(of: entry.path) else { return nil }
    guard length > 0 else {
      // The end was cut off.
      entry.digest = known.digest
      entry.extents = former.entry.extents.replacing([], by: 0, size: content.size)
      return true
    }
    let member = ArchiveMember(name: name, kind: .file(size: length), metadata: entry.metadata)
    let start = try archive.beginMember(member)
    let isSame = try reader.copy(content, ranges, blocks, into: archive)
    try archive.endMember(padding: true)
    guard isSame else {
      try manifest.addSuperseded(entry.path, offset: start, length: length)
      return false
    }
    entry.digest = known.digest
    entry.extents = former.entry.extents.replacing(ranges, by: start, size: content.size)
    try manifest.add(blocks, runs, at: start)
    return true
  }

  // MARK: The whole

  /// Stores a content while it is read, and once more when it changed: the later member of a name is the one that counts in
  /// a tar.
  private func storeWhole(
    _ content: StableReader.Content, _ entry: inout ManifestEntry,
    _ isSettled: (HashedContent) throws -> Bool
  ) throws -> Bool {
    let offset = try archive.beginMember(names.member(entry, .file(size: content.size)))
    let read = try reader.stream(content, into: archive)
    try archive.endMember(padding: true)
    guard try isSettled(read) else {
      try manifest.addSuperseded(entry.path, offset: offset, length: content.size)
      return false
    }
    entry.digest = read.digest
    entry.extents = Extents(content.size > 0 ? [Extent(offset: offset, length: content.size)] : [])
    if let blocks = read.blocks, content.size >= Self.smallestChanged {
      try manifest.add(blocks, [0..<blocks.count], at: offset)
    }
    return true
  }
}

/// What reading a content gave.
struct HashedContent {
  var digest: SHA256.Digest
  /// The hashes of its blocks, when the digest follows from them.
  var blocks: BlockHashes?
  /// Whether all bytes were there; of a database, whether all belong to one commit.
  var isWhole: Bool
}
