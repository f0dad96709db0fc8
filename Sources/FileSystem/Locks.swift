import CPlatform
import DrydockErrors
import Foundation
import SystemPackage

extension Directory {
  /// Locks the directory's inode (`flock`) until this object is released, without waiting.
  ///
  /// - Returns: false when another process holds a conflicting lock.
  package func tryLock(exclusive: Bool) throws -> Bool {
    if platform_lock_whole(descriptor.rawValue, exclusive) == 0 {
      noteLock()
      return true
    }
    let error = currentErrno()
    if error == .wouldBlock || error == .resourceTemporarilyUnavailable { return false }
    throw DrydockError.system("cannot lock", path, error)
  }

  func releaseLock() { platform_unlock_whole(descriptor.rawValue) }

  /// Opens a directory and waits for the lock of ``tryLock(exclusive:)``.
  ///
  /// The directory may be replaced meanwhile: once the lock is granted, the path must still name the locked inode.
  ///
  /// - Parameter timeout: seconds to wait, at least a tenth.
  /// - Returns: nil after the timeout.
  package static func locked(
    _ path: String, exclusive: Bool, timeout: Double, isScratch: Bool = false
  ) throws -> Directory? {
    // A program that another thread is starting has copies of all descriptors until it runs, and so for a moment a lock
    // that was already released.
    let deadline = Date().addingTimeInterval(max(timeout, 0.1))
    while true {
      // The directory must not be open while waiting: the lock's holder would take this process for a user.
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

/// Open-file-description locks on byte ranges. They belong to the open file: closing another descriptor of the same file
/// does not release them.
extension FileDescriptor {
  /// Takes a lock without waiting; false when another process or descriptor holds a conflicting one.
  package func takeLock(exclusive: Bool, _ range: Range<Int64>, path: String) throws -> Bool {
    if platform_lock_range(rawValue, exclusive, range.lowerBound, Int64(range.count)) == 0 { return true }
    let error = currentErrno()
    if error == .resourceTemporarilyUnavailable || error == .permissionDenied { return false }
    throw DrydockError.system("cannot lock the database", path, error)
  }

  /// Whether an exclusive lock would be refused. Does not need write permission.
  package func isLocked(_ range: Range<Int64>, path: String) throws -> Bool {
    let taken = platform_range_is_locked(rawValue, range.lowerBound, Int64(range.count))
    guard taken >= 0 else { throw DrydockError.lastCall("cannot test the lock", path) }
    return taken != 0
  }

  /// Releases what this open file has locked of a range.
  package func releaseLock(_ range: Range<Int64>) {
    _ = platform_unlock_range(rawValue, range.lowerBound, Int64(range.count))
  }
}
