import CPlatform
import SystemPackage

extension Directory {
  /// Locks the directory's inode (`flock`) for as long as this object lives, without waiting.
  ///
  /// - Returns: false when somebody else holds a lock that excludes this one.
  public func tryLock(exclusive: Bool) throws -> Bool {
    if platform_lock_whole(descriptor.rawValue, exclusive) == 0 { return true }
    let error = currentErrno()
    if error == .wouldBlock || error == .resourceTemporarilyUnavailable { return false }
    throw ContainerError.system("cannot lock", path, error)
  }
}

/// Dies at once, as a power cut would: what a fault point does in tests.
public func killOwnProcess() { platform_kill_self() }
