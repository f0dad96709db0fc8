import AppContainer
import AppStores
import DrydockErrors
import FileSystem
import Foundation

/// The container's lock: `flock` on its root directory and on the roots of its groups, exclusive for a transaction,
/// shared for a snapshot; and a transaction's locks on its databases, once it was found unused.
package struct ContainerLock: Sendable {
  /// The open, locked root, which shows the groups' roots as `.groups/<id>`.
  package let root: Directory
  /// SQLite's exclusive locks on its databases, by main file.
  package private(set) var databases: [ContainerPath: DatabaseLock] = [:]
  /// Processes that may have it open without having been seen; nil when all could be seen, or none were looked for.
  private(set) var unseen: UnseenProcesses?

  /// Takes the lock.
  ///
  /// An exchange replaces the inode behind the path: after the lock is granted, the path must still name it. Readers are
  /// refused while a commit is half done, in place or in some of several roots: what is there is neither old nor new.
  ///
  /// - Parameters:
  ///   - exclusive: false for readers.
  ///   - timeout: seconds to wait; 0 fails after a tenth of a second.
  /// - Throws: ``DrydockError``: `locked`, naming who holds it; `interrupted`.
  package init(_ container: Container, exclusive: Bool, timeout: Double) throws {
    let root = try Self.lock(container.root, exclusive, timeout, isScratch: container.isScratch)
    let groups = try Self.groups(of: container, exclusive: exclusive, timeout: timeout)
    if !exclusive {
      try Self.requireWhole(root)
      try GroupMarker.requireFinished(container)
    }
    self.root = root.showing(groups: groups).naming(databases: container.configuration.databasePaths)
  }

  /// For what no other command changes: a root that is locked already, or the folder of a transaction.
  init(holding root: Directory) { self.root = root }

  /// Locks the roots of a container's groups, in the same order by all who share them.
  static func groups(
    of container: Container, exclusive: Bool, timeout: Double
  ) throws -> [String: Directory] {
    var groups: [String: Directory] = [:]
    for group in container.groups.sorted(by: { $0.root < $1.root }) {
      groups[group.id] = try lock(group.root, exclusive, timeout, isScratch: container.isScratch)
    }
    return groups
  }

  static func lock(
    _ path: String, _ exclusive: Bool, _ timeout: Double, isScratch: Bool = false
  ) throws -> Directory {
    let locked = try Directory.locked(path, exclusive: exclusive, timeout: timeout, isScratch: isScratch)
    guard let root = locked else {
      throw DrydockError(
        .locked,
        "locked by \(try holders(of: path)); wait for it", path: path)
    }
    return root
  }
}

/// The guard of a transaction.
extension ContainerLock {
  /// Refuses a container in use, and locks its databases.
  ///
  /// - Parameters:
  ///   - own: other directories that Drydock itself has open.
  ///   - index: the container as it is now.
  ///   - requiresVisible: refuses where a process may have the container open without being seen.
  /// - Throws: ``DrydockError`` with code `inUse`, naming each process and path; `notVisible`.
  mutating func requireUnused(
    _ container: Container, own: [Directory], index: TreeIndex, requiresVisible: Bool = false
  ) throws {
    var roots = [try root.status().identity: ContainerPath.root]
    for group in root.groups { roots[try group.root.status().identity] = .group(group.id) }
    let known = [root] + root.groups.map(\.root) + own
    let search = OpenFileSearch(
      inodes: container.isScratch ? [:] : roots, tree: container.isScratch ? nil : InodePaths(index),
      own: Set(known.map(\.descriptor.rawValue)), owner: try Self.owner(root.status())
    ).run()
    guard search.found.isEmpty else {
      let advice =
        search.found.allSatisfy(\.isWorkingDirectory) ? "leave that directory" : "close it"
      throw DrydockError(
        .inUse, "in use: \(search.found.shown); \(advice) and run it again", path: container.root)
    }
    unseen = search.unseen.isEmpty ? nil : search.unseen
    if requiresVisible, let unseen {
      throw DrydockError(
        .notVisible,
        "not all processes can be seen: \(unseen.description); run this as root and outside of "
          + "containers", path: container.root)
    }
    let units = try index.databaseCandidates(named: root.databases).compactMap { path in
      try root.status(path).flatMap { status in
        try root.databaseUnit(path, status: status).map { (path, $0, status.links > 1) }
      }
    }
    try requireOpenFiles(units.count, for: "databases, which are kept locked", path: container.root)
    // One with two names in the container is locked once: the second lock would be refused for the first.
    // On an overlay the names are two files once one was opened.
    var linked: [FileIdentity: DatabaseLock] = [:]
    for (path, unit, isLinked) in units {
      let known = isLinked ? try root.status(path).flatMap { linked[$0.identity] } : nil
      guard let lock = try known ?? DatabaseLock.acquireRepeatedly(unit.main, in: root) else {
        throw DrydockError(
          .inUse, "in use: another program holds SQLite's lock on \(path); close it and run it again",
          path: container.root)
      }
      databases[path] = lock
      if isLinked { linked[try FileStatus(of: lock.file, path: root.full(path)).identity] = lock }
    }
  }

