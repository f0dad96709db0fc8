import AppContainer
import AppStores
import DrydockErrors
import FileSystem
import Synchronization

/// The rest of a commit after its record COMMIT, and what a recovery does again: make the moves of a journaled
/// replacement (`JournaledMoves.swift`), and once the container is new apply concurrent changes, keep the undo entry,
/// remove what is left. Each part is idempotent.
struct CommitCompletion {
  let container: Container
  let state: StateDirectory
  let transaction: TransactionID
  let folder: Directory
  let undo: UndoRecord
  /// The container as the transaction saw it; nil when concurrent changes have been applied, or there was nothing.
  let index: TreeIndex?
  /// After an exchange the old tree, now at `tree` in the folder; nil in place, where what was replaced is in the folder
  /// itself.
  let old: Directory?
  /// The tree in its place, and where that is in the container.
  let live: Directory, place: ContainerPath
  let groups: [CommittedGroup]
  let faults: Seams
  /// In place: all moves, and the locks on the main files that go and come, nil in a recovery.
  var plan: [Move] = [], locks: CommitLocks?
  /// What an exchange has linked, and a time before it, nanoseconds since 1970; nil in a recovery, and in place.
  var linked: (files: CommittedFiles, time: Int64)?
  /// The process that put the new tree there was killed: other programs may have used it since.
  var isRecovery = false

  var kept: ConflictCopies { ConflictCopies(state: state, transaction: transaction) }

  /// - Returns: the paths of the conflict copies.
  func run() throws -> [ContainerPath] {
    let journal = Journal(state: state.directory)
    var conflicts: [ContainerPath] = []
    if let index {
      conflicts = try old.map { try mergeAfterExchange($0, since: index) } ?? revalidateMoved(at: index)
      try journal.append(JournalRecord(.merged, transaction))
    }
    try faults.reach(.merged)
    try keepUndo(conflicts)
    try faults.reach(.undoKept)
    if let sealing = undo.sealing { try seal(sealing) }
    if let old { conflicts += try removeOld(old) }
    // Once the journal says that it is done, nothing looks for plain copies again: their removal is on disk before that. A file
    // system that keeps a log of files, such as btrfs, syncs the journal without it.
    if undo.sealing != nil { try state.directory.syncFileSystem() }
    try faults.reach(.oldRemoved)

    var done = JournalRecord(.done, transaction)
    done.changes = undo.changes.count
    done.conflicts = conflicts.isEmpty ? nil : conflicts.count
    done.recovered = isRecovery ? true : nil
    done.undoes = undo.undoes.isEmpty ? nil : undo.undoes
    done.partly = undo.partly.isEmpty ? nil : undo.partly
    try journal.append(done)
    try faults.reach(.done)
    for group in groups { GroupMarker.removeEnded(group.root, transaction, state) }
    try state.directory.removeTree(StateDirectory.folder(StateDirectory.stage, transaction))
    return conflicts
  }

  /// After an exchange: applies what an app wrote into the old tree between the revalidation and the exchange.
  private func mergeAfterExchange(_ old: Directory, since index: TreeIndex) throws -> [ContainerPath] {
    // A kill may have come before the marks were set, or during the reversal.
    for change in undo.changes {
      try change.markReplaced(in: old, as: change.path.rebased(from: place, to: .root))
    }
    try undo.unmarkLive(in: live, below: place, \.after)
    return try merge(old, since: index)
  }

  /// Applies to the tree in its place what an app wrote into the other one.
  func merge(_ old: Directory, since index: TreeIndex) throws -> [ContainerPath] {
    if place.isRoot { try moveState(from: old, to: live) }
    for group in groups {
      try moveState(from: old.directory(.group(group.id)), to: live.directory(.group(group.id)))
    }
    let index = index.below(place, of: container, groups: Set(groups.map(\.id)))
    let unmarked = undo.own.lazy.filter { $0.granularity != .database }
    return try ConcurrentChanges(
      old: old, new: live, index: index, isTouched: { undo.touches($0.rebased(from: .root, to: place)) },
      byChangeTime: index.unlinked(unmarked.map { $0.path.rebased(from: place, to: .root) }),
      isLate: isRecovery
    ) {
      try kept.keep($0.rebased(from: .root, to: place), in: old, as: $0)
    }.run().map { $0.rebased(from: .root, to: place) }
  }

