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

  /// Commits.
  ///
  /// - Returns: the paths that an app changed at the same moment, kept under `conflict/<transaction>/`.
  func run(_ changes: ChangeList, undo: UndoRecord) throws -> [ContainerPath] {
    try writeRecoveryFiles(changes, undo)
    let tree = try TreeBuilder(staged, changes).build(Self.tree, in: folder)
    try faults.reach(.treeBuilt)
    try folder.syncFileSystem()
    try faults.reach(.synced)

    if let index, let moved = try TreeIndex(of: staged.live).firstDifference(from: index) {
      throw TransactionError(
        .changedMeanwhile,
        "\(moved) changed while the transaction was prepared; nothing was changed, run it again",
        path: staged.container.root)
    }
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
        try folder.exchange(Self.tree, in: state.parent, with: state.rootName)
      }
    } catch {
      try journal.append(JournalRecord(.discarded, transaction))
      throw error
    }
    do {
      try folder.sync()
      try rootParent().sync()
      try faults.reach(.exchanged)
      return try Finish(
        state: state, transaction: transaction, folder: folder, old: staged.live, new: tree, faults: faults
      ).run(undo, index: index, recovered: false)
    } catch {
      throw TransactionError(
        .unfinished,
        "the change is in place, but what it replaced could not be put away (\(error)); the next command, such as "
          + "`drydock recover`, finishes it", path: staged.container.root, cause: error)
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
