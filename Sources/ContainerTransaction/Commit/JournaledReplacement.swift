import AppContainer
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
///    `conflict/`, as after an exchange. What it wrote elsewhere has never been touched. CARRIED.
/// 7. As after an exchange: keep the undo, DONE.
///
/// When a move fails in step 4, the same plan is reverted: nothing has changed. When that fails too, or the
/// process is killed, the container is a mixture until a recovery: ``ContainerLock`` lets no reader near it, and `recover`
/// goes forward, or, where that cannot be, back.
extension Commit {
  func replaceByJournal(_ changes: ChangeList, _ undo: UndoRecord, _ locks: CommitLocks) throws -> Result {
    let plan = try MovePlan(changes, staged, in: folder)
    // Whole or absent, also after a kill: a recovery without a record of the commit reads it.
    try folder.replace(MovePlan.file, with: StateRecord.encode(plan))
    try faults.reach(.treeBuilt)
    try folder.syncFileSystem()
    try faults.reach(.synced)
    try revalidate(undo)
    try requireChangeable(changes)
    let holders = try HolderSearch(self, changes, locks) { _ in false }
    try requireUnused(holders, isReverted: false)
    try faults.reach(.rewalked)

    let journal = Journal(state: state.directory)
    try journal.reserve()
    var record = JournalRecord(.commit, transaction)
    let root = try staged.live.status().identity
    (record.rootBefore, record.rootAfter, record.inPlace) = (root, root, true)
    record.groups = try changedGroups(changes).map { group in
      let inode = try staged.live.status(group.path)?.identity ?? root
      return CommittedGroup(id: group.id, root: group.root, before: inode, after: inode, tree: .root)
    }
    try writeCommit(record)

    let moves = JournaledMoves(
      state: state, transaction: transaction, folder: folder, live: staged.live, plan: plan, undo: undo,
      faults: faults, locks: locks)
    do {
      try faults.reach(.committed)
      try requireNoQuietEdit(undo)
      try moves.forward {
        try requireUnused(holders.adding(moves.movedAside()), isReverted: true)
        try faults.reach(.looked)
      }
      locks.releaseOld()
    } catch {
      let kept = try moves.takeBack(after: error)
      for group in record.groups ?? [] { GroupMarker.removeEnded(group.root, transaction, state) }
      throw try saying(kept, error)
    }
    do {
      try faults.reach(.placed)
      let finish = CommitCompletion(
        container: staged.container, state: state, transaction: transaction, folder: folder, old: nil,
        place: .root,
        groups: record.groups ?? [], faults: faults)
      return Result(
        conflicts: try finish.run(undo, recovered: false) { try moves.revalidateMoved(at: index) })
    } catch {
      return Result(unfinished: error)
    }
  }

