import CPlatform
import SystemPackage

/// A lock on SQLite's own lock bytes, held through an open-file-description lock: any SQLite, in any process,
/// sees the database as locked, not a byte of the file changes, and closing other descriptors does not drop it.
public final class DatabaseLock: Sendable {
  /// The open main file.
  public let file: FileDescriptor

  private init(_ file: FileDescriptor) { self.file = file }

  deinit { try? file.close() }

  /// Locks a database that nobody has open.
  ///
  /// - Returns: nil when somebody holds one of SQLite's locks on it.
  public static func acquire(_ main: ContainerPath, in root: Directory) throws -> DatabaseLock? {
    do {
      let lock = DatabaseLock(try root.open(main, .readWrite, options: [.nonBlocking]))
      return try lock.take(exclusive: true, root.full(main)) ? lock : nil
    } catch let error as ContainerError where error.code == .permission {
      // A file that may only be read: an exclusive lock cannot be taken, but it can be asked whether one would
      // be refused, and a shared one then keeps writers out.
      let lock = DatabaseLock(try root.open(main, .readOnly, options: [.nonBlocking]))
      let taken = platform_range_is_locked(
        lock.file.rawValue, DatabaseFormat.lockStart, DatabaseFormat.lockLength)
      guard taken >= 0 else { throw ContainerError.lastCall("cannot test the lock of", root.full(main)) }
      return try taken == 0 && lock.take(exclusive: false, root.full(main)) ? lock : nil
    }
  }

  /// Lets readers in again, and keeps writers out, as a reading SQLite does.
  public func downgrade(path: String) throws { _ = try take(exclusive: false, path) }

  private func take(exclusive: Bool, _ path: String) throws -> Bool {
    if platform_lock_range(file.rawValue, exclusive, DatabaseFormat.lockStart, DatabaseFormat.lockLength) == 0
    {
      return true
    }
    let error = currentErrno()
    if error == .resourceTemporarilyUnavailable || error == .permissionDenied { return false }
    throw ContainerError.system("cannot lock the database", path, error)
  }
}
