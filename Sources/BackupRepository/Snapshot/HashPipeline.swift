import AgeEncryption
import AppContainer
import Dispatch
import FileSystem
import Synchronization

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
typealias PendingDigest = PendingResult<SHA256.Digest>

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
  /// Enough for the other thread to be descheduled for a while; memory is used only as far as buffers were filled.
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

  /// A free buffer; waits until one is available.
  func buffer() -> HashBuffer {
    available.wait()
    return free.withLock { $0.popLast() } ?? HashBuffer()
  }

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
