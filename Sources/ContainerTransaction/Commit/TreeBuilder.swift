import AppContainer
import DrydockErrors
import FileSystem
import Synchronization

/// Builds the whole new tree: staged inodes moved into place, untouched ones linked. Live files change in nothing
/// but their number of links (and so their change time, see ``LinkedFiles``).
struct TreeBuilder {
  let staged: StagedContainer
  let changes: ChangeList
  private let touched: Set<ContainerPath>

  init(_ staged: StagedContainer, _ changes: ChangeList) {
    self.staged = staged
    self.changes = changes
    var touched: Set<ContainerPath> = []
    for path in staged.stage.overlay.paths {
      for above in path.ancestors where !touched.insert(above).inserted { break }
    }
    self.touched = touched
  }

  /// Makes the tree of a root, the container's or a group's, under a name in the transaction's folder, with the live
  /// root's own metadata.
  ///
  /// - Returns: the tree, and the files that it has in common with the live one.
  func build(
    _ root: ContainerPath, as name: ContainerPath, in folder: Directory
  ) throws -> (tree: Directory, linked: [LinkedFile]) {
    try folder.createDirectory(name)
    let (tree, live) = try (folder.directory(name), staged.live)
    var made: [MadeDirectory] = []
    let linked = Mutex<[LinkedFile]>([])
    try fill(tree, root, live: live.directory(root), linked, &made)
    let own = { @Sendable (path: ContainerPath) in path.rebased(from: root, to: .root) }
    // Two threads do not wait for each other in different directories.
    try onAllCores(made.filter(\.isUntouched)) { directory in
      let (source, target) = try (live.directory(directory.path), tree.directory(own(directory.path)))
      let files = try source.namesByKind().others.compactMap {
        try Self.link($0, of: directory.path, source, target)
      }
      linked.withLock { $0 += files }
    }
    // The deepest first: one that may not be entered afterwards is complete by then. Flags come last, too:
    // a directory that counts for a project takes nothing in that does not.
    var flags = NewInodeFlags(staged)
    for directory in made.reversed() {
      try finish(tree.directory(own(directory.path)), directory, flags.directory(directory.path))
    }
    return (tree, linked.withLock { $0 })
  }

  private struct MadeDirectory: Sendable {
    let path: ContainerPath
    let metadata: FileMetadata?
    /// Whether it must have exactly what the live one has.
    let isKept: Bool
    /// Whether nothing changes in it: its files are linked once all directories are made.
    let isUntouched: Bool
  }

  /// - Parameter live: the live directory of the same path, nil when there is none.
  private func fill(
    _ target: Directory, _ path: ContainerPath, live: Directory?, _ linked: borrowing Mutex<[LinkedFile]>,
    _ made: inout [MadeDirectory]
  ) throws {
    var metadata = try staged.metadata(of: path)
    if changes.touchedDirectories.contains(path), case nil = staged.stage.overlay[path] {
      metadata?.modified = changes.time
    }
    var isKept = true
    if case .directory = staged.stage.overlay[path] { isKept = false }
    let isUntouched = live != nil && !touched.contains(path)
    made.append(
      MadeDirectory(path: path, metadata: metadata, isKept: isKept, isUntouched: isUntouched))
    if let live, isUntouched {
      for child in try live.namesByKind().directories {
        let childPath = path.appending(name: child.bytes)
        // An earlier commit in place has left its state; after the exchange it moves over as a whole. Groups have trees of
        // their own.
        if staged.live.isState(childPath) || staged.live.isGroupList(childPath) { continue }
        try target.createDirectory(child)
        try fill(target.directory(child), childPath, live: live.directory(child), linked, &made)
      }
    } else {
      for child in try staged.children(of: path) where !staged.live.isGroupList(child) {
        try place(child, in: target, live: live, linked, &made)
      }
    }
  }

