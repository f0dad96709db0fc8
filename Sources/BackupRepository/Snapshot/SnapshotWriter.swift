import ArchiveManifest
import AppContainer
import AppStores
import ArchiveFile
import ContainerTransaction
import Cryptography
import DrydockErrors
import FileSystem
import SystemPackage

/// Stores a container path by path: as members of the archive, and as entries of its manifest. It scans the
/// locked directory, and copes with paths that change, move or are removed while they are read.
final class SnapshotWriter {
  let container: Container
  let lock: ContainerLock
  let root: Directory
  let draft: ArchiveDraft
  let options: SnapshotOptions
  private let rules: ExclusionRules
  /// The names at the moment that the archive shows.
  private let tree: TreeNames
  private let reader: StableReader
  let contents: LargeContents
  private var groups: FileGroupCopies
  var report: SnapshotReport
  private var skippedPaths: [ContainerPath: SkippedPath.Reason] = [:]
  private lazy var mappings = FilesMappedForWriting()
  /// Stored files that may be among these.
  private var mayBeMapped: [FileIdentity: ContainerPath] = [:]
  /// The locks of those of which that was known.
  var opaque: [ContainerPath: DatabaseLock?] = [:]
  /// Entries in their order, the first one's digest still being computed.
  private var waiting:
    [(
      entry: ManifestEntry, digest: PendingDigest?, earlier: ManifestEntry?, capture: DatabaseCaptureState?
    )] = []
  /// What the parent's capture proves; nothing without a parent.
  let capture: CaptureTime
  /// The path that was compared last, and the parent's entry of it until it is added.
  private var compared: ContainerPath?
  var earlier: ManifestEntry?
  /// The hash of the vault's file, when it is stored.
  private(set) var vaultDigest: SHA256.Digest?
  private let directories: LastDirectory
  /// The last path whose name no member can have.
  private var beyondLimits: ContainerPath?
  /// The last directory that was not stored, and why; nil for one that is gone. Nothing in it can be stored.
  private var missingDirectory: (path: ContainerPath, reason: SkippedPath.Reason?)?
  /// Whether another inode behind a name means that it was replaced.
  private var checksInodes = true
  /// The first path of each inode that has several names.
  private var linked: [FileIdentity: (entry: ManifestEntry, hasMember: Bool)] = [:]

  init(
    _ container: Container, _ lock: ContainerLock, into draft: ArchiveDraft, _ options: SnapshotOptions,
    since capture: CaptureTime
  ) throws {
    (self.container, self.lock, self.options, self.capture) = (container, lock, options, capture)
    (self.draft, root, rules) = (draft, lock.root, ExclusionRules(container))
    report = SnapshotReport(draft.header, isEncrypted: draft.isEncrypted)
    directories = LastDirectory(root)
    tree = TreeNames(root, rules: options.includesExcluded ? nil : rules, listed: options.seams.lists)
    reader = try StableReader(options.progress)
    groups = FileGroupCopies(into: draft.work, reader)
    contents = LargeContents(draft: draft, reader: reader)
  }

  func storeRoot() throws {
    let found = try root.metadata(.root) { report.unnamedAttributes.insert(.root) }
    guard let metadata = found else {
      throw DrydockError(.notFound, "removed while it was stored", path: root.path)
    }
    try compare(.root)
    try storeDirectory(.root, root.status(), metadata)
  }

  /// The paths that no rule excludes; with `includesExcluded` all.
  func scan() -> ContainerScan {
    ContainerScan(
      root, rules: rules, entersExcluded: options.includesExcluded, deepest: SkippedPath.deepest,
      names: tree, attributes: attributes
    ) { try self.groups.capture($0, in: $1, $2, isOld: self.capture.isOld) }
  }

