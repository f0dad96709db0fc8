import ArchiveManifest
import AppStores
import ArchiveFile
import Cryptography
import FileSystem
import SystemPackage

/// Stores the content of databases and large files: by reference where an earlier archive has it, else only the blocks that
/// changed since the parent's snapshot, else whole.
struct LargeContents {
  let draft: ArchiveDraft
  let reader: StableReader

  /// Stores a large file that has a status.
  ///
  /// - Parameter isWhole: see ``StableReader/readSmall(_:_:_:isWhole:into:wantsDigest:)``.
  /// - Returns: false when it changed while it was read.
  func store(
    _ file: FileDescriptor, _ path: String, _ before: FileStatus, isWhole: Bool,
    of entry: inout ManifestEntry, since earlier: ManifestEntry?
  ) throws -> Bool {
    let isFresh = !isWhole && reader.isFresh(before)
    return try store(.file(file, size: before.size, path: path), of: &entry, since: earlier) { digest in
      try (isWhole || FileStatus(of: file, path: path).isUnwritten(since: before))
        && (!isFresh || reader.reads(digest, file, size: before.size, path))
    }
  }

  /// Stores a content, and sets the entry's digest and places.
  ///
  /// - Parameters:
  ///   - entry: with its size.
  ///   - earlier: the parent's entry of the path.
  ///   - hasSameMain: whether the main file of a database is as it was at the parent's capture.
  ///   - isSettled: whether nothing has changed while a content with that digest was read.
  /// - Returns: false when it changed while it was read.
  func store(
    _ content: StableReader.Content, of entry: inout ManifestEntry, since earlier: ManifestEntry?,
    hasSameMain: Bool = false, isSettled: (SHA256.Digest) throws -> Bool = { _ in true }
  ) throws -> Bool {
    var before: (entry: ManifestEntry, blocks: BlockHashes)?
    if let earlier, let size = content.blockSize,
      let blocks = try draft.blocks(of: earlier, like: entry, blockSize: size)
    {
      before = (earlier, blocks)
    }
    if try before != nil || draft.parent?.hasContent(ofSize: content.size) ?? false {
      let known =
        if let before, hasSameMain, let added = try addedPages(of: content, since: before.entry) {
          try reader.hash(content, before.blocks, changed: added)
        } else {
          try reader.stream(content, into: nil)
        }
      guard let known, try isSettled(known.digest) else { return false }
      if let places = try draft.parent?.places(
        of: known.digest, size: entry.size, isDatabase: entry.kind == .database, earlier: earlier)
      {
        (entry.digest, entry.extents) = (known.digest, places)
        return true
      }
      if let before, let blocks = known.blocks {
        let isStored = try draft.addChanged(&entry, blocks, since: before.entry.extents, before.blocks) {
          ranges, _ in
          try reader.copy(content, ranges, blocks, into: draft.archive)
        }
        if isStored == true { entry.digest = known.digest }
        if let isStored { return isStored }
      }
    }
    return try storeWhole(content, &entry, isSettled)
  }

  /// The pages that a database's log got since the parent's capture; nil when others may have changed, too.
  private func addedPages(of content: StableReader.Content, since earlier: ManifestEntry) throws -> [Int]? {
    guard case .database(let pages) = content,
      let position = try draft.parent?.captureState(of: earlier.path).log
    else { return nil }
    return try pages.pages(since: position)
  }

  /// Stores a content while it is read, and once more when it changed: the later member of a name is the one that counts in
  /// a tar.
  private func storeWhole(
    _ content: StableReader.Content, _ entry: inout ManifestEntry,
    _ isSettled: (SHA256.Digest) throws -> Bool
  ) throws -> Bool {
    let member = draft.names.member(entry, .file(size: content.size))
    let offset = try draft.archive.beginMember(member)
    let read = try reader.stream(content, into: draft.archive)
    try draft.archive.endMember(padding: true)
    guard let read, try isSettled(read.digest) else {
      try draft.manifest.addReplaced(entry.path, offset: offset, length: content.size)
      return false
    }
    entry.digest = read.digest
    try draft.place(&entry, at: offset, read.blocks)
    return true
  }
}
