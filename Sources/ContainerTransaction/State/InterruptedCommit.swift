import AppContainer
import AppStores
import DrydockErrors
import FileSystem

/// A commit that was interrupted after its record COMMIT.
struct InterruptedCommit {
  let recovery: Recovery
  let transaction: TransactionID
  let commit: JournalRecord
  /// The groups, where they are now.
  let groups: [CommittedGroup]
  /// Concurrent changes have been applied or kept.
  let isMerged: Bool
  let folder: Directory
  /// The live root with the groups of the commit, open and locked.
  let live: Directory

  /// - Parameter records: those of the transaction.
  /// - Returns: nil when the container is in its previous state and the stage can be removed.
  init?(_ recovery: Recovery, _ commit: JournalRecord, _ records: [JournalRecord], folder: Directory) throws {
    // Device numbers can change when a machine restarts: inodes alone identify a root.
    guard commit.rootAfter != nil else { return nil }
    (self.recovery, transaction, self.commit, self.folder) = (recovery, commit.transaction, commit, folder)
    isMerged = records.contains { $0.step == .merged }
    guard let root = recovery.root else {
      // The commit was to make the container, and the new tree is still in the folder.
      let isUnborn =
        try commit.rootBefore == nil && folder.status(Commit.tree)?.inode == commit.rootAfter?.inode
      if isUnborn { return nil }
      throw Self.missing(
        recovery.container.root, "the container, which does not exist", transaction, folder.full(Commit.tree))
    }
    let container = recovery.container
    groups = try (commit.groups ?? []).map { group in
      // Only what the container's configuration names is opened. Groups that were moved along with the container have
      // other paths now.
      guard let named = container.groups.first(where: { $0.id == group.id }) else {
        let absent = container.missingGroups.first { $0.id == group.id }?.root
        let what =
          "the group \(ContainerPath.printable(Array(group.id.utf8))) of \(container.root), which "
          + (absent == nil ? "drydock.yaml does not name" : "does not exist")
        throw Self.missing(
          ContainerPath.printable(Array((absent ?? group.root).utf8)), what, commit.transaction,
          group.tree.isRoot ? folder.path : folder.full(group.tree))
      }
      var group = group
      group.root = named.root
      return group
    }
    let ids = Set(groups.map(\.id))
    let opened = Dictionary(uniqueKeysWithValues: root.groups.map { ($0.id, $0.root) })
    live = root.showing(groups: opened.filter { ids.contains($0.key) })
  }

  /// Completes the commit, or reverts it where it cannot be completed.
  ///
  /// - Returns: the paths of the conflict copies; nil when the container is in its previous state.
  func end() throws -> [ContainerPath]? { try commit.inPlace == true ? endInPlace() : endExchange() }

  /// A missing root may have been moved, and the folder may hold the only copy of what was replaced.
  private static func missing(
    _ path: String, _ what: String, _ transaction: TransactionID, _ tree: String
  ) -> DrydockError {
    DrydockError(
      .interrupted,
      "transaction \(transaction) was interrupted while it changed \(what); nothing was removed. Put it "
        + "back, then recover the container; its other tree is \(tree)",
      path: path)
  }

  /// The record of what the transaction changed: it is in the folder until the undo is kept.
  private func undo() throws -> UndoRecord {
    let kept = try StateDirectory.folder(StateDirectory.undo, transaction)
    return try folder.status(UndoRecord.file) != nil
      ? UndoRecord(in: folder) : UndoRecord(in: recovery.state.directory.directory(kept))
  }

  /// The container as it was when it was staged; nil when there is nothing left to compare with it.
  private func index() throws -> TreeIndex? {
    guard !isMerged, commit.rootBefore != nil || !groups.isEmpty else { return nil }
    return try TreeIndex(in: folder, device: live.status().device)
  }

  private func completion(_ undo: UndoRecord, _ index: TreeIndex?, old: Directory?, live: Directory)
    -> CommitCompletion
  {
    var completion = CommitCompletion(
      container: recovery.container, state: recovery.state, transaction: transaction, folder: folder,
      undo: undo, index: index, old: old, live: live, place: commit.place ?? .root, groups: groups,
      faults: .none)
    completion.isRecovery = true
    return completion
  }

  private func replaced(_ path: String) -> DrydockError {
    let isMixture = commit.inPlace == true && !isMerged
    return DrydockError(
      .damagedState,
      "transaction \(transaction) was interrupted, and this has been replaced since; "
        + (isMixture
          ? "if it is a copy, it is a mixture of old and new, and what it lacks is in \(folder.path): put the "
            + "original back and recover the container, or restore an archive"
          : "look at \(folder.path), and remove it when nothing in it is needed"),
      path: path)
  }

