import AppContainer
import AppStores
import Cryptography
import DrydockErrors
import FileSystem

/// The manifest of a snapshot: of a full archive its own one; of an incremental one its own and those of the archives that
/// it needs, merged path by path. The newest manifest that has or removes a path counts.
package final class Manifest {
  /// The archive's own manifest, then its parent's, and so on to that of the full archive.
  package let parts: [ManifestReader]
  private let removed: [Set<ContainerPath>]
  /// Whether the chain has all archives; else entries may name others, and paths are missing.
  fileprivate let isComplete: Bool
  /// Where contents are, once one was searched: in sorted lists, which take 24 bytes for a file. All sizes; and of each
  /// entry the start of its hash, and the number of the manifest and of the row in it.
  private var sizes: [UInt64] = [], hashes: [(key: UInt64, place: UInt64)] = []
  private var isIndexed = false
  private lazy var rows = parts.map { $0.entries() }
  /// See ``ManifestReader/contentRange()``.
  private lazy var contentRanges = Result { try parts.map { try $0.contentRange() } }

  /// More archives in one chain are refused.
  package static let longestChain = 1000

  package init(_ parts: [ManifestReader], isComplete: Bool = true) throws {
    (self.parts, self.isComplete) = (parts, isComplete)
    removed = try parts.map { try $0.removed() }
  }

  /// The snapshot's header.
  package var header: ArchiveHeader { parts[0].header }

  // MARK: Entries

  /// Visits all entries in the order of their paths: parents first.
  ///
  /// - Throws: see ``MergedEntries/next(own:)``; and what the visit throws.
  package func entries(_ visit: (ManifestEntry) throws -> Void) throws {
    var entries = try MergedEntries(self)
    while let entry = try entries.next() { try visit(entry) }
  }

  /// One entry; nil when the snapshot does not have the path.
  package func entry(_ path: ContainerPath) throws -> ManifestEntry? {
    guard let (part, entry) = try find(path) else { return nil }
    try check(entry, of: part)
    return entry
  }

  /// The newest manifest that has a path.
  private func find(_ path: ContainerPath) throws -> (part: Int, entry: ManifestEntry)? {
    for (index, part) in parts.enumerated() {
      if let entry = try part.entry(path) { return (index, entry) }
      if removed[index].contains(path) { return nil }
    }
    return nil
  }

  /// A hard link's entry with the content of its first name; other entries unchanged.
  package func withContent(_ entry: ManifestEntry) throws -> ManifestEntry {
    guard let first = entry.hardLink, let target = try self.entry(first) else { return entry }
    var entry = entry
    (entry.hardLink, entry.extents) = (nil, target.extents)
    return entry
  }

  /// Throws unless the content of an entry, which the manifest with that number has, is where that archive or one that it
  /// needs has contents: not in a header or a manifest, and not in an archive that was written later.
  fileprivate func check(_ entry: ManifestEntry, of number: Int) throws {
    for extent in entry.extents {
      let source = parts.firstIndex { $0.archive == extent.archive }
      if source == nil && !isComplete { continue }
      guard let source, source >= number else {
        throw parts[number].wrong("content in no archive that it needs (\(entry.path))")
      }
      let range = try contentRanges.get()[source]
      guard extent.offset >= range.lowerBound, extent.offset + extent.length <= range.upperBound else {
        throw parts[number].wrong(
          "content where \(parts[source].archive.short) has none (\(entry.path))")
      }
    }
    if let first = entry.hardLink {
      let target = try self.entry(first)
      if target == nil && !isComplete { return }
      // A restore takes the metadata of the first name; earlier builds stored those of a file that changed meanwhile. Other
      // programs could give the rights of a link to the file.
      guard let target, target.hardLink == nil, target.kind == entry.kind,
        target.size == entry.size, target.digest == entry.digest,
        target.metadata == entry.metadata || !entry.metadata.givesRights
      else { throw parts[0].wrong("a hard link to something else (\(entry.path))") }
    }
  }

  fileprivate func isRemoved(_ path: ContainerPath, byPartBefore index: Int) -> Bool {
    removed[..<index].contains { $0.contains(path) }
  }

  /// The kind of each stored path, for decisions before anything is read; the entries themselves are checked by
  /// ``entries(_:)``. And the stored directories that a flag of their own excludes, with the flag's rule: an explicit
  /// include brought them in. A directory with a stored cache tag counts, whatever the content of that file.
  package func kinds() throws -> (
    kinds: PathTable<ManifestEntry.Kind>, flagged: [ContainerPath: Exclusion.Rule]
  ) {
    var kinds = PathTable<ManifestEntry.Kind>()
    var flagged: [ContainerPath: Exclusion.Rule] = [:]
    let entries = parts.map { $0.entries() }
    var stored = MergedRows(self, parts.map { $0.kinds() }, by: { $0.path })
    while let (part, row, value) = try stored.next() {
      let path = value.path
      kinds[path] = value.kind
      if value.mayBeFlagged, !path.isRoot,
        let rule = try entries[part].required(row).metadata.exclusionFlags.first
      {
        flagged[path] = rule
      }
      if value.kind == .file, path.name.elementsEqual("CACHEDIR.TAG".utf8), !path.parent.isRoot {
        flagged[path.parent] = .cacheTag
      }
    }
    return (kinds, flagged)
  }

  /// What a database's sidecars were at the capture.
  package func captureState(of path: ContainerPath) throws -> DatabaseCaptureState {
    try find(path).map { try parts[$0.part].captureState(of: path) } ?? DatabaseCaptureState()
  }

  /// The hashes of the blocks of an entry's content; nil when they are not stored, or are not those of its digest.
  package func blocks(of entry: ManifestEntry, blockSize: Int) throws -> BlockHashes? {
    try entry.blocks(in: parts, blockSize: blockSize)
  }

  // MARK: Contents by their hashes

  /// Whether some content of that size is stored: only then it is searched.
  package func hasContent(ofSize size: UInt64) throws -> Bool {
    try makeIndex()
    let found = sizes.indices.first(since: { sizes[$0] >= size })
    return found < sizes.count && sizes[found] == size
  }

  /// The places of a content; nil when it is not stored.
  ///
  /// - Parameters:
  ///   - isDatabase: whether the hash is a database's, which takes some bytes as zero.
  ///   - earlier: an entry that mostly has it: then nothing is searched.
  package func places(
    of digest: SHA256.Digest, size: UInt64, isDatabase: Bool, earlier: ManifestEntry?
  ) throws -> Extents? {
    func hasContent(_ entry: ManifestEntry) -> Bool {
      entry.digest == digest && entry.size == size && (entry.kind == .database) == isDatabase
        && !entry.extents.isEmpty
    }
    if let earlier, hasContent(earlier) { return earlier.extents }
    try makeIndex()
    let key = digest.firstHalf.high
    let start = hashes.indices.first(since: { hashes[$0].key >= key })
    for (_, place) in hashes[start...].prefix(while: { $0.key == key }) {
      let (part, row) = (Int(place >> 40), Int64(place & 0xff_ffff_ffff))
      if let entry = try rows[part].value(row), hasContent(entry) {
        try check(entry, of: part)
        return entry.extents
      }
    }
    return nil
  }

  private func makeIndex() throws {
    if isIndexed { return }
    (sizes, hashes) = ([], [])
    for (number, part) in parts.enumerated() {
      try part.contents { row, size, digest in
        sizes.append(size)
        hashes.append((digest.firstHalf.high, UInt64(number) << 40 | UInt64(row)))
      }
    }
    sizes.sort()
    hashes.sort { $0.key < $1.key }
    isIndexed = true
  }

  // MARK: Sizes

  /// Bytes of the content of all entries in all manifests: at least those of the snapshot.
  package func contentSize() throws -> UInt64 {
    try parts.reduce(0) { sum, part in
      let (total, overflow) = sum.addingReportingOverflow(try part.contentSize())
      return overflow ? .max : total
    }
  }

  /// The most memory that a restore takes for the manifest's content.
  package func memory() throws -> UInt64 { try parts.reduce(0) { try $0 + $1.memory() } }

  // MARK: What is not stored

  /// Whether paths were stored although a rule excludes them: such a path is an entry, and it or a directory above is in
  /// ``excluded()`` too.
  package func storesExcluded() throws -> Bool { try parts[0].storesExcluded() }

  package func excluded() throws -> [ExcludedPath] { try omitting().excluded() }

  package func skipped() throws -> [SkippedPath] { try omitting().skipped() }

  /// The newest manifest that lists the excluded and skipped paths itself.
  private func omitting() throws -> ManifestReader {
    try parts.first { try !$0.inheritsOmitted() } ?? parts[parts.count - 1]
  }
}

