import AppContainer
import DrydockErrors
import FileSystem

extension Directory {
  /// Takes a name away, or brings one, where its directory's mode forbids that: the owner may change it after all.
  ///
  /// The directories that had to be changed stay writable; their modes come back with the directories' metadata.
  func withWritableParent<T>(of path: ContainerPath, _ body: () throws -> T) throws -> T {
    do {
      return try body()
    } catch let error as DrydockError where error.isErrno(.permissionDenied) {
      // A directory that moves elsewhere is written to as well: its `..` changes.
      let isMade = try makeWritable(path.parent)
      guard try makeWritable(path) || isMade else { throw error }
      return try body()
    }
  }

  /// - Returns: whether a directory had to be made writable.
  private func makeWritable(_ path: ContainerPath) throws -> Bool {
    guard let status = try status(path), status.type == .directory, status.mode & 0o700 != 0o700 else {
      return false
    }
    try setMode(status.mode | 0o700, of: path)
    return true
  }
}
