import DrydockErrors
import FileSystem
import SystemPackage

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
