import DrydockErrors
import FileSystem
import SystemPackage

/// An open file of a database: its main file, log or shared memory. It is closed with this object.
final class LockedFile: Sendable {
  let descriptor: FileDescriptor

  /// A byte that SQLite never locks: a lock there tells Drydock's own descriptors from the app's (``OpenHere``).
  private static let mark: Int64 = 1 << 62

  init(_ descriptor: FileDescriptor) {
    self.descriptor = descriptor
    _ = try? descriptor.takeLock(exclusive: false, Self.mark..<Self.mark + 1, path: "")
  }

  deinit {
    // Closing any descriptor of a file drops all locks that this process's SQLite has on it. When the app opened the
    // database in the meantime, one descriptor stays open instead, without its locks.
    // So it does when that cannot be found out.
    guard (try? OpenHere.isUsed(descriptor)) == false else {
      descriptor.releaseLock(0..<Self.mark)
      return
    }
    try? descriptor.close()
  }
}

/// A lock on SQLite's own lock bytes, held through an open-file-description lock: any SQLite, in any process,
/// sees the database as locked, not a byte of the file changes, and closing other descriptors does not drop it.
package final class DatabaseLock: Sendable {
  /// The open main file.
  package var file: FileDescriptor { opened.descriptor }
  private let opened: LockedFile

  init(_ file: LockedFile) { opened = file }

  /// Locks a database that nobody has open.
  ///
  /// - Returns: nil when somebody holds one of SQLite's locks on it.
  package static func acquire(_ main: ContainerPath, in root: Directory) throws -> DatabaseLock? {
    do {
      let lock = DatabaseLock(LockedFile(try root.open(main, .readWrite, options: [.nonBlocking])))
      return try lock.take(exclusive: true, DatabaseFormat.allLocks, root.full(main)) ? lock : nil
    } catch let error as DrydockError where error.code == .permission {
      // A file that may only be read: an exclusive lock cannot be taken, but it can be asked whether one would
      // be refused, and a shared one then keeps writers out.
      let lock = DatabaseLock(LockedFile(try root.open(main, .readOnly, options: [.nonBlocking])))
      let all = DatabaseFormat.allLocks
      let isTaken = try lock.isLocked(all, root.full(main))
      return try !isTaken && lock.take(exclusive: false, DatabaseFormat.sharedLock, root.full(main))
        ? lock : nil
    }
  }

  /// Locks a database that others have open as one who reads it: nobody then writes into its main file but for the
  /// checkpoint of a log.
  ///
  /// - Returns: nil when somebody writes, or waits to.
  static func share(_ main: ContainerPath, in root: Directory) throws -> DatabaseLock? {
    let lock = DatabaseLock(LockedFile(try root.open(main, .readOnly, options: [.nonBlocking])))
    let path = root.full(main)
    guard try lock.take(exclusive: false, DatabaseFormat.pendingLock, path),
      try lock.take(exclusive: false, DatabaseFormat.sharedLock, path)
    else { return nil }
    lock.release(DatabaseFormat.pendingLock)
    return lock
  }

  /// Lets readers in again, and keeps writers out, as a reading SQLite does.
  package func downgrade(path: String) throws {
    _ = try take(exclusive: false, DatabaseFormat.sharedLock, path)
    release(DatabaseFormat.pendingLock)
    release(DatabaseFormat.reservedLock)
  }

  /// Whether somebody is writing a transaction, be it only in memory yet.
  func isReserved(path: String) throws -> Bool { try isLocked(DatabaseFormat.reservedLock, path) }

  private func isLocked(_ range: Range<Int64>, _ path: String) throws -> Bool {
    try file.isLocked(range, path: path)
  }

  /// Lets everybody in, while the file stays open.
  package func release() { release(DatabaseFormat.allLocks) }

  private func release(_ range: Range<Int64>) {
    file.releaseLock(range)
  }

  private func take(exclusive: Bool, _ range: Range<Int64>, _ path: String) throws -> Bool {
    try opened.descriptor.takeLock(exclusive: exclusive, range, path: path)
  }
}
