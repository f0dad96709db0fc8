import DrydockErrors
import FileSystem
import SystemPackage

#if !os(Linux)
  import Synchronization
#endif

/// An open file of a database: its main file, log or shared memory. Closed with this object.
///
/// The process may have the file open itself, as a library in an app: closing a raw descriptor would drop the locks that
/// the app's SQLite has on it.
final class LockedFile: Sendable {
  let descriptor: FileDescriptor

  /// A byte that SQLite never locks. A lock on it marks Drydock's descriptors.
  private static let mark: Int64 = 1 << 62

  init(_ descriptor: FileDescriptor) {
    self.descriptor = descriptor
    _ = try? descriptor.takeLock(exclusive: false, Self.mark..<Self.mark + 1, path: "")
    #if !os(Linux)
      Self.marked.withLock { _ = $0.insert(descriptor.rawValue) }
    #endif
  }

  deinit {
    #if !os(Linux)
      Self.marked.withLock { _ = $0.remove(descriptor.rawValue) }
    #endif
    // A program that another thread is starting has a copy of the descriptor until it runs: closing this one does not
    // release the locks.
    descriptor.releaseLock(0..<Self.mark)
    // Closing any descriptor of a file drops all locks that this process's SQLite has on it. If the app has opened the
    // database meanwhile, or if that is unknown, the descriptor remains open.
    guard (try? hasForeignDescriptor()) == false else { return }
    try? descriptor.close()
  }
}

extension LockedFile {
  /// An open descriptor of a file that is not Drydock's: to be read from, never closed.
  static func foreignDescriptor(
    of identity: FileIdentity, besides own: FileDescriptor? = nil
  ) throws -> FileDescriptor? {
    for bytes in try Directory("/dev/fd").names() {
      guard let number = Int32(String(decoding: bytes, as: UTF8.self)), number != own?.rawValue else {
        continue
      }
      let descriptor = FileDescriptor(rawValue: number)
      // It may have been closed meanwhile. SQLite has no locks on a file without status.
      guard let status = try? FileStatus(of: descriptor, path: "/dev/fd"), status.identity == identity,
        !isLockOfDrydock(number)
      else { continue }
      return descriptor
    }
    return nil
  }

  /// Whether this process has another descriptor of the file.
  private func hasForeignDescriptor() throws -> Bool {
    let identity = try FileStatus(of: descriptor, path: "/dev/fd").identity
    return try Self.foreignDescriptor(of: identity, besides: descriptor) != nil
  }

  /// The first bytes of a file that this process has open, read through its descriptor; nil for other files.
  static func foreignPrefix(of status: FileStatus, _ count: Int) throws -> [UInt8]? {
    guard let descriptor = try foreignDescriptor(of: status.identity) else { return nil }
    let bytes = try? descriptor.bytes(count, at: 0)
    // The app may have closed it meanwhile.
    let after = try? FileStatus(of: descriptor, path: "/dev/fd").identity
    return after == status.identity ? bytes : nil
  }

  #if !os(Linux)
    /// macOS: untested. Drydock's descriptors, since the kernel does not list their locks.
    private static let marked = Mutex<Set<Int32>>([])
  #endif

  /// Drydock uses open-file-description locks, and SQLite does not.
  private static func isLockOfDrydock(_ number: Int32) -> Bool {
    #if !os(Linux)
      return marked.withLock { $0.contains(number) }
    #else
      guard
        let info = try? FileDescriptor.open("/proc/self/fdinfo/\(number)", .readOnly, options: .closeOnExec)
      else { return false }
      defer { try? info.close() }
      var bytes = [UInt8](repeating: 0, count: 4096)
      let count = (try? bytes.withUnsafeMutableBytes { try info.read(into: $0) }) ?? 0
      return String(decoding: bytes.prefix(count), as: UTF8.self).contains("OFDLCK")
    #endif
  }
}

