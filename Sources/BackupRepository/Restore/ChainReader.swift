import ArchiveFile

/// What makes readers of a snapshot's contents, for any thread.
struct ChainSource: Sendable {
  fileprivate struct Part: Sendable {
    let archive: Archive.ID, path: String, ranges: RangeSource, members: ExpectedMembers?
    let manifest: ManifestReader
  }

  fileprivate let parts: [Part]
  /// The snapshot's archive.
  fileprivate let path: String

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
}

/// Reads a snapshot's contents from the archives of its chain, on one thread. Each archive's last frames are kept: the pieces
/// of one content come in the order of the archive.
final class ChainReader {
  private let path: String
  private let parts: [(part: ChainSource.Part, ranges: RangeReader, check: MemberCheck?)]
  private let entries: [ManifestReader.Pages]

  fileprivate init(_ source: ChainSource) {
    path = source.path
    let entries = source.parts.map { ManifestReader.Pages($0.manifest) }
    parts = zip(source.parts, entries).map { part, entries in
      let ranges = part.ranges.reader()
      return (part, ranges, part.members.map { MemberCheck(ranges, $0, entries) })
    }
    self.entries = entries
  }

  /// An entry by its place.
  func entry(_ content: ContentPlace) throws -> ManifestEntry {
    try entries[Int(content.part)].entry(row: Int64(content.row))
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
