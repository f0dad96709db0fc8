import AppContainer
import DrydockErrors
import SystemPackage

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

  /// What a system call said, when it was one that failed.
  func isErrno(_ error: Errno) -> Bool { cause as? Errno == error }
}
