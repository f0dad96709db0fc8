import CPlatform
import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// The status behind links, for `/proc`, where a link leads to an open file without opening it again.
package enum FollowedStatus {
  /// The inode that a path leads to; nil when it leads nowhere or may not be followed.
  package static func identity(_ path: String) -> FileIdentity? {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    return FileIdentity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
  }

  /// The number of links of what a path leads to.
  package static func links(_ path: String) -> Int? {
    var status = stat()
    return stat(path, &status) == 0 ? Int(status.st_nlink) : nil
  }

  /// A device number as the kernel packs it for `stat`.
  package static func device(major: UInt64, minor: UInt64) -> UInt64 {
    #if os(Linux)
      (minor & 0xff) | ((major & 0xfff) << 8) | ((minor & ~0xff) << 12) | ((major & ~0xfff) << 32)
    #else
      (major << 24) | minor
    #endif
  }
}
