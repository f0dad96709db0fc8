import AppContainer
import AppStores
import Cryptography
import DrydockErrors
import FileSystem

/// The manifest of a snapshot: of a full archive its own one; of an incremental one its own and those of the archives that
/// it needs, merged path by path. The newest manifest that has or removes a path counts.
package final class Manifest {
  /// The archive's own manifest, then its parent's, and so on to that of the full archive.
  let parts: [ManifestReader]
  private let removed: [Set<ContainerPath>]
  private let path: String
  /// Whether the chain has all archives; else entries may name others, and paths are missing.
  private let isComplete: Bool

  init(_ parts: [ManifestReader], path: String, isComplete: Bool = true) throws {
    (self.parts, self.path, self.isComplete) = (parts, path, isComplete)
    removed = try parts.map { try $0.removed() }
  }

  fileprivate func wrong(_ what: String) -> DrydockError {
    DrydockError(.damaged, "its manifest has \(what)", path: path)
  }

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
    for (index, part) in parts.enumerated() {
      if let entry = try part.entry(path) {
        try check(entry)
        return entry
      }
      if removed[index].contains(path) { return nil }
    }
    return nil
  }

  /// A hard link's entry with the content of its first name; other entries unchanged.
  func withContent(_ entry: ManifestEntry) throws -> ManifestEntry {
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
      else { throw wrong("content in no archive that it needs (\(entry.path))") }
    }
    if let first = entry.hardLink {
      let target = try self.entry(first)
      if target == nil && !isComplete { return }
      guard let target, target.hardLink == nil, target.kind == entry.kind,
        target.size == entry.size, target.digest == entry.digest
      else { throw wrong("a hard link to something else (\(entry.path))") }
    }
  }

  fileprivate func isRemoved(_ path: ContainerPath, byPartBefore index: Int) -> Bool {
    removed[..<index].contains { $0.contains(path) }
  }

  /// Visits the parts from the oldest to the newest: each with what it has of the snapshot's paths, after which the paths that
  /// the next part removes or has itself are forgotten.
  private func collect<Value>(
    _ values: (ManifestReader) throws -> [ContainerPath: Value]
  ) throws -> [ContainerPath: Value] {
    guard parts.count > 1 else { return try parts.first.map(values) ?? [:] }
    var result: [ContainerPath: Value] = [:]
    for (index, part) in parts.enumerated().reversed() {
      for path in removed[index] { result[path] = nil }
      try part.kinds { path, _ in result[path] = nil }
      result.merge(try values(part)) { $1 }
    }
    return result
  }

  /// The kind of each stored path, for decisions before anything is read. The entries themselves are checked by
  /// ``entries(_:own:)``.
  func kinds() throws -> PathTable<ManifestEntry.Kind> {
    let tables = try parts.map { part in
      var table = PathTable<ManifestEntry.Kind>()
      var last: ContainerPath?
      try part.kinds { path, kind in
        guard last.map({ $0 < path }) ?? true else { throw wrong("entries out of order (\(path))") }
        last = path
        table[path] = kind
      }
      return table
    }
    if tables.count == 1 { return tables[0] }
    var merged = PathTable<ManifestEntry.Kind>()
    var rest = tables.map { $0.makeIterator() }
    var heads = rest.indices.map { rest[$0].next() }
    // The newest manifest that has a path counts.
    while let (part, head) = heads.enumerated().compactMap({ part, head in head.map { (part, $0) } })
      .min(by: { ($0.1.path, $0.0) < ($1.1.path, $1.0) })
    {
      for other in heads.indices where heads[other]?.path == head.path { heads[other] = rest[other].next() }
      if !isRemoved(head.path, byPartBefore: part) { merged[head.path] = head.value }
    }
    return merged
  }

  /// The stored directories that a flag of their own excludes, and the flag's rule: an explicit include brought them in. A
  /// directory with a stored cache tag counts, whatever the content of that file.
  func flaggedDirectories(
    _ kinds: PathTable<ManifestEntry.Kind>
  ) throws -> [ContainerPath: Exclusion.Rule] {
    var flagged = try collect { try $0.flaggedDirectories() }
    for (path, kind) in kinds where kind == .file && path.name.elementsEqual("CACHEDIR.TAG".utf8) {
      if !path.parent.isRoot { flagged[path.parent] = .cacheTag }
    }
    return flagged
  }

  /// What a database's sidecars were at the capture.
  func captureState(of path: ContainerPath) throws -> DatabaseCaptureState {
    for (index, part) in parts.enumerated() {
      if try part.entry(path) != nil { return try part.captureState(of: path) }
      if removed[index].contains(path) { break }
    }
    return DatabaseCaptureState()
  }

  /// The hashes of the blocks of an entry's content; nil when they are not stored, or are not those of its digest.
  func blocks(of entry: ManifestEntry, blockSize: Int) throws -> BlockHashes? {
    var blocks = BlockHashes(blockSize: blockSize)
    for extent in entry.extents {
      guard let part = parts.first(where: { $0.archive == extent.archive }),
        try part.addBlocks(in: extent, to: &blocks)
      else { return nil }
    }
    return try blocks.digest(size: entry.size) == entry.digest ? blocks : nil
  }

  /// Bytes of the content of all entries in all manifests: at least those of the snapshot.
  func contentSize() throws -> UInt64 {
    try parts.reduce(0) { sum, part in
      let (total, overflow) = sum.addingReportingOverflow(try part.contentSize())
      return overflow ? .max : total
    }
  }

  /// The most memory that a restore takes for the manifest's content.
  func memory() throws -> UInt64 { try parts.reduce(0) { try $0 + $1.memory() } }

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

