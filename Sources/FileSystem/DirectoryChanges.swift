import CPlatform
import DrydockErrors
import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Changes below a directory. Every call works on names in open directories and does not follow links.
extension Directory {
  /// Creates one directory; an existing one is an error.
  package func createDirectory(_ path: ContainerPath, mode: UInt16 = 0o700) throws {
    try call("cannot create the directory", path) { mkdirat($0, $1, mode_t(mode)) }
  }

  /// Opens a directory of the user's, such as one of migrations; a missing one is created, in one that exists.
  package static func opened(creating path: String) throws -> Directory {
    if FollowedStatus.identity(path) == nil {
      let (parent, name) = try ContainerPath.split(path)
      try Directory(parent).createDirectory(name, mode: 0o755)
    }
    return try Directory(path)
  }

  /// Creates a directory and those above it that are missing.
  package func createDirectories(_ path: ContainerPath, mode: UInt16 = 0o700) throws {
    if path.isRoot { return }
    if let status = try status(path), status.type == .directory { return }
    try createDirectories(path.parent, mode: mode)
    try call("cannot create the directory", path, accepting: .fileExists) { mkdirat($0, $1, mode_t(mode)) }
  }

  /// Asks the file system to place new directories in this one far from each other. Otherwise ext4 places them and their
  /// files near this one, where it scans, for minutes after many files were removed (as often before a restore), every
  /// one of the freed inodes for each new file.
  package func spreadDirectories() { platform_spread_directories(descriptor.rawValue) }

  /// Creates a FIFO.
  package func createPipe(_ path: ContainerPath) throws {
    try call("cannot create the pipe", path) { mkfifoat($0, $1, 0o600) }
  }

  /// Creates a symbolic link; the target can be any bytes.
  package func createLink(_ path: ContainerPath, target: [UInt8]) throws {
    try call("cannot create the link", path) { parent, name in
      (target.map { CChar(bitPattern: $0) } + [0]).withUnsafeBufferPointer { buffer in
        buffer.baseAddress.map { symlinkat($0, parent, name) } ?? -1
      }
    }
  }

  package func linkTarget(_ path: ContainerPath) throws -> [UInt8] {
    var target = [CChar](repeating: 0, count: 4097)
    let size = try withParent(of: path) { readlinkat($0, $1, &target, target.count) }
    guard size >= 0 else { throw DrydockError.lastCall("cannot read the link", full(path)) }
    return target.prefix(size).map { UInt8(bitPattern: $0) }
  }

  /// Creates a hard link, possibly to a symbolic link itself, in a directory of the same file system.
  package func link(_ path: ContainerPath, in other: Directory, to target: ContainerPath) throws {
    try move(path, other, target, "link to") { linkat($0, $1, $2, $3, 0) }
  }

  /// Renames, replacing an existing target.
  package func rename(_ path: ContainerPath, in other: Directory, to target: ContainerPath) throws {
    try move(path, other, target, "move to", renameat)
  }

  /// Renames; an existing target is an error with cause `EEXIST`.
  package func renameNew(_ path: ContainerPath, in other: Directory, to target: ContainerPath) throws {
    try move(path, other, target, "move to", platform_rename_new)
  }

  package func exchange(_ path: ContainerPath, in other: Directory, with target: ContainerPath) throws {
    try move(path, other, target, "exchange with", platform_exchange)
  }

  private typealias Move = (Int32, UnsafePointer<CChar>, Int32, UnsafePointer<CChar>) -> Int32

  private func move(
    _ path: ContainerPath, _ other: Directory, _ target: ContainerPath, _ action: String, _ systemCall: Move
  ) throws {
    try call("cannot \(action) \(other.full(target))", path) { parent, name in
      try other.withParent(of: target) { systemCall(parent, name, $0, $1) }
    }
  }

