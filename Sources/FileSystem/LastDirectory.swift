/// Opens the directories of paths: consecutive paths are often in the same one, which is then opened once.
package final class LastDirectory {
  private let root: Directory
  private var last: (path: ContainerPath, directory: Directory)?

  package init(_ root: Directory) { self.root = root }

  /// The open directory that a path is in, and its name there.
  package func location(of path: ContainerPath) throws -> (directory: Directory, name: ContainerPath) {
    let (parent, name) = (path.parent, ContainerPath(name: path.name))
    if let last, last.path == parent { return (last.directory, name) }
    let directory = try root.directory(parent)
    last = (parent, directory)
    return (directory, name)
  }
}
