import DrydockErrors
import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Translates `errno` of system calls.
extension DrydockError {
  /// The error for a failed system call. `action` is the start of the message, such as "cannot read".
  package static func system(_ action: String, _ path: some CustomStringConvertible, _ errno: Errno) -> Self {
    let code: Code
    let advice: String?
    switch errno {
    case .noSuchFileOrDirectory: (code, advice) = (.notFound, "check the path")
    case .notDirectory: (code, advice) = (.notAContainer, "name a directory")
    case .permissionDenied, .notPermitted: (code, advice) = (.permission, permissionAdvice)
    case .noSpace, .diskQuotaExceeded:
      (code, advice) = (.noSpace, "free some space and run the command again")
    case .readOnlyFileSystem: (code, advice) = (.permission, "the file system is mounted read-only")
    case .tooManyOpenFiles: (code, advice) = (.io, "raise the limit of open files (ulimit -n)")
    case .tooManySymbolicLinkLevels, .improperLink:
      (code, advice) = (.unsupported, "the path leads through a link or to another file system")
    default: (code, advice) = (.io, nil)
    }
    let next = advice.map { "; \($0)" } ?? ""
    return Self(code, "\(action): \(errno)\(next)", path: path.description, cause: errno)
  }

  /// Calls the body, and translates the `errno` that it throws.
  package static func translating<Path: CustomStringConvertible, Value>(
    _ action: String, _ path: @autoclosure () -> Path, _ body: () throws -> Value
  ) throws -> Value {
    do { return try body() } catch let error as Errno { throw system(action, path(), error) }
  }

  /// What to do about a call that was not permitted. For root, owner and mode are not the reason.
  package static var permissionAdvice: String {
    geteuid() == 0
      ? "look for immutable files (lsattr) and for restrictions of this process"
      : "run it as the owner of the container, or as root"
  }

  /// The error for the system call that just failed, from the thread's `errno`.
  package static func lastCall(_ action: String, _ path: some CustomStringConvertible) -> Self {
    .system(action, path, currentErrno())
  }
}

/// The thread's `errno`: read it before anything else runs.
package func currentErrno() -> Errno { Errno(rawValue: errno) }

extension Errno {
  /// Whether a call on extended attributes failed because the path has none, or not this one.
  var meansNoAttributes: Bool {
    self == .noData || self == .attributeNotFound || self == .notSupported
  }

  #if os(Linux)
    /// ENOATTR of macOS, which Linux does not have.
    static var attributeNotFound: Errno { .noData }
  #endif
}
