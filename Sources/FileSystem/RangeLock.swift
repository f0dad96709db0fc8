import CPlatform
import DrydockErrors
import SystemPackage

/// Open-file-description locks on ranges of bytes: they belong to the open file, so that closing another descriptor of the
/// same file does not drop them.
extension FileDescriptor {
  /// Takes a lock without waiting; false when another process, or another descriptor, holds one.
  package func takeLock(exclusive: Bool, _ range: Range<Int64>, path: String) throws -> Bool {
    if platform_lock_range(rawValue, exclusive, range.lowerBound, Int64(range.count)) == 0 { return true }
    let error = currentErrno()
    if error == .resourceTemporarilyUnavailable || error == .permissionDenied { return false }
    throw DrydockError.system("cannot lock the database", path, error)
  }

  /// Whether an exclusive lock would be refused. Needs no write permission.
  package func isLocked(_ range: Range<Int64>, path: String) throws -> Bool {
    let taken = platform_range_is_locked(rawValue, range.lowerBound, Int64(range.count))
    guard taken >= 0 else { throw DrydockError.lastCall("cannot test the lock of", path) }
    return taken != 0
  }

  /// Releases what this open file has locked of a range.
  package func releaseLock(_ range: Range<Int64>) {
    _ = platform_unlock_range(rawValue, range.lowerBound, Int64(range.count))
  }

  /// Sets the modification time, in nanoseconds since 1970.
  package func setModified(_ nanoseconds: Int64, path: String) throws {
    guard platform_set_modified(rawValue, "", nanoseconds) == 0 else {
      throw DrydockError.lastCall("cannot set the modification time", path)
    }
  }
}
