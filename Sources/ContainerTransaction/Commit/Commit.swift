import AppContainer
import AppStores
import Dispatch
import DrydockErrors
import FileSystem

/// Replaces the live container with a stage: by an atomic exchange (`AtomicExchange.swift`) or by a journaled replacement
/// (`JournaledReplacement.swift`). Both prepare everything beside the live container, revalidate it, write the journal's
/// record `commit`, and only then touch it. `CommitCompletion.swift` has the rest, which a recovery runs too.
struct Commit {
  static let tree: ContainerPath = "tree"

  let staged: StagedContainer
  /// Beside the container for an exchange, inside for a replacement.
  let state: StateDirectory
  /// The transaction's folder: the staged inodes, what replaces the live container, and what a recovery needs.
  let folder: Directory
  /// The container as it was when staging began; nil when there was none, and no groups.
  let index: TreeIndex?
  /// What the stage changes, and what is written into the undo log.
  let undo: UndoRecord
  let faults: Seams
  /// The container is made: nothing is there yet.
  let creates: Bool
  /// Directories that Drydock itself has open besides those of the commit.
  let own: [Directory]
  /// The undo record and the index, which another thread writes while what replaces the container is prepared: both take as long.
  private let records = PendingResult<Void>()

  var transaction: TransactionID { undo.transaction }
  /// Whether to search for processes that have open what is replaced: no other process uses a scratch container.
  var searchesOpenFiles: Bool { faults.searchesOpenFiles && !staged.container.isScratch }

  /// - Returns: the paths of the conflict copies; or what went wrong after the container was new: it is new all the same, and a
  ///   recovery finishes.
  /// - Throws: only when nothing has changed; or ``DrydockError`` with code `interrupted`.
  func run() throws -> Result<[ContainerPath], any Error> {
    try requireOpenGroups()
    try requireNoQuietEdit()
    var flags = NewInodeFlags(staged)
    try flags.apply(to: undo.changes)
    let place = state.place == .beside ? try exchangedPlace() : .root
    try writeRecoveryFiles(place)
    // Nothing may be written into a folder that is being removed.
    defer { _ = try? records.take() }
    try staged.stage.finishWriting()
    let locks = try CommitLocks(undo.changes, staged)
    return try withExtendedLifetime(locks) {
      switch state.place {
      case .beside: try AtomicExchange(self, locks, place).run()
      case .inside: try replaceByJournal(locks)
      }
    }
  }

  /// Writes to disk what a commit needs, and looks again: the live container must be what was staged from, and no process may
  /// have open what is replaced.
  ///
  /// - Parameters:
  ///   - isReplaced: whether a directory is exchanged with all that is in it.
  ///   - check: what else is looked at, after the container and before the processes.
  /// - Returns: the search, for the one after the commit.
  func prepare(
    _ locks: CommitLocks, directories isReplaced: (ContainerPath) -> Bool, check: () throws -> Void = {}
  ) throws -> OpenFileSearch {
    try faults.reach(.treeBuilt)
    try records.take()
    try folder.syncFileSystem()
    try faults.reach(.synced)
    try revalidate()
    try check()
    let search = try OpenFileSearch(self, locks, directories: isReplaced)
    try requireUnused(search, isReverted: false)
    try faults.reach(.rewalked)
    return search
  }

  /// Revalidates: the live container must be what was staged from.
  private func revalidate() throws {
    guard let index else { return }
    // What became immutable was linked just now, perhaps, but could not be removed with the old tree.
    if let moved = try index.firstDifference(
      in: staged.live, byChangeTime: index.unlinked(undo.own.lazy.map(\.path)))
    {
      throw changed(moved)
    }
    if !creates { try requireSameRoot(.root, at: staged.container.root) }
    for group in staged.container.groups { try requireSameRoot(group.path, at: group.root) }
  }

  /// The path of a root must still name the directory that is locked and staged. Not to be opened is not the same.
  func requireSameRoot(_ root: ContainerPath, at path: String) throws {
    try requireSame(root, try? Directory(path).status(), staged.live.status(root)?.identity)
  }

  /// What is found at a path must be the directory that was staged.
  func requireSame(_ path: ContainerPath, _ status: FileStatus?, _ identity: FileIdentity?) throws {
    guard status?.identity == identity else {
      throw DrydockError(
        .changedMeanwhile,
        "\(path.isRoot ? "the container" : "this") was replaced by another directory while the transaction was prepared; "
          + "nothing was changed, run it again", path: staged.live.full(path))
    }
  }

  /// The groups of which something changes.
  var changedGroups: [ContainerGroup] {
    let ids = Set(undo.changes.compactMap { $0.path.inGroup?.id })
    return staged.container.groups.filter { ids.contains($0.id) }
  }

  private func requireOpenGroups() throws {
    guard let index else { return }
    let choice = CommitChoice(container: staged.container, root: staged.live, index: index)
    for group in changedGroups {
      guard let reason = try choice.obstacle(toChanging: group, with: state) else { continue }
      throw DrydockError(
        .notWritable,
        "the group \(group.id) cannot be changed together with the container: \(reason); nothing was changed",
        path: group.root)
    }
  }

  /// Marks the groups for other containers that share them, and writes the record COMMIT, on disk when this returns.
  func writeCommit(_ record: JournalRecord) throws {
    let groups = record.groups ?? []
    let marker = GroupMarker(
      container: staged.container.root, state: state.directory.path, transaction: transaction)
    do {
      for group in groups { try marker.write(group.root, isScratch: staged.container.isScratch) }
      try Journal(state: state.directory).append(record)
    } catch {
      for group in groups { GroupMarker.removeEnded(group.root, transaction, state) }
      throw error
    }
    try state.directory.sync()
    try state.parent.sync()
  }

