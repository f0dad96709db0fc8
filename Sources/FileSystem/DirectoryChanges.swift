import CPlatform
import DrydockErrors
import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// `openat` with a mode, which is variadic and so out of Swift's own reach for a raw directory descriptor.
func systemOpen(_ parent: Int32, _ name: UnsafePointer<CChar>, _ flags: Int32, _ mode: mode_t) -> Int32 {
  openat(parent, name, flags, mode)
}

/// Changing what a directory holds. Every call works on names in open directories and follows no link.
extension Directory {
  /// Makes one directory; an existing one is an error.
  package func createDirectory(_ path: ContainerPath, mode: UInt16 = 0o700) throws {
    let result = try withParent(of: path) { mkdirat($0, $1, mode_t(mode)) }
    guard result == 0 else { throw DrydockError.lastCall("cannot create the directory", full(path)) }
  }

  /// Makes a directory and those above it that are missing; existing ones are fine.
  package func createDirectories(_ path: ContainerPath, mode: UInt16 = 0o700) throws {
    if path.isRoot { return }
    if let status = try status(path), status.type == .directory { return }
    try createDirectories(path.parent, mode: mode)
    let result = try withParent(of: path) { mkdirat($0, $1, mode_t(mode)) }
    guard result == 0 || currentErrno() == .fileExists else {
      throw DrydockError.lastCall("cannot create the directory", full(path))
    }
  }

  /// Asks the file system to put directories that are made in this one far from each other, where it knows how: ext4
  /// puts them, and what is in them, beside what is above them otherwise. There, for minutes after many files were
  /// removed (what often comes before a restore), it looks at every one of their inodes for each file that is made.
  package func spreadDirectories() { platform_spread_directories(descriptor.rawValue) }

  /// Makes a symbolic link with a target of any bytes.
  package func createLink(_ path: ContainerPath, target: [UInt8]) throws {
    let result = try withParent(of: path) { parent, name in
      (target.map { CChar(bitPattern: $0) } + [0]).withUnsafeBufferPointer { buffer in
        buffer.baseAddress.map { symlinkat($0, parent, name) } ?? -1
      }
    }
    guard result == 0 else { throw DrydockError.lastCall("cannot create the link", full(path)) }
  }

  /// What a symbolic link points to.
  package func linkTarget(_ path: ContainerPath) throws -> [UInt8] {
    var target = [CChar](repeating: 0, count: 4097)
    let size = try withParent(of: path) { readlinkat($0, $1, &target, target.count) }
    guard size >= 0 else { throw DrydockError.lastCall("cannot read the link", full(path)) }
    return target.prefix(size).map { UInt8(bitPattern: $0) }
  }

  /// Gives an inode a second name, in another directory of the same file system; a link gets a name itself.
  package func link(_ path: ContainerPath, in other: Directory, to target: ContainerPath) throws {
    let result = try withParent(of: path) { parent, name in
      try other.withParent(of: target) { linkat(parent, name, $0, $1, 0) }
    }
    guard result == 0 else {
      throw DrydockError.lastCall("cannot link to \(other.full(target))", full(path))
    }
  }

  /// Renames into another directory, replacing what is there.
  package func rename(_ path: ContainerPath, in other: Directory, to target: ContainerPath) throws {
    let result = try withParent(of: path) { parent, name in
      try other.withParent(of: target) { renameat(parent, name, $0, $1) }
    }
    guard result == 0 else {
      throw DrydockError.lastCall("cannot move to \(other.full(target))", full(path))
    }
  }

  /// Renames; an existing target is an error with cause `EEXIST`.
  package func renameNew(_ path: ContainerPath, in other: Directory, to target: ContainerPath) throws {
    let result = try withParent(of: path) { parent, name in
      try other.withParent(of: target) { platform_rename_new(parent, name, $0, $1) }
    }
    guard result == 0 else {
      throw DrydockError.lastCall("cannot move to \(other.full(target))", full(path))
    }
  }

  /// Exchanges two paths in one step.
  package func exchange(_ path: ContainerPath, in other: Directory, with target: ContainerPath) throws {
    let result = try withParent(of: path) { parent, name in
      try other.withParent(of: target) { platform_exchange(parent, name, $0, $1) }
    }
    guard result == 0 else {
      throw DrydockError.lastCall("cannot exchange with \(other.full(target))", full(path))
    }
  }

  /// Removes a file, link or other thing that is not a directory.
  package func removeFile(_ path: ContainerPath, missingIsFine: Bool = false) throws {
    let result = try withParent(of: path) { unlinkat($0, $1, 0) }
    guard result == 0 || (missingIsFine && currentErrno() == .noSuchFileOrDirectory) else {
      throw DrydockError.lastCall("cannot remove", full(path))
    }
  }

  /// Removes an empty directory.
  package func removeDirectory(_ path: ContainerPath) throws {
    let result = try withParent(of: path) { unlinkat($0, $1, AT_REMOVEDIR) }
    guard result == 0 else { throw DrydockError.lastCall("cannot remove the directory", full(path)) }
  }

  /// Whether this user may add and remove names in a directory below.
  package func isWritable(_ path: ContainerPath) throws -> Bool {
    try withParent(of: path) { parent, name in
      name.pointee == 0
        ? faccessat(parent, ".", W_OK | X_OK, AT_EACCESS) == 0
        : faccessat(parent, name, W_OK | X_OK, AT_EACCESS) == 0
    }
  }

  /// Whether this user may read and write a file below.
  package func isReadableAndWritable(_ path: ContainerPath) throws -> Bool {
    try withParent(of: path) { faccessat($0, $1, R_OK | W_OK, AT_EACCESS) == 0 }
  }

  // MARK: Metadata

  /// Sets permission bits; a link's own are never changed.
  package func setMode(_ mode: UInt16, of path: ContainerPath) throws {
    let result = try withParent(of: path) { parent, name in
      name.pointee == 0 ? fchmod(parent, mode_t(mode)) : fchmodat(parent, name, mode_t(mode), 0)
    }
    guard result == 0 else { throw DrydockError.lastCall("cannot set the mode", full(path)) }
  }

  /// Sets the owner, of a link itself.
  package func setOwner(user: UInt32, group: UInt32, of path: ContainerPath) throws {
    let result = try withParent(of: path) { parent, name in
      name.pointee == 0
        ? fchown(parent, user, group) : fchownat(parent, name, user, group, AT_SYMLINK_NOFOLLOW)
    }
    guard result == 0 else { throw DrydockError.lastCall("cannot set the owner", full(path)) }
  }

  /// Sets or clears the inode flag `nodump` of a file or directory.
  package func setNoDump(_ isNoDump: Bool, of path: ContainerPath) throws {
    let result = try withParent(of: path) { platform_set_no_dump($0, $1, isNoDump) }
    guard result == 0 else { throw DrydockError.lastCall("cannot set the flag nodump", full(path)) }
  }

  /// Sets the modification time in nanoseconds since 1970, of a link itself.
  package func setModified(_ nanoseconds: Int64, of path: ContainerPath) throws {
    let result = try withParent(of: path) { platform_set_modified($0, $1, nanoseconds) }
    guard result == 0 else { throw DrydockError.lastCall("cannot set the modification time", full(path)) }
  }
}