  /// Records what is not stored, after all paths.
  func finish() throws {
    try addWaiting(all: true)
    try removeEarlier()
    try draft.manifest.addOmitted(report.excluded, report.skipped)
    // What an earlier capture excluded or lost, unless this one has recorded the path itself.
    let known = Set(report.excluded.map(\.path)).union(skippedPaths.keys)
    for path in options.missing.excluded where !known.contains(path.path) {
      if try options.includesExcluded || !draft.manifest.hasEntry(path.path) { try draft.manifest.add(path) }
    }
    for path in options.missing.skipped where !known.contains(path.path) { try draft.manifest.add(path) }
    if !mayBeMapped.isEmpty { report.mapped = mappings.users(of: mayBeMapped) }
  }

  /// Finds the parent's entry of a path that is about to be stored.
  private func compare(_ path: ContainerPath) throws {
    if compared == path { return }
    try removeEarlier()
    (compared, earlier) = (path, try draft.manifest.earlier(at: path))
  }

  /// The attributes that the parent has of a path, if nothing has changed since.
  private func attributes(of path: ContainerPath, _ status: FileStatus) throws -> [ExtendedAttribute]? {
    guard draft.parent != nil else { return nil }
    try compare(path)
    return earlier.flatMap { capture.isUnchanged($0, status) ? $0.metadata.attributes : nil }
  }

  /// Records that the path that was compared last was not stored.
  private func removeEarlier() throws {
    if let earlier { try draft.manifest.addRemoved(earlier.path) }
    earlier = nil
  }

  /// Stores a path, unless a rule excludes it: Drydock's own state in any case, others unless `includesExcluded`.
  func store(_ scanned: ScannedEntry) throws {
    if let exclusion = scanned.exclusion {
      // An excluded directory covers everything below it.
      if report.excluded.last.map({ !scanned.path.isInside($0.path) }) ?? true {
        report.excluded.append(ExcludedPath(path: scanned.path, exclusion: exclusion))
      }
      if exclusion.rule == .state || !options.includesExcluded { return }
    }
    guard try canStore(scanned.path) else { return }
    if let missingDirectory, scanned.path.isInside(missingDirectory.path) {
      if let reason = missingDirectory.reason { return skip(scanned.path, reason) }
      if case .gone = try tree.find(scanned.path, inode: scanned.status.inode) { return }
      return skip(scanned.path, .unstable)
    }
    let stored = report.entries
    defer {
      if scanned.kind == .directory, report.entries == stored {
        missingDirectory = (scanned.path, skippedPaths[scanned.path])
      }
    }
    try compare(scanned.path)
    if try !groups.has(scanned.path) && addUnchanged(scanned) {
      if scanned.group != nil { groups.noteUnchanged(scanned.path, scanned.status) }
      return
    }
    var scanned = scanned
    checksInodes = true
    for _ in 1...StableReader.smallAttempts {
      do {
        switch scanned.kind {
        case .file: return try storeFile(scanned, kind: .file)
        case .directory: return try storeDirectory(scanned.path, scanned.status, metadata(of: scanned))
        case .symbolicLink: return try storeLink(scanned)
        // A database belongs with its sidecars, which may not have been moved yet.
        case .database where scanned.currentPath != scanned.path:
          return skipUnstable(scanned.path, [scanned.currentPath])
        case .database(let unit): return try storeDatabase(unit, scanned)
        // A sidecar is stored only with a main file that SQLite could not open.
        case .sidecar(let main) where opaque[main] != nil && scanned.path == main.withSuffix("-shm"): return
        // Its app can only append to the log: what it has now is whole.
        case .sidecar(let main) where opaque[main] != nil:
          return try storeFile(scanned, kind: .rawDatabase, canOnlyGrow: true)
        case .sidecar(let main):
          return report.raw[main] == nil ? () : try storeFile(scanned, kind: .rawDatabase)
        case .mount: return skip(scanned.path, .mount)
        case .special: return skip(scanned.path, .special)
        }
      } catch let error as DrydockError where error.code == .permission || error.code == .unreadable {
        return skip(scanned.path, .unreadable)
      } catch let error as DrydockError where error.code == .notFound || Self.meansOtherKind(error) {
        // Removed, replaced or renamed since the scan saw it.
        switch try tree.find(scanned.path, inode: scanned.status.inode) {
        case .at(let path, let status) where status.type == scanned.status.type:
          (scanned.currentPath, scanned.status) = (path, status)
        case .unmoved(let status) where status.type == scanned.status.type:
          scanned.status = status
          checksInodes = false
        case .gone: return
        case .unsettled(let paths): return skipUnstable(scanned.path, paths)
        case .at(let path, _): return skipUnstable(scanned.path, [path])
        case .unmoved: return skip(scanned.path, .unstable)
        }
      }
    }
    skipUnstable(scanned.path, [scanned.currentPath])
  }

