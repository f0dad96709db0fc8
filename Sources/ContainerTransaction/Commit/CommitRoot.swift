import FileSystem

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

  /// The container's own root.
  init(_ state: StateDirectory) {
    (path, parent, name, tree) = (.root, state.parent, state.rootName, Commit.tree)
  }

  /// A part of the container.
  init(_ place: ContainerPath, in live: Directory) {
    (path, parent, name, tree) = (place, live, place, Commit.tree)
  }

  /// Whether it is the container's own root, or a part of that.
  var isOwn: Bool { tree == Commit.tree }

  /// A group's root.
  ///
  /// - Parameter root: its absolute path.
  init(group id: String, at root: String, tree: ContainerPath, isScratch: Bool = false) throws {
    let slash = root.lastIndex(of: "/") ?? root.startIndex
    path = .group(id)
    parent = try Directory(
      slash == root.startIndex ? "/" : String(root[..<slash]), isScratch: isScratch)
    name = try ContainerPath(String(root[root.index(after: slash)...]))
    self.tree = tree
  }

  /// The time of the container's directory that a part is in; nil for a root, since what is above that is not the
  /// container's.
  func timeAbove() throws -> Int64? {
    isOwn && !path.isRoot ? try parent.status(name.parent)?.modified : nil
  }

  /// Exchanges what is there with the tree. A directory of the container that it is in keeps its time.
  func exchange(in folder: Directory) throws {
    let time = try timeAbove()
    try folder.exchange(tree, in: parent, with: name)
    // Only a time: the exchange is made, and must not be reported as failed for it.
    if let time { try? parent.setModified(time, of: name.parent) }
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
