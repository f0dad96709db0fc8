import DrydockErrors

package struct WalkEntry {
  package let path: ContainerPath
  package let status: FileStatus
  package let parent: Directory
  /// Its name in `parent`, as a path of one component.
  package let name: ContainerPath
}

/// How a walk continues after a visit.
package enum WalkStep {
  /// With the contents of the path, if it is a directory.
  case into
  /// After the path and everything below it.
  case over
}

extension Directory {
  /// Visits everything below this directory, parents first, names in the order of their bytes. Links are not followed, and
  /// other mounts are not entered except the roots of groups. The list of groups is not visited. Paths that another process
  /// removes during the walk are skipped.
  ///
  /// - Parameters:
  ///   - start: the directory to start in, which is not visited itself.
  ///   - unreadable: handles a directory that cannot be opened or listed; by default the error is thrown.
  ///   - isKnown: whether a path need not be visited, by what the listing says of it; no status is read of it.
  package func walk(
    from start: ContainerPath = .root,
    unreadable: (ContainerPath, DrydockError) throws -> Void = { throw $1 },
    except isKnown: (ContainerPath, NameList.Item) -> Bool = { _, _ in false },
    visit: (WalkEntry) throws -> WalkStep
  ) throws {
    let top = start.isRoot ? self : try directory(start)
    try walk(top, start, mount: top.status().mount, isKnown, unreadable, visit)
  }

  private func walk(
    _ directory: Directory, _ path: ContainerPath, mount: UInt64,
    _ isKnown: (ContainerPath, NameList.Item) -> Bool,
    _ unreadable: (ContainerPath, DrydockError) throws -> Void, _ visit: (WalkEntry) throws -> WalkStep
  ) throws {
    let items: [NameList.Item]
    do {
      items = try directory.items()
    } catch let error as DrydockError {
      return try unreadable(path, error)
    }
    for item in items {
      let name = ContainerPath(unchecked: item.name)
      let child = path.appending(unchecked: item.name)
      guard !isKnown(child, item), let status = try directory.status(name) else { continue }
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
      try walk(opened, child, mount: status.mount, isKnown, unreadable, visit)
    }
  }
}
