import ArchiveFile
import Synchronization

/// What makes readers of a snapshot's contents, for any thread.
struct ChainSource: Sendable {
  fileprivate struct Part: Sendable {
    let archive: Archive.ID, path: String, ranges: RangeSource, members: ExpectedMembers?
    let manifest: ManifestReader
  }

  fileprivate let parts: [Part]
  /// The snapshot's archive.
  fileprivate let path: String
  private let idle = IdleReaders()

  /// - Parameter members: what the tar of each archive must have in front of each content; nil to compare only the contents.
  init(_ archive: Archive, _ members: [ExpectedMembers]?) {
    path = archive.path
    parts = archive.parts.indices.map { index in
      let part = archive.parts[index]
      return Part(
        archive: part.header.archive, path: part.path, ranges: part.reader.rangeSource,
        members: members?[index], manifest: part.manifest)
    }
  }

  func reader() -> ChainReader { ChainReader(self) }

  /// A reader for one thread, until the value is gone. Then another thread goes on with its frames: what changed in many files
  /// since a snapshot is in a few frames of the next archive.
  func borrowed() -> BorrowedReader { BorrowedReader(idle.take() ?? reader(), idle) }
}

final class BorrowedReader {
  let reader: ChainReader
  private let idle: IdleReaders

  fileprivate init(_ reader: ChainReader, _ idle: IdleReaders) { (self.reader, self.idle) = (reader, idle) }

  deinit { idle.put(reader) }
}

private final class IdleReaders: Sendable {
  private let readers = Mutex<[ChainReader]>([])

  func take() -> ChainReader? { readers.withLock { $0.popLast() } }

  func put(_ reader: ChainReader) { readers.withLock { $0.append(reader) } }
}

/// Reads a snapshot's contents from the archives of its chain, on one thread at a time. Each archive's last frames are kept: the
/// pieces of one content come in the order of the archive.
///
/// Unchecked because the compiler cannot see that who has borrowed it is the only one to use it.
final class ChainReader: @unchecked Sendable {
  private let path: String
  private let parts: [(part: ChainSource.Part, ranges: RangeReader, check: MemberCheck?)]
  private let entries: [EntryRows<ManifestEntry>]

  fileprivate init(_ source: ChainSource) {
    path = source.path
    let entries = source.parts.map { $0.manifest.entries() }
    parts = zip(source.parts, entries).map { part, entries in
      let ranges = part.ranges.reader()
      return (part, ranges, part.members.map { MemberCheck(ranges, $0, entries) })
    }
    self.entries = entries
  }

  /// An entry by its place.
  func entry(_ content: ContentPlace) throws -> ManifestEntry {
    try entries[Int(content.part)].required(Int64(content.row))
  }

  /// Reads an entry's content; see ``ManifestEntry/readContent(of:otherwise:into:reader:)``.
  func read(_ entry: ManifestEntry, into body: (UnsafeRawBufferPointer) throws -> Void) throws {
    let only = entry.extents.single.flatMap { part(of: $0)?.part.path }
    _ = try entry.readContent(
      of: only ?? path, otherwise: "nothing was changed, use another archive", into: body
    ) { extent in
      guard let part = part(of: extent) else { return nil }
      try part.check?.check(contentAt: extent.offset)
      return part.ranges
    }
  }

  private func part(
    of extent: Extent
  ) -> (part: ChainSource.Part, ranges: RangeReader, check: MemberCheck?)? {
    parts.first { $0.part.archive == extent.archive }
  }
}