extension ManifestEntry {
  /// See ``Manifest/blocks(of:blockSize:)``.
  ///
  /// - Parameter parts: the manifests of the archives of a chain.
  package func blocks(in parts: [ManifestReader], blockSize: Int) throws -> BlockHashes? {
    var blocks = BlockHashes(blockSize: blockSize)
    var last: [ManifestReader.BlockRow?] = parts.map { _ in nil }
    for extent in extents {
      guard let part = parts.firstIndex(where: { $0.archive == extent.archive }),
        try parts[part].addBlocks(in: extent, to: &blocks, &last[part])
      else { return nil }
    }
    return try blocks.digest(size: size) == digest ? blocks : nil
  }
}

/// The rows of all manifests of a chain at once, in the order of the paths: of each path that of the newest manifest.
private struct MergedRows<Value: Sendable> {
  private let manifest: Manifest
  private let rows: [EntryRows<Value>]
  private let path: (Value) -> ContainerPath
  /// The next row of each manifest, and its number; nil at the end.
  private var heads: [(row: Int64, path: ContainerPath, value: Value)?] = []

  init(_ manifest: Manifest, _ rows: [EntryRows<Value>], by path: @escaping (Value) -> ContainerPath) {
    (self.manifest, self.rows, self.path) = (manifest, rows, path)
  }

