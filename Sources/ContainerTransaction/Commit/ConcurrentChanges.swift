import AppStores
import AppContainer
import DrydockErrors
import FileSystem

/// Applies to the new tree what an app wrote into the old one between the revalidation and the exchange, and to the old one
/// what it wrote into the new one before a reversal. It is idempotent, so it may run again after a crash.
///
/// It is one of six answers to what an app writes meanwhile; the guide "Transactions" has the table of cases. The others:
/// ``Commit/prepare(_:directories:)`` refuses the commit, ``Commit/requireUnused(_:isReverted:)`` has it reverted,
/// ``ConflictCopies`` keep what cannot be applied, `ReplacedMark` lets SQLite refuse a replaced database, and ``LateWrites``
/// finds what was written to other replaced files afterwards.
struct ConcurrentChanges {
  /// The old tree, which was live until the exchange, and the new one.
  let old, new: Directory
  /// The old tree as the transaction saw it.
  let index: TreeIndex
  /// Whether the transaction changed a path, or the database that it is a sidecar of.
  let isTouched: (ContainerPath) -> Bool
  /// Those of them whose change time counts: neither were they marked as replaced, nor linked.
  let byChangeTime: Set<ContainerPath>
  /// Other programs may have used the new tree already: the process that put it there was killed.
  let isLate: Bool
  /// Keeps what cannot be applied: both sides changed it.
  let keep: (ContainerPath) throws -> Void

  /// Compares the old tree with the index and applies the changes, on disk when this returns.
  ///
  /// - Returns: the paths that both changed.
  func run() throws -> [ContainerPath] {
    // Usually nothing was written. What was written to a file that both trees have is in both.
    let difference = try index.firstDifference(in: old, byChangeTime: byChangeTime) { !isTouched($0) }
    if difference == nil { return [] }
    let present = try TreeIndex(of: old)
    var conflicts: [ContainerPath] = []
    // Their modes may forbid what follows, so they come last.
    var directories: [(path: ContainerPath, metadata: FileMetadata, isNew: Bool)] = []
    var removed: [(ContainerPath, FileStatus)] = []
    let differences = present.differences(from: index, byChangeTime: byChangeTime)
    for path in differences {
      let isNew = index[path] == nil
      if present[path]?.type == .directory, isNew || index[path]?.type == .directory,
        !isTouched(path), let metadata = try old.metadata(path)
      {
        directories.append((path, metadata, isNew))
      }
      switch (index[path], present[path]) {
      case (nil, let created?):
        if try !apply(path, created, replacing: nil) { conflicts.append(path) }
      case (let seen?, nil):
        removed.append((path, seen))
      case (let seen?, let now?):
        if now.identity == seen.identity && now.type == .directory { continue }
        // Changed in place: an untouched inode is the new tree's own already.
        if now.identity == seen.identity && !isTouched(path) { continue }
        if try !apply(path, now, replacing: seen) { conflicts.append(path) }
      case (nil, nil): continue
      }
    }
    // A directory can go only after what was in it.
    for (path, seen) in removed.reversed() { try removeAlike(path, seen) }
    // A log without its main file is nothing.
    for path in conflicts {
      guard let main = path.mainOfLog, present[main]?.type == .file, !conflicts.contains(main) else {
        continue
      }
      conflicts.append(main)
    }
    for path in conflicts { try keep(path) }
    for (path, metadata, isNew) in directories.reversed() {
      try apply(metadata, to: path, includingTime: isNew)
    }
    if !differences.isEmpty { try new.syncFileSystem() }
    return conflicts.sorted()
  }

  /// Applies one change; false when that is impossible.
  private func apply(
    _ path: ContainerPath, _ status: FileStatus, replacing seen: FileStatus?
  ) throws -> Bool {
    guard !isTouched(path), try new.status(path.parent)?.type == .directory else { return false }
    // The main file is one and the same in both trees. If it is not what it was, a program may have gone on with it since,
    // and the log is older than it.
    if isLate, let main = path.mainOfLog, let seen = index[main], seen.type == .file,
      try new.status(main).map({ !$0.isSame(as: seen) }) ?? true
    {
      return false
    }
    let target = try new.status(path)
    if status.type == .directory {
      if let target { return target.type == .directory }
      try new.withWritableParent(of: path) { try new.createDirectory(path) }
      return true
    }
    if let target {
      guard let seen, target.identity == seen.identity else { return false }
    } else if seen != nil {
      return false
    }
    try old.withWritableParent(of: path) {
      try new.withWritableParent(of: path) {
        try target == nil ? old.renameNew(path, in: new, to: path) : old.rename(path, in: new, to: path)
      }
    }
    return true
  }

  /// The metadata of a directory that the app made, or whose mode, owner or attributes it changed.
  private func apply(_ metadata: FileMetadata, to path: ContainerPath, includingTime: Bool) throws {
    guard try new.status(path)?.type == .directory else { return }
    try new.apply(metadata, to: path, includingTime: includingTime)
    if let flags = try old.flags(of: path) { try new.setFlags(flags, of: path) }
  }

  /// The app removed it: the new tree's link to the same inode goes too.
  private func removeAlike(_ path: ContainerPath, _ seen: FileStatus) throws {
    guard !isTouched(path), let target = try new.status(path) else { return }
    if seen.type == .directory {
      guard target.type == .directory else { return }
      do {
        try new.withWritableParent(of: path) { try new.removeDirectory(path) }
      } catch let error as DrydockError where error.isErrno(.directoryNotEmpty) {
        // The transaction has put something into it: that stays.
      }
    } else if target.identity == seen.identity {
      try new.withWritableParent(of: path) { try new.removeFile(path, missingIsFine: true) }
    }
  }
}

extension ContainerPath {
  /// The main file that this is the log of, by its name.
  fileprivate var mainOfLog: ContainerPath? {
    nameString.hasSuffix("-shm") ? nil : DatabaseUnit.main(ofSidecar: self)
  }
}
