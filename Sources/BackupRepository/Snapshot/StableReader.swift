import AgeEncryption
import AppContainer
import ArchiveFile
import DrydockErrors
import FileSystem
import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Reads files that may change while they are read.
///
/// A file was not modified if its status is the same before and after. Two cases are not detected this way: a file's
/// time is set when a write begins, not when it ends, and where the kernel's clock ticks slowly, two writes can
/// have the same time. So ``settled(_:_:)`` waits for a write in progress, and ``isFresh(_:)`` says when the times
/// alone are not enough.
final class StableReader {
  /// How often a file that does not hold still is read: a small one costs next to nothing, a large one is in the
  /// archive each time.
  static let smallAttempts = 10, largeAttempts = 3
  /// A file up to this size is read whole before any of it is stored.
  static let smallSize = HashBuffer.size

  #if os(Linux)
    private static let nextHole = FileDescriptor.SeekOrigin(rawValue: 4)
  #else
    private static let nextHole = FileDescriptor.SeekOrigin(rawValue: 3)
  #endif

  let pipeline: HashPipeline
  private let progress: WorkProgress?

  /// - Parameter progress: what ``stream(_:into:)`` stores is added to it.
  init(_ progress: WorkProgress? = nil) throws {
    pipeline = try HashPipeline()
    self.progress = progress
  }

  struct State: Equatable {
    var size: UInt64
    var modified, changed: Int64
  }

  func state(of file: FileDescriptor, _ path: String) throws -> State {
    let status = try FileStatus(of: file, path: path)
    return State(size: status.size, modified: status.modified, changed: status.changed)
  }

  /// The state of a file without a write in progress; nil when it just changed.
  func settled(_ file: FileDescriptor, _ path: String) throws -> State? {
    let before = try state(of: file, path)
    // Writing a megabyte does not take seconds.
    if before.size <= Self.smallSize && age(before) > 5_000_000_000 { return before }
    // A search for holes takes the lock that a write holds from its beginning to its end. What it finds does not matter.
    _ = try? file.seek(offset: 0, from: Self.nextHole)
    let after = try state(of: file, path)
    return before == after ? after : nil
  }

  /// Whether a write could have left the file's times as they are, for a clock that ticks every few milliseconds.
  func isFresh(_ state: State) -> Bool { age(state) < 30_000_000 }

  /// Nanoseconds since anything about the file changed; less than 0 when the clock was set back.
  private func age(_ state: State) -> Int64 {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec) - state.changed
  }

  /// Whether a second reading, after all writes that went on during the first have ended, has the same content.
  func reads(_ digest: SHA256.Digest, _ file: FileDescriptor, size: UInt64, _ path: String) throws -> Bool {
    guard try settled(file, path)?.size == size else { return false }
    let (again, isWhole) = try stream(.file(file, size: size, path: path), into: nil)
    return isWhole && again == digest
  }

  /// The whole content of a small file; fewer bytes than asked for when it shrank.
  func readSmall(
    _ file: FileDescriptor, size: Int, into buffer: HashBuffer, _ path: String
  ) throws -> UnsafeRawBufferPointer {
    var filled = 0
    do {
      while filled < size {
        let rest = UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[filled..<size])
        let count = try file.read(fromAbsoluteOffset: Int64(filled), into: rest)
        if count == 0 { break }
        filled += count
      }
    } catch let error as Errno {
      throw DrydockError.system("cannot read", path, error)
    }
    return UnsafeRawBufferPointer(rebasing: buffer.bytes[..<filled])
  }

  /// A content that is read in pieces.
  enum Content {
    /// That many bytes from the start of a file.
    case file(FileDescriptor, size: UInt64, path: String)
    /// The digest takes the header's changing fields as zero.
    case database(DatabasePages)

    var size: UInt64 {
      switch self {
      case .file(_, let size, _): size
      case .database(let pages): pages.size
      }
    }

    fileprivate func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
      switch self {
      case .file(let file, _, let path):
        do {
          return try file.read(fromAbsoluteOffset: Int64(offset), into: buffer)
        } catch let error as Errno {
          throw DrydockError.system("cannot read", path, error)
        }
      case .database(let pages): return try pages.read(at: offset, into: buffer)
      }
    }
  }

  /// Reads a content and writes it into the current member of an archive, if there is one.
  ///
  /// - Returns: the digest, and whether all bytes were there; of a database, whether all belonged to one commit.
  func stream(_ content: Content, into archive: ArchiveWriter?) throws -> (SHA256.Digest, Bool) {
    var offset: UInt64 = 0
    while offset < content.size {
      let buffer = pipeline.buffer()
      let wanted = Int(min(UInt64(HashBuffer.size), content.size - offset))
      let count: Int
      do {
        count = try content.read(
          at: offset, into: UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[..<wanted]))
        try archive?.write(UnsafeRawBufferPointer(rebasing: buffer.bytes[..<count]))
      } catch {
        // The next file's digest must not begin with what was read of this one.
        pipeline.recycle(buffer)
        _ = try? pipeline.finish()
        throw error
      }
      var isDatabaseStart = false
      if case .database = content { isDatabaseStart = offset == 0 }
      pipeline.add(buffer, count: count, isDatabaseStart: isDatabaseStart)
      if count == 0 { return (try pipeline.finish(), false) }
      offset += UInt64(count)
      if archive != nil { progress?.add(bytes: UInt64(count)) }
    }
    let digest = try pipeline.finish()
    if case .database(let pages) = content { return (digest, try pages.isUnchanged()) }
    return (digest, true)
  }
}
