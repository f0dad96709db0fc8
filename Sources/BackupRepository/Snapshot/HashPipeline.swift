import AppStores
import Cryptography
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
    var hash: Result<ContentHash, any Error>
    init() throws { hash = .success(try ContentHash(isDatabase: false, size: 0)) }
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

  /// Starts a message, the content of a file, that ``finish()`` ends.
  func start(isDatabase: Bool, size: UInt64) {
    queue.async { self.message.hash = Result { try ContentHash(isDatabase: isDatabase, size: size) } }
  }

  /// Adds a piece to the message; takes the buffer.
  func add(_ buffer: HashBuffer, count: Int) {
    update {
      try $0.update(UnsafeRawBufferPointer(rebasing: buffer.bytes[..<count]))
    } then: {
      self.recycle(buffer)
    }
  }

  /// Adds zeros to the message.
  func addZeros(_ count: UInt64) {
    update {
      try $0.updateZeros(count)
    } then: {
    }
  }

  private func update(
    _ body: @escaping @Sendable (inout ContentHash) throws -> Void, then: @escaping @Sendable () -> Void
  ) {
    queue.async {
      let none: Result<ContentHash, any Error> = .failure(CancellationError())
      // Moved out and back in: what it holds is not copied.
      let hash = exchange(&self.message.hash, with: none)
      self.message.hash = hash.flatMap { hash in
        Result {
          var hash = hash
          try body(&hash)
          return hash
        }
      }
      then()
    }
  }

  /// Waits for all pieces, and gives their digest.
  func finish() throws -> (digest: SHA256.Digest, blocks: BlockHashes?) {
    try queue.sync {
      var hash = try message.hash.get()
      return try hash.finish()
    }
  }
}
