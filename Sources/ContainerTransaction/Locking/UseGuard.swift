import AppContainer
import DrydockErrors
import FileSystem
import Foundation

/// Refuses a container that is in use, and keeps its databases locked while it is changed.
struct UseGuard {
  /// Exclusive locks on every database of the container, by main file.
  let locks: [ContainerPath: DatabaseLock]
  /// What could not be seen; nil when everything was.
  let unseen: UnseenProcesses?

  /// - Parameters:
  ///   - own: other directories that Drydock itself has open.
  ///   - index: the container as it is now.
  ///   - requiresVisible: refuses where a process may have the container open without being seen.
  /// - Throws: ``DrydockError`` with code `inUse`, naming each process and path; `notVisible`.
  init(
    _ container: Container, root: Directory, own: [Directory], index: TreeIndex, requiresVisible: Bool = false
  ) throws {
    var inodes = index.inodes()
    inodes[try root.status().identity] = .root
    for group in root.groups { inodes[try group.root.status().identity] = .group(group.id) }
    let known = [root] + root.groups.map(\.root) + own
    let search = HolderSearch(
      inodes: container.isScratch ? [:] : inodes, own: Set(known.map(\.descriptor.rawValue))
    ).run()
    guard search.found.isEmpty else {
      let advice =
        search.found.allSatisfy(\.isWorkingDirectory) ? "leave that directory" : "close it"
      throw DrydockError(
        .inUse, "in use: \(search.shown); \(advice) and run it again", path: container.root)
    }
    unseen = search.unseen.isEmpty ? nil : search.unseen
    if requiresVisible, let unseen {
      throw DrydockError(
        .notVisible,
        "not all processes can be seen: \(unseen.description); run it as root and outside of containers, or without "
          + "--require-visible", path: container.root)
    }
    var locks: [ContainerPath: DatabaseLock] = [:]
    let units = try index.databaseCandidates(named: root.databases).compactMap { path in
      try root.status(path).flatMap { try root.databaseUnit(path, status: $0) }.map { (path, $0) }
    }
    try OpenFileLimit.require(units.count, for: "databases, which are kept locked", path: container.root)
    for (path, unit) in units {
      guard let lock = try Self.lock(unit.main, in: root) else {
        throw DrydockError(
          .inUse, "in use: another program holds SQLite's lock on \(path); close it and run it again",
          path: container.root)
      }
      locks[path] = lock
    }
    self.locks = locks
  }

  /// As with open files: a program that is just being started holds this process's locks for a moment, too.
  static func lock(_ main: ContainerPath, in root: Directory) throws -> DatabaseLock? {
    for _ in 0..<3 {
      if let lock = try DatabaseLock.acquire(main, in: root) { return lock }
      Thread.sleep(forTimeInterval: 0.05)
    }
    return try DatabaseLock.acquire(main, in: root)
  }
}
