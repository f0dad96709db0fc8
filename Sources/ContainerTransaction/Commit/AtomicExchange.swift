import AppContainer
import DrydockErrors
import FileSystem
import Foundation

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// The commit by exchange: the new tree is built from staged inodes and links to untouched ones, and one system call puts
/// it in the old one's place. It replaces the deepest directory that contains all changes.
///
/// With groups there are several roots and several calls. The first one decides: a recovery that finds one exchanged
/// exchanges the others, too, and one that finds none discards all. The container's own root comes last; a new one comes
/// first, since a recovery finds the rest by it.
extension Commit {
  func exchangeAtomically(
    _ changes: ChangeList, _ undo: UndoRecord, _ locks: CommitLocks, _ place: ContainerPath
  ) throws -> Result {
    var record = JournalRecord(.commit, transaction)
    let groups = try changedGroups(changes).enumerated().map { number, group in
      try committed(group, changes, tree: ContainerPath(name: Array("tree-\(number + 1)".utf8)))
    }
    let (own, linked) = try TreeBuilder(staged, changes).build(place, as: Self.tree, in: folder)
    let tree = own.showing(groups: Dictionary(uniqueKeysWithValues: groups.map { ($0.group.id, $0.tree) }))
    let root = place.isRoot ? CommitRoot(state) : CommitRoot(place, in: staged.live)
    let roots = creates ? [root] + groups.map(\.root) : groups.map(\.root) + [root]
    try BuiltTrees.note([Self.tree] + groups.map(\.group.tree), in: folder)
    try faults.reach(.treeBuilt)
    try folder.syncFileSystem()
    try faults.reach(.synced)
    try revalidate(undo)
    let groupIDs = Set(groups.map(\.group.id))
    let search = try OpenFileSearch(self, changes, locks) { directory in
      directory.inGroup.map { groupIDs.contains($0.id) }
        ?? (place.isRoot || directory == place || directory.isInside(place))
    }
    try requireUnused(search, isReverted: false)
    try faults.reach(.rewalked)

    // The lock is held on the inode, so the new roots must be locked too until the commit is complete.
    for root in [own] + groups.map(\.tree) where try !root.tryLock(exclusive: true) {
      throw DrydockError(.locked, "the new tree is locked by another process", path: root.path)
    }
    record.rootBefore = try creates ? nil : staged.live.status(place)?.identity
    record.rootAfter = try tree.status().identity
    record.place = place.isRoot ? nil : place
    record.timeAbove = try root.timeAbove()
    record.groups = groups.isEmpty ? nil : groups.map(\.group)
    try writeCommit(record)
    try faults.reach(.committed)
    let time = StagedContainer.now()
    let workingDirectory = WorkingDirectory()
    defer { workingDirectory.enterAgain() }
    do {
      try AtomicExchange(
        commit: self, roots: roots, record: record, place: place, tree: tree, changes: changes, undo: undo,
        locks: locks, search: search
      ).run()
    } catch let error as DrydockError where error.code == .interrupted {
      throw error
    } catch {
      try discardCommit(record)
      throw error
    }
    locks.releaseOld()
    return finish(
      undo, record.groups ?? [], roots, place, new: tree,
      LinkedFiles(groups.reduce(linked) { $0 + $1.linked }), before: time)
  }

  /// Builds the new tree of a group that changes.
  private func committed(
    _ group: ContainerGroup, _ changes: ChangeList, tree name: ContainerPath
  ) throws -> (group: CommittedGroup, root: CommitRoot, tree: Directory, linked: [LinkedFile]) {
    let (tree, linked) = try TreeBuilder(staged, changes).build(group.path, as: name, in: folder)
    let after = try tree.status().identity
    return (
      CommittedGroup(
        id: group.id, root: group.root, before: try staged.live.status(group.path)?.identity ?? after,
        after: after, tree: name),
      try CommitRoot(
        group: group.id, at: group.root, tree: name, isScratch: staged.container.isScratch), tree, linked
    )
  }

