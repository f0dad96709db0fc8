import AppContainer

/// The commit by exchange: the new tree is built from staged inodes and links to untouched ones, and one system call puts
/// it in the old one's place. It begins at the deepest directory that everything that changes is in.
///
/// With groups there are several roots and several calls. The first one decides: a recovery that finds one exchanged
/// exchanges the others, too, and one that finds none discards all. The container's own root comes last; a new one comes
/// first, since a recovery finds the rest by it.
extension Commit {
  func byExchange(_ changes: ChangeList, _ undo: UndoRecord) throws -> Result {
    var record = JournalRecord(.commit, transaction)
    let groups = try changedGroups(changes).enumerated().map { number, group in
      try committed(group, changes, tree: ContainerPath(name: Array("tree-\(number + 1)".utf8)))
    }
    let place = try place(of: changes)
    let own = try TreeBuilder(staged, changes).build(place, as: Self.tree, in: folder)
    let tree = own.showing(groups: Dictionary(uniqueKeysWithValues: groups.map { ($0.group.id, $0.tree) }))
    let root = place.isRoot ? CommitRoot(state) : CommitRoot(place, in: staged.live)
    let roots = creates ? [root] + groups.map(\.root) : groups.map(\.root) + [root]
    try faults.reach(.treeBuilt)
    try folder.syncFileSystem()
    try faults.reach(.synced)
    try lookAgain()
    try faults.reach(.rewalked)

    // The lock lives on the inode: a newcomer must find the new roots locked too until all is finished.
    for root in [own] + groups.map(\.tree) where try !root.tryLock(exclusive: true) {
      throw TransactionError(.locked, "the new tree is locked by another process", path: root.path)
    }
    record.rootBefore = try creates ? nil : staged.live.status(place)?.identity
    record.rootAfter = try tree.status().identity
    record.place = place.isRoot ? nil : place
    record.timeAbove = try root.timeAbove()
    record.groups = groups.isEmpty ? nil : groups.map(\.group)
    try writeCommit(record)
    try faults.reach(.committed)
    do {
      try exchange(roots, record)
    } catch let error as TransactionError where error.code == .interrupted {
      throw error
    } catch {
      try discardCommit(record)
      throw error
    }
    return finish(undo, record.groups ?? [], roots, place, new: tree)
  }

  /// Builds the new tree of a group that changes.
  private func committed(
    _ group: ContainerGroup, _ changes: ChangeList, tree name: ContainerPath
  ) throws -> (group: CommittedGroup, root: CommitRoot, tree: Directory) {
    let tree = try TreeBuilder(staged, changes).build(group.path, as: name, in: folder)
    let after = try tree.status().identity
    return (
      CommittedGroup(
        id: group.id, root: group.root, before: try staged.live.status(group.path)?.identity ?? after,
        after: after, tree: name),
      try CommitRoot(
        group: group.id, at: group.root, tree: name, isScratch: staged.container.isScratch), tree
    )
  }

  private func finish(
    _ undo: UndoRecord, _ groups: [CommittedGroup], _ roots: [CommitRoot], _ place: ContainerPath,
    new tree: Directory
  ) -> Result {
    do {
      try folder.sync()
      for root in roots { try root.sync() }
      try faults.reach(.exchanged)
      // What was live is the old now, under whatever name.
      let known = staged.live.groups
      let old =
        try place.isRoot
        ? staged.live.showing(groups) { group in known.first { $0.id == group.id }?.root ?? staged.live }
        : folder.directory(Self.tree)
      let finish = Finish(
        container: staged.container, state: state, transaction: transaction, folder: folder, old: old,
        place: place, groups: groups, faults: faults)
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

  // MARK: Exchanging

  private func exchange(_ roots: [CommitRoot], _ record: JournalRecord) throws {
    var exchanged: [CommitRoot] = []
    do {
      for root in roots {
        try exchange(root, record)
        exchanged.append(root)
        if exchanged.count < roots.count { try faults.reach(.partlyExchanged) }
      }
    } catch {
      do {
        for root in exchanged.reversed() { try takeBack(root) }
      } catch let second {
        throw TransactionError(
          .interrupted,
          "the change stopped half way (\(error)) and could not be taken back (\(second)); remove the cause, then run "
            + "`drydock recover`. Until then let no program open the container", path: staged.container.root,
          cause: error)
      }
      throw error
    }
  }

  /// Exchanges the new tree with what is at a root's path. Should that be another directory than the one that was staged,
  /// because somebody moved it away at this very moment, it is exchanged back.
  private func exchange(_ root: CommitRoot, _ record: JournalRecord) throws {
    if creates && root.path.isRoot { return try folder.renameNew(root.tree, in: root.parent, to: root.name) }
    do {
      try root.exchange(in: folder)
    } catch let error as ContainerError {
      throw TransactionError(
        .notWritable,
        "this cannot be exchanged for the changed one (\(error.message)); nothing was changed",
        path: staged.live.full(root.path), cause: error)
    }
    do {
      let before = try root.isOwn ? record.rootBefore : staged.live.status(root.path)?.identity
      try requireSame(root.path, folder.status(root.tree), before)
      if root.isOwn && !root.path.isRoot { try requireSameRoot() }
    } catch {
      try root.exchange(in: folder)
      throw error
    }
  }

  private func takeBack(_ root: CommitRoot) throws {
    guard creates && root.path.isRoot else { return try root.exchange(in: folder) }
    try root.parent.renameNew(root.name, in: folder, to: root.tree)
  }
}