  private func finish(_ target: Directory, _ directory: MadeDirectory, _ flags: InodeFlags?) throws {
    guard let metadata = directory.metadata else { return }
    try target.apply(metadata, to: .root)
    let hasFlags = flags.map(target.setFlags) ?? true
    // A directory that stays has what it had; an exchange must not change it on the way.
    guard try directory.isKept && !(hasFlags && target.metadata(.root) == metadata) else { return }
    let path = directory.path
    throw DrydockError(
      .notWritable,
      "this user cannot reproduce the owner, mode, flags or attributes of this directory; \(Self.inPlace)",
      path: path.isRoot ? staged.container.root : path.description)
  }

  private static let inPlace =
    "nothing was changed, set DRYDOCK_COMMIT=in-place to change path by path"

  private static func link(
    _ name: ContainerPath, of path: ContainerPath, _ source: Directory, _ target: Directory
  ) throws -> LinkedFile? {
    do {
      return try LinkedFiles.link(name, from: source, to: target)
    } catch let error as DrydockError where error.meansNoLink {
      let reason = error.cause.map { " (\($0))" } ?? ""
      throw DrydockError(
        .notWritable, "this file cannot be linked into the new tree\(reason); \(inPlace)",
        path: path.appending(name: name.bytes).description, cause: error)
    }
  }

  private func place(
    _ child: ContainerPath, in target: Directory, live: Directory?,
    _ linked: borrowing Mutex<[LinkedFile]>, _ made: inout [MadeDirectory]
  ) throws {
    let name = ContainerPath(name: child.name)
    switch staged.stage.overlay[child] {
    case .removed: return
    case .inode(let inode): try staged.stage.directory.rename(inode.name, in: target, to: name)
    case .directory: try descend(child, name, in: target, live: live, linked, &made)
    case nil:
      guard let live, let status = try live.status(name) else { return }
      if status.type == .directory {
        try descend(child, name, in: target, live: live, linked, &made)
      } else if let file = try Self.link(name, of: child.parent, live, target) {
        linked.withLock { $0.append(file) }
      }
    }
  }

  private func descend(
    _ child: ContainerPath, _ name: ContainerPath, in target: Directory, live: Directory?,
    _ linked: borrowing Mutex<[LinkedFile]>, _ made: inout [MadeDirectory]
  ) throws {
    try target.createDirectory(name)
    let liveChild = try live?.status(name)?.type == .directory ? live?.directory(name) : nil
    try fill(target.directory(name), child, live: liveChild, linked, &made)
  }
}

/// Which inode flags (`chattr`) and project a new inode of a path gets: those of what it replaces, else what the directory
/// that it is in hands down, as if the app had made it there.
struct NewInodeFlags {
  private let staged: StagedContainer
  /// The flags of directories, by path; nil where the file system has none.
  private var directories: [ContainerPath: InodeFlags?] = [:]

  init(_ staged: StagedContainer) { self.staged = staged }

  mutating func directory(_ path: ContainerPath) throws -> InodeFlags? {
    if let known = directories[path] { return known }
    let flags: InodeFlags?
    if try staged.live.status(path)?.type == .directory {
      flags = try staged.live.directory(path).flags()
    } else if let recorded = staged.stage.overlay.directoryFlags[path] {
      flags = recorded
    } else {
      flags = try staged.live.isRoot(path) ? nil : directory(path.parent)?.inherited(by: .directory)
    }
    directories[path] = .some(flags)
    return flags
  }

  mutating func file(_ path: ContainerPath) throws -> InodeFlags? {
    let above = try directory(path.parent)
    guard try staged.live.status(path)?.type == .file else { return above?.inherited(by: .file) }
    return try staged.live.flags(of: path)?.moved(into: above)
  }

  /// Gives the staged files that replace live ones, or are new, their flags. What cannot be set on a file with content
  /// (no copy-on-write, of btrfs), or by this user, is left out: nothing depends on it. An inode that an undo
  /// gives back has its own.
  mutating func apply(to changes: ChangeList) throws {
    for change in changes.changes where change.after?.type == .file {
      guard case .inode(let inode) = staged.stage.overlay[change.path], !inode.isShared,
        let flags = try file(change.path)
      else { continue }
      try staged.stage.directory.setFlags(flags, of: inode.name)
    }
  }
}
