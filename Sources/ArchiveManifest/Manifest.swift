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
  private let isComplete: Bool

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
  /// - Parameter own: called before with each entry of each part, with the part's index, in the order of its paths.
  /// - Throws: `DrydockError` with code `damaged` when an entry is invalid, not in order, below a file or link, or has no
  ///   content; and what the visits throw.
  package func entries(
    _ visit: (ManifestEntry) throws -> Void, own: (Int, ManifestEntry) throws -> Void = { _, _ in }
  ) throws {
    var entries = MergedEntries(self)
    while let entry = try entries.next(own: own) { try visit(entry) }
  }

  /// One entry; nil when the snapshot does not have the path.
  package func entry(_ path: ContainerPath) throws -> ManifestEntry? {
    guard let (_, entry) = try find(path) else { return nil }
    try check(entry)
    return entry
  }

  /// The newest manifest that has a path.
  private func find(_ path: ContainerPath) throws -> (part: ManifestReader, entry: ManifestEntry)? {
    for (index, part) in parts.enumerated() {
      if let entry = try part.entry(path) { return (part, entry) }
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

  /// Throws unless the content of an entry is in one of the archives.
  fileprivate func check(_ entry: ManifestEntry) throws {
    for extent in entry.extents where isComplete || parts.contains(where: { $0.archive == extent.archive }) {
      guard let part = parts.first(where: { $0.archive == extent.archive }), extent.offset <= part.tarSize,
        extent.length <= part.tarSize - extent.offset
      else { throw parts[0].wrong("content in no archive that it needs (\(entry.path))") }
    }
    if let first = entry.hardLink {
      let target = try self.entry(first)
      if target == nil && !isComplete { return }
      guard let target, target.hardLink == nil, target.kind == entry.kind,
        target.size == entry.size, target.digest == entry.digest
      else { throw parts[0].wrong("a hard link to something else (\(entry.path))") }
    }
  }

  fileprivate func isRemoved(_ path: ContainerPath, byPartBefore index: Int) -> Bool {
    removed[..<index].contains { $0.contains(path) }
  }

  /// The kind of each stored path, for decisions before anything is read; the entries themselves are checked by
  /// ``entries(_:own:)``. And the stored directories that a flag of their own excludes, with the flag's rule: an explicit include
  /// brought them in. A directory with a stored cache tag counts, whatever the content of that file.
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
    try find(path)?.part.captureState(of: path) ?? DatabaseCaptureState()
  }

  /// The hashes of the blocks of an entry's content; nil when they are not stored, or are not those of its digest.
  package func blocks(of entry: ManifestEntry, blockSize: Int) throws -> BlockHashes? {
    var blocks = BlockHashes(blockSize: blockSize)
    for extent in entry.extents {
      guard let part = parts.first(where: { $0.archive == extent.archive }),
        try part.addBlocks(in: extent, to: &blocks)
      else { return nil }
    }
    return try blocks.digest(size: entry.size) == entry.digest ? blocks : nil
  }

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

/// The rows of all manifests of a chain at once, in the order of the paths: of each path that of the newest manifest.
private struct MergedRows<Value> {
  private let manifest: Manifest
  private let rows: [EntryRows<Value>]
  private let path: (Value) -> ContainerPath
  /// The next row of each manifest, and its number.
  private var heads: [(row: Int64, value: Value?)] = []

  init(_ manifest: Manifest, _ rows: [EntryRows<Value>], by path: @escaping (Value) -> ContainerPath) {
    (self.manifest, self.rows, self.path) = (manifest, rows, path)
  }

  /// - Parameter own: called before with each manifest's row of the path, also of removed paths.
  mutating func next(
    own: (Int, Value) throws -> Void = { _, _ in }
  ) throws -> (part: Int, row: Int64, value: Value)? {
    if heads.isEmpty { heads = try rows.map { (1, try $0.value(1)) } }
    while let (part, row, value) = newest() {
      let found = path(value)
      for other in heads.indices {
        guard let head = heads[other].value, path(head) == found else { continue }
        try own(other, head)
        let next = heads[other].row + 1
        heads[other] = (next, try rows[other].value(next))
        if let value = heads[other].value, path(value) <= found {
          throw manifest.parts[other].wrong("entries out of order (\(path(value)))")
        }
      }
      if !manifest.isRemoved(found, byPartBefore: part) { return (part, row, value) }
    }
    return nil
  }

  private func newest() -> (part: Int, row: Int64, value: Value)? {
    var found: (part: Int, row: Int64, value: Value)?
    for (part, head) in heads.enumerated() {
      if let value = head.value, found.map({ path(value) < path($0.value) }) ?? true {
        found = (part, head.row, value)
      }
    }
    return found
  }
}

/// The entries of a snapshot in the order of their paths, checked one by one.
package struct MergedEntries {
  private let manifest: Manifest
  private var rows: MergedRows<ManifestEntry>
  private var check: ExcludedEntryCheck?
  private var previous: (path: ContainerPath, isDirectory: Bool)?
  /// In each archive, where the last content ends. Contents lie in the order of the entries and share no bytes, so that a small
  /// archive cannot hold the same large content a million times.
  private var ends: [UInt64]
  /// Where the entry is that came last.
  package private(set) var place: (part: Int, row: Int64) = (0, 0)

  package init(_ manifest: Manifest) {
    self.manifest = manifest
    rows = MergedRows(manifest, manifest.parts.map { $0.entries() }, by: \.path)
    ends = manifest.parts.map { _ in 0 }
  }

  package mutating func next(own: (Int, ManifestEntry) throws -> Void = { _, _ in }) throws -> ManifestEntry?
  {
    if check == nil {
      check = try ExcludedEntryCheck(manifest.excluded(), storesExcluded: manifest.storesExcluded())
    }
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
    if let exclusion = check?.forbidding(entry.path) {
      throw manifest.parts[0].wrong(
        "\(entry.path), which it lists as excluded (\(exclusion.description))")
    }
    try manifest.check(entry)
    previous = (entry.path, entry.kind == .directory)
  }
}

/// Finds entries of a snapshot that are asked for in the order of their paths.
package struct EntriesInOrder {
  private var entries: MergedEntries
  private var next: ManifestEntry?

  package init(_ manifest: Manifest) throws {
    entries = MergedEntries(manifest)
    next = try entries.next()
  }

  /// The entry at a path, and the paths before it that were not asked for: the container does not have them.
  package mutating func entry(
    at path: ContainerPath
  ) throws -> (entry: ManifestEntry?, gone: [ContainerPath]) {
    let gone = try remaining { $0 < path }
    guard let found = next, found.path == path else { return (nil, gone) }
    next = try entries.next()
    return (found, gone)
  }

  /// The paths that were not asked for, after the last one that was.
  package mutating func rest() throws -> [ContainerPath] { try remaining { _ in true } }

  private mutating func remaining(_ isBefore: (ContainerPath) -> Bool) throws -> [ContainerPath] {
    var paths: [ContainerPath] = []
    while let entry = next, isBefore(entry.path) {
      paths.append(entry.path)
      next = try entries.next()
    }
    return paths
  }
}

/// Finds entries that a manifest must not have: excluded ones, unless it declares that it stores them, and Drydock's own
/// state in any case. Used once, in the order of the entries.
struct ExcludedEntryCheck {
  private let excluded: [ExcludedPath]
  private let storesExcluded: Bool
  private var next = 0
  private var current: ExcludedPath?

  init(_ excluded: [ExcludedPath], storesExcluded: Bool) {
    self.excluded = excluded.sorted { $0.path < $1.path }
    self.storesExcluded = storesExcluded
  }

  /// The rule that forbids this entry; nil when none does.
  mutating func forbidding(_ path: ContainerPath) -> Exclusion? {
    while next < excluded.count, excluded[next].path <= path {
      // A path below an excluded directory may be listed too; the directory covers it.
      if current.map({ !excluded[next].path.isInside($0.path) }) ?? true { current = excluded[next] }
      next += 1
    }
    guard let current, path == current.path || path.isInside(current.path) else { return nil }
    return storesExcluded && current.exclusion.rule != .state ? nil : current.exclusion
  }
}
