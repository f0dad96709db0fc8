import AppContainer

/// What follows an exchange, and what a recovery does when it was interrupted: carry over, keep the undo, remove
/// the old tree. Each part may be run again.
struct Finish {
  let state: StateDirectory
  let transaction: TransactionID
  let folder: Directory
  /// The old tree, now at `tree` in the folder, and the new one, now live.
  let old, new: Directory
  let faults: FaultInjection

  /// - Parameter index: the old tree as the transaction saw it; nil when there is nothing to carry over any more.
  /// - Returns: the paths that an app changed at the same moment.
  func run(_ undo: UndoRecord, index: TreeIndex?, recovered: Bool) throws -> [ContainerPath] {
    let journal = Journal(state: state.directory)
    var conflicts: [ContainerPath] = []
    if let index {
      conflicts = try CarryOver(
        old: old, new: new, index: index, touched: undo.touched, keep: keepConflict
      ).run()
      try journal.append(JournalRecord(.carried, transaction))
    }
    try faults.reach(.carried)
    try keepUndo(undo)
    try faults.reach(.undoKept)
    try folder.removeTree(Commit.tree)
    try faults.reach(.oldRemoved)

    var done = JournalRecord(.done, transaction)
    done.changes = undo.changes.count
    done.conflicts = conflicts.isEmpty ? nil : conflicts.count
    done.recovered = recovered ? true : nil
    try journal.append(done)
    try faults.reach(.done)
    try state.directory.removeTree(StateDirectory.folder(StateDirectory.stage, transaction))
    return conflicts
  }

  /// Moves the replaced inodes themselves: nothing is read, nothing compressed.
  private func keepUndo(_ undo: UndoRecord) throws {
    let path = try StateDirectory.folder(StateDirectory.undo, transaction)
    try state.directory.createDirectories(path)
    let target = try state.directory.directory(path)
    for change in undo.changes {
      if let kept = change.kept, try target.status(kept) == nil, try old.status(change.path) != nil {
        try old.rename(change.path, in: target, to: kept)
      }
      if let copy = change.settingsAfter, try folder.status(copy) != nil {
        try folder.rename(copy, in: target, to: copy)
      }
    }
    if try folder.status(UndoRecord.file) != nil {
      try folder.rename(UndoRecord.file, in: target, to: UndoRecord.file)
    }
    try target.sync()
  }

  private func keepConflict(_ path: ContainerPath) throws {
    let base = try StateDirectory.folder(StateDirectory.conflict, transaction)
    try state.directory.createDirectories(base)
    let target = try state.directory.directory(base)
    try target.createDirectories(path.parent)
    guard let status = try old.status(path) else { return }
    if status.type == .directory {
      try target.createDirectories(path)
    } else if try target.status(path) == nil {
      // Linked, not moved: what an undo keeps of the same path stays there too.
      try old.link(path, in: target, to: path)
    }
  }
}

extension UndoRecord {
  /// The paths that the transaction itself changed; a directory whose names changed is not among them, and a
  /// database's sidecars always are.
  var touched: Set<ContainerPath> {
    var touched: Set<ContainerPath> = []
    for change in changes {
      if change.grain == .directory && change.before != nil && change.after != nil { continue }
      touched.insert(change.path)
      if change.grain == .database {
        for suffix in DatabaseFormat.sidecarSuffixes { touched.insert(change.path.withSuffix(suffix)) }
      }
    }
    return touched
  }
}
