import DrydockErrors

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// How many files this process may have open.
package enum OpenFileLimit {
  /// What a command needs besides: for threads, directories within each other, the system's libraries.
  private static let reserve: UInt64 = 128

  /// - Parameters:
  ///   - count: files that stay open.
  ///   - what: what they are, for the message.
  /// - Throws: ``DrydockError`` with code `unsupported` when they, with what else is needed, are more than allowed.
  package static func require(_ count: Int, for what: String, path: String) throws {
    var limit = rlimit()
    #if os(Linux)
      let result = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    #else
      let result = getrlimit(RLIMIT_NOFILE, &limit)
    #endif
    let needed = UInt64(count) + reserve
    guard result == 0, count > reserve / 2, UInt64(limit.rlim_cur) < needed else { return }
    throw DrydockError(
      .unsupported,
      "\(count) \(what), need \(needed) open files, and the limit is \(limit.rlim_cur); nothing was changed, raise the "
        + "limit (ulimit -n) and run it again", path: path)
  }
}
