import AgeEncryption
import AppContainer
import Dispatch
import DrydockErrors
import FileSystem
import Synchronization
import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Reads files that may change while they are read.
///
/// A file held still when its status is the same before and after. Two things hide a write from that: a file's
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

  init() throws { pipeline = try HashPipeline() }

  /// The status by which a change shows.
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

  /// Whether a second reading, with all writes ended that went on during the first, gives the same content.
  func reads(_ digest: SHA256.Digest, _ file: FileDescriptor, size: UInt64, _ path: String) throws -> Bool {
    guard try settled(file, path)?.size == size else { return false }
    let (again, isWhole) = try stream(file, size: size, path) { _ in }
    return isWhole && again == digest
  }

  /// The whole content of a small file; fewer bytes than asked for when it shrank.
  func readSmall(
    _ file: FileDescriptor, size: Int, into buffer: HashBuffer, _ path: String
  ) throws -> UnsafeRawBufferPointer {
    var filled = 0
    while filled < size {
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[filled..<size])
      let count = try read(file, at: UInt64(filled), into: rest, path)
      if count == 0 { break }
      filled += count
    }
    return UnsafeRawBufferPointer(rebasing: buffer.bytes[..<filled])
  }

  /// Passes on `size` bytes from the start.
  ///
  /// - Returns: the digest, and whether all bytes were there.
  func stream(
    _ file: FileDescriptor, size: UInt64, _ path: String, into body: (UnsafeRawBufferPointer) throws -> Void
  ) throws -> (SHA256.Digest, Bool) {
    try stream(size: size, isDatabase: false, { try read(file, at: $0, into: $1, path) }, into: body)
  }

  /// Passes on a database's pages; the digest takes the header's changing fields as zero.
  ///
  /// - Returns: the digest, and whether all belonged to one commit.
  func stream(
    _ pages: DatabasePages, into body: (UnsafeRawBufferPointer) throws -> Void
  ) throws -> (SHA256.Digest, Bool) {
    let (digest, isWhole) = try stream(size: pages.size, isDatabase: true, pages.read, into: body)
    return (digest, try isWhole && pages.isUnchanged())
  }

  private func stream(
    size: UInt64, isDatabase: Bool, _ read: (UInt64, UnsafeMutableRawBufferPointer) throws -> Int,
    into body: (UnsafeRawBufferPointer) throws -> Void
  ) throws -> (SHA256.Digest, Bool) {
    var offset: UInt64 = 0
    while offset < size {
      let buffer = pipeline.buffer()
      let wanted = Int(min(UInt64(HashBuffer.size), size - offset))
      let count: Int
      do {
        count = try read(offset, UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[..<wanted]))
        try body(UnsafeRawBufferPointer(rebasing: buffer.bytes[..<count]))
      } catch {
        // The next file's digest must not begin with what was read of this one.
        pipeline.recycle(buffer)
        _ = try? pipeline.finish()
        throw error
      }
      pipeline.add(buffer, count: count, isDatabaseStart: isDatabase && offset == 0)
      if count == 0 { return (try pipeline.finish(), false) }
      offset += UInt64(count)
    }
    return (try pipeline.finish(), true)
  }

  private func read(
    _ file: FileDescriptor, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer, _ path: String
  ) throws -> Int {
    do {
      return try file.read(fromAbsoluteOffset: Int64(offset), into: buffer)
    } catch let error as Errno {
      throw DrydockError.system("cannot read", path, error)
    }
  }
}

/// Memory that is filled by the thread that reads and hashed by another.
///
/// Unchecked because the compiler cannot see the hand-over: a buffer has one owner at any time, the reading thread
/// from ``HashPipeline/buffer()`` on, the hashing one from a call that takes it.
final class HashBuffer: @unchecked Sendable {
  static let size = 1 << 20
  let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 4096)

  deinit { bytes.deallocate() }
}

/// A digest that another thread computes.
final class PendingDigest: Sendable {
  private let result = Mutex<Result<SHA256.Digest, any Error>?>(nil)
  private let done = DispatchGroup()

  init() { done.enter() }

  func finish(_ result: Result<SHA256.Digest, any Error>) {
    self.result.withLock { $0 = result }
    done.leave()
  }

  /// Whether ``take()`` would not wait.
  var isDone: Bool { result.withLock { $0 != nil } }

  /// Waits for the digest.
  func take() throws -> SHA256.Digest {
    done.wait()
    guard let result = result.withLock({ $0 }) else {
      throw DrydockError(.io, "a digest was not computed; report this")
    }
    return try result.get()
  }
}

/// Hashes what was read while the next is read: at 2 GB/s it would otherwise take as long as everything else that a snapshot's
/// one reading thread does.
final class HashPipeline: Sendable {
  /// A message that comes piece by piece. Unchecked: used on the pipeline's queue alone.
  private final class Message: @unchecked Sendable {
    let hash: SHA256
    init() throws { hash = try SHA256() }
  }

  /// Below this, hashing takes less time than handing over.
  static let smallest = 32 << 10
  /// Enough for the other thread to be away for a while; memory is used only as far as buffers were filled.
  private static let count = 16

  private let queue = DispatchQueue(label: "drydock.hashing")
  private let free: Mutex<[HashBuffer]>
  private let available = DispatchSemaphore(value: 0)
  private let message: Message

  init() throws {
    message = try Message()
    let buffers = (0..<Self.count).map { _ in HashBuffer() }
    free = Mutex(buffers)
    // Started at zero and raised: Dispatch traps when a semaphore is freed below its first value.
    for _ in buffers { available.signal() }
  }

  /// A buffer that nobody uses; waits for one.
  func buffer() -> HashBuffer {
    available.wait()
    return free.withLock { $0.popLast() } ?? HashBuffer()
  }

  /// Gives a buffer back unhashed.
  func recycle(_ buffer: HashBuffer) {
    free.withLock { $0.append(buffer) }
    available.signal()
  }

  /// The digest of a whole message, which is the start of a buffer; takes the buffer.
  func digest(of buffer: HashBuffer, count: Int) -> PendingDigest {
    let pending = PendingDigest()
    queue.async {
      pending.finish(Result { try SHA256.hash(UnsafeRawBufferPointer(rebasing: buffer.bytes[..<count])) })
      self.recycle(buffer)
    }
    return pending
  }

  /// Adds a piece to the message that ``finish()`` ends; takes the buffer.
  ///
  /// - Parameter isDatabaseStart: takes the header's changing fields as zero.
  func add(_ buffer: HashBuffer, count: Int, isDatabaseStart: Bool) {
    queue.async {
      let piece = UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[..<count])
      if isDatabaseStart { DatabaseFormat.normalize(header: piece) }
      self.message.hash.update(UnsafeRawBufferPointer(piece))
      self.recycle(buffer)
    }
  }

  /// Waits for all pieces, and gives their digest.
  func finish() throws -> SHA256.Digest { try queue.sync { try message.hash.finalize() } }
}
