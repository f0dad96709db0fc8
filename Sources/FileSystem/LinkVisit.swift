import CPlatform
import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// What became of a look at links of `/proc`, each of which leads to a file that a process has open.
package enum LinkVisit: Sendable {
  /// All were followed, but for what was gone by then.
  case complete
  /// This user may not follow them.
  case refused
  /// The process or thread has ended.
  case gone

  /// Follows the links of a directory whose names are numbers, such as `/proc/71/fd`.
  package static func numbers(in path: String, _ body: (Int32, FileIdentity) -> Void) -> LinkVisit {
    let directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard directory >= 0 else { return ofLastCall() }
    guard let stream = platform_directory_take(directory) else { return ofLastCall() }
    defer { platform_directory_close(stream) }
    while let name = platform_directory_next(stream) {
      // Whoever may follow one link of a process may follow all of them.
      if visit(name, in: directory, { body(Int32(atoi(name)), $0) }) == .refused { return .refused }
    }
    return .complete
  }

  /// Follows one link, such as `/proc/71/cwd`.
  package static func link(_ path: String, _ body: (FileIdentity) -> Void) -> LinkVisit {
    visit(path, in: AT_FDCWD, body)
  }

  private static func visit(
    _ name: UnsafePointer<CChar>, in directory: Int32, _ body: (FileIdentity) -> Void
  ) -> LinkVisit {
    var (device, inode): (UInt64, UInt64) = (0, 0)
    guard platform_followed_inode(directory, name, &device, &inode) != 0 else {
      body(FileIdentity(device: device, inode: inode))
      return .complete
    }
    let result = ofLastCall()
    guard result == .refused else { return result }
    // Another user's file system (FUSE) refuses its files even to root, who may still read the link.
    var target: CChar = 0
    return readlinkat(directory, name, &target, 1) < 0 ? .refused : .complete
  }

  private static func ofLastCall() -> LinkVisit {
    [.permissionDenied, .notPermitted].contains(currentErrno()) ? .refused : .gone
  }
}

/// Threads of one process and what they share.
package enum ThreadTables {
  /// Whether two threads have one table of descriptors; false where the kernel does not say.
  package static func sharesDescriptors(_ a: Int32, _ b: Int32) -> Bool {
    platform_shares_descriptors(a, b) == 0
  }

  /// Whether two threads have one root and working directory; false where the kernel does not say.
  package static func sharesDirectories(_ a: Int32, _ b: Int32) -> Bool {
    platform_shares_directories(a, b) == 0
  }
}
