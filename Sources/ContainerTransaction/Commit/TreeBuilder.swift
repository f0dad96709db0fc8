import AppContainer

/// Builds the whole new tree: staged inodes moved into place, untouched ones linked. Live files change in nothing
/// but their number of links (and so their change time).
struct TreeBuilder {
  let staged: StagedContainer
  let changes: ChangeList
  private let touched: Set<ContainerPath>

  init(_ staged: StagedContainer, _ changes: ChangeList) {
    self.staged = staged
    self.changes = changes
    var touched: Set<ContainerPath> = []
    for path in staged.overlay.nodes.keys {
      for above in path.ancestors where !touched.insert(above).inserted { break }
    }
    self.touched = touched
  }

  /// Makes the tree of a root, the container's or a group's, under a name in the transaction's folder, with the live
  /// root's own metadata.
  func build(_ root: ContainerPath, as name: ContainerPath, in folder: Directory) throws -> Directory {
    try folder.createDirectory(name)
    let tree = try folder.directory(name)
    try fill(tree, root, live: staged.live.directory(root))
    return tree
  }

  /// - Parameter live: the live directory of the same path, nil when there is none.
  private func fill(_ target: Directory, _ path: ContainerPath, live: Directory?) throws {
    if let live, !touched.contains(path) {
      try link(live, to: target, path)
    } else {
      for child in try staged.children(of: path) where !staged.live.isGroupList(child) {
        try place(child, in: target, live: live)
      }
    }
    var metadata = try staged.metadata(of: path)
    if changes.touchedDirectories.contains(path), case nil = staged.overlay[path] {
      metadata?.modified = changes.time
    }
    guard let metadata else { return }
    if case .directory = staged.overlay[path] {
      try target.apply(metadata, to: .root)
    } else {
      try reproduce(metadata, on: target, path)
    }
  }

  /// Gives a directory that stays its own owner, mode and attributes; an exchange must not change them on the way.
  private func reproduce(_ metadata: FileMetadata, on target: Directory, _ path: ContainerPath) throws {
    try target.apply(metadata, to: .root)
    guard try target.metadata(.root) == metadata else {
      throw TransactionError(
        .notWritable,
        "the owner, mode or attributes of this directory cannot be reproduced by this user; nothing was changed, "
          + "run it as root", path: path.isRoot ? staged.container.root : path.description)
    }
  }

  private func place(_ child: ContainerPath, in target: Directory, live: Directory?) throws {
    let name = ContainerPath(name: child.name)
    switch staged.overlay[child] {
    case .removed: return
    case .inode(let inode): try staged.stage.rename(inode.name, in: target, to: name)
    case .directory: try descend(child, name, in: target, live: live)
    case nil:
      guard let live, let status = try live.status(name) else { return }
      if status.type == .directory {
        try descend(child, name, in: target, live: live)
      } else {
        try live.link(name, in: target, to: name)
      }
    }
  }

  private func descend(
    _ child: ContainerPath, _ name: ContainerPath, in target: Directory, live: Directory?
  ) throws {
    try target.createDirectory(name)
    let liveChild = try live?.status(name)?.type == .directory ? live?.directory(name) : nil
    try fill(target.directory(name), child, live: liveChild)
  }

  /// A directory in which nothing changes, by names alone.
  private func link(_ live: Directory, to target: Directory, _ path: ContainerPath) throws {
    for bytes in try live.names() {
      let name = ContainerPath(name: bytes)
      let child = path.appending(name: bytes)
      // An earlier commit in place has left its state; after the exchange it moves over as a whole. Groups have trees of
      // their own.
      if staged.live.isState(child) || staged.live.isGroupList(child) { continue }
      guard let status = try live.status(name) else { continue }
      guard status.type == .directory else {
        try live.link(name, in: target, to: name)
        continue
      }
      try target.createDirectory(name)
      let below = try target.directory(name)
      try link(live.directory(name), to: below, child)
      if let metadata = try live.metadata(name) { try reproduce(metadata, on: below, child) }
    }
  }
}