  private func finish(
    _ undo: UndoRecord, _ groups: [CommittedGroup], _ roots: [CommitRoot], _ place: ContainerPath,
    new tree: Directory, _ linked: LinkedFiles, before time: Int64
  ) -> Result {
    do {
      try folder.sync()
      for root in roots { try root.sync() }
      try faults.reach(.exchanged)
      // The previously live tree is now the old tree, whatever its name.
      let known = staged.live.groups
      let old =
        try place.isRoot
        ? staged.live.showing(groups) { group in known.first { $0.id == group.id }?.root ?? staged.live }
        : folder.directory(Self.tree)
      let finish = CommitCompletion(
        container: staged.container, state: state, transaction: transaction, folder: folder, old: old,
        place: place, groups: groups, faults: faults,
        linked: .init(files: linked, new: tree, time: time, known: index?.count ?? undo.changes.count))
      return Result(
        conflicts: try finish.run(
          undo, recovered: false,
          merge: index.map { index in
            { try finish.mergeAfterExchange(into: tree, index, undo) }
          }))
    } catch {
      return Result(unfinished: error)
    }
  }
}

/// The exchange of all roots, and its reversal.
private struct AtomicExchange {
  let commit: Commit
  let roots: [CommitRoot]
  let record: JournalRecord
  let place: ContainerPath
  /// The new tree, with those of groups.
  let tree: Directory
  let changes: ChangeList
  let undo: UndoRecord
  let locks: CommitLocks
  let search: OpenFileSearch

  /// Exchanges all roots, marks the main files that were replaced, and checks whether any process has a file of the old
  /// tree open. On an error, or if one has, all exchanges are reversed.
  func run() throws {
    var exchanged: [CommitRoot] = []
    do {
      for root in roots {
        try exchange(root)
        exchanged.append(root)
        try locks.markOld { root.isOwn ? $0.inGroup == nil : $0.isInside(root.path) }
        if exchanged.count < roots.count { try commit.faults.reach(.partlyExchanged) }
      }
      try commit.faults.reach(.marked)
      try commit.requireUnused(search.adding(createdMeanwhile()), isReverted: true)
      try commit.faults.reach(.foundUnused)
    } catch {
      if exchanged.isEmpty { throw error }
      let kept: [ContainerPath]
      do {
        try locks.markNew()
        for root in exchanged.reversed() { try exchangeBack(root) }
        try locks.unmarkOld()
        kept = commit.creates ? [] : try keepWritten()
        try commit.folder.sync()
        for root in exchanged { try root.sync() }
      } catch let second {
        throw DrydockError.notReverted(error, second, path: commit.staged.container.root)
      }
      try commit.faults.reach(.reverted)
      throw try commit.saying(kept, error)
    }
  }

  /// What an app made or replaced, after the last walk, at a path that the transaction changes.
  private func createdMeanwhile() throws -> [FileIdentity: ContainerPath] {
    guard !commit.creates else { return [:] }
    let old = try place.isRoot ? commit.staged.live : commit.folder.directory(Commit.tree)
    var found: [FileIdentity: ContainerPath] = [:]
    for path in undo.touched {
      if let status = try old.status(path.rebased(from: place, to: .root)) { found[status.identity] = path }
    }
    return found
  }

  /// After the reversal: what was written into the new tree meanwhile is applied to the old one. What cannot be applied
  /// is kept, with the files that a process still has open.
  private func keepWritten() throws -> [ContainerPath] {
    guard var expected = commit.index else { return [] }
    var staged: [ContainerPath: IndexedStatus] = [:]
    for change in changes.changes {
      guard let after = change.after,
        var status = try tree.status(change.path.rebased(from: place, to: .root)).map(IndexedStatus.init)
      else { continue }
      if status.type == after.type, status.type != .directory {
        (status.size, status.modified) = (after.size, after.metadata.modified)
      }
      staged[change.path] = status
    }
    // An index does not contain the root directories.
    for change in changes.changes where !commit.staged.live.isRoot(change.path) {
      expected[change.path] = staged[change.path]
    }
    let finish = CommitCompletion(
      container: commit.staged.container, state: commit.state, transaction: commit.transaction,
      folder: commit.folder, old: tree,
      place: place, groups: record.groups ?? [], faults: .none)
    let live = commit.staged.live
    let kept = try finish.merge(into: place.isRoot ? live : live.directory(place), expected, undo)
    return try kept + keepOpenFiles(staged, besides: Set(kept))
  }