  func discardCommit(_ record: JournalRecord) throws {
    try Journal(state: state.directory).append(JournalRecord(.discarded, transaction))
    for group in record.groups ?? [] { GroupMarker.removeEnded(group.root, transaction, state) }
  }

  /// Writes what a recovery needs. Copies are made before the tree takes the staged files away.
  private func writeRecoveryFiles(_ place: ContainerPath) throws {
    for change in undo.changes {
      guard let copy = change.settingsAfter else { continue }
      let location = staged.location(of: change.path)
      try location.directory.copyContents(of: location.path, to: copy, in: folder)
    }
    DispatchQueue.global().async { [undo, index, folder, records] in
      records.finish(
        Result {
          try undo.write(in: folder)
          // After an exchange only what it replaced is compared.
          try index?.write(to: folder, below: place)
        })
    }
  }
}

/// Edits that keep a file's size and modification time (`cp -p`, `rsync -t --inplace`): its change time alone shows them.
extension Commit {
  /// No replaced file may have been edited like this since staging began.
  ///
  /// It is checked before anything is linked, while the change time of every replaced file counts, also of one with another
  /// name that stays; and in place once more right before the moves, because a rename moves the change time. What changed
  /// so that it shows later is left to the later checks.
  func requireNoQuietEdit() throws {
    guard let index else { return }
    for path in undo.touched {
      guard let seen = index[path], seen.type != .directory, let now = try staged.live.status(path)
      else { continue }
      if now.isSame(as: seen) && !now.isSame(as: seen, byChangeTime: true) { throw changed(path) }
    }
  }

  func changed(_ path: ContainerPath) -> DrydockError { .changed(path, in: staged.container.root) }
}

/// Looking for processes that have open what a commit replaces: right before it, and right after it while SQLite's locks on the
/// old and the new main files are still held. A process found after it is a reason to revert.
extension Commit {
  /// - Throws: ``DrydockError`` with code `inUse`, naming each process and path.
  func requireUnused(_ search: OpenFileSearch, isReverted: Bool) throws {
    let result = search.run()
    guard result.found.isEmpty else {
      throw DrydockError(
        .inUse,
        "in use: \(result.found.shown); "
          + (isReverted ? "the change was reverted" : "nothing was changed")
          + ", close it and run it again", path: staged.container.root)
    }
  }

  /// The error of a commit that was reverted, which names what was written meanwhile and is kept.
  func saying(_ kept: [ContainerPath], _ error: any Error) throws -> any Error {
    guard !kept.isEmpty, var error = error as? DrydockError else { return error }
    let folder = try state.directory.full(StateDirectory.folder(StateDirectory.conflict, transaction))
    error.message += "; what was written meanwhile is kept in \(folder): \(kept.listed(5))"
    return error
  }
}

extension DrydockError {
  static func changed(_ path: ContainerPath, in root: String) -> DrydockError {
    DrydockError(
      .changedMeanwhile,
      "\(path) changed while the transaction was prepared; nothing was changed, run it again", path: root)
  }

  static func notReverted(_ error: any Error, _ second: any Error, path: String) -> DrydockError {
    DrydockError(
      .interrupted,
      "the change failed half way (\(reason(of: error))) and could not be reverted (\(reason(of: second))); remove the "
        + "cause, then recover the container. Until then let no program open it", path: path,
      cause: error)
  }
}

extension OpenFileSearch {
  /// The inodes that a commit replaces: of files and links that change, and of directories.
  fileprivate init(
    _ commit: Commit, _ locks: CommitLocks, directories isReplaced: (ContainerPath) -> Bool
  ) throws {
    let live = commit.staged.live
    var inodes: [FileIdentity: ContainerPath] = [:]
    if commit.searchesOpenFiles, let index = commit.index {
      for (path, status) in index where status.type == .directory && isReplaced(path) {
        inodes[status.identity] = path
      }
      for change in commit.undo.changes where change.before != nil {
        guard let status = index[change.path] else { continue }
        if status.type != .directory || change.after?.type != .directory {
          inodes[status.identity] = change.path
        }
      }
      for root in [.root] + commit.staged.container.groups.map(\.path) where isReplaced(root) {
        if let identity = try live.status(root)?.identity { inodes[identity] = root }
      }
    }
    let known = [live, commit.state.parent, commit.state.directory] + live.groups.map(\.root) + commit.own
    let mains = commit.staged.liveContainer.locks.values.map(\.file) + locks.new.map(\.lock.file)
    self.init(inodes: inodes, own: Set((known.map(\.descriptor) + mains).map(\.rawValue)))
  }

  func adding(_ more: [FileIdentity: ContainerPath]) -> OpenFileSearch {
    inodes.isEmpty ? self : OpenFileSearch(inodes: inodes.merging(more) { path, _ in path }, own: own)
  }
}

extension CommitCompletion {
  init(
    _ commit: Commit, old: Directory?, live: Directory, _ place: ContainerPath, _ groups: [CommittedGroup]
  ) {
    self.init(
      container: commit.staged.container, state: commit.state, transaction: commit.transaction,
      folder: commit.folder, undo: commit.undo, index: commit.index, old: old, live: live, place: place,
      groups: groups, faults: commit.faults)
  }
}
