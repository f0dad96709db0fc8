import DrydockErrors

/// One path that a walk came to.
package struct WalkEntry {
  /// Its path below the directory that the walk started from.
  package let path: ContainerPath
  /// Its status, of a link itself.
  package let status: FileStatus
  /// The open directory it is in.
  package let parent: Directory
  /// Its name in that directory, as a path of one component.
  package let name: ContainerPath
}

/// What a walk does after a visit.
package enum WalkStep {
  /// Go on, into the path when it is a directory.
  case into
  /// Go on, not into it.
  case over
}

extension Directory {
  /// Visits everything below this directory, parents first and each directory's names in the order of their
  /// bytes. Links are not followed and other mounts not entered, but for the roots of groups, wherever they are; the list
  /// of groups itself is not visited.
  ///
  /// What vanishes while the walk runs is passed over: it is somebody else's removal, not an error.
  ///
  /// - Parameters:
  ///   - start: where to start; the start itself is not visited.
  ///   - unreadable: takes a directory that cannot be opened or listed; by default it is thrown.
  package func walk(
    from start: ContainerPath = .root,
    unreadable: (ContainerPath, DrydockError) throws -> Void = { throw $1 },
    visit: (WalkEntry) throws -> WalkStep
  ) throws {
    let top = start.isRoot ? self : try directory(start)
    try walk(top, start, mount: top.status().mount, unreadable, visit)
  }

  private func walk(
    _ directory: Directory, _ path: ContainerPath, mount: UInt64,
    _ unreadable: (ContainerPath, DrydockError) throws -> Void, _ visit: (WalkEntry) throws -> WalkStep
  ) throws {
    let names: [[UInt8]]
    do {
      names = try directory.names()
    } catch let error as DrydockError {
      return try unreadable(path, error)
    }
    for bytes in names {
      let name = ContainerPath(unchecked: bytes)
      guard let status = try directory.status(name) else { continue }
      let child = path.appending(unchecked: bytes)
      if !directory.isGroupList(name) {
        let step = try visit(WalkEntry(path: child, status: status, parent: directory, name: name))
        let isReachable = status.mount == mount || directory.isGroupList(.root)
        guard step == .into, status.type == .directory, isReachable else { continue }
      }
      let opened: Directory
      do {
        opened = try directory.directory(name)
      } catch let error as DrydockError {
        if error.code != .notFound { try unreadable(child, error) }
        continue
      }
      try walk(opened, child, mount: status.mount, unreadable, visit)
    }
  }
}
