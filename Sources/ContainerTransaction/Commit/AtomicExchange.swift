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
struct AtomicExchange {
  private let commit: Commit
  private let locks: CommitLocks
  private let place: ContainerPath
  /// The groups that change, and all that is exchanged, in order.
  private let groups: [CommittedGroup], roots: [CommitRoot]
  /// The new tree, with those of groups.
  private let tree: Directory
  /// What it has in common with the old one.
  private let linked: CommittedFiles

  /// Builds the new trees.
  init(_ commit: Commit, _ locks: CommitLocks, _ place: ContainerPath) throws {
    (self.commit, self.locks, self.place) = (commit, locks, place)
    let (staged, folder) = (commit.staged, commit.folder)
    var builder = TreeBuilder(staged, commit.undo.changes)
    var trees: [String: Directory] = [:]
    groups = try commit.changedGroups.enumerated().map { number, group in
      let name = ContainerPath(name: Array("tree-\(number + 1)".utf8))
      let tree = try builder.build(group.path, as: name, in: folder)
      trees[group.id] = tree
      let after = try tree.status().identity
      let before = try staged.live.status(group.path)?.identity ?? after
      return CommittedGroup(id: group.id, root: group.root, before: before, after: after, tree: name)
    }
    tree = try builder.build(place, as: Commit.tree, in: folder).showing(groups: trees)
    linked = CommittedFiles(builder.linked)
    // What was staged is in the trees now; of a million files, this list takes 30 MB more.
    staged.stage.overlay = Overlay()
    let own = place.isRoot ? CommitRoot(commit.state) : CommitRoot(place, in: staged.live)
    let others = try groups.map { try CommitRoot($0, isScratch: staged.container.isScratch) }
    roots = commit.creates ? [own] + others : others + [own]
    try folder.noteTrees([Commit.tree] + groups.map(\.tree))
  }

  /// Exchanges all roots, marks the main files that were replaced, and checks whether any process has a file of the old
  /// tree open. On an error, or if one has, all exchanges are reversed.
  func run() throws -> Result<[ContainerPath], any Error> {
    let search = try commit.prepare(locks, directories: isExchanged)
    // The lock is held on the inode, so the new roots must be locked too until the commit is complete.
    for root in [tree] + tree.groups.map(\.root) where try !root.tryLock(exclusive: true) {
      throw DrydockError(.locked, "the new tree is locked by another process", path: root.path)
    }
    let record = try record()
    try commit.writeCommit(record)
    try commit.faults.reach(.committed)
    let time = StagedContainer.now()
    let workingDirectory = FileManager.default.currentDirectoryPath
    defer { Self.enter(workingDirectory) }
    var exchanged: [CommitRoot] = []
    do {
      for root in roots {
        try exchange(root, record.rootBefore)
        exchanged.append(root)
        try locks.markOld { root.isOwn ? $0.inGroup == nil : $0.isInside(root.path) }
        if exchanged.count < roots.count { try commit.faults.reach(.partlyExchanged) }
      }
      try commit.faults.reach(.marked)
      try commit.requireUnused(search.adding(createdMeanwhile()), isReverted: true)
      try commit.faults.reach(.foundUnused)
    } catch {
      var failure = error
      if !exchanged.isEmpty {
        do { failure = try reverse(exchanged, after: error) } catch { failure = error }
      }
      if (failure as? DrydockError)?.code != .interrupted { try commit.discardCommit(record) }
      throw failure
    }
    locks.releaseOld()
    return Result { try complete(exchangedAfter: time) }
  }

  /// Whether a directory is exchanged with all that is in it.
  private func isExchanged(_ directory: ContainerPath) -> Bool {
    directory.inGroup.map { group in groups.contains { $0.id == group.id } }
      ?? (directory == place || directory.isInside(place))
  }

  private func record() throws -> JournalRecord {
    var record = JournalRecord(.commit, commit.transaction)
    record.rootBefore = try commit.creates ? nil : commit.staged.live.status(place)?.identity
    record.rootAfter = try tree.status().identity
    record.place = place.isRoot ? nil : place
    record.timeAbove = try roots.first(where: \.isOwn)?.timeAbove()
    record.groups = groups.isEmpty ? nil : groups
    return record
  }

  /// A working directory that lies in the container is another one after an exchange: relative paths would no longer be
  /// found.
  private static func enter(_ path: String) {
    guard !path.isEmpty, FollowedStatus.identity(path) != FollowedStatus.identity(".") else { return }
    _ = FileManager.default.changeCurrentDirectoryPath(path)
  }

  /// What an app made or replaced, after the last walk, at a path that the transaction changes.
  private func createdMeanwhile() throws -> [FileIdentity: ContainerPath] {
    guard !commit.creates else { return [:] }
    let old = try place.isRoot ? commit.staged.live : commit.folder.directory(Commit.tree)
    var found: [FileIdentity: ContainerPath] = [:]
    for path in commit.undo.touched {
      if let status = try old.status(path.rebased(from: place, to: .root)) { found[status.identity] = path }
    }
    return found
  }

  /// The rest, with the container new.
  ///
  /// - Parameter time: nanoseconds since 1970.
  private func complete(exchangedAfter time: Int64) throws -> [ContainerPath] {
    try commit.folder.sync()
    for root in roots { try root.sync() }
    try commit.faults.reach(.exchanged)
    // The previously live tree is now the old tree, whatever its name.
    let live = commit.staged.live
    let old =
      try place.isRoot
      ? live.showing(groups) { group in live.groups.first { $0.id == group.id }?.root ?? live }
      : commit.folder.directory(Commit.tree)
    var completion = CommitCompletion(commit, old: old, live: tree, place, groups)
    completion.linked = (linked, time)
    return try completion.run()
  }
}

