import DrydockErrors

extension Directory {
  /// Removes a path and everything below it, never what is on another mount: finding one stops with an error before
  /// anything is removed. A path that is not there is fine.
  package func removeTree(_ path: ContainerPath) throws {
    guard let status = try status(path) else { return }
    guard status.type == .directory else { return try removeFile(path, missingIsFine: true) }
    let directories = try openForRemoval(path, mount: self.status().mount)
    // Files of one directory have to wait for each other in the kernel, those of two do not.
    try onAllCores(directories) { path in
      let directory = try self.directory(path)
      for name in try directory.namesByKind().others { try directory.removeFile(name, missingIsFine: true) }
    }
    for directory in directories.reversed() { try removeDirectory(directory) }
  }

  /// The directories of a tree, parents first, each with the right to remove what is in it.
  private func openForRemoval(_ path: ContainerPath, mount: UInt64) throws -> [ContainerPath] {
    guard let status = try status(path) else { return [] }
    guard status.mount == mount else {
      throw DrydockError(
        .unsupported, "another file system is mounted here; unmount it and run it again", path: full(path))
    }
    if status.mode & 0o700 != 0o700 { try setMode(0o700, of: path) }
    let children = try directory(path).namesByKind().directories
    return try [path] + children.flatMap { try openForRemoval(path.appending(name: $0.bytes), mount: mount) }
  }
}
