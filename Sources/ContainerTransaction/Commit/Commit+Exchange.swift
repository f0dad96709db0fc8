import AppContainer

/// The commit by exchange: the whole new tree is built from staged inodes and links to untouched ones, and one system call
/// puts it in the old one's place.
extension Commit {
  func byExchange(_ changes: ChangeList, _ undo: UndoRecord) throws -> Result {
    let tree = try TreeBuilder(staged, changes).build(Self.tree, in: folder)
    try faults.reach(.treeBuilt)
    try folder.syncFileSystem()
    try faults.reach(.synced)
    try lookAgain()
    try faults.reach(.rewalked)

    // The lock lives on the inode: a newcomer must find the new root locked too until all is finished.
    guard try tree.tryLock(exclusive: true) else {
      throw TransactionError(
        .locked, "the new tree is locked by another process", path: folder.full(Self.tree))
    }
    let journal = Journal(state: state.directory)
    var record = JournalRecord(.commit, transaction)
    record.rootBefore = try index == nil ? nil : staged.live.status().identity
    record.rootAfter = try tree.status().identity
    try journal.append(record)
    try state.directory.sync()
    try state.parent.sync()
    try faults.reach(.committed)
    do {
      if index == nil {
        try folder.renameNew(Self.tree, in: state.parent, to: state.rootName)
      } else {
        try exchange()
      }
    } catch {
      try journal.append(JournalRecord(.discarded, transaction))
      throw error
    }
    return finish(undo, new: tree)
  }

  private func finish(_ undo: UndoRecord, new tree: Directory) -> Result {
    do {
      try folder.sync()
      try state.rootParent().sync()
      try faults.reach(.exchanged)
      let finish = Finish(
        container: staged.container, state: state, transaction: transaction, folder: folder, old: staged.live,
        faults: faults)
      return Result(
        conflicts: try finish.run(
          undo, recovered: false,
          carry: index.map { index in
            { try finish.carryOver(to: tree, index, undo) }
          }))
    } catch {
      return Result(unfinished: error)
    }
  }

  /// Exchanges the new tree with what is at the container's path. Should that be another directory than the one that
  /// was staged, because somebody moved the container away at this very moment, it is exchanged back.
  private func exchange() throws {
    do {
      try folder.exchange(Self.tree, in: state.parent, with: state.rootName)
    } catch let error as ContainerError {
      throw TransactionError(
        .notWritable,
        "the container cannot be exchanged for the changed one (\(error.message)); nothing was changed",
        path: staged.container.root, cause: error)
    }
    do {
      try requireSameRoot(folder.status(Self.tree))
    } catch {
      try folder.exchange(Self.tree, in: state.parent, with: state.rootName)
      throw error
    }
  }
}