  /// - Parameter own: called before with each manifest's row of the path, also of removed paths.
  mutating func next(
    own: (Int, Value) throws -> Void = { _, _ in }
  ) throws -> (part: Int, row: Int64, value: Value)? {
    if heads.isEmpty { heads = try rows.map { try Self.head(1, of: $0, path) } }
    while let part = newest(), let (row, found, value) = heads[part] {
      for other in part..<heads.count {
        guard let head = heads[other], other == part || head.path == found else { continue }
        try own(other, head.value)
        heads[other] = try Self.head(head.row + 1, of: rows[other], path)
        if let next = heads[other], next.path <= found {
          throw manifest.parts[other].wrong("entries out of order (\(next.path))")
        }
      }
      if !manifest.isRemoved(found, byPartBefore: part) { return (part, row, value) }
    }
    return nil
  }

  private static func head(
    _ row: Int64, of rows: EntryRows<Value>, _ path: (Value) -> ContainerPath
  ) throws -> (row: Int64, path: ContainerPath, value: Value)? {
    try rows.value(row).map { (row, path($0), $0) }
  }

  /// The first manifest of those that have the first path.
  private func newest() -> Int? {
    var first: Int?
    for (part, head) in heads.enumerated() {
      if let head, first.flatMap({ heads[$0] }).map({ head.path < $0.path }) ?? true { first = part }
    }
    return first
  }
}