  /// Completes the commit; reverts it only if that is impossible.
  ///
  /// - Returns: nil when the container is in its previous state.
  private func endInPlace() throws -> [ContainerPath]? {
    guard try live.status().inode == commit.rootAfter?.inode else { throw replaced(live.path) }
    for group in groups where !isMerged {
      guard try live.status(.group(group.id))?.inode == group.after.inode else {
        throw replaced(group.root)
      }
    }
    let undo = try self.undo()
    var completion = completion(undo, try index(), old: nil, live: live)
    guard let index = completion.index else { return try completion.run() }
    completion.plan = try [Move](in: folder)
    return try withUnused {
      try completion.settleMarks()
      let used = try completion.usedDatabases(since: index)
      if let first = used.first {
        if try completion.canGoBack() {
          try completion.revertMoves(
            after: DrydockError(.changedMeanwhile, "\(first) was used since", path: live.path))
          return nil
        }
        for main in used { try completion.keepTogether(main) }
      }
      do {
        try completion.makeMoves()
      } catch {
        if let written = try completion.writtenSince() {
          throw DrydockError(
            .interrupted,
            "transaction \(transaction) was interrupted and cannot be completed (\(error)), nor reverted, because "
              + "\(written) was written since; remove the cause, then recover the container. Until then let no "
              + "program open it", path: live.path, cause: error)
        }
        try completion.revertMoves(after: error)
        return nil
      }
      return try completion.run()
    }
  }

  /// Runs what changes the live container, or what it was: while no program has anything of it open, and with its databases
  /// locked, old and new, as in a transaction.
  private func withUnused<T>(_ body: () throws -> T) throws -> T {
    let index = try TreeIndex(of: live)
    // Untouched files are in both trees by exchange.
    let known = InodePaths(index)
    var replaced = try TreeIndex(of: folder)
    replaced = replaced.filter { known[$1.identity] == nil }
    do {
      var (current, aside) = (ContainerLock(holding: live), ContainerLock(holding: folder))
      try current.requireUnused(recovery.container, own: recovery.own, index: index)
      try aside.requireUnused(recovery.container, own: recovery.own, index: replaced)
      return try withExtendedLifetime((current, aside)) { try body() }
    } catch let error as DrydockError where error.code == .inUse {
      throw DrydockError(
        .inUse,
        "transaction \(transaction) was interrupted, and it cannot be completed now; recover the "
          + "container when the app is closed (\(error.message))", path: recovery.container.root, cause: error
      )
    }
  }

  /// One root of an exchange that was interrupted, and whether it is exchanged; nil when another directory is there.
  private typealias Half = (root: CommitRoot, isNew: Bool?)

  /// - Returns: nil when the container is in its previous state.
  private func endExchange() throws -> [ContainerPath]? {
    var halves = try self.halves()
    // Later changes of groups that were whole do not concern this commit.
    if isMerged { halves.removeAll { !$0.root.isOwn } }
    if let other = halves.first(where: { $0.isNew == nil }) {
      throw replaced(live.full(other.root.path))
    }
    guard halves.contains(where: { $0.isNew == true }) else {
      // Killed during the reversal.
      try undo().unmarkLive(in: live, \.before)
      return nil
    }
    guard !isMerged else { return try complete(halves) }
    return try withUnused { try complete(halves) }
  }

  private func complete(_ halves: [Half]) throws -> [ContainerPath] {
    // The old trees and the record are there unless the interruption came after they were removed.
    let place = commit.place ?? .root
    // A failure to set the time must not prevent the recovery.
    if let time = commit.timeAbove { try? live.setModified(time, of: place.parent) }
    var new = try place.isRoot ? live : live.directory(place)
    if halves.contains(where: { $0.isNew == false }) { new = try exchangeTheRest(halves) }
    let completion = completion(try undo(), try index(), old: try oldTree(), live: new)
    return try withExtendedLifetime(new) { try completion.run() }
  }

  /// Which of the roots are exchanged, by their inodes.
  private func halves() throws -> [Half] {
    let groups = try self.groups.map { group -> Half in
      (try CommitRoot(group), try isNew(.group(group.id), group.before, group.after))
    }
    let place = commit.place ?? .root
    let own = place.isRoot ? CommitRoot(recovery.state) : CommitRoot(place, in: live)
    return groups + [(own, try isNew(place, commit.rootBefore, commit.rootAfter))]
  }