/// One root.
extension AtomicExchange {
  /// Exchanges the new tree with what is at a root's path. If that is another directory than the one that was staged,
  /// because it was moved away meanwhile, it is exchanged back.
  private func exchange(_ root: CommitRoot, _ rootBefore: FileIdentity?) throws {
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
      let before = try root.isOwn ? rootBefore : commit.staged.live.status(root.path)?.identity
      try commit.requireSame(root.path, commit.folder.status(root.tree), before)
      if root.isOwn && !root.path.isRoot {
        try commit.requireSameRoot(.root, at: commit.staged.container.root)
      }
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

/// The reversal, when a process has a file of the old tree open.
extension AtomicExchange {
  /// - Returns: the error, which says what was written meanwhile and is kept.
  /// - Throws: ``DrydockError`` with code `interrupted` when the reversal fails as well.
  private func reverse(_ exchanged: [CommitRoot], after error: any Error) throws -> any Error {
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
    return try commit.saying(kept, error)
  }

  /// What was written into the new tree meanwhile is applied to the old one. What cannot be applied is kept, with the files
  /// that a process still has open.
  private func keepWritten() throws -> [ContainerPath] {
    guard var expected = commit.index else { return [] }
    let live = commit.staged.live
    var staged: [ContainerPath: FileStatus] = [:]
    for change in commit.undo.changes {
      guard let after = change.after,
        var status = try tree.status(change.path.rebased(from: place, to: .root))
      else { continue }
      if status.type == after.type, status.type != .directory {
        (status.size, status.modified) = (after.size, after.metadata.modified)
      }
      staged[change.path] = status
    }
    // An index does not contain the root directories.
    for change in commit.undo.changes where !live.isRoot(change.path) {
      expected[change.path] = staged[change.path]
    }
    let completion = try CommitCompletion(
      commit, old: tree, live: place.isRoot ? live : live.directory(place), place, groups)
    let kept = try completion.merge(tree, since: expected)
    guard commit.searchesOpenFiles else { return kept }
    // The locks of new main files are this process's own.
    let known = Set(locks.new.map(\.path)).union(kept)
    let files = staged.filter { $1.type == .file && !known.contains($0) }
    return try kept
      + completion.kept.keepOpen(
        Dictionary(files.map { ($1.identity, $0) }, uniquingKeysWith: min), in: tree,
        name: { $0.rebased(from: place, to: .root) })
  }
}

extension Commit {
  /// The deepest directory that contains all changes: only it is rebuilt and exchanged, so that the cost of a commit
  /// depends on its size, not on the container's. The root, where a group changes with it, and where this
  /// user may not exchange a deeper one.
  func exchangedPlace() throws -> ContainerPath {
    guard !creates, changedGroups.isEmpty else { return .root }
    var common: [[UInt8]]?
    for change in undo.changes {
      let stays = change.before?.type == .directory && change.after?.type == .directory
      let names = (stays ? change.path : change.path.parent).components
      common = common.map { zip($0, names).prefix { $0 == $1 }.map(\.0) } ?? names
    }
    var place = (common ?? []).reduce(ContainerPath.root) { $0.appending(name: $1) }
    while !place.isRoot, try !mayExchange(place) { place = place.parent }
    return place
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
  init(_ group: CommittedGroup, isScratch: Bool = false) throws {
    let (above, last) = try ContainerPath.split(group.root)
    (path, parent) = (.group(group.id), try Directory(above, isScratch: isScratch))
    (name, tree) = (last, group.tree)
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
    // Of a journal, which may name one twice.
    try showing(groups: Dictionary(groups.map { ($0.id, try directory($0)) }) { $1 })
  }
}

/// The inodes of the trees that a commit by exchange has built, in a file of the transaction's folder, which this is: a
/// different inode under one of these names is the previously live tree.
extension Directory {
  private static let treeList: ContainerPath = "trees"

  /// Writes down what was built.
  fileprivate func noteTrees(_ names: [ContainerPath]) throws {
    var inodes: [String: UInt64] = [:]
    for name in names { inodes[name.nameString] = try status(name)?.inode }
    // After a kill the list must be complete or absent: an incomplete one would be a corrupt record.
    try replaceRecord(Self.treeList, with: ["inodes": inodes])
  }

  /// Whether one of the trees was exchanged, or was moved into place.
  ///
  /// - Throws: ``DrydockError`` with code `damagedState` when the list cannot be read.
  func hasExchangedTrees() throws -> Bool { try builtTrees().contains { try status($0)?.inode != $1 } }

  /// What a stage that is removed has as a tree must be what the commit has built: else it is the user's.
  ///
  /// - Throws: ``DrydockError`` with code `damagedState`.
  func requireOwnTrees() throws {
    for (name, inode) in try builtTrees() {
      guard let found = try status(name)?.inode, found != inode else { continue }
      throw DrydockError(
        .damagedState,
        "the transaction has not made this directory, and none of it is removed; move it where it belongs",
        path: full(name))
    }
  }

  /// The trees, by their names.
  private func builtTrees() throws -> [(ContainerPath, UInt64)] {
    guard try status(Self.treeList) != nil else { return [] }
    let inodes: [String: UInt64] = try record(
      Self.treeList, field: "inodes", limit: 1 << 20,
      damaged: "the list of the trees of a commit is corrupt; nothing was removed")
    return inodes.map { (ContainerPath(name: Array($0.utf8)), $1) }
  }
}
