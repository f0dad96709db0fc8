import DrydockErrors
import SystemPackage

/// Opens the directories of paths: consecutive paths are often in the same one, which is then opened, or found missing, once.
///
/// It keeps the last one open: another program that moves it is not noticed. So it is for reading what is checked again later,
/// and for private directories.
package final class LastDirectory {
  private let root: Directory
  private var last: (path: ContainerPath, directory: Directory?)?

  package init(_ root: Directory) { self.root = root }

  /// The open directory that a path is in, and its name there.
  package func location(of path: ContainerPath) throws -> (directory: Directory, name: ContainerPath) {
    let (parent, name) = (path.parent, ContainerPath(name: path.name))
    if let last, last.path == parent, let directory = last.directory { return (directory, name) }
    let directory = try root.directory(parent)
    last = (parent, directory)
    return (directory, name)
  }

  /// The status of a path; nil when it does not exist.
  package func status(of path: ContainerPath) throws -> FileStatus? {
    if path.isRoot { return try root.status(path) }
    let parent = path.parent
    if last?.path != parent {
      do { last = (parent, try root.directory(parent)) } catch let error as DrydockError
        where error.meansNoDirectory
      {
        last = (parent, nil)
      }
    }
    return try last?.directory?.status(ContainerPath(name: path.name))
  }
}

extension DrydockError {
  /// Whether a directory does not exist, or the path leads through something else.
  fileprivate var meansNoDirectory: Bool {
    (cause as? Errno).map {
      [.noSuchFileOrDirectory, .notDirectory, .fileNameTooLong, .tooManySymbolicLinkLevels].contains($0)
    } ?? false
  }
}
