import FileSystem

/// What programs did to a container after a commit in place was killed half way: they ran on a mixture, and what they wrote
/// decides whether a recovery goes forward or back.
struct InterruptedMoves {
  let live, folder: Directory
  let plan: MovePlan
  let undo: UndoRecord
  /// The container as it was when it was staged.
  let index: TreeIndex

  /// What holds rows that are not in the main file; a `-shm` holds none.
  private static let logs = ["-wal", "-journal"]

  // MARK: What was used

  /// The databases whose old main file is still at its path, and was written to since or has a log that it did not have:
  /// with its successor beside that log both would be lost.
  func usedDatabases() throws -> [ContainerPath] {
    let mains = try undo.changes.filter { change in
      // One that was moved aside already is in the folder; what is at its path was made since.
      guard change.grain == .database, change.before?.type == .file, let kept = change.kept else {
        return false
      }
      return try folder.status(kept) == nil
    }
    return try mains.map(\.path).filter { main in
      guard let status = try live.status(main), !isNew(status, at: main) else { return false }
      return try ([main] + Self.logs.map(main.withSuffix)).contains(where: isChanged)
    }
  }

  private func isChanged(_ path: ContainerPath) throws -> Bool {
    guard let status = try live.status(path) else { return index.paths[path] != nil }
    guard let seen = index.paths[path] else { return true }
    // On an overlay a file's device is that of its layer.
    var now = IndexedStatus(status)
    now.identity.device = seen.identity.device
    return !now.isSame(as: seen)
  }

  private func isNew(_ status: FileStatus, at path: ContainerPath) -> Bool {
    plan.moves.contains { $0.path == path && $0.inode == status.inode }
  }

  // MARK: Back

  /// Whether all that was moved can be moved back without a loss: nothing that came was written since, and where something
  /// is to go back to, nothing was made.
  func canGoBack() throws -> Bool {
    guard try writtenSince() == nil else { return false }
    return try plan.moves.allSatisfy { move in
      guard try hasGone(move), let now = try live.status(move.path) else { return true }
      return isNew(now, at: move.path)
    }
  }

  /// Whether what was live at a path is in the folder: under its own name, or, right after an exchange, its successor's.
  private func hasGone(_ move: MovePlan.Move) throws -> Bool {
    guard let old = move.old else { return false }
    if try folder.status(old) != nil { return true }
    guard move.kind == .swap, let new = move.new, let status = try folder.status(new) else { return false }
    return status.inode != move.inode
  }

  /// The first path with something new that a program wrote to since: moved back, that would be gone.
  func writtenSince() throws -> ContainerPath? {
    for change in undo.changes where change.after?.type == .file {
      // A directory that holds a main file's place is of the plan, too.
      guard let after = change.after, let now = try live.status(change.path), now.type == .file,
        isNew(now, at: change.path)
      else { continue }
      if now.size != after.size || now.modified != after.metadata.modified { return change.path }
      guard change.grain == .database else { continue }
      for log in Self.logs.map(change.path.withSuffix) {
        if let status = try live.status(log), !isNew(status, at: log) { return log }
      }
    }
    return nil
  }

  // MARK: Forwards

  /// Keeps an old main file that was used since with its log, as one database, before the new one comes. A log that the
  /// plan itself moves aside is compared and kept after the moves.
  func keepTogether(_ main: ContainerPath, _ kept: KeptConflicts) throws {
    try kept.keep(main, in: live)
    for log in Self.logs.map(main.withSuffix) where try live.status(log) != nil {
      if !plan.moves.contains(where: { $0.path == log && $0.old != nil }) { try kept.take(log, from: live) }
    }
  }
}
