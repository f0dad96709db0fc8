import DrydockErrors
import FileSystem
import Synchronization

/// Builds the new trees of a commit: staged inodes moved into place, untouched ones linked. Live files change in nothing
/// but their number of links (and so their change time, see ``CommittedFiles``).
struct TreeBuilder {
  private let staged: StagedContainer
  private let stage: LastDirectory
  private let changes: ChangeRecords
  /// The directories that something changes in, or below.
  private let touched: Set<ContainerPath>
  /// The files that the trees have in common with the live ones.
  private(set) var linked: [CommittedFile] = []
  /// The directories of the tree that is being built, parents first.
  private var made: [ContainerPath] = []
  /// Where files are linked, once all directories are made: the names of files that do not change, nil for all in a directory.
  private var untouched: [(path: ContainerPath, names: [ContainerPath]?)] = []

  init(_ staged: StagedContainer, _ changes: ChangeRecords) {
    (self.staged, self.changes) = (staged, changes)
    stage = LastDirectory(staged.stage.directory)
    var touched: Set<ContainerPath> = []
    for path in staged.stage.overlay.paths {
      for above in path.ancestors where !touched.insert(above).inserted { break }
    }
    self.touched = touched
  }

  /// Makes the tree of a directory, the container's or a group's root or a part of it, under a name in the transaction's
  /// folder, with the live directory's own metadata.
  mutating func build(
    _ root: ContainerPath, as name: ContainerPath, in folder: Directory
  ) throws -> Directory {
    try folder.createDirectory(name)
    let (tree, live) = try (folder.directory(name), staged.live)
    (made, untouched) = ([], [])
    try fill(tree, root, live: live.directory(root))
    let own = { @Sendable (path: ContainerPath) in path.rebased(from: root, to: .root) }
    let files = Mutex<[CommittedFile]>([])
    try onAllCores(untouched) { path, names in
      let (source, target) = try (live.directory(path), tree.directory(own(path)))
      try onAllCores(partsOf: names ?? source.namesByKind().others) { names in
        let linked = try names.compactMap { try Self.link($0, of: path, source, target) }
        files.withLock { $0 += linked }
      }
    }
    linked += files.withLock { $0 }
    // The deepest first: one that may not be entered afterwards is complete by then. Flags come last, too:
    // a directory that counts for a project takes nothing in that does not.
    var flags = NewInodeFlags(staged)
    for path in made.reversed() { try finish(tree.directory(own(path)), path, flags.directory(path)) }
    return tree
  }

  /// - Parameters:
  ///   - live: the live directory of the same path, nil when there is none.
  ///   - hasFiles: whether it was the folder of its files in the stage.
  private mutating func fill(
    _ target: Directory, _ path: ContainerPath, live: Directory?, hasFiles: Bool = false
  ) throws {
    made.append(path)
    guard let live, !touched.contains(path) else {
      let others = Set(try live?.namesByKind().others ?? [])
      var names: [ContainerPath] = []
      for child in try staged.children(of: path) where !staged.live.isGroupList(child) {
        let name = ContainerPath(name: child.name)
        if case nil = staged.stage.overlay[child], others.contains(name) {
          names.append(name)
        } else {
          try place(child, in: target, live: live, hasFiles: hasFiles)
        }
      }
      if !names.isEmpty { untouched.append((path, names)) }
      return
    }
    untouched.append((path, nil))
    for child in try live.namesByKind().directories {
      let childPath = path.appending(name: child.bytes)
      // An earlier commit in place has left its state; after the exchange it moves over as a whole. Groups have trees of
      // their own.
      if staged.live.isState(childPath) || staged.live.isGroupList(childPath) { continue }
      try target.createDirectory(child)
      try fill(target.directory(child), childPath, live: live.directory(child))
    }
  }

  private func finish(_ target: Directory, _ path: ContainerPath, _ flags: InodeFlags?) throws {
    guard let metadata = try changes[path]?.after?.metadata ?? staged.metadata(of: path) else { return }
    try target.apply(metadata, to: .root)
    let hasFlags = flags.map(target.setFlags) ?? true
    if case .directory = staged.stage.overlay[path] { return }
    // A directory that stays has what it had; an exchange must not change it on the way.
    if try hasFlags && target.metadata(.root) == metadata { return }
    throw DrydockError(
      .notWritable,
      "this user cannot reproduce the owner, mode, flags or attributes of this directory; \(Self.inPlace)",
      path: path.isRoot ? staged.container.root : path.description)
  }

