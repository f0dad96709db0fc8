import AppContainer

/// Ending a commit that was interrupted after its record COMMIT.
extension Recovery {
  /// What is known of the commit.
  private struct Interrupted {
    var transaction: TransactionID
    var commit: JournalRecord
    /// The groups, where they are now.
    var groups: [CommittedGroup]
    /// What an app wrote at that moment has been carried over or kept.
    var isCarried: Bool
    var folder: Directory
    /// The live root with the groups of the commit, open and locked.
    var live: Directory
  }

  /// - Returns: nil when the container is old, so that the stage can go.
  func resume(
    _ transaction: TransactionID, _ commit: JournalRecord, _ own: [JournalRecord], _ folder: Directory
  ) throws -> RecoveryReport? {
    // Numbers of devices are given anew when a machine starts: inodes alone tell which root it is.
    guard let root, commit.rootAfter != nil else { return nil }
    let groups = (commit.groups ?? []).map { group in
      var group = group
      // Whoever moved the container along with its groups has them elsewhere now.
      group.root = container.groups.first { $0.id == group.id }?.root ?? group.root
      return group
    }
    let live = try root.showing(groups) { group in
      try root.groups.first { $0.id == group.id }?.root ?? ContainerLock.lock(group.root, true, 0)
    }
    let interrupted = Interrupted(
      transaction: transaction, commit: commit, groups: groups,
      isCarried: own.contains { $0.step == .carried }, folder: folder, live: live)
    let conflicts =
      commit.inPlace == true ? try resumeInPlace(interrupted) : try resumeExchange(interrupted)
    return conflicts.map { RecoveryReport(transaction: transaction, outcome: .new, conflicts: $0) }
  }

  /// The record of what the transaction changed: it is in the folder until the undo is kept.
  private func undo(of interrupted: Interrupted) throws -> UndoRecord {
    let kept = try StateDirectory.folder(StateDirectory.undo, interrupted.transaction)
    return try interrupted.folder.status(UndoRecord.file) != nil
      ? UndoRecord(in: interrupted.folder) : UndoRecord(in: state.directory.directory(kept))
  }

  /// The container as it was when it was staged; nil when nothing is to be compared with it any more.
  private func index(of interrupted: Interrupted) throws -> TreeIndex? {
    guard !interrupted.isCarried, interrupted.commit.rootBefore != nil || !interrupted.groups.isEmpty else {
      return nil
    }
    return try TreeIndex(
      decoding: interrupted.folder.contents(TreeIndex.file, limit: 1 << 30),
      path: interrupted.folder.full(TreeIndex.file), device: interrupted.live.status().device)
  }

  private func finish(_ interrupted: Interrupted, old: Directory?) -> Finish {
    Finish(
      container: container, state: state, transaction: interrupted.transaction, folder: interrupted.folder,
      old: old, place: interrupted.commit.place ?? .root, groups: interrupted.groups, faults: .none)
  }

  private func replaced(_ path: String, _ interrupted: Interrupted) -> TransactionError {
    TransactionError(
      .damagedState,
      "transaction \(interrupted.transaction) was interrupted, and since then this was replaced by something else; look "
        + "at \(interrupted.folder.path), and remove it when nothing in it is needed", path: path)
  }

  // MARK: In place

  /// Forwards, and only where that cannot be done, back.
  ///
  /// - Returns: nil when the container is old.
  private func resumeInPlace(_ interrupted: Interrupted) throws -> [ContainerPath]? {
    let live = interrupted.live
    guard try live.status().inode == interrupted.commit.rootAfter?.inode else {
      throw replaced(live.path, interrupted)
    }
    for group in interrupted.groups where !interrupted.isCarried {
      guard try live.status(.group(group.id))?.inode == group.after.inode else {
        throw replaced(group.root, interrupted)
      }
    }
    let (undo, finish) = (try undo(of: interrupted), finish(interrupted, old: nil))
    guard let index = try index(of: interrupted) else {
      return try finish.run(undo, recovered: true, carry: nil)
    }
    let moves = InPlaceMoves(
      state: state, transaction: interrupted.transaction, folder: interrupted.folder, live: live,
      plan: try MovePlan(in: interrupted.folder), undo: undo, faults: .none)
    do {
      try moves.forward()
    } catch {
      try moves.takeBack(after: error)
      return nil
    }
    return try finish.run(undo, recovered: true) { try moves.lookBack(at: index) }
  }

  // MARK: By exchange