  private func isNew(
    _ path: ContainerPath, _ before: FileIdentity?, _ after: FileIdentity?
  ) throws -> Bool? {
    let inode = try live.status(path)?.inode
    return inode == before?.inode ? false : inode == after?.inode ? true : nil
  }

  /// Some roots are new: the others become so, with the lock on the inodes that come.
  ///
  /// - Returns: the live root as it is then.
  private func exchangeTheRest(_ halves: [Half]) throws -> Directory {
    var opened: [ContainerPath: Directory] = [:]
    for half in halves where half.isNew == false {
      let tree = try folder.directory(half.root.tree)
      // The path above may have been replaced since; only the inspected directory is exchanged.
      guard try half.root.parent.status(half.root.name)?.inode == live.status(half.root.path)?.inode else {
        throw replaced(live.full(half.root.path))
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
    return (opened[.root] ?? live).showing(groups) { group in
      opened[.group(group.id)] ?? known.first { $0.id == group.id }?.root ?? live
    }
  }

  /// The old trees, opened as the previous container; an empty directory for each that is gone already.
  private func oldTree() throws -> Directory {
    let root = try oldTree(Commit.tree, commit.rootBefore)
    return try root.showing(groups) { try oldTree($0.tree, $0.before) }
  }

  private func oldTree(
    _ tree: ContainerPath, _ before: FileIdentity?
  ) throws -> Directory {
    guard let status = try folder.status(tree) else {
      let empty: ContainerPath = "empty"
      try folder.createDirectories(empty)
      return try folder.directory(empty)
    }
    // What is removed at the end must be what the transaction replaced, and nothing else.
    guard before == nil || status.inode == before?.inode else {
      throw DrydockError(
        .damagedState,
        "transaction \(transaction) was interrupted, and what it replaced is not what it had found; put it "
          + "back from \(folder.full(tree)) by hand", path: folder.path)
    }
    return try folder.directory(tree)
  }
}

/// What programs did to a container after a journaled replacement was killed half way: they ran on a partly changed
/// container, and their writes determine whether the recovery completes or reverts the commit.
extension CommitCompletion {
  /// What holds rows that are not in the main file; a `-shm` holds none.
  private static let logs = ["-wal", "-journal"]

  /// Restores the times of main files whose marks were being set or removed: they are not writes of a program.
  func settleMarks() throws {
    for move in plan where undo.changes[move.path]?.granularity == .database {
      try live.settleMark(move.path)
      for name in [move.old, move.new].compactMap(\.self) { try folder.settleMark(name) }
    }
  }

  /// The databases whose old main file is still at its path, and was written to since or has a log that it did not have:
  /// with its successor beside that log both would be lost.
  func usedDatabases(since index: TreeIndex) throws -> [ContainerPath] {
    let mains = try undo.changes.filter { change in
      // A database that was moved aside is in the folder; what is at its path was created later.
      guard change.granularity == .database, change.before?.type == .file, let kept = change.kept else {
        return false
      }
      return try folder.status(kept) == nil
    }
    return try mains.map(\.path).filter { main in
      guard let status = try live.status(main), !isNew(status, at: main) else { return false }
      return try ([main] + Self.logs.map(main.withSuffix)).contains { try isChanged($0, since: index) }
    }
  }

  private func isChanged(_ path: ContainerPath, since index: TreeIndex) throws -> Bool {
    guard var now = try live.status(path) else { return index[path] != nil }
    guard let seen = index[path] else { return true }
    // On an overlay a file's device is that of its layer.
    now.device = seen.device
    return !now.isSame(as: seen)
  }

  private func isNew(_ status: FileStatus, at path: ContainerPath) -> Bool {
    plan.contains { $0.path == path && $0.inode == status.inode }
  }

  /// Whether all that was moved can be moved back without a loss: no new path was modified since, and every
  /// original location is free.
  func canGoBack() throws -> Bool {
    guard try writtenSince() == nil else { return false }
    return try plan.allSatisfy { move in
      guard try hasGone(move), let now = try live.status(move.path) else { return true }
      return isNew(now, at: move.path)
    }
  }

  /// Whether what was live at a path is in the folder: under its own name, or, right after an exchange, its successor's.
  private func hasGone(_ move: Move) throws -> Bool {
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

  /// Keeps an old main file that was used since with its log, as one database, before the new one comes. A log that the
  /// plan itself moves aside is compared and kept after the moves.
  func keepTogether(_ main: ContainerPath) throws {
    try kept.keep(main, in: live)
    for log in Self.logs.map(main.withSuffix) where try live.status(log) != nil {
      if !plan.contains(where: { $0.path == log && $0.old != nil }) { try kept.take(log, from: live) }
    }
  }
}
