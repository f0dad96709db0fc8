import AppContainer

/// Puts a stage in place in one step, and remembers what it replaced.
struct Commit {
  static let tree: ContainerPath = "tree"

  let staged: StagedContainer
  let state: StateDirectory
  let transaction: TransactionID
  /// The transaction's folder: the staged inodes, the new tree, and what a recovery needs.
  let folder: Directory
  /// The container as it was when staging began; nil when there was none.
  let index: TreeIndex?
  let faults: FaultInjection

  /// What came of a commit.
  struct Result {
    /// The paths that an app changed at the same moment, kept under `conflict/<transaction>/`.
    var conflicts: [ContainerPath] = []
    /// What went wrong after the exchange: the container is new all the same, and a recovery finishes.
    var unfinished: (any Error)?
  }

  /// Commits.
  ///
  /// - Throws: only before the exchange, when nothing has changed.
  func run(_ changes: ChangeList, undo: UndoRecord) throws -> Result {
    try writeRecoveryFiles(changes, undo)
    let tree = try TreeBuilder(staged, changes).build(Self.tree, in: folder)
    try faults.reach(.treeBuilt)
    try folder.syncFileSystem()
    try faults.reach(.synced)

    if let index, let moved = try TreeIndex(of: staged.live).differences(from: index).first {
      throw TransactionError(
        .changedMeanwhile,
        "\(moved) changed while the transaction was prepared; nothing was changed, run it again",
        path: staged.container.root)
    }
    if index != nil { try requireSameRoot(at: state.rootName, in: state.parent) }
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
      try rootParent().sync()
      try faults.reach(.exchanged)
      let conflicts = try Finish(
        state: state, transaction: transaction, folder: folder, old: staged.live, new: tree, faults: faults
      ).run(undo, index: index, recovered: false)
      return Result(conflicts: conflicts)
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
        .exchangeImpossible,
        "the container cannot be exchanged for the changed one (\(error.message)); nothing was changed",
        path: staged.container.root, cause: error)
    }
    do {
      try requireSameRoot(at: Self.tree, in: folder)
    } catch {
      try folder.exchange(Self.tree, in: state.parent, with: state.rootName)
      throw error
    }
  }

  /// The path must still name the directory that is locked and staged.
  private func requireSameRoot(at path: ContainerPath, in directory: Directory) throws {
    guard try directory.status(path)?.identity == staged.live.status().identity else {
      throw TransactionError(
        .changedMeanwhile,
        "the container was replaced by another directory while the transaction was prepared; nothing was changed, "
          + "run it again", path: staged.container.root)
    }
  }

  /// What a recovery needs goes to disk before the tree takes the staged files away.
  private func writeRecoveryFiles(_ changes: ChangeList, _ undo: UndoRecord) throws {
    for change in changes.changes {
      guard let copy = change.settingsAfter else { continue }
      let place = staged.place(of: change.path)
      try place.directory.copyContents(of: place.path, to: copy, in: folder)
    }
    try folder.create(UndoRecord.file, undo.encoded())
    if let index { try folder.create(TreeIndex.file, index.encoded()) }
  }

  private func rootParent() throws -> Directory {
    state.rootName.parent.isRoot ? state.parent : try state.parent.directory(state.rootName.parent)
  }
}
