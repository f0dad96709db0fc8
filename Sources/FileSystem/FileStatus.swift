import CPlatform
import DrydockErrors
import SystemPackage

/// What kind of thing a path names.
package enum FileType: String, Sendable, Codable {
  case file, directory, symbolicLink
  /// A socket, FIFO or device: recorded, never stored.
  case other
}

/// The status of a path, of a link itself rather than what it points to.
package struct FileStatus: Sendable, Hashable {
  /// What kind of thing it is.
  package var type: FileType
  /// Permission bits, with set-user-id, set-group-id and sticky.
  package var mode: UInt16
  /// Bytes.
  package var size: UInt64
  /// Allocated blocks of 512 bytes.
  package var blocks: UInt64
  /// Modification and status-change times, nanoseconds since 1970.
  package var modified, changed: Int64
  /// Identity of the inode, and of the mount it was reached through.
  package var device, inode, mount: UInt64
  /// Number of names the inode has.
  package var links: UInt64
  /// Owner and group.
  package var user, group: UInt32
  /// Whether a file system is mounted here (where the kernel tells).
  package var isMountRoot: Bool
  /// Whether the inode has the flag `nodump`, which asks backup programs to pass it over.
  package var isNoDump: Bool
  /// Whether the inode is immutable or append-only (`chattr +i`, `+a`; where the kernel reports it): not even root may rename,
  /// link or remove it.
  package var isFixed: Bool

  init(_ status: platform_status) {
    switch status.mode & 0o170000 {
    case 0o100000: type = .file
    case 0o040000: type = .directory
    case 0o120000: type = .symbolicLink
    default: type = .other
    }
    mode = UInt16(status.mode & 0o7777)
    size = status.size
    blocks = status.blocks
    modified = status.modified
    changed = status.changed
    device = status.device
    inode = status.inode
    mount = status.mount
    links = status.links
    user = status.user
    group = status.group
    isMountRoot = status.mount_root
    isNoDump = status.no_dump
    isFixed = status.fixed
  }

  /// The inode, whatever its names.
  package var identity: FileIdentity { FileIdentity(device: device, inode: inode) }
}

/// An inode on this machine.
package struct FileIdentity: Hashable, Sendable, Codable {
  /// The device number as the kernel packs it, and the inode number on it.
  package var device, inode: UInt64

  /// An identity from its parts.
  package init(device: UInt64, inode: UInt64) {
    self.device = device
    self.inode = inode
  }
}

extension FileStatus {
  /// The status of a directory that exists only in a plan.
  package init(directory metadata: FileMetadata) {
    type = .directory
    mode = metadata.mode
    (size, blocks, device, inode, mount, links) = (0, 0, 0, 0, 0, 1)
    (modified, changed) = (metadata.modified, metadata.modified)
    (user, group) = (metadata.user, metadata.group)
    isMountRoot = false
    isNoDump = metadata.isNoDump
    isFixed = false
  }
}

extension FileStatus {
  /// The status of an open file.
  package init(of file: FileDescriptor, path: String) throws {
    var status = platform_status()
    guard platform_status(file.rawValue, "", &status) == 0 else {
      throw DrydockError.lastCall("cannot look at", path)
    }
    self.init(status)
  }
}
