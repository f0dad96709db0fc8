import DrydockErrors
import FileSystem
import Foundation

/// The journaled replacement, for a container that cannot be exchanged: a mount point, one with something mounted inside, one
/// whose parent cannot be written, is on another file system, or knows no exchange.
///
/// The state is in the container, `.drydock-state/`: the same file system and mount, so that every move is a rename.
///
/// 1. A plan of all moves is written, with everything they need: staged inodes, new directories, the undo's record,
///    the index of the live tree. After COMMIT nothing but renames is left (and records, for which the journal has space
///    set aside), so that a full disk does not stop it.
/// 2. Everything is synced; the live tree is revalidated; each directory that will change is checked for permission.
/// 3. COMMIT. From here on a crash leads forward: a recovery carries out the plan, whatever part of it is done.
/// 4. The moves. What is replaced is exchanged with its successor in one step, so that the path is never without one
///    of the two; where the file system cannot, it is absent for a moment. What goes is moved aside, what is new is moved in.
///    A database with sidecars goes main file first and comes main file last: no program can ever see a main file beside
///    a log that is not its own, before a crash or after it. In between its path is an empty directory, which SQLite cannot
///    open: where nothing is, it would make a database and remove the log. SQLite's locks on the old and on the new main
///    file are held all the while, and the old one is marked.
/// 5. A process that has open what was replaced is a reason to revert. Else directories get their metadata, and everything
///    is synced.
/// 6. Revalidation: what was moved aside must be what the index has. Where an app was faster, its version is kept under
///    `conflict/`, as after an exchange. What it wrote elsewhere has never been touched. MERGED.
/// 7. As after an exchange: keep the undo, DONE.
///
/// When a move fails in step 4, the same plan is reverted: nothing has changed. When that fails too, or the
/// process is killed, the container is a mixture until a recovery: ``ContainerLock`` lets no reader near it, and `recover`
/// goes forward, or, where that cannot be, back.
extension Commit {
  func replaceByJournal(_ locks: CommitLocks) throws -> Result<[ContainerPath], any Error> {
    let plan = try [Move](undo.changes, staged, in: folder)
    // Whole or absent, also after a kill: a recovery without a record of the commit reads it.
    try folder.replaceRecord(Move.plan, with: ["moves": plan])
    let search = try prepare(locks, directories: { _ in false }, check: requireChangeable)

    let journal = Journal(state: state.directory)
    try journal.reserve()
    var record = JournalRecord(.commit, transaction)
    let root = try staged.live.status().identity
    (record.rootBefore, record.rootAfter, record.inPlace) = (root, root, true)
    record.groups = try changedGroups.map { group in
      let inode = try staged.live.status(group.path)?.identity ?? root
      return CommittedGroup(id: group.id, root: group.root, before: inode, after: inode, tree: .root)
    }
    try writeCommit(record)

    var completion = CommitCompletion(self, old: nil, live: staged.live, .root, record.groups ?? [])
    (completion.plan, completion.locks) = (plan, locks)
    do {
      try faults.reach(.committed)
      try requireNoQuietEdit()
      try completion.makeMoves {
        try requireUnused(search.adding(completion.movedAside()), isReverted: true)
        try faults.reach(.foundUnused)
      }
      locks.releaseOld()
    } catch {
      let kept = try completion.revertMoves(after: error)
      for group in record.groups ?? [] { GroupMarker.removeEnded(group.root, transaction, state) }
      throw try saying(kept, error)
    }
    return Result {
      try faults.reach(.placed)
      return try completion.run()
    }
  }

  /// Every directory that a move reaches into must be on the state's own mount and may be changed by this user, who
  /// may also be its owner and give himself the right for a moment.
  private func requireChangeable() throws {
    let live = staged.live
    let own = try state.directory.status()
    let user = geteuid()
    for path in Set(undo.changes.flatMap { [$0.path, $0.path.parent] }) {
      guard let status = try live.status(path) else { continue }
      // A file of an overlay's lower layer has that layer's device, and can be moved all the same.
      guard status.mount == own.mount, status.type != .directory || status.device == own.device else {
        throw DrydockError(
          .notWritable,
          "another file system is mounted here, and what is on it cannot be changed in one transaction; nothing was "
            + "changed, unmount it and run it again", path: live.full(path))
      }
      guard !status.isImmutable else {
        throw DrydockError(.notWritable, "this \(CommitChoice.immutable)", path: live.full(path))
      }
      let isForeign = status.type == .directory && user != 0 && status.user != user
      if try isForeign && !live.isWritable(path) { throw foreign(path) }
    }
    for change in undo.changes {
      guard let before = change.before, before.type == .directory, user != 0, before.metadata.user != user,
        var after = change.after?.metadata
      else { continue }
      after.modified = before.metadata.modified
      if after != before.metadata { throw foreign(change.path) }
    }
  }

  private func foreign(_ path: ContainerPath) -> DrydockError {
    DrydockError(
      .notWritable,
      "this directory belongs to another user, so that it cannot be changed; nothing was changed, run it as its owner, "
        + "or as root", path: staged.live.full(path))
  }
}