/// The entries of a snapshot in the order of their paths, from all manifests of the chain at once.
struct MergedEntries {
  private let manifest: Manifest
  private var cursors: [ManifestReader.Cursor]
  private var heads: [ManifestEntry?] = []
  private var check: ExcludedEntryCheck?
  private var previous: (path: ContainerPath, isDirectory: Bool)?
  /// Where the entry is that came last.
  private(set) var place: (part: Int, row: Int64) = (0, 0)

  init(_ manifest: Manifest) {
    self.manifest = manifest
    cursors = manifest.parts.map { $0.cursor() }
  }

  mutating func next(own: (Int, ManifestEntry) throws -> Void = { _, _ in }) throws -> ManifestEntry? {
    if heads.isEmpty {
      check = try ExcludedEntryCheck(manifest.excluded(), storesExcluded: manifest.storesExcluded())
      for index in cursors.indices { heads.append(try cursors[index].next()) }
    }
    while let (index, entry) = newest() {
      place = (index, cursors[index].row)
      for other in heads.indices where heads[other]?.path == entry.path {
        if let head = heads[other] { try own(other, head) }
        heads[other] = try cursors[other].next()
      }
      if index > 0, manifest.isRemoved(entry.path, byPartBefore: index) { continue }
      try checkPlace(of: entry)
      return entry
    }
    return nil
  }

  /// The first path, as the newest manifest has it.
  private func newest() -> (Int, ManifestEntry)? {
    var found: (Int, ManifestEntry)?
    for (index, head) in heads.enumerated() {
      if let head, found.map({ head.path < $0.1.path }) ?? true { found = (index, head) }
    }
    return found
  }

  private mutating func checkPlace(of entry: ManifestEntry) throws {
    if let previous, !previous.isDirectory, entry.path.isInside(previous.path) {
      throw manifest.wrong("\(entry.path) below \(previous.path), which is not a directory")
    }
    if let exclusion = check?.forbidding(entry.path) {
      throw manifest.wrong("\(entry.path), which it lists as excluded (\(exclusion.description))")
    }
    try manifest.check(entry)
    previous = (entry.path, entry.kind == .directory)
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
