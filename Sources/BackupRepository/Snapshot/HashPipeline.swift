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
  /// Below this, hashing takes less time than handing over.
  static let smallest = 32 << 10
  /// Enough for the other thread to be descheduled for a while; memory is used only as far as buffers were filled.
  private static let count = 16

  private let queue = DispatchQueue(label: "drydock.hashing")
  private let free: Mutex<[HashBuffer]>
  private let available = DispatchSemaphore(value: 0)
  /// Of a content that comes piece by piece; the queue's.
  private let hash: Mutex<Result<ContentHash, any Error>>

  init() throws {
    hash = Mutex(.success(try ContentHash(isDatabase: false, size: 0)))
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

  /// The digest of a whole content, which is the start of a buffer; takes the buffer.
  func digest(of buffer: HashBuffer, count: Int) -> PendingDigest {
    let pending = PendingDigest()
    queue.async {
      pending.finish(Result { try SHA256.hash(UnsafeRawBufferPointer(rebasing: buffer.bytes[..<count])) })
      self.recycle(buffer)
    }
    return pending
  }

  /// Starts the content of a file, which ``finish()`` ends.
  func start(isDatabase: Bool, size: UInt64) {
    queue.async {
      self.hash.withLock { $0 = Result { try ContentHash(isDatabase: isDatabase, size: size) } }
    }
  }

  /// Adds a piece to the content; takes the buffer.
  func add(_ buffer: HashBuffer, count: Int) {
    queue.async {
      self.update { try $0.update(UnsafeRawBufferPointer(rebasing: buffer.bytes[..<count])) }
      self.recycle(buffer)
    }
  }

  /// Adds zeros to the content.
  func addZeros(_ count: UInt64) { queue.async { self.update { try $0.updateZeros(count) } } }

  private func update(_ body: @Sendable (inout ContentHash) throws -> Void) {
    hash.withLock { state in
      guard case .success(var hash) = state else { return }
      // Moved out and back in: what it holds is not copied.
      state = .failure(CancellationError())
      state = Result {
        try body(&hash)
        return hash
      }
    }
  }

  /// Waits for all pieces, and gives their digest.
  func finish() throws -> (digest: SHA256.Digest, blocks: BlockHashes?) {
    try queue.sync {
      try hash.withLock { state in
        var hash = try state.get()
        return try hash.finish()
      }
    }
  }
}
