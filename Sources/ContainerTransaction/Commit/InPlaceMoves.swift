import AppContainer
import DrydockErrors
import FileSystem

/// What a commit in place does after COMMIT, and what a recovery does again.
struct InPlaceMoves {
  let state: StateDirectory
  let transaction: TransactionID
  let folder, live: Directory
  let plan: MovePlan
  let undo: UndoRecord
  let faults: FaultInjection
  /// The locks on the main files that go and come; nil in a recovery.
  var locks: CommitLocks?

  private var kept: KeptConflicts { KeptConflicts(state: state, transaction: transaction) }

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
    // A recovery may come after a kill while all was taken back.
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
        "the change stopped half way (\(DrydockError.reason(of: error))) and could not be taken back "
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
      } else if change.grain != .database {
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

  /// The second look: whether what was moved aside is what the first look saw.
  ///
  /// - Returns: the paths that an app changed at the same moment.
  func lookBack(at index: TreeIndex?) throws -> [ContainerPath] {
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
