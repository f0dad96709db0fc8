import AppContainer
import Foundation

/// The container's lock: `flock` on its root directory, exclusive for a transaction, shared for a snapshot.
public struct ContainerLock: Sendable {
  /// The open, locked root.
  public let root: Directory

  /// Takes the lock.
  ///
  /// An exchange replaces the inode behind the path: after the lock is granted, the path must still name it. Who only
  /// reads is refused while a commit in place is half done: what is there is neither old nor new.
  ///
  /// - Parameters:
  ///   - path: the container's resolved root.
  ///   - exclusive: false for one who only reads.
  ///   - timeout: seconds to wait; 0 fails after a tenth of a second.
  /// - Throws: ``TransactionError``: `locked`, naming who holds it; `interrupted`.
  public init(_ path: String, exclusive: Bool, timeout: Double) throws {
    // A program that this process is just starting in another thread holds copies of all descriptors until it runs,
    // and so for a moment a lock that was given back already.
    let deadline = Date().addingTimeInterval(max(timeout, 0.1))
    while true {
      // Whoever waits must not have the root open meanwhile: who holds the lock would take it for a user.
      let isOver = Date() >= deadline
      let holders: [String]
      do {
        let root = try Directory(path)
        if try root.tryLock(exclusive: exclusive) {
          if try Directory(path).status().identity == root.status().identity {
            self.root = root
            if !exclusive { try Self.requireWhole(root) }
            return
          }
          continue
        }
        holders = isOver ? try LockHolders.of(root.status().identity) : []
      }
      if isOver {
        throw TransactionError(
          .locked,
          "locked by \(holders.isEmpty ? "another process" : holders.joined(separator: ", ")); "
            + "wait for it, or give --lock-timeout SECONDS", path: path)
      }
      Thread.sleep(forTimeInterval: 0.02)
    }
  }
}

extension ContainerLock {
  /// With the lock held nobody is at work: a commit in place that has no end was interrupted.
  private static func requireWhole(_ root: Directory) throws {
    let name = ExclusionRules.stateDirectory
    guard try root.status(name)?.type == .directory,
      let commit = try Journal(state: root.directory(name)).records().unfinishedInPlace
    else { return }
    throw TransactionError(
      .interrupted,
      "transaction \(commit.transaction) was interrupted while it changed the container in place, which is neither "
        + "old nor new; run `drydock recover` (in code: `Transaction.recover`) as its owner, or as root",
      path: root.path)
  }
}

/// Who holds a `flock`, as the kernel tells in `/proc/locks`; unknown on other systems.
enum LockHolders {
  static func of(_ identity: FileIdentity) -> [String] {
    guard let bytes = ProcessTable.contents("/proc/locks") else { return [] }
    let locks = String(decoding: bytes, as: UTF8.self)
    let own = ProcessInfo.processInfo.processIdentifier
    var holders: [String] = []
    for line in locks.split(separator: "\n") {
      let fields = line.split(separator: " ")
      guard fields.count > 5, fields.contains("FLOCK"), !fields.contains("->"),
        let place = fields.first(where: { $0.split(separator: ":").count == 3 }),
        place.split(separator: ":").last.flatMap({ UInt64($0) }) == identity.inode,
        let process = fields.dropFirst(4).first.flatMap({ Int32($0) }), process > 0
      else { continue }
      let name = ProcessTable.name(of: process)
      holders.append(process == own ? "this process itself" : "process \(process) (\(name))")
    }
    return holders
  }
}
