import AppContainer
import Foundation

/// Refuses a container that is in use, and keeps its databases locked while it is changed.
struct UseGuard {
  /// Exclusive locks on every database of the container, by main file.
  let locks: [ContainerPath: DatabaseLock]
  /// What could not be seen.
  let notes: [String]

  /// - Parameters:
  ///   - own: other directories that Drydock itself has open.
  ///   - index: the container as it is now.
  /// - Throws: ``TransactionError`` with code `inUse`, naming each process and path.
  init(_ container: Container, root: Directory, own: [Directory], index: TreeIndex) throws {
    var inodes = index.inodes()
    inodes[try root.status().identity] = .root
    for group in root.groups { inodes[try group.root.status().identity] = .group(group.id) }
    let known = [root] + root.groups.map(\.root) + own
    let files = OpenFileSearch(inodes: inodes, ownDescriptors: Set(known.map(\.descriptor.rawValue)))
    var search = container.isScratch ? OpenFileSearch.Result() : files.run()
    // A program that another thread of this process is just starting holds copies of all descriptors until it
    // runs, and another Drydock command that tries for the lock has the root open for a moment: what is really
    // open is still open a little later.
    for _ in 0..<3 where !search.found.isEmpty {
      Thread.sleep(forTimeInterval: 0.05)
      search = files.run()
    }
    guard search.found.isEmpty else {
      let shown = search.found.prefix(5).map(\.description).joined(separator: "; ")
      let more = search.found.count > 5 ? " and \(search.found.count - 5) more" : ""
      throw TransactionError(
        .inUse, "in use: \(shown)\(more); close it and run it again", path: container.root)
    }
    var locks: [ContainerPath: DatabaseLock] = [:]
    for path in index.databaseCandidates() {
      guard let full = try root.status(path), let unit = try root.databaseUnit(path, status: full) else {
        continue
      }
      guard let lock = try Self.lock(unit.main, in: root) else {
        throw TransactionError(
          .inUse, "in use: another program holds SQLite's lock on \(path); close it and run it again",
          path: container.root)
      }
      locks[path] = lock
    }
    self.locks = locks
    notes =
      search.unseen == 0
      ? []
      : [
        "\(search.unseen) processes of other users could not be looked into without root; "
          + "make sure that none of them uses \(container.root)"
      ]
  }

  /// As with open files: a program that is just being started holds this process's locks for a moment, too.
  private static func lock(_ main: ContainerPath, in root: Directory) throws -> DatabaseLock? {
    for _ in 0..<3 {
      if let lock = try DatabaseLock.acquire(main, in: root) { return lock }
      Thread.sleep(forTimeInterval: 0.05)
    }
    return try DatabaseLock.acquire(main, in: root)
  }
}