  /// Whether a member can have the path's name. One that is too long or too deep is not stored, nor what is below it.
  private func canStore(_ path: ContainerPath) throws -> Bool {
    if let beyondLimits, path.isInside(beyondLimits) { return false }
    do {
      try MemberName.validate(draft.names.name(of: path))
      return true
    } catch let error as DrydockError where error.code == .limit {
      beyondLimits = path
      skip(path, .unreadable)
      return false
    }
  }

  private func storeDirectory(_ path: ContainerPath, _ status: FileStatus, _ metadata: FileMetadata) throws {
    let entry = entry(path, .directory, status, metadata)
    if entry != earlier { try draft.archive.addMember(draft.names.member(entry, .directory)) }
    try add(entry)
  }

  private func storeLink(_ scanned: ScannedEntry) throws {
    var entry = entry(scanned.path, .symbolicLink, scanned.status, try metadata(of: scanned))
    let (directory, name) = try directories.location(of: scanned.currentPath)
    let target = try Self.reading { try directory.linkTarget(name) }
    try expectSame(directory.status(name), scanned)
    entry.linkTarget = target
    if entry != earlier {
      try draft.archive.addMember(draft.names.member(entry, .symbolicLink(target: target)))
    }
    try add(entry)
  }

  /// Stores a file that may change while it is read.
  func storeFile(
    _ scanned: ScannedEntry, kind: ManifestEntry.Kind, canOnlyGrow: Bool = false
  ) throws {
    let status = scanned.status
    var (directory, name) = try directories.location(of: scanned.currentPath)
    var copied: FileMetadata?
    if let group = scanned.group {
      switch try groups.take(scanned.path, of: group, in: directory) {
      case .copy(let copy, let metadata, let hasUnnamed):
        if hasUnnamed { report.unnamedAttributes.insert(scanned.path) }
        (directory, name, copied) = (draft.work, copy, metadata)
      case .unstable:
        let paths = group.names.map { scanned.path.parent.appending(unchecked: $0.bytes) }
        return paths.filter { !groups.isUnchanged($0) }.forEach { skip($0, .unstable) }
      case nil: break
      }
    }
    defer { if copied != nil { try? draft.work.removeFile(name) } }
    // What an app can only append to, or nobody changes, is whole as it is at first.
    let isWhole = canOnlyGrow || copied != nil
    let (file, found) = try Self.reading { try open(name, in: directory, copied == nil ? scanned : nil) }
    defer { try? file.close() }
    let path = root.full(scanned.path)
    let metadata =
      try copied
      ?? Self.reading {
        let attributes = try directory.view(of: file, name).attributes(.root) {
          report.unnamedAttributes.insert(scanned.path)
        }
        return FileMetadata(found, attributes: attributes)
      }
    var entry = entry(scanned.path, kind, status, metadata)
    if status.links > 1, try addHardLink(entry, status) { return }

    var pending: PendingDigest?
    var isStored = false
    var largeAttempts = 0
    for attempt in 1...StableReader.smallAttempts
    where !isStored && largeAttempts < StableReader.largeAttempts {
      // A reading after which the file is in the state that its name had shows that it is the same one.
      let now = isWhole || attempt > 1 ? try FileStatus(of: file, path: path) : found
      if copied == nil { try expectSame(now, scanned) }
      guard let before = isWhole ? now : try reader.settled(file, path, now) else { continue }
      entry.size = before.size
      entry.metadata.modified = copied?.modified ?? before.modified
      if before.size > StableReader.smallSize {
        largeAttempts += 1
        isStored = try contents.store(file, path, before, isWhole: isWhole, of: &entry, since: earlier)
        continue
      }
      // A small file is read until it did not change during a read, and is then stored.
      let buffer = reader.pipeline.buffer()
      defer { if pending == nil { reader.pipeline.recycle(buffer) } }
      let read = try reader.readSmall(file, path, before, isWhole: isWhole, into: buffer) {
        try before.size > 0 && draft.parent?.hasContent(ofSize: before.size) ?? false
      }
      guard let (bytes, digest) = read else { continue }
      isStored = true
      if let digest {
        entry.digest = digest
        if entry == earlier { continue }
        if before.size > 0,
          let places = try draft.parent?.places(
            of: digest, size: before.size, isDatabase: false, earlier: earlier)
        {
          entry.extents = places
          continue
        }
      }
      let offset = try draft.archive.beginMember(draft.names.member(entry, .file(size: before.size)))
      try draft.archive.write(bytes)
      try draft.archive.endMember()
      entry.extents = Extents(at: offset, length: before.size)
      if digest == nil { pending = reader.pipeline.digest(of: buffer, count: bytes.count) }
    }
    guard isStored else { return skip(scanned.path, .unstable) }
    if kind == .file, mappings.mayHave(status.identity) { mayBeMapped[status.identity] = scanned.path }
    if status.links > 1 {
      if let pending { entry.digest = try pending.take() }
      let isNew = entry.extents.isEmpty || entry.extents.single.map { $0.archive == nil } ?? false
      linked[status.identity] = (entry, isNew && entry != earlier)
    }
    try add(entry, pending)
  }