  /// One root of an exchange that was interrupted.
  private struct Half {
    enum Side { case old, new, other }

    var root: CommitRoot
    var side: Side
  }

  /// - Returns: nil when the container is old.
  private func resumeExchange(_ interrupted: Interrupted) throws -> [ContainerPath]? {
    var halves = try halves(of: interrupted)
    // What has become of the groups since they were whole is no business of this commit.
    if interrupted.isCarried { halves.removeAll { !$0.root.isOwn } }
    let other = halves.first { $0.side == .other }
    guard halves.contains(where: { $0.side == .new }) else {
      if let other, other.root.isOwn { throw replaced(interrupted.live.full(other.root.path), interrupted) }
      return nil
    }
    if let other { throw replaced(interrupted.live.full(other.root.path), interrupted) }
    // The old trees and the record are there unless the interruption came after they were done with.
    let place = interrupted.commit.place ?? .root
    if let time = interrupted.commit.timeAbove {
      try? interrupted.live.setModified(time, of: place.parent)
    }
    var new = try place.isRoot ? interrupted.live : interrupted.live.directory(place)
    if halves.contains(where: { $0.side == .old }) { new = try exchangeTheRest(halves, interrupted) }
    let old = try oldTree(of: interrupted)
    let finish = finish(interrupted, old: old)
    let undo = try undo(of: interrupted)
    return try withExtendedLifetime(new) {
      try finish.run(
        undo, recovered: true,
        carry: index(of: interrupted).map { index in
          { try finish.carryOver(to: new, index, undo) }
        })
    }
  }

  /// Which of the roots are exchanged, told by their inodes.
  private func halves(of interrupted: Interrupted) throws -> [Half] {
    let commit = interrupted.commit
    let groups = try interrupted.groups.map { group in
      Half(
        root: try CommitRoot(group: group.id, at: group.root, tree: group.tree),
        side: try side(.group(group.id), interrupted, group.before, group.after))
    }
    let place = commit.place ?? .root
    let own = place.isRoot ? CommitRoot(state) : CommitRoot(place, in: interrupted.live)
    return groups + [Half(root: own, side: try side(place, interrupted, commit.rootBefore, commit.rootAfter))]
  }

  private func side(
    _ path: ContainerPath, _ interrupted: Interrupted, _ before: FileIdentity?, _ after: FileIdentity?
  ) throws -> Half.Side {
    let inode = try interrupted.live.status(path)?.inode
    return inode == before?.inode ? .old : inode == after?.inode ? .new : .other
  }

  /// Some roots are new: the others become so, with the lock on the inodes that come.
  ///
  /// - Returns: the live root as it is then.
  private func exchangeTheRest(_ halves: [Half], _ interrupted: Interrupted) throws -> Directory {
    let (folder, live) = (interrupted.folder, interrupted.live)
    var opened: [ContainerPath: Directory] = [:]
    for half in halves where half.side == .old {
      let tree = try folder.directory(half.root.tree)
      guard try tree.tryLock(exclusive: true) else {
        throw TransactionError(.locked, "the new tree is locked by another process", path: tree.path)
      }
      try half.root.exchange(in: folder)
      opened[half.root.path] = tree
    }
    try folder.sync()
    for half in halves { try half.root.sync() }
    let known = live.groups
    return (opened[.root] ?? live).showing(interrupted.groups) { group in
      opened[.group(group.id)] ?? known.first { $0.id == group.id }?.root ?? live
    }
  }

  /// The old trees as the container that they were; an empty directory for each that is gone already.
  private func oldTree(of interrupted: Interrupted) throws -> Directory {
    let root = try oldTree(Commit.tree, interrupted.commit.rootBefore, interrupted)
    return try root.showing(interrupted.groups) { try oldTree($0.tree, $0.before, interrupted) }
  }

  private func oldTree(
    _ tree: ContainerPath, _ before: FileIdentity?, _ interrupted: Interrupted
  ) throws -> Directory {
    let folder = interrupted.folder
    guard let status = try folder.status(tree) else {
      let empty: ContainerPath = "empty"
      try folder.createDirectories(empty)
      return try folder.directory(empty)
    }
    // What is removed at the end must be what the transaction replaced, and nothing else.
    guard before == nil || status.inode == before?.inode else {
      throw TransactionError(
        .damagedState,
        "transaction \(interrupted.transaction) was interrupted, and what it replaced is not what it had staged; put it "
          + "back from \(folder.full(tree)) by hand", path: folder.path)
    }
    return try folder.directory(tree)
  }
}
