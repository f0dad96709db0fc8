import ArchiveManifest
import AppStores
import ArchiveFile
import ContainerTransaction
import DrydockErrors
import Synchronization
import SystemPackage

/// Makes readers of a snapshot's contents, for any thread.
final class ChainSource: Sendable {
  /// Of each archive of the chain, its manifest, its bytes, and what its tar must have in front of each content.
  fileprivate let parts: [(manifest: ManifestReader, ranges: RangeSource, members: ExpectedMembers?)]
  fileprivate let idle = Mutex<[ChainReader]>([])

  /// - Parameter members: nil to compare only the contents.
  init(_ archive: Archive, _ members: [ExpectedMembers]?) {
    parts = archive.parts.enumerated().map { ($1.manifest, $1.reader.rangeSource, members?[$0]) }
  }

  /// Whether some archive of the chain is on a server.
  var isRemote: Bool { parts.contains(where: \.ranges.isRemote) }

  func reader() -> ChainReader { ChainReader(self) }
}

/// A reader for one thread, until the value is gone. Then another thread goes on with its frames: what changed in many files
/// since a snapshot is in a few frames of the next archive.
final class BorrowedReader {
  let reader: ChainReader
  private let source: ChainSource

  init(of source: ChainSource) {
    self.source = source
    reader = source.idle.withLock { $0.popLast() } ?? source.reader()
  }

  deinit {
    reader.expectNothing()
    source.idle.withLock { $0.append(reader) }
  }
}

/// Reads a snapshot's contents from the archives of its chain, on one thread at a time. Each archive's last frames are kept: the
/// pieces of one content come in the order of the archive.
///
/// Unchecked because the compiler cannot see that who has borrowed it is the only one to use it.
final class ChainReader: @unchecked Sendable {
  private let parts: [(manifest: ManifestReader, ranges: RangeReader, check: MemberCheck?)]
  private let entries: [EntryRows<ManifestEntry>]
  private let isRemote: Bool

  fileprivate init(_ source: ChainSource) {
    let entries = source.parts.map { $0.manifest.entries() }
    parts = zip(source.parts, entries).map { part, entries in
      let ranges = part.ranges.reader()
      return (part.manifest, ranges, part.members.map { MemberCheck(ranges, $0, entries) })
    }
    (self.entries, isRemote) = (entries, source.isRemote)
  }

  /// Says which contents are read next, so that they are fetched ahead from a server, or decoded ahead.
  ///
  /// - Parameter numbers: in the order of the archives.
  func expect(_ contents: RestoredContents, _ numbers: [UInt32]) {
    // A group that has most of all keeps its thread busy for longer than the other groups the other threads.
    let size = numbers.reduce(0) { $0 &+ contents.places[Int($1)].size }
    for part in parts { part.ranges.decodesAhead = size > contents.size / 2 }
    guard isRemote else { return }
    let pieces = contents.pieces(numbers, ofParts: parts.count)
    let readers = pieces.count { !$0.isEmpty }
    for (part, own) in zip(parts, pieces) { part.ranges.expect(own, readers: readers) }
  }

  /// Drops what was fetched ahead.
  fileprivate func expectNothing() { for part in parts { part.ranges.expect([]) } }

  /// An entry by its place.
  func entry(_ content: ContentPlace) throws -> ManifestEntry {
    try entries[Int(content.part)].required(Int64(content.row))
  }

  /// Whether all of an entry's content is in archives that could be opened.
  func has(_ entry: ManifestEntry) -> Bool {
    entry.size == 0 || !entry.extents.isEmpty && entry.extents.allSatisfy { part(of: $0) != nil }
  }

  /// Reads an entry's content; see ``ManifestEntry/readContent(of:otherwise:into:reader:)``.
  func read(_ entry: ManifestEntry, into body: (UnsafeRawBufferPointer) throws -> Void) throws {
    let only = entry.extents.single.flatMap { part(of: $0)?.manifest.path }
    _ = try entry.readContent(
      of: only ?? parts[0].manifest.path, otherwise: Archive.nothingChanged, into: body
    ) { extent in
      guard let part = part(of: extent) else { return nil }
      try part.check?.check(contentAt: extent.offset)
      return part.ranges
    }
  }

  /// Restores a database from a clone of the live one, where the file system has those and the archive the hashes of its pages:
  /// only pages that differ are read and written. What is compared is the clone, which nobody else can change.
  ///
  /// - Parameters:
  ///   - live: the live main file; any content will do.
  ///   - read: called with the number of bytes that were compared.
  /// - Returns: false when it is to be restored as a whole; nothing was written then.
  func replace(
    _ entry: ManifestEntry, in target: StageFile, since live: FileDescriptor, read: (Int) -> Void
  ) throws -> Bool {
    let header = (try? live.bytes(DatabaseFormat.headerLength, at: 0)) ?? []
    let pageSize = DatabaseFormat.pageSize(ofHeader: header)
    guard entry.kind == .database, entry.size > 0, header.count == DatabaseFormat.headerLength,
      let wanted = try entry.blocks(in: parts.map(\.manifest), blockSize: pageSize),
      try target.clone(live, size: entry.size)
    else { return false }
    var hasher = try BlockHasher(blockSize: pageSize, isDatabaseStart: true)
    try target.readClone {
      try hasher.update($0)
      read($0.count)
    }
    var runs = wanted.changed(since: try hasher.finish())
    // The hash of the first page does not say all of its header.
    if runs.first?.lowerBound != 0 { runs.insert(0..<1, at: 0) }
    for run in runs {
      let range = UInt64(run.lowerBound * pageSize)..<min(UInt64(run.upperBound * pageSize), entry.size)
      var (offset, hasher) = (
        range.lowerBound, try BlockHasher(blockSize: pageSize, isDatabaseStart: run.lowerBound == 0)
      )
      for piece in entry.extents.pieces(range) {
        guard let part = part(of: piece) else { continue }
        try part.check?.check(contentAt: piece.offset)
        try part.ranges.read(offset: piece.offset, length: piece.length) { bytes in
          try hasher.update(bytes)
          try target.replace(bytes, at: offset)
          offset += UInt64(bytes.count)
        }
      }
      let found = try hasher.finish()
      guard found.count == run.count, zip(0..<found.count, run).allSatisfy({ found[$0] == wanted[$1] }) else {
        throw DrydockError(
          .damaged, "the content of \(entry.path) is not what the manifest says; \(Archive.nothingChanged)",
          path: parts[0].manifest.path)
      }
    }
    return true
  }

  private func part(
    of extent: Extent
  ) -> (manifest: ManifestReader, ranges: RangeReader, check: MemberCheck?)? {
    parts.first { $0.manifest.archive == extent.archive }
  }
}
