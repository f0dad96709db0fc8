import Dispatch
import DrydockErrors
import Synchronization

/// Reads and decompresses single frames, on any thread, reusing memory.
final class FrameDecoder: Sendable {
  private struct Pool {
    var decompressors: [FrameDecompressor] = []
    var frames: [PlainFrame] = []
  }

  private let archive: ArchiveBytes
  private let pool = Mutex(Pool())
  private let bytes = Atomic<UInt64>(0)
  private let queue = DispatchQueue(label: "drydock.frames.reading", attributes: .concurrent)
  private let jobs = DispatchGroup()

  init(_ archive: ArchiveBytes) { self.archive = archive }

  /// The compressed bytes read so far.
  var bytesRead: UInt64 { bytes.load(ordering: .relaxed) }

  /// The plain bytes of a frame.
  func decode(_ frame: ArchiveFrame) throws -> PlainFrame {
    let pooled = pool.withLock { ($0.decompressors.popLast(), $0.frames.popLast()) }
    let decompressor = try pooled.0 ?? FrameDecompressor()
    let plain = pooled.1 ?? PlainFrame()
    defer { pool.withLock { $0.decompressors.append(decompressor) } }
    try decompressor.decompress(frame, of: archive, into: plain)
    bytes.add(UInt64(frame.compressedSize), ordering: .relaxed)
    return plain
  }

  /// Takes the memory of a frame back, which nobody may use any more.
  func recycle(_ plain: PlainFrame) {
    pool.withLock { if $0.frames.count < 2 { $0.frames.append(plain) } }
  }

  /// Starts to decode a frame on another thread.
  func decodeAhead(_ frame: ArchiveFrame) -> FrameJob {
    let job = FrameJob()
    queue.async(group: jobs) { job.finish(Result { try self.decode(frame) }) }
    return job
  }

  /// Waits until no other thread uses the file.
  func waitForJobs() { jobs.wait() }
}

/// A frame that another thread is decoding.
final class FrameJob: Sendable {
  private let result = Mutex<Result<PlainFrame, any Error>?>(nil)
  private let done = DispatchGroup()

  init() { done.enter() }

  func finish(_ result: Result<PlainFrame, any Error>) {
    self.result.withLock { $0 = result }
    done.leave()
  }

  /// Waits for the frame. It can be taken once.
  func take() throws -> PlainFrame {
    done.wait()
    let result = self.result.withLock { stored in
      defer { stored = nil }
      return stored
    }
    guard let result else { throw DrydockError(.invalidUse, "a frame was taken twice; report this") }
    return try result.get()
  }
}
