import AppContainer

/// What a commit in place does after COMMIT, and what a recovery does again.
struct InPlaceMoves {
  let state: StateDirectory
  let transaction: TransactionID
  let folder, live: Directory
  let plan: MovePlan
  let undo: UndoRecord
  let faults: FaultInjection

  private var kept: KeptConflicts { KeptConflicts(state: state, transaction: transaction) }

  private var mover: Mover {
    Mover(live: live, folder: folder, conflicts: kept, plan: plan, faults: faults)
  }

  /// Makes the container new, on disk when this returns.
  func forward() throws {
    try mover.forward()
    for change in undo.changes.reversed() {
      guard let after = change.after, after.type == .directory else { continue }
      try dress(
        change.path, after.metadata, from: change.before?.type == .directory ? change.before?.metadata : nil)
    }
    try folder.syncFileSystem()
  }

  /// Makes the container old again after an error, and records that.
  ///
  /// - Throws: ``TransactionError`` with code `interrupted` when that fails as well.
  func takeBack(after error: any Error) throws {
    do {
      try mover.back()
      for change in undo.changes.reversed() {
        guard let before = change.before, before.type == .directory else { continue }
        try put(before.metadata, on: change.path)
      }
      try folder.syncFileSystem()
      try Journal(state: state.directory).append(JournalRecord(.discarded, transaction))
    } catch let second {
      throw TransactionError(
        .interrupted,
        "the change stopped half way (\(error)) and could not be taken back (\(second)); "
          + "remove the cause, then run `drydock recover`. Until then let no program open the container",
        path: live.path, cause: error)
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
    } catch let error as ContainerError where error.code == .permission {}
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
    return try kept.paths()
  }
}
