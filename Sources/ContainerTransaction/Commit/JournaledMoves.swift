import AppStores
import DrydockErrors
import FileSystem

/// The moves of a journaled replacement.
extension CommitCompletion {
  /// Marks what was live at a path, and was moved to a name in the folder, if it is a main file.
  private func markReplaced(_ path: ContainerPath, _ name: ContainerPath) throws {
    if let locks { return try locks.markOld { $0 == path } }
    try undo.changes[path]?.markReplaced(in: folder, as: name)
  }

  /// Completes the change; it is on disk when this returns.
  ///
  /// - Parameter look: searches for open files among what was replaced, when all is moved.
  func makeMoves(look: () throws -> Void = {}) throws {
    for move in plan {
      switch move.kind {
      case .aside: try aside(move)
      case .place: try place(move)
      case .swap: try swap(move)
      }
      try faults.reach(.moved)
    }
    // A recovery may come after a kill during the reversal.
    if locks == nil { try undo.unmarkLive(in: live, \.after) }
    try faults.reach(.marked)
    try look()
    for change in undo.changes.reversed() {
      guard let after = change.after, after.type == .directory else { continue }
      try setMetadata(
        change.path, after.metadata, from: change.before?.type == .directory ? change.before?.metadata : nil)
    }
    try folder.syncFileSystem()
  }

  /// What was moved aside, also paths that an app had replaced by then, and what an app created at a target.
  func movedAside() throws -> [FileIdentity: ContainerPath] {
    var found: [FileIdentity: ContainerPath] = [:]
    for move in plan {
      guard let old = move.old, let status = try folder.status(old), status.type == .file else { continue }
      found[status.identity] = move.path
    }
    for path in try kept.paths() {
      if let status = try kept.directory()?.status(path) { found[status.identity] = path }
    }
    return found
  }

  /// Restores the previous state after an error, and records that.
  ///
  /// - Returns: the paths whose new version was written to meanwhile and is kept.
  /// - Throws: ``DrydockError`` with code `interrupted` when that fails as well.
  @discardableResult
  func revertMoves(after error: any Error) throws -> [ContainerPath] {
    do {
      try locks?.markNew()
      for move in plan.reversed() { try back(move) }
      if let locks { try locks.unmarkOld() } else { try undo.unmarkLive(in: live, \.before) }
      try keepWritten()
      for change in undo.changes.reversed() {
        guard let before = change.before, before.type == .directory else { continue }
        try put(before.metadata, on: change.path)
      }
      try folder.syncFileSystem()
      try faults.reach(.reverted)
      try Journal(state: state.directory).append(JournalRecord(.discarded, transaction))
      return try kept.paths()
    } catch let second {
      throw DrydockError.notReverted(error, second, path: live.path)
    }
  }

  /// Restores what was moved aside where the path is free, and keeps new files that were written to since.
  private func keepWritten() throws {
    if let aside = try kept.directory() {
      for path in try kept.paths() where try live.status(path) == nil && live.status(path.parent) != nil {
        try live.withWritableParent(of: path) { try aside.renameOnto(nothingAt: path, path, in: live) }
        for above in path.ancestors where !above.isRoot { try? aside.removeDirectory(above) }
      }
    }
    var names: [ContainerPath: ContainerPath] = [:]
    for move in plan where move.isStaged { names[move.path] = move.new }
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
    _ = try kept.keepOpen(files, in: folder, name: { names[$0] ?? $0 })
  }

  /// Gives a directory what the transaction changed about it; what an app changed about it meanwhile stays.
  private func setMetadata(_ path: ContainerPath, _ after: FileMetadata, from before: FileMetadata?) throws {
    guard let now = try live.metadata(path), try live.status(path)?.type == .directory else { return }
    guard let before else { return try put(after, on: path) }
    var metadata = now
    // The mode may have been changed temporarily to make the directory writable.
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
    guard now == metadata else {
      try live.apply(metadata, to: path)
      return
    }
    do {
      try live.setModified(metadata.modified, of: path)
    } catch let error as DrydockError where error.code == .permission {}
  }

  /// Keeps as conflict copies what was moved aside and is not what the index has.
  ///
  /// - Returns: the paths of the conflict copies.
  func revalidateMoved(at index: TreeIndex) throws -> [ContainerPath] {
    for move in plan {
      guard let old = move.old, let status = try folder.status(old) else { continue }
      if status.type == .directory {
        // Entries in a removed directory were created after the plan was made.
        let gone = try folder.directory(old)
        for name in try gone.names() {
          try kept.take(move.path.appending(name: name), from: gone, as: ContainerPath(name: name))
        }
      } else if let seen = index[move.path], !status.isSame(as: seen) {
        try kept.keep(move.path, in: folder, as: old)
      }
    }
    let conflicts = try kept.paths()
    if !conflicts.isEmpty { try folder.syncFileSystem() }
    return conflicts
  }
}

