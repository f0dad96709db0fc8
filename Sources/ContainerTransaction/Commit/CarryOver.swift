import AppContainer
import DrydockErrors
import FileSystem

/// Brings into the new tree what an app wrote into the old one between the last look before the exchange and the
/// exchange itself. It may be run again after a crash: what it did already is not found any more.
struct CarryOver {
  /// The old tree, which was live until the exchange, and the new one.
  let old, new: Directory
  /// The old tree as the transaction saw it.
  let index: TreeIndex
  /// The paths that the transaction changed, with all sidecars of databases it changed.
  let touched: Set<ContainerPath>
  /// Those of them whose change time counts: neither were they marked as replaced, nor linked.
  let timed: Set<ContainerPath>
  /// The new tree was there for others before this, since the one who put it there was killed.
  let isLate: Bool
  /// Keeps what cannot be carried over: both sides changed it.
  let keep: (ContainerPath) throws -> Void

  /// Runs the second look and carries over, on disk when this returns; gives the paths that both changed.
  func run() throws -> [ContainerPath] {
    let present = try TreeIndex(of: old)
    var conflicts: [ContainerPath] = []
    var removed: [(ContainerPath, IndexedStatus)] = []
    let differences = present.differences(from: index, timed: timed)
    for path in differences {
      switch (index.paths[path], present.paths[path]) {
      case (nil, let created?):
        if try !carry(path, created, replacing: nil) { conflicts.append(path) }
      case (let seen?, nil):
        removed.append((path, seen))
      case (let seen?, let now?):
        if now.identity == seen.identity && now.type == .directory {
          try copyMetadata(path)
          continue
        }
        // Changed in place: an untouched inode is the new tree's own already.
        if now.identity == seen.identity && !touched.contains(path) { continue }
        if try !carry(path, now, replacing: seen) { conflicts.append(path) }
      case (nil, nil): continue
      }
    }
    // A directory can go only after what was in it.
    for (path, seen) in removed.reversed() { try removeAlike(path, seen) }
    // A log without its main file is nothing.
    for path in conflicts {
      guard let main = path.mainOfLog, present.paths[main]?.type == .file, !conflicts.contains(main) else {
        continue
      }
      conflicts.append(main)
    }
    for path in conflicts { try keep(path) }
    if !differences.isEmpty { try new.syncFileSystem() }
    return conflicts.sorted()
  }

  /// Whether it could be carried over.
  private func carry(
    _ path: ContainerPath, _ status: IndexedStatus, replacing seen: IndexedStatus?
  ) throws -> Bool {
    guard !touched.contains(path), try new.status(path.parent)?.type == .directory else { return false }
    // The main file is one and the same in both trees. If it is not what it was, a program may have gone on with it since,
    // and the log is older than it.
    if isLate, let main = path.mainOfLog, let seen = index.paths[main], seen.type == .file,
      try new.status(main).map({ !IndexedStatus($0).isSame(as: seen) }) ?? true
    {
      return false
    }
    let target = try new.status(path)
    if status.type == .directory {
      if let target { return target.type == .directory }
      try new.createDirectory(path)
      if let metadata = try old.metadata(path) { try new.apply(metadata, to: path) }
      if let flags = try old.flags(of: path) { try new.setFlags(flags, of: path) }
      return true
    }
    if let target {
      guard let seen, target.identity == seen.identity else { return false }
      try old.rename(path, in: new, to: path)
    } else {
      if seen != nil { return false }
      try old.renameNew(path, in: new, to: path)
    }
    return true
  }

  /// The app changed a directory's mode, owner or attributes.
  private func copyMetadata(_ path: ContainerPath) throws {
    guard !touched.contains(path), try new.status(path)?.type == .directory,
      let metadata = try old.metadata(path)
    else { return }
    try new.apply(metadata, to: path, includingTime: false)
    if let flags = try old.flags(of: path) { try new.setFlags(flags, of: path) }
  }

  /// The app removed it: the new tree's link to the same inode goes too.
  private func removeAlike(_ path: ContainerPath, _ seen: IndexedStatus) throws {
    guard !touched.contains(path), let target = try new.status(path) else { return }
    if seen.type == .directory {
      guard target.type == .directory else { return }
      do {
        try new.removeDirectory(path)
      } catch let error as DrydockError where error.isErrno(.directoryNotEmpty) {
        // The transaction has put something into it: that stays.
      }
    } else if target.identity == seen.identity {
      try new.removeFile(path, missingIsFine: true)
    }
  }
}

extension ContainerPath {
  /// The main file that this is the log of, by its name.
  fileprivate var mainOfLog: ContainerPath? {
    for suffix in ["-wal", "-journal"] where bytes.count > suffix.utf8.count {
      guard bytes.suffix(suffix.utf8.count).elementsEqual(suffix.utf8) else { continue }
      return try? ContainerPath(bytes: bytes.dropLast(suffix.utf8.count))
    }
    return nil
  }
}
