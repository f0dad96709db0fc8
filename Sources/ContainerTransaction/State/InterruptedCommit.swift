import DrydockErrors
import FileSystem

/// Ending a commit that was interrupted after its record COMMIT.
extension Recovery {
  /// What is known of the commit.
  private struct Interrupted {
    var transaction: TransactionID
    var commit: JournalRecord
    /// The groups, where they are now.
    var groups: [CommittedGroup]
    /// Concurrent changes have been applied or kept.
    var isCarried: Bool
    var folder: Directory
    /// The live root with the groups of the commit, open and locked.
    var live: Directory
  }

  /// - Returns: nil when the container is old, so that the stage can go.
  func resume(
    _ transaction: TransactionID, _ commit: JournalRecord, _ own: [JournalRecord], _ folder: Directory
  ) throws -> RecoveryReport? {
    // Device numbers can change when a machine restarts: inodes alone identify a root.
    guard commit.rootAfter != nil else { return nil }
    guard let root else {
      if try isUnborn(commit, folder) { return nil }
      throw missing(
        container.root, "the container, which does not exist", transaction, folder.full(Commit.tree))
    }
    let groups = try (commit.groups ?? []).map { group in
      // Only what the container's configuration names is opened. Groups that were moved
      // along with the container have other paths now.
      guard let named = container.groups.first(where: { $0.id == group.id }) else {
        let absent = container.missingGroups.first { $0.id == group.id }?.root
        let what =
          "the group \(ContainerPath.printable(Array(group.id.utf8))) of \(container.root), which "
          + (absent == nil ? "drydock.yaml does not name" : "does not exist")
        throw missing(
          ContainerPath.printable(Array((absent ?? group.root).utf8)), what, transaction,
          group.tree.isRoot ? folder.path : folder.full(group.tree))
      }
      var group = group
      group.root = named.root
      return group
    }
    let opened = Dictionary(uniqueKeysWithValues: root.groups.map { ($0.id, $0.root) })
    let live = root.showing(groups: opened.filter { id, _ in groups.contains { $0.id == id } })
    let interrupted = Interrupted(
      transaction: transaction, commit: commit, groups: groups,
      isCarried: own.contains { $0.step == .carried }, folder: folder, live: live)
    let conflicts =
      commit.inPlace == true ? try resumeInPlace(interrupted) : try resumeExchange(interrupted)
    return conflicts.map { RecoveryReport(transaction: transaction, outcome: .new, conflicts: $0) }
  }

  /// Whether the commit was to make the container, and had not come to that: the new tree is still in the folder.
  private func isUnborn(_ commit: JournalRecord, _ folder: Directory) throws -> Bool {
    try commit.rootBefore == nil && folder.status(Commit.tree)?.inode == commit.rootAfter?.inode
  }

  /// A missing root may be elsewhere, and the folder may hold the only copy of what was replaced.
  private func missing(
    _ path: String, _ what: String, _ transaction: TransactionID, _ tree: String
  ) -> DrydockError {
    DrydockError(
      .interrupted,
      "transaction \(transaction) was interrupted while it changed \(what); nothing was removed. Put it "
        + "back and run `drydock recover`; its other tree is \(tree)",
      path: path)
  }

  /// The record of what the transaction changed: it is in the folder until the undo is kept.
  private func undo(of interrupted: Interrupted) throws -> UndoRecord {
    let kept = try StateDirectory.folder(StateDirectory.undo, interrupted.transaction)
    return try interrupted.folder.status(UndoRecord.file) != nil
      ? UndoRecord(in: interrupted.folder) : UndoRecord(in: state.directory.directory(kept))
  }

  /// The container as it was when it was staged; nil when there is nothing left to compare with it.
  private func index(of interrupted: Interrupted) throws -> TreeIndex? {
    guard !interrupted.isCarried, interrupted.commit.rootBefore != nil || !interrupted.groups.isEmpty else {
      return nil
    }
    return try TreeIndex(
      decoding: interrupted.folder.contents(TreeIndex.file, limit: 1 << 30),
      path: interrupted.folder.full(TreeIndex.file), device: interrupted.live.status().device)
  }

  private func finish(_ interrupted: Interrupted, old: Directory?) -> CommitCompletion {
    CommitCompletion(
      container: container, state: state, transaction: interrupted.transaction, folder: interrupted.folder,
      old: old, place: interrupted.commit.place ?? .root, groups: interrupted.groups, faults: .none)
  }