/// An open-file-description lock on SQLite's lock bytes: any SQLite in any process sees the database as locked, the file does
/// not change, and closing other descriptors does not release it.
package final class DatabaseLock: Sendable {
  package var file: FileDescriptor { opened.descriptor }
  private let opened: LockedFile
  /// Prevents other processes from changing the main file and from restarting the log, which they use.
  let pin: LogPin?

  init(_ file: LockedFile, pin: LogPin? = nil) { (opened, self.pin) = (file, pin) }

  /// Locks a database that no process has open.
  ///
  /// - Returns: nil when another process holds one of SQLite's locks.
  package static func acquire(_ main: ContainerPath, in root: Directory) throws -> DatabaseLock? {
    do {
      let lock = DatabaseLock(LockedFile(try root.open(main, .readWrite, options: [.nonBlocking])))
      return try lock.take(exclusive: true, DatabaseFormat.allLocks, root.full(main)) ? lock : nil
    } catch let error as DrydockError where error.code == .permission {
      // A read-only file cannot be locked exclusively. But whether an exclusive lock would be refused can be tested, and a
      // shared one then blocks writers.
      let lock = DatabaseLock(LockedFile(try root.openFile(main)))
      let all = DatabaseFormat.allLocks
      let isTaken = try lock.isLocked(all, root.full(main))
      return try !isTaken && lock.take(exclusive: false, DatabaseFormat.sharedLock, root.full(main))
        ? lock : nil
    }
  }

  /// Locks a database that other processes have open as a reader: to a log that is in use they can then only append.
  ///
  /// - Returns: nil while another process writes, or waits to, or restarts or checkpoints the log.
  static func share(_ main: ContainerPath, in root: Directory) throws -> DatabaseLock? {
    let lock = DatabaseLock(LockedFile(try root.openFile(main)))
    let path = root.full(main)
    guard try lock.take(exclusive: false, DatabaseFormat.pendingLock, path),
      try lock.take(exclusive: false, DatabaseFormat.sharedLock, path)
    else { return nil }
    lock.release(DatabaseFormat.pendingLock)
    guard let memory = try LogPin.openMemory(of: main, in: root) else { return lock }
    return try LogPin(memory, path: root.full(main.withSuffix("-shm"))).map {
      DatabaseLock(lock.opened, pin: $0)
    }
  }

  /// Admits readers and blocks writers, as a reading SQLite does.
  package func downgrade(path: String) throws {
    _ = try take(exclusive: false, DatabaseFormat.sharedLock, path)
    release(DatabaseFormat.pendingLock)
    release(DatabaseFormat.reservedLock)
  }

  /// Whether another process is in a write transaction, which may still be in memory.
  func isReserved(path: String) throws -> Bool { try isLocked(DatabaseFormat.reservedLock, path) }

  private func isLocked(_ range: Range<Int64>, _ path: String) throws -> Bool {
    try file.isLocked(range, path: path)
  }

  package func release() { release(DatabaseFormat.allLocks) }

  private func release(_ range: Range<Int64>) {
    file.releaseLock(range)
  }

  private func take(exclusive: Bool, _ range: Range<Int64>, _ path: String) throws -> Bool {
    try opened.descriptor.takeLock(exclusive: exclusive, range, path: path)
  }
}

/// Pins a database that other processes write through a log: they can only append to the log.
///
/// It holds locks of the `-shm` as a reading SQLite does (<https://www.sqlite.org/walformat.html#wal_locks>):
/// WAL_READ_LOCK(0) prevents checkpoints into the main file, any other read lock prevents a restart of the log. SQLite is not
/// used, so that nothing changes, not even the ctime, which its `fchown` updates for root.
struct LogPin: Sendable {
  private let memory: LockedFile
  /// The number of committed frames in the shared memory. With 0 the main file is complete: the content of the log is from a
  /// previous use, and may be overwritten.
  let frameCount: Int
  /// The salts in the header of the log.
  let salts: [UInt8]

  /// The lock bytes of `-shm`: the read locks 0 and 1, and the lock of every user.
  private static let readLocks: Range<Int64> = 123..<125, inUse: Range<Int64> = 128..<129

  /// Opens the shared memory of a log that is in use; nil when there is none, or it is from a crash: it is invalid then,
  /// and our lock would make the next SQLite trust it.
  fileprivate static func openMemory(of main: ContainerPath, in root: Directory) throws -> LockedFile? {
    let name = main.withSuffix("-shm")
    guard let status = try root.status(name), status.type == .file else { return nil }
    let memory = LockedFile(try root.openFile(name))
    return try memory.descriptor.isLocked(inUse, path: root.full(name)) ? memory : nil
  }

  /// Takes the locks without waiting. Requires a shared lock on the main file, which prevents its users from removing the
  /// log and the shared memory. Then reads the index
  /// (<https://www.sqlite.org/walformat.html#the_wal_index_file_format>): the version at 0, validity at 12, mxFrame at 16,
  /// the salts at 32, and a copy from 48 on. A writer writes one after the other.
  ///
  /// - Returns: nil while another process restarts or checkpoints the log, or writes the index.
  fileprivate init?(_ memory: LockedFile, path: String) throws {
    guard try memory.descriptor.takeLock(exclusive: false, Self.inUse, path: path),
      try memory.descriptor.takeLock(exclusive: false, Self.readLocks, path: path)
    else { return nil }
    let index = try DrydockError.translating("cannot read", path) { try memory.descriptor.bytes(96, at: 0) }
    guard index.count == 96, index[..<48].elementsEqual(index[48...]), index[12] != 0 else { return nil }
    let number = { (offset: Int) in index.withUnsafeBytes { $0.load(fromByteOffset: offset, as: UInt32.self) }
    }
    guard number(0) == 3_007_000 else { return nil }
    self.memory = memory
    frameCount = Int(number(16))
    salts = Array(index[32..<40])
  }
}
