import AppContainer

/// A directory that a commit by exchange replaces as a whole: the container's root, or a group's.
struct CommitRoot {
  /// Its place in the container's namespace.
  let path: ContainerPath
  /// The open directory that it is a name in, or below.
  let parent: Directory
  /// Its name as seen from there.
  let name: ContainerPath
  /// The name of the tree that takes its place, in the transaction's folder; after the exchange, of the old one.
  let tree: ContainerPath

  /// The container's own root.
  init(_ state: StateDirectory) {
    (path, parent, name, tree) = (.root, state.parent, state.rootName, Commit.tree)
  }

  /// A group's root.
  ///
  /// - Parameter root: its absolute path.
  init(group id: String, at root: String, tree: ContainerPath) throws {
    let slash = root.lastIndex(of: "/") ?? root.startIndex
    path = .group(id)
    parent = try Directory(slash == root.startIndex ? "/" : String(root[..<slash]))
    name = try ContainerPath(String(root[root.index(after: slash)...]))
    self.tree = tree
  }

  /// What is there now; nil when nothing is.
  func status() throws -> FileStatus? { try parent.status(name) }

  /// Exchanges what is there with the tree.
  func exchange(in folder: Directory) throws { try folder.exchange(tree, in: parent, with: name) }

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
