import AppContainer
import DrydockErrors
import FileSystem
import Foundation

/// The container's lock: `flock` on its root directory and on the roots of its groups, exclusive for a transaction,
/// shared for a snapshot.
package struct ContainerLock: Sendable {
  /// The open, locked root, which shows the groups' roots as `.groups/<id>`.
  package let root: Directory

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