  /// Removes anything that is not a directory.
  package func removeFile(_ path: ContainerPath, missingIsFine: Bool = false) throws {
    try call("cannot remove", path) {
      unlinkat($0, $1, 0) == 0 || (missingIsFine && currentErrno() == .noSuchFileOrDirectory) ? 0 : -1
    }
  }

  package func removeDirectory(_ path: ContainerPath) throws {
    try call("cannot remove the directory", path) { unlinkat($0, $1, AT_REMOVEDIR) }
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

  /// The maximum number of hard links of a file on this file system.
  package var linkLimit: UInt64 {
    let limit = fpathconf(descriptor.rawValue, Int32(_PC_LINK_MAX))
    return limit < 0 ? .max : UInt64(limit)
  }

  // MARK: Metadata

  /// Sets the permission bits. Not for links: one that is there now, in the place of a file or directory, is an error.
  package func setMode(_ mode: UInt16, of path: ContainerPath) throws {
    try call("cannot set the mode", path) { parent, name in
      name.pointee == 0
        ? fchmod(parent, mode_t(mode)) : fchmodat(parent, name, mode_t(mode), AT_SYMLINK_NOFOLLOW)
    }
  }

  /// Sets the owner, without following a link.
  package func setOwner(user: UInt32, group: UInt32, of path: ContainerPath) throws {
    try call("cannot set the owner", path) { parent, name in
      name.pointee == 0
        ? fchown(parent, user, group) : fchownat(parent, name, user, group, AT_SYMLINK_NOFOLLOW)
    }
  }

  /// Sets or clears the inode flag `nodump` of a file or directory.
  package func setNoDump(_ isNoDump: Bool, of path: ContainerPath) throws {
    try call("cannot set the flag nodump", path) { platform_set_no_dump($0, $1, isNoDump) }
  }

  /// Sets the modification time in nanoseconds since 1970, without following a link.
  package func setModified(_ nanoseconds: Int64, of path: ContainerPath) throws {
    try call("cannot set the modification time", path) { platform_set_modified($0, $1, nanoseconds) }
  }
}

extension Directory {
  /// Removes a path and everything below it. A mount below it is an error, found before anything is removed; a missing path
  /// is not.
  ///
  /// - Parameter removeFiles: removes files and links of a directory, which is at a path; called on all cores.
  package func removeTree(
    _ path: ContainerPath,
    removeFiles: @Sendable (ArraySlice<ContainerPath>, Directory, ContainerPath) throws -> Void = {
      names, directory, _ in
      for name in names { try directory.removeFile(name, missingIsFine: true) }
    }
  ) throws {
    guard let status = try status(path) else { return }
    guard status.type == .directory else { return try removeFile(path, missingIsFine: true) }
    let directories = try openForRemoval(path, mount: self.status().mount)
    try onAllCores(directories) { path in
      let directory = try self.directory(path)
      try onAllCores(partsOf: directory.namesByKind().others) { try removeFiles($0, directory, path) }
    }
    for directory in directories.reversed() { try removeDirectory(directory) }
  }

  /// The directories of a tree, parents first, each made writable.
  private func openForRemoval(_ path: ContainerPath, mount: UInt64) throws -> [ContainerPath] {
    guard let status = try status(path) else { return [] }
    guard status.mount == mount else {
      throw DrydockError(
        .unsupported, "another file system is mounted here; unmount it and run the command again",
        path: full(path))
    }
    if status.mode & 0o700 != 0o700 { try setMode(0o700, of: path) }
    let children = try directory(path).namesByKind().directories
    return try [path] + children.flatMap { try openForRemoval(path.appending(name: $0.bytes), mount: mount) }
  }
}

extension FileDescriptor {
  /// Sets the modification time in nanoseconds since 1970.
  package func setModified(_ nanoseconds: Int64, path: String) throws {
    guard platform_set_modified(rawValue, "", nanoseconds) == 0 else {
      throw DrydockError.lastCall("cannot set the modification time", path)
    }
  }
}
