import ArchiveFile
import ArchiveManifest
import DrydockErrors
import FileSystem

/// Where the contents of each archive of a chain are, from the first to the last, and where entries of others say that
/// they are: what is in front of them and behind them is a header or the manifest.
struct ContentBounds {
  private let ids: [ArchiveID]
  private var contents: [Range<UInt64>?]
  /// The first and the last place that a newer archive's entry names, and those entries.
  private var first: [(offset: UInt64, path: ContainerPath)?]
  private var last: [(end: UInt64, path: ContainerPath)?]

  init(_ archive: Archive) {
    ids = archive.parts.map(\.header.archive)
    contents = ids.map { _ in nil }
    (first, last) = (ids.map { _ in nil }, ids.map { _ in nil })
  }

  /// Adds an archive's own entry.
  mutating func add(_ entry: ManifestEntry, of part: Int) {
    for extent in entry.extents where extent.archive == ids[part] {
      let end = extent.offset + extent.length
      let known = contents[part] ?? extent.offset..<end
      contents[part] = min(known.lowerBound, extent.offset)..<max(known.upperBound, end)
    }
  }

  /// Adds an entry of the snapshot, which an archive's manifest has.
  mutating func add(places entry: ManifestEntry, from part: Int) {
    for extent in entry.extents where extent.archive != ids[part] {
      // Without all archives some places are not known.
      guard let other = ids.firstIndex(where: { $0 == extent.archive }) else { continue }
      let end = extent.offset + extent.length
      if first[other].map({ extent.offset < $0.offset }) ?? true {
        first[other] = (extent.offset, entry.path)
      }
      if last[other].map({ end > $0.end }) ?? true { last[other] = (end, entry.path) }
    }
  }

  /// After all entries: throws for a place outside of the contents.
  ///
  /// - Parameter path: the archive, for errors.
  func check(_ path: String) throws {
    for part in ids.indices {
      guard let first = first[part], let last = last[part] else { continue }
      let range = contents[part] ?? 0..<0
      let isBefore = first.offset < range.lowerBound || range.isEmpty
      if isBefore || last.end > range.upperBound {
        throw DrydockError(
          .damaged,
          "its manifest has content where \(ids[part].short) has none (\(isBefore ? first.path : last.path))",
          path: path)
      }
    }
  }
}

/// Which contents of an archive are read. If all are, what comes after the last one is compared, too.
struct ReadContents {
  private let members: ExpectedMembers
  private var isRead: [Bool]

  /// - Parameter members: with all entries.
  init(of members: ExpectedMembers) {
    self.members = members
    isRead = Array(repeating: false, count: members.contents)
  }

  var isAll: Bool { isRead.allSatisfy { $0 } }

  /// Adds the content that has a byte of the tar stream.
  mutating func add(at offset: UInt64) {
    if let content = members.content(at: offset) { isRead[content] = true }
  }
}

extension ArchivePart {
  /// What its manifest says must be in its tar; with the places of its contents at once, where they are needed before
  /// the entries of the chain were visited.
  func expectedMembers(withContents: Bool = false) throws -> ExpectedMembers {
    var members = try ExpectedMembers(manifest, vault: vault, path: path)
    let rows = manifest.entries()
    var row: Int64 = 1
    while withContents, let entry = try rows.value(row) {
      members.add(entry)
      row += 1
    }
    return members
  }
}
