import CPlatform
import DrydockErrors
import Foundation
import SystemPackage

extension Directory {
  /// Locks the directory's inode (`flock`) for as long as this object lives, without waiting.
  ///
  /// - Returns: false when somebody else holds a lock that excludes this one.
  package func tryLock(exclusive: Bool) throws -> Bool {
    if platform_lock_whole(descriptor.rawValue, exclusive) == 0 { return true }
    let error = currentErrno()
    if error == .wouldBlock || error == .resourceTemporarilyUnavailable { return false }
    throw DrydockError.system("cannot lock", path, error)
  }

  /// Opens a directory and locks it as ``tryLock(exclusive:)`` does, waiting for it.
  ///
  /// What is behind a path may be replaced meanwhile: after the lock is granted, the path must still name that inode.
  ///
  /// - Parameters:
  ///   - timeout: seconds to wait; 0 waits for a tenth of a second.
  ///   - isScratch: whether what is in it is thrown away.
  /// - Returns: nil when the time is over.
  package static func locked(
    _ path: String, exclusive: Bool, timeout: Double, isScratch: Bool = false
  ) throws -> Directory? {
    // A program that this process is just starting in another thread holds copies of all descriptors until it runs,
    // and so for a moment a lock that was given back already.
    let deadline = Date().addingTimeInterval(max(timeout, 0.1))
    while true {
      // Whoever waits must not have it open meanwhile: who holds the lock would take it for a user.
      let isOver = Date() >= deadline
      do {
        let directory = try Directory(path, isScratch: isScratch)
        if try directory.tryLock(exclusive: exclusive) {
          if try Directory(path).status().identity == directory.status().identity { return directory }
          continue
        }
      }
      if isOver { return nil }
      Thread.sleep(forTimeInterval: 0.02)
    }
  }
}

/// Dies at once, as a power cut would: what a fault point does in tests.
package func killOwnProcess() { platform_kill_self() }