  /// Opens a file, with its status before that. It is looked at first: to open a FIFO or a device that has taken its name can
  /// have an effect.
  ///
  /// - Parameter scanned: what the scan saw; nil for a private copy.
  private func open(
    _ name: ContainerPath, in directory: Directory, _ scanned: ScannedEntry?
  ) throws -> (FileDescriptor, FileStatus) {
    let found = try directory.status(name)
    if let scanned { try expectSame(found, scanned) }
    guard let found else { throw DrydockError(.notFound, "removed while it was stored", path: root.path) }
    return (try directory.openFile(name, found), found)
  }

  /// Adds another name of a file that is in the archive.
  ///
  /// - Returns: false when it is not, or changed since its first name was stored.
  private func addHardLink(_ entry: ManifestEntry, _ status: FileStatus) throws -> Bool {
    guard let (first, hasMember) = linked[status.identity], first.kind == entry.kind,
      first.changed == status.changed, first.metadata == entry.metadata
    else { return false }
    var entry = entry
    (entry.size, entry.digest, entry.hardLink) = (first.size, first.digest, first.path)
    entry.linkArchive = first.extents.single?.archive
    if hasMember {
      try draft.archive.addMember(
        draft.names.member(entry, .hardLink(target: draft.names.name(of: first.path))))
    }
    try add(entry)
    return true
  }

  func metadata(of scanned: ScannedEntry) throws -> FileMetadata {
    let (directory, name) = try directories.location(of: scanned.currentPath)
    return try Self.reading {
      let found = try directory.metadata(name) { report.unnamedAttributes.insert(scanned.path) }
      guard let metadata = found else {
        throw DrydockError(.notFound, "removed while it was stored", path: root.full(scanned.path))
      }
      try expectSame(directory.status(name), scanned)
      return metadata
    }
  }