  /// The state that earlier commits in place have left in the container goes with it.
  private func moveState(from old: Directory, to new: Directory) throws {
    let name = ContainerPath.stateDirectory
    guard try old.status(name) != nil, try new.status(name) == nil else { return }
    let time = try new.status().modified
    try old.renameNew(name, in: new, to: name)
    try new.setModified(time, of: .root)
    try new.syncFileSystem()
  }

  /// Removes the old trees, and notes which files have only been linked. A file that is in one alone, and was not when the
  /// transaction saw it, came after all looks: it is kept.
  ///
  /// - Returns: the paths of the conflict copies.
  private func removeOld(_ old: Directory) throws -> [ContainerPath] {
    let found = Mutex((index: index, kept: [ContainerPath]()))
    @Sendable func takeUnknown(_ name: ContainerPath, _ inode: UInt64) throws -> Bool {
      guard !old.isState(name), !name.ancestors.contains(where: old.isState),
        try folder.status(TreeIndex.file) != nil
      else {
        return false
      }
      return try found.withLock { found in
        let index = try found.index ?? TreeIndex(in: folder)
        found.index = index
        let path = name.rebased(from: .root, to: place)
        guard index[path]?.identity.inode != inode else { return false }
        try kept.take(path, from: old, as: name)
        // On disk before its old directory goes: not each file system writes the two in their order.
        try folder.syncFileSystem()
        found.kept.append(path)
        return true
      }
    }
    let files = linked?.files ?? .none
    var unchanged: [CommittedFile] = []
    for (tree, root) in [(Commit.tree, ContainerPath.root)] + groups.map({ ($0.tree, .group($0.id)) }) {
      let twin = try live.directory(root)
      unchanged += try files.removeTree(tree, in: folder, linkedInto: twin) { status, name in
        try takeUnknown(name.rebased(from: .root, to: root), status.inode)
      }
    }
    let conflicts = found.withLock { $0.kept.sorted() }
    guard let linked else { return conflicts }
    CommittedFiles.record(
      unchanged, undo.changes, in: live, below: place, before: linked.time, to: state.directory,
      known: index?.count ?? undo.changes.count)
    return conflicts
  }

  /// Moves the replaced inodes themselves: nothing is read, nothing compressed.
  private func keepUndo(_ conflicts: [ContainerPath]) throws {
    let path = try StateDirectory.folder(StateDirectory.undo, transaction)
    try state.directory.createDirectories(path)
    let target = try state.directory.directory(path)
    for change in undo.changes {
      if let kept = change.kept, try target.status(kept) == nil {
        let (source, name) = old.map { ($0, change.path.rebased(from: place, to: .root)) } ?? (folder, kept)
        // The old tree goes in the end, whatever mode its directories have until then.
        try source.withWritableParent(of: name) {
          if try source.status(name) != nil { try source.rename(name, in: target, to: kept) }
        }
      }
      if let copy = change.settingsAfter, try folder.status(copy) != nil {
        try folder.rename(copy, in: target, to: copy)
      }
    }
    for steps in undo.steps.flatMap({ [$0, UndoEntry.sealed($0)] }) where try folder.status(steps) != nil {
      try folder.rename(steps, in: target, to: steps)
    }
    if try folder.status(UndoRecord.file) != nil {
      try folder.rename(UndoRecord.file, in: target, to: UndoRecord.file)
    }
    try LateWrites.note(undo, in: target, besides: Set(conflicts))
    try target.sync()
  }

  private func seal(_ sealing: Sealing) throws {
    try sealing.noteMoved(in: state.directory)
    // The state inside has moved over with the exchange: only now it is where it belongs.
    for state in try StateDirectory.readable(of: container).states {
      try sealing.sealAll(in: state.directory, faults)
    }
  }
}
