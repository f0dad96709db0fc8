import CPlatform
import DrydockErrors
import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// The result of following links in `/proc`, each of which leads to a file that a process has open. Linux only.
package enum LinkVisit: Sendable {
  /// All links that still existed were followed.
  case complete
  /// This user may not follow them.
  case refused
  /// The process or thread has ended.
  case gone

  /// Follows the links of a directory whose names are numbers, such as `/proc/71/fd`.
  package static func numbers(in path: String, _ body: (Int32, FileIdentity) -> Void) -> LinkVisit {
    let directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard directory >= 0 else { return ofLastCall() }
    defer { close(directory) }
    guard let names = NameList(directory) else { return ofLastCall() }
    for name in names.items().map({ String(decoding: $0.name, as: UTF8.self) }) {
      // A user who may follow one link of a process may follow all.
      if visit(name, in: directory, { body(Int32(name) ?? 0, $0) }) == .refused { return .refused }
    }
    return .complete
  }

  /// Follows one link, such as `/proc/71/cwd`.
  package static func link(_ path: String, _ body: (FileIdentity) -> Void) -> LinkVisit {
    visit(path, in: AT_FDCWD, body)
  }

  /// Passes the mappings of files that an open `/proc/PID/maps` has. Its text takes several times as long, since the kernel writes
  /// the paths.
  ///
  /// - Parameter body: returns false to end.
  /// - Returns: nil where the kernel is older than Linux 6.11, or `body` has ended it.
  package static func mappings(
    _ maps: Int32, _ body: (_ addresses: Range<UInt64>, FileIdentity) -> Bool
  ) -> LinkVisit? {
    var mapping = platform_mapping()
    while platform_next_mapping(maps, mapping.end, &mapping) == 0 {
      let identity = FileIdentity(device: mapping.device, inode: mapping.inode)
      guard body(mapping.start..<mapping.end, identity) else { return nil }
    }
    switch currentErrno() {
    case .noSuchFileOrDirectory: return .complete
    case .noSuchProcess: return .gone
    default: return nil
    }
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
    // Another user's FUSE file system refuses even root, who may still read the link.
    var target: CChar = 0
    return readlinkat(directory, name, &target, 1) < 0 ? .refused : .complete
  }

  private static func ofLastCall() -> LinkVisit {
    [.permissionDenied, .notPermitted].contains(currentErrno()) ? .refused : .gone
  }
}

/// Whether two threads share all that `/proc` shows of what they have open: their descriptors, root and working directory. False
/// where the kernel does not report it. Linux only.
package func shareTables(_ a: Int32, _ b: Int32) -> Bool { platform_shares_tables(a, b) }

/// The command line of this process from the C library: `CommandLine.arguments` reads `/proc`, and is empty without it.
package let processArguments: [String] = {
  guard var next = platform_arguments() else { return CommandLine.arguments }
  var arguments: [String] = []
  while let argument = next.pointee {
    arguments.append(String(cString: argument))
    next += 1
  }
  return arguments
}()

/// For threads, nested directories and system libraries.
private let reservedFiles: UInt64 = 128

/// Throws ``DrydockError`` (`unsupported`) when `count` files, called `what` in the message, cannot be open at once.
package func requireOpenFiles(_ count: Int, for what: String, path: String) throws {
  var limit = rlimit()
  #if os(Linux)
    let result = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  #else
    let result = getrlimit(RLIMIT_NOFILE, &limit)
  #endif
  let needed = UInt64(count) + reservedFiles
  guard result == 0, count > reservedFiles / 2, UInt64(limit.rlim_cur) < needed else { return }
  throw DrydockError(
    .unsupported,
    "\(count) \(what), need \(needed) open files, and the limit is \(limit.rlim_cur); raise the limit (ulimit -n) and "
      + "run the command again, nothing was changed", path: path)
}

/// Dies immediately, as in a power failure, at a fault point of a test.
package func killOwnProcess() { kill(getpid(), SIGKILL) }

/// Has freed memory of large arrays and buffers returned to the system, whatever is allocated between them. Otherwise glibc
/// keeps larger and larger ones in its heap, which they fragment: a restore of 100,000 files then takes twice the memory.
package func returnLargeBlocks() { platform_return_large_blocks() }