  /// Throws unless an inode is the one that the scan saw.
  func expectSame(_ status: FileStatus?, _ scanned: ScannedEntry) throws {
    guard let status, !checksInodes || status.identity == scanned.status.identity else {
      throw DrydockError(.notFound, "replaced while it was stored", path: root.full(scanned.path))
    }
  }

  /// Reads a path; one that cannot be read is skipped, and does not end the snapshot.
  private static func reading<T>(_ body: () throws -> T) throws -> T {
    do { return try body() } catch let error as DrydockError {
      guard error.code == .io, !meansOtherKind(error) else { throw error }
      throw DrydockError(.unreadable, error.message, path: error.path, cause: error.cause)
    }
  }

  private static func meansOtherKind(_ error: DrydockError) -> Bool {
    guard let error = error.cause as? Errno else { return false }
    return [.tooManySymbolicLinkLevels, .isDirectory, .notDirectory, .invalidArgument].contains(error)
  }

  func entry(
    _ path: ContainerPath, _ kind: ManifestEntry.Kind, _ status: FileStatus, _ metadata: FileMetadata
  ) -> ManifestEntry {
    ManifestEntry(
      path: path, kind: kind, metadata: metadata, identity: status.identity, changed: status.changed)
  }

  /// Adds an entry, in its turn when its digest is pending; of a captured database with what its sidecars were.
  func add(
    _ entry: ManifestEntry, _ digest: PendingDigest? = nil, capture: DatabaseCaptureState? = nil
  ) throws {
    report.entries += 1
    report.contentBytes += entry.hardLink == nil ? entry.size : 0
    options.progress?.set(bytes: report.contentBytes, files: report.entries)
    options.seams.stores?()
    let before = earlier
    earlier = nil
    if digest == nil, waiting.isEmpty { return try record(entry, since: before, capture) }
    waiting.append((entry, digest, before, capture))
    try addWaiting(all: false)
  }

  private func record(
    _ entry: ManifestEntry, since earlier: ManifestEntry?, _ capture: DatabaseCaptureState?
  ) throws {
    if entry.path == container.vaultPath && entry.kind == .file { vaultDigest = entry.digest }
    try draft.manifest.add(entry, since: earlier, capture: capture)
  }

  /// Adds the parent's entry of a path that did not change since; nothing of it is read.
  ///
  /// - Returns: false when it may have changed.
  private func addUnchanged(_ scanned: ScannedEntry) throws -> Bool {
    guard let parent = draft.parent, let earlier,
      try capture.isUnchanged(scanned, earlier, in: root, parent)
    else { return false }
    let identity = scanned.status.identity
    if scanned.kind == .file, scanned.status.links > 1 {
      if let (first, hasMember) = linked[identity] {
        guard earlier.hardLink == first.path, first.changed == earlier.changed, !hasMember,
          first.metadata == earlier.metadata
        else { return false }
      } else {
        guard earlier.hardLink == nil else { return false }
        linked[identity] = (earlier, false)
      }
    }
    try add(earlier)
    return true
  }

  /// Adds to the manifest what has its digest, up to the first that has not.
  private func addWaiting(all: Bool) throws {
    let ready = all ? waiting.count : waiting.firstIndex { $0.digest?.isDone == false } ?? waiting.count
    for (entry, digest, earlier, capture) in waiting[..<ready] {
      var entry = entry
      if let digest { entry.digest = try digest.take() }
      try record(entry, since: earlier, capture)
    }
    waiting.removeFirst(ready)
  }

  /// Reports a path, once.
  func skip(_ path: ContainerPath, _ reason: SkippedPath.Reason) {
    guard skippedPaths[path] == nil else { return }
    skippedPaths[path] = reason
    report.skipped.append(SkippedPath(path: path, reason: reason))
  }

  private func skipUnstable(_ path: ContainerPath, _ seen: [ContainerPath]) {
    for path in tree.reported(path, seenAt: seen) { skip(path, .unstable) }
  }
}