  private static let inPlace =
    "nothing was changed, set DRYDOCK_COMMIT=in-place to change path by path"

  private static func link(
    _ name: ContainerPath, of path: ContainerPath, _ source: Directory, _ target: Directory
  ) throws -> CommittedFile? {
    do {
      return try CommittedFiles.link(name, from: source, to: target)
    } catch let error as DrydockError where error.meansNoLink {
      let reason = error.cause.map { " (\($0))" } ?? ""
      throw DrydockError(
        .notWritable, "this file cannot be linked into the new tree\(reason); \(inPlace)",
        path: path.appending(name: name.bytes).description, cause: error)
    }
  }

  private mutating func place(
    _ child: ContainerPath, in target: Directory, live: Directory?, hasFiles: Bool
  ) throws {
    let name = ContainerPath(name: child.name)
    let node = staged.stage.overlay[child]
    if case .removed = node { return }
    if case .inode(let inode) = node {
      if hasFiles, staged.stage.overlay.isInFolder(inode, at: child) { return }
      let source = try stage.location(of: inode.name)
      return try source.directory.rename(source.name, in: target, to: name)
    }
    let status = try live?.status(name)
    // Gone since the directory was listed.
    if case nil = node, status?.type != .directory { return }
    let isMoved = try staged.stage.moveFolder(of: child, to: target, as: name)
    if !isMoved { try target.createDirectory(name) }
    let liveChild = status?.type == .directory ? try live?.directory(name) : nil
    try fill(target.directory(name), child, live: liveChild, hasFiles: isMoved)
  }
}

/// Which inode flags (`chattr`) and project a new inode of a path gets: those of what it replaces, else what the directory
/// that it is in hands down, as if the app had made it there.
struct NewInodeFlags {
  private let staged: StagedContainer
  /// Directories, by path: their flags, nil where the file system has none, and whether the live container has them.
  private var directories: [ContainerPath: (flags: InodeFlags?, isLive: Bool)] = [:]
  /// The flags that files have got that were made in a folder of the stage: a folder's are made alike.
  private var asMade: [ContainerPath: InodeFlags?] = [:]

  init(_ staged: StagedContainer) { self.staged = staged }

  mutating func directory(_ path: ContainerPath) throws -> InodeFlags? { try known(path).flags }

  private mutating func known(_ path: ContainerPath) throws -> (flags: InodeFlags?, isLive: Bool) {
    if let known = directories[path] { return known }
    let isLive = try staged.live.status(path)?.type == .directory
    let flags: InodeFlags?
    if isLive {
      flags = try staged.live.directory(path).flags()
    } else if let recorded = staged.stage.overlay.directoryFlags[path] {
      flags = recorded
    } else {
      flags = try staged.live.isRoot(path) ? nil : directory(path.parent)?.inherited(by: .directory)
    }
    directories[path] = (flags, isLive)
    return (flags, isLive)
  }

  mutating func file(_ path: ContainerPath) throws -> InodeFlags? {
    let above = try known(path.parent)
    guard above.isLive, try staged.live.status(path)?.type == .file else {
      return above.flags?.inherited(by: .file)
    }
    return try staged.live.flags(of: path)?.moved(into: above.flags)
  }

  private mutating func flagsAsMade(_ name: ContainerPath) throws -> InodeFlags? {
    if let known = asMade[name.parent] { return known }
    let flags = try staged.stage.directory.flags(of: name)
    asMade[name.parent] = .some(flags)
    return flags
  }

  /// Gives the staged files that replace live ones, or are new, their flags. What cannot be set on a file with content
  /// (no copy-on-write, of btrfs), or by this user, is left out: flags are best effort. An inode that an undo
  /// gives back has its own.
  mutating func apply(to changes: ChangeRecords) throws {
    for change in changes where change.after?.type == .file {
      guard case .inode(let inode) = staged.stage.overlay[change.path], !inode.isShared,
        let flags = try file(change.path)
      else { continue }
      if inode.made != nil, try flagsAsMade(inode.name) == flags { continue }
      try staged.stage.directory.setFlags(flags, of: inode.name)
    }
  }
}
