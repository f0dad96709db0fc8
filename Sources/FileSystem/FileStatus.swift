import CPlatform
import DrydockErrors
import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

package enum FileType: String, Sendable, Codable {
  case file, directory, symbolicLink
  /// A socket, FIFO or device.
  case other
}

/// The status of a path; links are not followed.
package struct FileStatus: Sendable, Hashable {
  package var type: FileType
  /// Permission bits, with set-user-id, set-group-id and sticky.
  package var mode: UInt16
  package var size: UInt64
  /// Allocated blocks of 512 bytes.
  package var blocks: UInt64
  /// Modification and status-change times, nanoseconds since 1970.
  package var modified, changed: Int64
  /// The inode and the mount that it was reached through.
  package var device, inode, mount: UInt64
  package var links: UInt64
  package var user, group: UInt32
  /// Whether a file system is mounted here, where the kernel reports it.
  package var isMountRoot: Bool
  /// The inode flag `nodump`, which asks backup programs to skip the path.
  package var isNoDump: Bool
  /// Whether the inode is immutable or append-only (`chattr +i`, `+a`), where the kernel reports it: even root cannot
  /// rename, link or remove it.
  package var isImmutable: Bool

  init(_ status: platform_status) {
    switch status.mode & 0o170000 {
    case 0o100000: type = .file
    case 0o040000: type = .directory
    case 0o120000: type = .symbolicLink
    default: type = .other
    }
    mode = UInt16(status.mode & 0o7777)
    (size, blocks, links) = (status.size, status.blocks, status.links)
    (modified, changed) = (status.modified, status.changed)
    (device, inode, mount) = (status.device, status.inode, status.mount)
    (user, group) = (status.user, status.group)
    (isMountRoot, isNoDump, isImmutable) = (status.mount_root, status.no_dump, status.immutable)
  }

  /// Whether it takes less space than its size: it may have holes.
  package var isSparse: Bool { blocks * 512 < size }

  /// Bytes that a copy takes, which has the same holes.
  package var space: UInt64 { min(size, blocks * 512) }

  /// The inode, independent of its names.
  package var identity: FileIdentity { FileIdentity(device: device, inode: inode) }
}

/// Identifies an inode on this machine.
package struct FileIdentity: Hashable, Sendable, Codable {
  /// The device number as the kernel packs it, and the inode number on it.
  package var device, inode: UInt64

  package init(device: UInt64, inode: UInt64) {
    self.device = device
    self.inode = inode
  }
}

extension FileStatus {
  /// The status that a record has of a path: what shows a later change.
  package init(
    type: FileType, identity: FileIdentity, size: UInt64, modified: Int64, changed: Int64, mode: UInt16,
    user: UInt32, group: UInt32
  ) {
    (self.type, self.mode, self.size, self.user, self.group) = (type, mode, size, user, group)
    (self.modified, self.changed) = (modified, changed)
    (device, inode, mount, blocks, links) = (identity.device, identity.inode, 0, 0, 0)
    (isMountRoot, isNoDump, isImmutable) = (false, false, false)
  }

  /// The status of a directory that exists only in a plan.
  package init(directory metadata: FileMetadata) {
    self.init(
      type: .directory, identity: FileIdentity(device: 0, inode: 0), size: 0, modified: metadata.modified,
      changed: metadata.modified, mode: metadata.mode, user: metadata.user, group: metadata.group)
    (links, isNoDump) = (1, metadata.isNoDump)
  }
}

extension FileStatus {
  package init(of file: FileDescriptor, path: String) throws {
    var status = platform_status()
    guard platform_status(file.rawValue, "", &status) == 0 else {
      throw DrydockError.lastCall("cannot read the status of", path)
    }
    self.init(status)
  }
}

extension FileStatus {
  /// The change time that a file would get now, from a clock that ticks every few milliseconds.
  package static func timeOfChangesNow() -> Int64 { platform_stamp_time() }
}

extension Directory {
  /// When the inode of a path was created, in nanoseconds since 1970; nil where the file system does not record it.
  package func birthTime(of path: ContainerPath) throws -> Int64? {
    var birth: Int64 = 0
    return try withParent(of: path) { platform_birth($0, $1, &birth) } == 0 ? birth : nil
  }
}

/// The status of the target of links: in `/proc`, a link leads to an open file without opening it again.
package enum FollowedStatus {
  private static func status(_ path: String) -> stat? {
    var status = stat()
    return stat(path, &status) == 0 ? status : nil
  }

  /// The inode that a path leads to; nil when there is none, or it may not be followed.
  package static func identity(_ path: String) -> FileIdentity? {
    status(path).map {
      FileIdentity(device: UInt64(truncatingIfNeeded: $0.st_dev), inode: UInt64($0.st_ino))
    }
  }

  /// The inode that a path leads to, and the time of its last change: another text when it was changed; nil when there is none.
  package static func version(_ path: String) -> String? {
    status(path).map { status in
      #if canImport(Darwin)
        let time = status.st_ctimespec
      #else
        let time = status.st_ctim
      #endif
      return "\(status.st_dev) \(status.st_ino) \(time.tv_sec) \(time.tv_nsec)"
    }
  }

  /// Whether a path leads to a regular file; what is not one may make who opens it wait.
  package static func isFile(_ path: String) -> Bool {
    status(path).map { $0.st_mode & S_IFMT == S_IFREG } ?? false
  }

  /// Whether a path leads to a directory.
  package static func isDirectory(_ path: String) -> Bool {
    status(path).map { $0.st_mode & S_IFMT == S_IFDIR } ?? false
  }

  /// The number of hard links of the target of a path.
  package static func links(_ path: String) -> Int? { status(path).map { Int($0.st_nlink) } }

  /// A device number as `stat` has it.
  package static func device(major: UInt64, minor: UInt64) -> UInt64 {
    #if os(Linux)
      (minor & 0xff) | ((major & 0xfff) << 8) | ((minor & ~0xff) << 12) | ((major & ~0xfff) << 32)
    #else
      (major << 24) | minor
    #endif
  }
}