  /// Every directory that a move reaches into must be on the state's own mount and may be changed by this user, who
  /// may also be its owner and give himself the right for a moment.
  private func requireChangeable(_ changes: ChangeList) throws {
    let live = staged.live
    let own = try state.directory.status()
    let user = geteuid()
    for path in Set(changes.changes.flatMap { [$0.path, $0.path.parent] }) {
      guard let status = try live.status(path) else { continue }
      // A file of an overlay's lower layer has that layer's device, and can be moved all the same.
      guard status.mount == own.mount, status.type != .directory || status.device == own.device else {
        throw DrydockError(
          .notWritable,
          "another file system is mounted here, and what is on it cannot be changed in one transaction; nothing was "
            + "changed, unmount it and run it again", path: live.full(path))
      }
      guard !status.isFixed else {
        throw DrydockError(.notWritable, "this \(CommitChoice.fixed)", path: live.full(path))
      }
      let isForeign = status.type == .directory && user != 0 && status.user != user
      if try isForeign && !live.isWritable(path) { throw foreign(path) }
    }
    for change in changes.changes {
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

/// What a journaled replacement does after COMMIT, and what a recovery does again.
struct JournaledMoves {
  let state: StateDirectory
  let transaction: TransactionID
  let folder, live: Directory
  let plan: MovePlan
  let undo: UndoRecord
  let faults: FaultInjection
  /// The locks on the main files that go and come; nil in a recovery.
  var locks: CommitLocks?

  private var kept: ConflictCopies { ConflictCopies(state: state, transaction: transaction) }

  private var mover: Mover {
    Mover(live: live, folder: folder, conflicts: kept, plan: plan, faults: faults) { path, name in
      guard let locks else { return try undo.markReplaced(path, in: folder, as: name) }
      try locks.markOld { $0 == path }
    }
  }

  /// Makes the container new, on disk when this returns.
  ///
  /// - Parameter look: looks for holders of what was replaced, when all is moved.
  func forward(look: () throws -> Void = {}) throws {
    try mover.forward()
    // A recovery may come after a kill during the reversal.
    if locks == nil { try undo.unmarkLive(in: live, \.after) }
    try faults.reach(.marked)
    try look()
    for change in undo.changes.reversed() {
      guard let after = change.after, after.type == .directory else { continue }
      try dress(
        change.path, after.metadata, from: change.before?.type == .directory ? change.before?.metadata : nil)
    }
    try folder.syncFileSystem()
  }

  /// What was moved aside, also when an app had replaced it by then, and what an app made in the way meanwhile.
  func movedAside() throws -> [FileIdentity: ContainerPath] {
    var found: [FileIdentity: ContainerPath] = [:]
    for move in plan.moves {
      guard let old = move.old, let status = try folder.status(old), status.type == .file else { continue }
      found[status.identity] = move.path
    }
    for path in try kept.paths() {
      if let status = try kept.directory()?.status(path) { found[status.identity] = path }
    }
    return found
  }

  /// Makes the container old again after an error, and records that.
  ///
  /// - Returns: the paths whose new version was written to meanwhile and is kept.
  /// - Throws: ``DrydockError`` with code `interrupted` when that fails as well.
  @discardableResult
  func takeBack(after error: any Error) throws -> [ContainerPath] {
    do {
      try locks?.markNew()
      try mover.back()
      if let locks { try locks.unmarkOld() } else { try undo.unmarkLive(in: live, \.before) }
      try keepWritten()
      for change in undo.changes.reversed() {
        guard let before = change.before, before.type == .directory else { continue }
        try put(before.metadata, on: change.path)
      }
      try folder.syncFileSystem()
      try faults.reach(.takenBack)
      try Journal(state: state.directory).append(JournalRecord(.discarded, transaction))
      return try kept.paths()
    } catch let second {
      throw DrydockError(
        .interrupted,
        "the change failed half way (\(DrydockError.reason(of: error))) and could not be reverted "
          + "(\(DrydockError.reason(of: second))); "
          + "remove the cause, then run `drydock recover`. Until then let no program open the container",
        path: live.path, cause: error)
    }
  }

  /// What was taken aside goes back where nothing is now, and what was written to a new file meanwhile is kept.
  private func keepWritten() throws {
    if let aside = try kept.directory() {
      for path in try kept.paths() where try live.status(path) == nil && live.status(path.parent) != nil {
        try live.withWritableParent(of: path) { try aside.renameOnto(nothingAt: path, path, in: live) }
        for above in path.ancestors where !above.isRoot { try? aside.removeDirectory(above) }
      }
    }
    var names: [ContainerPath: ContainerPath] = [:]
    for move in plan.moves where move.isStaged { names[move.path] = move.new }
    var files: [FileIdentity: ContainerPath] = [:]
    for change in undo.changes {
      guard let after = change.after, after.type == .file, let name = names[change.path],
        let status = try folder.status(name), status.type == .file
      else { continue }
      if status.size != after.size || status.modified != after.metadata.modified {
        try kept.keep(change.path, in: folder, as: name)
      } else if change.granularity != .database {
        files[status.identity] = change.path
      }
    }
    if locks == nil { return }
    // Who has one of the new files open writes into it later, too.
    for holder in OpenFileSearch(inodes: files, ownDescriptors: []).run().found {
      if let name = names[holder.path] { try kept.keep(holder.path, in: folder, as: name) }
    }
  }

  /// Gives a directory what the transaction changed about it; what an app changed about it meanwhile stays.
  private func dress(_ path: ContainerPath, _ after: FileMetadata, from before: FileMetadata?) throws {
    guard let now = try live.metadata(path), try live.status(path)?.type == .directory else { return }
    guard let before else { return try put(after, on: path) }
    var metadata = now
    // Its owner may have had to give himself the right to write.
    if before.mode != after.mode || now.mode == before.mode | 0o700 { metadata.mode = after.mode }
    if (before.user, before.group) != (after.user, after.group) {
      (metadata.user, metadata.group) = (after.user, after.group)
    }
    if before.attributes != after.attributes { metadata.attributes = after.attributes }
    metadata.modified = after.modified
    try put(metadata, on: path)
  }

  /// A time alone can be set by a directory's owner only; for others it is the time of the moves.
  private func put(_ metadata: FileMetadata, on path: ContainerPath) throws {
    guard var now = try live.metadata(path), now != metadata else { return }
    now.modified = metadata.modified
    guard now == metadata else { return try live.apply(metadata, to: path) }
    do {
      try live.setModified(metadata.modified, of: path)
    } catch let error as DrydockError where error.code == .permission {}
  }

  /// Keeps as conflict copies what was moved aside and is not what the index has.
  ///
  /// - Returns: the paths of the conflict copies.
  func revalidateMoved(at index: TreeIndex?) throws -> [ContainerPath] {
    for move in plan.moves {
      guard let old = move.old, let status = try folder.status(old) else { continue }
      if status.type == .directory {
        // Whatever is in a directory that went came after the plan.
        let gone = try folder.directory(old)
        for name in try gone.names() {
          try kept.take(move.path.appending(name: name), from: gone, as: ContainerPath(name: name))
        }
      } else if let seen = index?.paths[move.path], !IndexedStatus(status).isSame(as: seen) {
        try kept.keep(move.path, in: folder, as: old)
      }
    }
    let conflicts = try kept.paths()
    if !conflicts.isEmpty { try folder.syncFileSystem() }
    return conflicts
  }
}