/// The moves, forwards or back. Each is one rename, or two; each looks first where its parts are, so that all of it may be
/// run again, in either direction, after a crash between any two.
extension CommitCompletion {
  private func aside(_ move: Move) throws {
    guard let old = move.old else { return }
    guard try live.status(move.path) != nil else { return try markReplaced(move.path, old) }
    // Once the new main file exists, sidecars beside it belong to it.
    if try hasNewMain(move.path) { return }
    if try folder.status(old) == nil {
      try moveAside(move.path, as: old)
    } else if !plan.contains(where: { $0.kind == .place && $0.path == move.path }) {
      // It is in the folder already, and an app has made a new one: no successor comes by another move.
      try live.withWritableParent(of: move.path) { try kept.take(move.path, from: live) }
    }
  }

  /// Moves what is live at a path into the folder.
  private func moveAside(_ path: ContainerPath, as name: ContainerPath) throws {
    try live.withWritableParent(of: path) { try live.renameOnto(nothingAt: name, path, in: folder) }
    try markReplaced(path, name)
  }

  /// Whether the path is that of a database's sidecar, and the database's new main file has come.
  private func hasNewMain(_ path: ContainerPath) throws -> Bool {
    guard let main = DatabaseUnit.main(ofSidecar: path) else { return false }
    return try plan.contains {
      try $0.isDatabase && $0.path == main && live.status(main)?.inode == $0.inode
    }
  }

  private func place(_ move: Move) throws {
    guard let new = move.new, let status = try folder.status(new), status.inode == move.inode else { return }
    // An app may recreate the same path repeatedly; the retries are limited.
    for attempt in 0..<100 {
      do {
        if move.isDatabase { try clearSidecars(of: move.path) }
        try live.withWritableParent(of: move.path) {
          try folder.renameOnto(nothingAt: move.path, new, in: live)
        }
        return
      } catch let error as DrydockError where error.isErrno(.fileExists) && attempt < 99 {
        if try status.type == .directory && live.status(move.path)?.type == .directory {
          return try folder.removeDirectory(new)
        }
        try kept.take(move.path, from: live)
      } catch let error as DrydockError where error.code == .notFound && attempt < 99 {
        // An app has removed the directory above.
        try live.createDirectories(move.path.parent, mode: 0o755)
      }
    }
  }

  private func clearSidecars(of main: ContainerPath) throws {
    for sidecar in DatabaseFormat.sidecarSuffixes.map(main.withSuffix) {
      guard let status = try live.status(sidecar) else { continue }
      let isOwn = plan.contains { $0.path == sidecar && $0.inode == status.inode }
      if !isOwn { try kept.take(sidecar, from: live) }
    }
  }

  private func swap(_ move: Move) throws {
    guard let new = move.new, let old = move.old, let status = try folder.status(new) else { return }
    if status.inode == move.inode {
      guard try folder.status(old) == nil, try live.status(move.path) != nil else {
        // The app has removed it, or it was moved aside and the crash came before its successor did.
        return try place(move)
      }
      do {
        if move.isDatabase { try clearSidecars(of: move.path) }
        try live.withWritableParent(of: move.path) { try folder.exchange(new, in: live, with: move.path) }
      } catch let error as DrydockError where error.meansNoSuchRename {
        try moveAside(move.path, as: old)
        return try place(move)
      }
    }
    try markReplaced(move.path, new)
    // The folder's `new` is what was live until the exchange.
    if try folder.status(old) == nil {
      try folder.rename(new, in: folder, to: old)
    } else {
      try kept.take(move.path, from: folder, as: new)
    }
  }

  private func back(_ move: Move) throws {
    if let new = move.new, let inode = move.inode {
      let atPath = try live.status(move.path)
      let inFolder = try folder.status(new)
      if let inFolder, inFolder.inode != inode, atPath?.inode == inode {
        // Exchanged, but not renamed yet.
        return try folder.exchange(new, in: live, with: move.path)
      }
      if let atPath, atPath.inode == inode, inFolder == nil {
        // A directory that an app has put something into stays with it.
        if atPath.type == .directory, try !live.directory(move.path).names().isEmpty { return }
        if move.kind == .swap, let old = move.old, try folder.status(old) != nil {
          try folder.rename(old, in: folder, to: new)
          do {
            return try folder.exchange(new, in: live, with: move.path)
          } catch let error as DrydockError where error.meansNoSuchRename {
            try folder.rename(new, in: folder, to: old)
          }
        }
        try live.renameOnto(nothingAt: new, move.path, in: folder)
      }
    }
    guard let old = move.old, try folder.status(old) != nil else { return }
    if try live.status(move.path) == nil {
      try folder.renameOnto(nothingAt: move.path, old, in: live)
    } else {
      // An app has made a new one meanwhile: that stays, and the old one becomes a conflict copy.
      try kept.take(move.path, from: folder, as: old)
    }
  }
}