/// The entries of a snapshot in the order of their paths, checked one by one. What the container has is compared with
/// them in the same order.
package struct MergedEntries {
  private let manifest: Manifest
  private var rows: MergedRows<ManifestEntry>
  private var previous: (path: ContainerPath, isDirectory: Bool)?
  /// The directories from the root to the entry that came last.
  private var directories: [ContainerPath] = []
  /// In each archive, where the last content ends. Contents lie in the order of the entries and share no bytes, so that a small
  /// archive cannot hold the same large content a million times.
  private var ends: [UInt64]
  /// What no entry may be, in the order of the paths: a path that a rule excludes, unless the manifest declares that it
  /// stores those, and Drydock's own state in any case. Then the number of the next one, and the last one.
  private let excluded: [ExcludedPath]
  private let storesExcluded: Bool
  private let groups: Set<String>
  private var nextExcluded = 0
  private var lastExcluded: ExcludedPath?
  /// Where the entry is that came last.
  package private(set) var place: (part: Int, row: Int64) = (0, 0)
  /// The entry that comes next, once it was looked at for a path; nil at the end.
  private var head: ManifestEntry??

  package init(_ manifest: Manifest) throws {
    self.manifest = manifest
    rows = MergedRows(manifest, manifest.parts.map { $0.entries() }, by: \.path)
    ends = manifest.parts.map { _ in 0 }
    excluded = try manifest.excluded().sorted { $0.path < $1.path }
    storesExcluded = try manifest.storesExcluded()
    groups = manifest.header.memberNames.groups
  }

  /// - Parameter own: called before with each entry of each part, with the part's index, in the order of its paths.
  /// - Throws: `DrydockError` with code `damaged` when an entry is invalid, not in order, not in a directory that is an entry,
  ///   Drydock's state, or has no content; and when the root is missing or is not a directory.
  package mutating func next(own: (Int, ManifestEntry) throws -> Void = { _, _ in }) throws -> ManifestEntry?
  {
    let parts = manifest.parts
    let found = try rows.next { part, entry in
      if let content = entry.extents.member(in: parts[part].archive) {
        guard content.offset >= ends[part] else {
          throw parts[part].wrong("overlapping content (\(entry.path))")
        }
        ends[part] = content.offset + content.length
      }
      try own(part, entry)
    }
    guard let (part, row, entry) = found else {
      for (part, end) in zip(parts, ends) where try part.vault().map({ $0.offset < end }) ?? false {
        throw part.wrong("overlapping content (the vault's items)")
      }
      guard previous != nil || !manifest.isComplete else { throw parts[0].wrong("no entries") }
      return nil
    }
    place = (part, row)
    try checkPlace(of: entry)
    return entry
  }

  private mutating func checkPlace(of entry: ManifestEntry) throws {
    if let previous, !previous.isDirectory, entry.path.isInside(previous.path) {
      throw manifest.parts[0].wrong("\(entry.path) below \(previous.path), which is not a directory")
    }
    try checkDirectory(of: entry)
    if let exclusion = exclusion(of: entry.path) {
      throw manifest.parts[0].wrong(
        "\(entry.path), which it lists as excluded (\(exclusion.description))")
    }
    try manifest.check(entry, of: place.part)
    previous = (entry.path, entry.kind == .directory)
  }

  /// Checks that an entry has its directory before it, or is a root. Where manifests of the chain are missing, a directory
  /// may be too.
  private mutating func checkDirectory(of entry: ManifestEntry) throws {
    let group = entry.path.inGroup.flatMap { groups.contains($0.id) ? $0 : nil }
    let own = group?.path ?? entry.path
    while let last = directories.last, !entry.path.isInside(last) { directories.removeLast() }
    guard
      own.isRoot
        ? entry.kind == .directory : directories.last == entry.path.parent || !manifest.isComplete
    else {
      throw manifest.parts[0].wrong(
        own.isRoot
          ? "a root that is not a directory (\(entry.path))"
          : "\(entry.path), and not the directory that contains it")
    }
    guard own != .stateDirectory else { throw manifest.parts[0].wrong("Drydock's own state (\(entry.path))") }
    if entry.kind == .directory { directories.append(entry.path) }
  }

  /// The rule that forbids an entry; nil when none does.
  private mutating func exclusion(of path: ContainerPath) -> Exclusion? {
    while nextExcluded < excluded.count, excluded[nextExcluded].path <= path {
      let next = excluded[nextExcluded]
      // A path below an excluded directory may be listed too; the directory covers it.
      if lastExcluded.map({ !next.path.isInside($0.path) }) ?? true { lastExcluded = next }
      nextExcluded += 1
    }
    guard let lastExcluded, path == lastExcluded.path || path.isInside(lastExcluded.path) else { return nil }
    return storesExcluded && lastExcluded.exclusion.rule != .state ? nil : lastExcluded.exclusion
  }

  // MARK: Entries at paths that come in their order

  /// The entry at a path, and the paths before it that were not asked for: the container does not have them.
  package mutating func entry(
    at path: ContainerPath
  ) throws -> (entry: ManifestEntry?, gone: [ContainerPath]) {
    let gone = try remaining { $0 < path }
    guard case let found?? = head, found.path == path else { return (nil, gone) }
    head = nil
    return (found, gone)
  }

  /// The paths that were not asked for, after the last one that was.
  package mutating func rest() throws -> [ContainerPath] { try remaining { _ in true } }

  private mutating func remaining(_ isBefore: (ContainerPath) -> Bool) throws -> [ContainerPath] {
    var paths: [ContainerPath] = []
    while true {
      let entry: ManifestEntry? = if let head { head } else { try next() }
      head = .some(entry)
      guard let entry, isBefore(entry.path) else { return paths }
      paths.append(entry.path)
      head = nil
    }
  }
}
