import AppContainer
import DrydockErrors
import FileSystem

extension Transaction {
  /// Ends what an interrupted transaction left, as every command does at its start: an app that uses containers which may
  /// be changed in place calls it before it opens anything in its own.
  ///
  /// With nothing to do it costs a few system calls: then no lock is taken and nothing written.
  ///
  /// - Returns: what was found, and how the container is; empty when nothing was interrupted.
  /// - Throws: ``DrydockError``: `locked` (another process is at work, and nothing may be interrupted), `inUse` (a
  ///   program uses the container), `damagedState`, `foreignState`, `interrupted` (the container is not where it was, or a
  ///   commit in place can go neither forwards nor back now).
  @discardableResult
  package static func recover(_ container: Container, lockTimeout: Double = 0) throws -> [RecoveryReport] {
    _ = try StateDirectory.all(of: container)
    return try recoverOwn(container, lockTimeout: lockTimeout)
  }

  /// As ``recover(_:lockTimeout:)``, for a command that may be one that only reads.
  ///
  /// - Returns: what was found, and what was left as it is, with the reason.
  package static func recoverForReading(
    _ container: Container
  ) throws -> (reports: [RecoveryReport], notes: [String]) {
    var notes = try StateDirectory.readable(of: container).foreign.map(\.description)
    do {
      return (try recoverOwn(container, lockTimeout: 0), notes)
    } catch let error as DrydockError where error.code == .locked {
      // Another command is at work on it: nothing is interrupted, and whoever needs the lock will say so.
    } catch let error as DrydockError where error.code == .inUse {
      // What can be read all the same is read, and what is half old and half new is not: the lock says so.
      notes.append(error.description)
    } catch let error as DrydockError where error.code == .permission {
      notes.append(error.description)
    }
    return ([], notes)
  }

  private static func recoverOwn(_ container: Container, lockTimeout: Double) throws -> [RecoveryReport] {
    // Leftovers of killed commands: who cannot remove them is not kept from recovering.
    try? ScratchDirectory.removeStaleTemporary()
    guard try isRecoveryNeeded(container) else { return [] }
    if FollowedStatus.identity(container.root) == nil {
      let states = try StateDirectory.readable(of: container).states
      for state in states {
        guard try state.directory.tryLock(exclusive: true) else {
          throw DrydockError(
            .locked, "locked by another process that makes it; wait for it", path: container.root)
        }
      }
      return try states.flatMap {
        try Recovery(container: container, state: $0, root: nil, own: [$0.parent]).run()
      }
    }
    let lock = try ContainerLock(container, exclusive: true, timeout: lockTimeout)
    return try recover(container, root: lock.root)
  }

  /// Opens the state for no longer than that: open directories of the container count as use of it.
  private static func isRecoveryNeeded(_ container: Container) throws -> Bool {
    let states = try StateDirectory.readable(of: container).states
    return try states.contains(where: Recovery.isNeeded) || LateWrites.mayBeThere(in: states)
  }

  /// With the lock held; the state inside first, whose commits leave mixtures.
  static func recover(_ container: Container, root: Directory) throws -> [RecoveryReport] {
    let states = try StateDirectory.readable(of: container).states
    let recovered = try states.reversed().flatMap {
      try Recovery(container: container, state: $0, root: root, own: states.map(\.parent)).run()
    }
    return try recovered
      + LateWrites.keep(in: states).map {
        RecoveryReport(transaction: $0.transaction, outcome: .writtenLater, conflicts: $0.paths)
      }
  }
}