  /// The only user whose processes may be an app that changes the container: nobody else may write there, except for
  /// root, whose services are not the app. Nil when everybody may.
  private static func owner(_ status: FileStatus) -> UInt32? { status.mode & 0o022 == 0 ? status.user : nil }
}

extension DatabaseLock {
  /// As with open files: a program that is just being started holds this process's locks for a moment, too.
  static func acquireRepeatedly(_ main: ContainerPath, in root: Directory) throws -> DatabaseLock? {
    for _ in 0..<3 {
      if let lock = try acquire(main, in: root) { return lock }
      Thread.sleep(forTimeInterval: 0.05)
    }
    return try acquire(main, in: root)
  }

  /// Locks a main file that comes back from the undo log: a process that waits for its lock would go on with it.
  ///
  /// - Throws: ``DrydockError`` with code `inUse` when another process has it locked.
  static func acquire(returning main: ContainerPath, in stage: Directory, to path: ContainerPath) throws
    -> DatabaseLock
  {
    if let lock = try acquireRepeatedly(main, in: stage) { return lock }
    throw DrydockError(
      .inUse,
      "in use: another program holds SQLite's lock on the version that comes back; close it and run it again",
      path: path.description)
  }
}

extension ContainerLock {
  /// While the lock is held, no other command runs: a journaled replacement without an end was interrupted.
  private static func requireWhole(_ root: Directory) throws {
    let name = ContainerPath.stateDirectory
    guard try root.status(name)?.type == .directory,
      let commit = try Journal(state: root.directory(name)).records().unfinishedInPlace
    else { return }
    throw DrydockError(
      .interrupted,
      "transaction \(commit.transaction) was interrupted while it changed the container in place, which is neither "
        + "old nor new; recover the container as its owner, or as root",
      path: root.path)
  }

  /// Who holds the `flock` on a path, for a message: `process 4711 (drydock)`, as `/proc/locks` says; on macOS, the processes
  /// that have the directory open.
  ///
  /// - Throws: `DrydockError` when nothing is there.
  package static func holders(of path: String) throws -> String {
    let holders = holders(try Directory(path).status().identity)
    return holders.isEmpty ? "another process" : holders.joined(separator: ", ")
  }

  #if os(Linux)
    private static func holders(_ identity: FileIdentity) -> [String] {
      guard let bytes = ProcessTable.contents("/proc/locks") else { return [] }
      return String(decoding: bytes, as: UTF8.self).split(separator: "\n").compactMap { line in
        let fields = line.split(separator: " ")
        guard fields.count > 5, fields.contains("FLOCK"), !fields.contains("->"),
          let place = fields.first(where: { $0.split(separator: ":").count == 3 }),
          place.split(separator: ":").last.flatMap({ UInt64($0) }) == identity.inode,
          let process = fields.dropFirst(4).first.flatMap({ Int32($0) }), process > 0
        else { return nil }
        let isOwn = process == ProcessInfo.processInfo.processIdentifier
        return isOwn ? "this process itself" : "process \(process) (\(ProcessTable.name(of: process)))"
      }
    }
  #else
    // macOS: untested
    private static func holders(_ identity: FileIdentity) -> [String] {
      OpenFileSearch(inodes: [identity: .root], own: []).run().found
        .filter { $0.process != ProcessTable.own && !$0.isWorkingDirectory }
        .map { "process \($0.process) (\($0.processName))" }
    }
  #endif
}