  /// A process that has a new file open may still write to it later.
  private func keepOpenFiles(
    _ new: [ContainerPath: IndexedStatus], besides kept: Set<ContainerPath>
  ) throws -> [ContainerPath] {
    let mains = Set(locks.new.map(\.path))
    let files = new.filter { $1.type == .file && !mains.contains($0) && !kept.contains($0) }
    let inodes = Dictionary(files.map { ($1.identity, $0) }, uniquingKeysWith: min)
    guard commit.searchesOpenFiles, !inodes.isEmpty else { return [] }
    let open = Set(OpenFileSearch(inodes: inodes, own: []).run().found.map(\.path)).sorted()
    let conflicts = ConflictCopies(state: commit.state, transaction: commit.transaction)
    for path in open {
      try conflicts.keep(path, in: tree, as: path.rebased(from: place, to: .root))
    }
    return open
  }

  /// Exchanges the new tree with what is at a root's path. If that is another directory than the one that was staged,
  /// because it was moved away meanwhile, it is exchanged back.
  private func exchange(_ root: CommitRoot) throws {
    if commit.creates && root.path.isRoot {
      return try commit.folder.renameOnto(nothingAt: root.name, root.tree, in: root.parent)
    }
    do {
      try root.exchange(in: commit.folder)
    } catch let error as DrydockError {
      throw DrydockError(
        .notWritable,
        "this cannot be exchanged for the changed one (\(error.message)); nothing was changed",
        path: commit.staged.live.full(root.path), cause: error)
    }
    do {
      let before = try root.isOwn ? record.rootBefore : commit.staged.live.status(root.path)?.identity
      try commit.requireSame(root.path, commit.folder.status(root.tree), before)
      if root.isOwn && !root.path.isRoot { try commit.requireSameRoot() }
    } catch {
      do { try root.exchange(in: commit.folder) } catch let second {
        // The other directory is in the stage: nothing may be removed.
        throw DrydockError.notReverted(error, second, path: commit.staged.live.full(root.path))
      }
      throw error
    }
  }

  private func exchangeBack(_ root: CommitRoot) throws {
    guard commit.creates && root.path.isRoot else { return try root.exchange(in: commit.folder) }
    try root.parent.renameOnto(nothingAt: root.tree, root.name, in: commit.folder)
  }
}

extension Commit {
  /// The deepest directory that contains all changes: only it is rebuilt and exchanged, so that the cost of a commit
  /// depends on its size, not on the container's. The root, where a group changes with it, and where this
  /// user may not exchange a deeper one.
  func place(of changes: ChangeList) throws -> ContainerPath {
    guard !creates, changedGroups(changes).isEmpty else { return .root }
    var common: [[UInt8]]?
    for change in changes.changes {
      let stays = change.before?.type == .directory && change.after?.type == .directory
      let names = (stays ? change.path : change.path.parent).components
      common = common.map { Self.common($0, names) } ?? names
    }
    var place = ContainerPath(names: common ?? [])
    while !place.isRoot, try !mayExchange(place) { place = place.parent }
    return place
  }

  private static func common(_ left: [[UInt8]], _ right: [[UInt8]]) -> [[UInt8]] {
    zip(left, right).prefix { $0 == $1 }.map(\.0)
  }

  /// Whether this user may take a directory out of its parent, and restore the parent's time.
  private func mayExchange(_ place: ContainerPath) throws -> Bool {
    let (live, user) = (staged.live, geteuid())
    // Of project quotas: nothing comes into a directory that counts for another project.
    guard try live.flags(of: place.parent)?.accepts(live.flags(of: place)) ?? true else { return false }
    if user == 0 { return true }
    return try live.status(place.parent)?.user == user && live.status(place)?.user == user
      && live.isWritable(place.parent) && live.isWritable(place)
  }
}

extension ContainerPath {
  fileprivate init(names: [[UInt8]]) { self = names.reduce(.root) { $0.appending(name: $1) } }
}

/// A directory that a commit by exchange replaces as a whole: the container's root, the part of it that everything that
/// changes is in, or a group's root.
struct CommitRoot {
  /// Its place in the container's namespace.
  let path: ContainerPath
  /// The open directory that it is a name in, or below.
  let parent: Directory
  /// Its name as seen from there.
  let name: ContainerPath
  /// The name of the tree that takes its place, in the transaction's folder; after the exchange, of the old one.
  let tree: ContainerPath

  init(_ state: StateDirectory) {
    (path, parent, name, tree) = (.root, state.parent, state.rootName, Commit.tree)
  }

