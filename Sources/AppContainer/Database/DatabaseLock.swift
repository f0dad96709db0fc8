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

/// Which files this process has open itself, as a library in an app: closing a raw descriptor of one would drop the
/// locks that the app's SQLite has on it.
enum OpenHere {
  /// An open descriptor of a file that is not Drydock's own, to be read from and never closed.
  static func descriptor(of identity: FileIdentity, besides own: FileDescriptor? = nil) throws
    -> FileDescriptor?
  {
    for bytes in try Directory("/dev/fd").names() {
      guard let number = Int32(String(decoding: bytes, as: UTF8.self)), number != own?.rawValue else {
        continue
      }
      let descriptor = FileDescriptor(rawValue: number)
      // One that was closed meanwhile is nobody's, and of a file that cannot be asked SQLite has no locks.
      guard let status = try? FileStatus(of: descriptor, path: "/dev/fd"), status.identity == identity,
        !isLockOfDrydock(number)
      else { continue }
      return descriptor
    }
    return nil
  }

  /// Whether this process has another descriptor of a file.
  static func isUsed(_ file: FileDescriptor) throws -> Bool {
    try descriptor(of: FileStatus(of: file, path: "/dev/fd").identity, besides: file) != nil
  }

  /// The first bytes of a file that this process has open, read through its descriptor; nil for other files.
  static func prefix(of status: FileStatus, _ count: Int) throws -> [UInt8]? {
    guard let descriptor = try descriptor(of: status.identity) else { return nil }
    var bytes = [UInt8](repeating: 0, count: count)
    let read = try? bytes.withUnsafeMutableBytes { try descriptor.read(fromAbsoluteOffset: 0, into: $0) }
    // Its owner may have closed it meanwhile.
    let after = try? FileStatus(of: descriptor, path: "/dev/fd").identity
    guard let read, after == status.identity else { return nil }
    return Array(bytes.prefix(read))
  }

  /// Open-file-description locks are what Drydock locks with, and SQLite does not.
  private static func isLockOfDrydock(_ number: Int32) -> Bool {
    guard
      let info = try? FileDescriptor.open("/proc/self/fdinfo/\(number)", .readOnly, options: .closeOnExec)
    else { return false }
    defer { try? info.close() }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = (try? bytes.withUnsafeMutableBytes { try info.read(into: $0) }) ?? 0
    return String(decoding: bytes.prefix(count), as: UTF8.self).contains("OFDLCK")
  }
}

/// Keeps a database that others write through a log as it is, but for what they append to the log.
///
/// It holds locks of the `-shm` as a reading SQLite does (<https://www.sqlite.org/walformat.html#wal_locks>): with
/// WAL_READ_LOCK(0) nobody writes pages of the log into the main file, and with any other read lock nobody starts the
/// log anew. SQLite itself is not used, so that nothing about the files changes, not even the ctime that its
/// `fchown` moves for root.
final class LogPin: Sendable {
  private let file: LockedFile
  /// The number of committed frames, as those who use the log have it. With 0 the main file is all there is: what the
  /// log then holds is left from the last time, and may be written over.
  let frameCount: Int
  /// The salts in the header of a log that has frames.
  let salts: [UInt8]

  /// <https://www.sqlite.org/walformat.html#the_wal_index_file_format>: the version at 0, whether it is valid at 12,
  /// mxFrame at 16, the salts at 32, and all once more from 48 on: who changes it writes one after the other.
  ///
  /// - Returns: nil while it is being written.
  private init?(_ file: LockedFile, path: String) throws {
    var index = [UInt8](repeating: 0, count: 96)
    let count: Int
    do {
      count = try index.withUnsafeMutableBytes { try file.descriptor.read(fromAbsoluteOffset: 0, into: $0) }
    } catch let error as Errno {
      throw DrydockError.system("cannot read", path, error)
    }
    guard count == 96, index[..<48].elementsEqual(index[48...]), index[12] != 0 else { return nil }
    let number = { (offset: Int) in index.withUnsafeBytes { $0.load(fromByteOffset: offset, as: UInt32.self) }
    }
    guard number(0) == 3_007_000 else { return nil }
    self.file = file
    frameCount = Int(number(16))
    salts = Array(index[32..<40])
  }

  enum Result {
    case pinned(LogPin)
    /// There is no shared memory, or one that a crash left.
    case unused
    /// Somebody is just starting the log anew, or writing it into the main file.
    case busy
  }

  /// The bytes of `-shm` that are locked: the read locks 0 and 1, and the one that says that it is in use.
  private static let readLocks: Range<Int64> = 123..<125, inUse: Range<Int64> = 128..<129

  /// Takes the locks without waiting. To be called with a shared lock on the main file, which keeps its users from
  /// removing the log and the shared memory.
  static func take(_ unit: DatabaseUnit, in root: Directory) throws -> Result {
    let name = unit.main.withSuffix("-shm")
    guard let status = try root.status(name), status.type == .file else { return .unused }
    let path = root.full(name)
    let file = LockedFile(try root.open(name, .readOnly, options: [.nonBlocking]))
    // What a crash left is worth nothing, and our lock would make the next SQLite trust it.
    guard try file.descriptor.isLocked(inUse, path: path) else { return .unused }
    guard try file.descriptor.takeLock(exclusive: false, inUse, path: path),
      try file.descriptor.takeLock(exclusive: false, readLocks, path: path)
    else { return .busy }
    return try LogPin(file, path: path).map(Result.pinned) ?? .busy
  }
}
