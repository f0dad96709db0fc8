import AppStores
import AppContainer
import DrydockErrors
import FileSystem

/// The main files that a commit replaces and those that come in their place, under SQLite's own locks until both the
/// commit and the search for open files after it are over.
struct CommitLocks {
  /// With the number of names that it has in the container and the state.
  typealias Main = (path: ContainerPath, lock: DatabaseLock, links: UInt64)

  /// Those that go: the locks are the ones that the whole transaction holds.
  let old: [Main]
  let new: [Main]
  private let live: Directory

  /// Locks the staged main files.
  ///
  /// - Throws: ``DrydockError`` with code `inUse` when another process has one of them locked: a kept one that comes back.
  init(_ changes: ChangeRecords, _ staged: StagedContainer) throws {
    live = staged.live
    old = changes.compactMap { change in
      guard change.before?.type == .file else { return nil }
      return staged.liveContainer.locks[change.path].map { (change.path, $0, links: 1) }
    }
    // One with two names in the container is locked once.
    var seen: Set<FileIdentity> = []
    new = try changes.compactMap { change in
      guard change.granularity == .database, case .inode(let inode) = staged.stage.overlay[change.path],
        inode.type == .file, change.after != nil,
        let identity = try staged.stage.directory.status(inode.name)?.identity, seen.insert(identity).inserted
      else { return nil }
      // Of one that comes back, another name may be live.
      let held =
        inode.isShared
        ? try staged.liveContainer.locks.values.first {
          try FileStatus(of: $0.file, path: staged.live.path).identity == identity
        } : nil
      let lock =
        try held
        ?? DatabaseLock.acquire(returning: inode.name, in: staged.stage.directory, to: change.path)
      return (change.path, lock, links: inode.isShared ? 2 : 1)
    }
  }

  /// Marks those of the replaced main files that a condition holds for, right after they were replaced.
  func markOld(where isMeant: (ContainerPath) -> Bool) throws {
    for main in old where isMeant(main.path) { try mark(main) }
  }

  /// Before the new main files go again: a process may have opened one and wait for its lock.
  func markNew() throws { for main in new { try mark(main) } }

  /// The replaced main files are the live ones again.
  func unmarkOld() throws {
    for main in old where try ReplacedMark.remove(from: main.lock.file, path: live.full(main.path)) {
      try live.syncFile(main.lock.file, main.path)
    }
  }

  /// Lets an unseen process that waits for a replaced main file find its mark while the new ones are still locked: so
  /// it leaves no log or journal beside them.
  func releaseOld() { for main in old { main.lock.release() } }

  private func mark(_ main: Main) throws {
    try ReplacedMark.set(on: main.lock.file, links: main.links, path: live.full(main.path))
  }
}

extension UndoRecord {
  /// Takes the marks from live main files: what is live after a commit, or after it was given up, has none.
  ///
  /// - Parameter side: which of the two versions is live.
  func unmarkLive(
    in live: Directory, below place: ContainerPath = .root, _ side: (ChangeRecord) -> NodeRecord?
  ) throws {
    for change in changes where change.granularity == .database && side(change)?.type == .file {
      try live.unmarkReplaced(change.path.rebased(from: place, to: .root))
    }
  }
}

extension ChangeRecord {
  /// Marks the main file that was replaced, wherever it is by now; nothing else. Its time stays what it is, also that of one
  /// that an app has put in the place of the one that was seen.
  func markReplaced(in directory: Directory, as name: ContainerPath) throws {
    guard granularity == .database, before?.type == .file else { return }
    try directory.markReplaced(name)
  }
}
