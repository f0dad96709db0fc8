import DrydockErrors
import FileSystem
import SystemPackage

/// Moves where the file system or a mode does not allow the simple one.
extension Directory {
  /// Renames to a name that must be free, also where the file system cannot refuse a taken one by itself.
  ///
  /// - Throws: `DrydockError` with cause `EEXIST` when it is not free.
  func renameOnto(nothingAt target: ContainerPath, _ path: ContainerPath, in other: Directory) throws {
    do {
      try renameNew(path, in: other, to: target)
    } catch let error as DrydockError where error.meansNoSuchRename {
      if try other.status(target) != nil {
        throw DrydockError.system("cannot move to", other.full(target), .fileExists)
      }
      try rename(path, in: other, to: target)
    }
  }

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

/// What a file system answered that another way can deal with.
extension DrydockError {
  /// Whether a file cannot get a second name there: another file system or mount, or one without hard links.
  var meansNoLink: Bool {
    guard let error = cause as? Errno else { return false }
    return [.improperLink, .notSupported, .notPermitted, .tooManyLinks, .noFunction].contains(error)
  }

  /// Whether a file system does not know such a way to rename.
  var meansNoSuchRename: Bool {
    guard let error = cause as? Errno else { return false }
    return [.invalidArgument, .notSupported, .noFunction].contains(error)
  }

  func isErrno(_ error: Errno) -> Bool { cause as? Errno == error }
}