  private func replaced(_ path: String, _ interrupted: Interrupted) -> DrydockError {
    let isMixture = interrupted.commit.inPlace == true && !interrupted.isCarried
    return DrydockError(
      .damagedState,
      "transaction \(interrupted.transaction) was interrupted, and this has been replaced since; "
        + (isMixture
          ? "if it is a copy, it is a mixture of old and new, and what it lacks is in \(interrupted.folder.path): put the "
            + "original back and run `drydock recover`, or restore an archive"
          : "look at \(interrupted.folder.path), and remove it when nothing in it is needed"),
      path: path)
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
    let plan = try MovePlan(in: interrupted.folder)
    let moves = JournaledMoves(
      state: state, transaction: interrupted.transaction, folder: interrupted.folder, live: live, plan: plan,
      undo: undo, faults: .none)
    return try withUnused(interrupted) {
      let since = InterruptedMoves(
        live: live, folder: interrupted.folder, plan: plan, undo: undo, index: index)
      let used = try since.usedDatabases()
      if let first = used.first {
        if try since.canGoBack() {
          try moves.takeBack(
            after: DrydockError(.changedMeanwhile, "\(first) was used since", path: live.path))
          return nil
        }
        let kept = ConflictCopies(state: state, transaction: interrupted.transaction)
        for main in used { try since.keepTogether(main, kept) }
      }
      do {
        try moves.forward()
      } catch {
        if let written = try since.writtenSince() {
          throw DrydockError(
            .interrupted,
            "transaction \(interrupted.transaction) was interrupted and cannot be completed (\(error)), nor reverted, because "
              + "\(written) was written since; remove the cause, then run `drydock recover`. Until then let no program "
              + "open the container", path: live.path, cause: error)
        }
        try moves.takeBack(after: error)
        return nil
      }
      return try finish.run(undo, recovered: true) { try moves.revalidateMoved(at: index) }
    }
  }

  /// Runs what changes the live container, or what it was: while no program has anything of it open, and with its databases
  /// locked, old and new, as in a transaction.
  ///
  /// - Throws: ``DrydockError`` with code `inUse`.
  private func withUnused<T>(_ interrupted: Interrupted, _ body: () throws -> T) throws -> T {
    let index = try TreeIndex(of: interrupted.live)
    // Untouched files are in both trees by exchange.
    let known = index.inodes()
    var replaced = try TreeIndex(of: interrupted.folder)
    replaced.paths = replaced.paths.filter { known[$1.identity] == nil }
    do {
      let live = try UseGuard(container, root: interrupted.live, own: own, index: index)
      let aside = try UseGuard(container, root: interrupted.folder, own: own, index: replaced)
      return try withExtendedLifetime((live, aside)) { try body() }
    } catch let error as DrydockError where error.code == .inUse {
      throw DrydockError(
        .inUse,
        "transaction \(interrupted.transaction) was interrupted, and it cannot be completed now; run `drydock "
          + "recover` when the app is closed (\(error.message))", path: container.root, cause: error)
    }
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
    // Later changes of groups that were whole do not concern this commit.
    if interrupted.isCarried { halves.removeAll { !$0.root.isOwn } }
    if let other = halves.first(where: { $0.side == .other }) {
      throw replaced(interrupted.live.full(other.root.path), interrupted)
    }
    guard halves.contains(where: { $0.side == .new }) else {
      // Killed during the reversal.
      try undo(of: interrupted).unmarkLive(in: interrupted.live, \.before)
      return nil
    }
    guard !interrupted.isCarried else { return try endExchange(halves, interrupted) }
    return try withUnused(interrupted) { try endExchange(halves, interrupted) }
  }

  private func endExchange(_ halves: [Half], _ interrupted: Interrupted) throws -> [ContainerPath] {
    // The old trees and the record are there unless the interruption came after they were done with.
    let place = interrupted.commit.place ?? .root
    // Only a time: no reason not to recover.
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
          { try finish.carryOver(to: new, index, undo, isLate: true) }
        })
    }
  }

  /// Which of the roots are exchanged, by their inodes.
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
      // The path above may lead elsewhere by now; what is exchanged is what was looked at.
      guard try half.root.parent.status(half.root.name)?.inode == live.status(half.root.path)?.inode else {
        throw replaced(live.full(half.root.path), interrupted)
      }
      guard try tree.tryLock(exclusive: true) else {
        throw DrydockError(.locked, "the new tree is locked by another process", path: tree.path)
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
      throw DrydockError(
        .damagedState,
        "transaction \(interrupted.transaction) was interrupted, and what it replaced is not what it had found; put it "
          + "back from \(folder.full(tree)) by hand", path: folder.path)
    }
    return try folder.directory(tree)
  }
}

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
      // One that was moved aside is in the folder; what is at its path was made since.
      guard change.granularity == .database, change.before?.type == .file, let kept = change.kept else {
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
      guard change.granularity == .database else { continue }
      for log in Self.logs.map(change.path.withSuffix) {
        if let status = try live.status(log), !isNew(status, at: log) { return log }
      }
    }
    return nil
  }

  // MARK: Forwards

  /// Keeps an old main file that was used since with its log, as one database, before the new one comes. A log that the
  /// plan itself moves aside is compared and kept after the moves.
  func keepTogether(_ main: ContainerPath, _ kept: ConflictCopies) throws {
    try kept.keep(main, in: live)
    for log in Self.logs.map(main.withSuffix) where try live.status(log) != nil {
      if !plan.moves.contains(where: { $0.path == log && $0.old != nil }) { try kept.take(log, from: live) }
    }
  }
}