  init(_ place: ContainerPath, in live: Directory) {
    (path, parent, name, tree) = (place, live, place, Commit.tree)
  }

  /// Whether it is the container's own root, or a part of that.
  var isOwn: Bool { tree == Commit.tree }

  /// A group's root.
  ///
  /// - Parameter root: its absolute path.
  init(group id: String, at root: String, tree: ContainerPath, isScratch: Bool = false) throws {
    let (above, last) = StateDirectory.split(root)
    path = .group(id)
    parent = try Directory(above, isScratch: isScratch)
    name = try ContainerPath(last)
    self.tree = tree
  }

  /// The time of the container's directory that a part is in; nil for a root, since what is above that is not the
  /// container's.
  func timeAbove() throws -> Int64? {
    isOwn && !path.isRoot ? try parent.status(name.parent)?.modified : nil
  }

  /// Exchanges what is there with the tree. A directory of the container that it is in keeps its time.
  func exchange(in folder: Directory) throws {
    let (time, own) = (try timeAbove(), try folder.status(tree)?.modified)
    try folder.exchange(tree, in: parent, with: name)
    // Only times: the exchange is made, and must not be reported as failed for them. XFS changes that of the directory itself.
    if let time { try? parent.setModified(time, of: name.parent) }
    if let own, (try? parent.status(name)?.modified) != own { try? parent.setModified(own, of: name) }
  }

  /// Writes the change of the name to disk.
  func sync() throws { try (name.parent.isRoot ? parent : parent.directory(name.parent)).sync() }
}

extension Directory {
  /// This root with those of its groups that a commit is about, each another directory.
  func showing(_ groups: [CommittedGroup], _ directory: (CommittedGroup) throws -> Directory) rethrows
    -> Directory
  {
    var open: [String: Directory] = [:]
    for group in groups { open[group.id] = try directory(group) }
    return showing(groups: open)
  }
}

/// The inodes of the trees that a commit by exchange has built, in a file of the transaction's folder: a different
/// inode under one of these names is the previously live tree.
struct BuiltTrees: Codable {
  private static let file: ContainerPath = "trees"

  /// By the names of the trees in the folder.
  private var inodes: [String: UInt64] = [:]

  /// Writes down what was built.
  static func note(_ names: [ContainerPath], in folder: Directory) throws {
    var trees = BuiltTrees()
    for name in names { trees.inodes[name.nameString] = try folder.status(name)?.inode }
    // After a kill the list must be complete or absent: an incomplete one would be a corrupt record.
    try folder.replace(file, with: StateRecord.encode(trees))
  }

  /// Whether one of the trees was exchanged, or was moved into place.
  ///
  /// - Throws: ``DrydockError`` with code `damagedState` when the file cannot be read.
  static func areExchanged(in folder: Directory) throws -> Bool {
    try built(in: folder).contains { try folder.status($0)?.inode != $1 }
  }

  /// What a stage that is removed has as a tree must be what the commit has built: else it is the user's.
  ///
  /// - Throws: ``DrydockError`` with code `damagedState`.
  static func requireOwn(in folder: Directory) throws {
    for (name, inode) in try built(in: folder) {
      guard let found = try folder.status(name)?.inode, found != inode else { continue }
      throw DrydockError(
        .damagedState,
        "the transaction has not made this directory, and none of it is removed; move it where it belongs",
        path: folder.full(name))
    }
  }

  /// The trees, by their names in the folder.
  private static func built(in folder: Directory) throws -> [(ContainerPath, UInt64)] {
    guard try folder.status(file) != nil else { return [] }
    let trees: BuiltTrees = try StateRecord.read(
      file, in: folder, limit: 1 << 20,
      damaged: "the list of the trees of a commit is corrupt; nothing was removed")
    return trees.inodes.map { (ContainerPath(name: Array($0.utf8)), $1) }
  }
}

/// The working directory of this process by its path. One that lies in a container is another directory after an exchange,
/// and relative paths would no longer be found.
struct WorkingDirectory {
  private let path = FileManager.default.currentDirectoryPath

  /// Enters it again, when another directory is at its path now.
  func enterAgain() {
    guard !path.isEmpty, FollowedStatus.identity(path) != FollowedStatus.identity(".") else { return }
    _ = FileManager.default.changeCurrentDirectoryPath(path)
  }
}
