import Dispatch
import DrydockErrors
import Synchronization

/// Compresses frames on several threads and writes them in their order.
///
/// The caller fills one buffer while the workers compress and write others; there are only so many buffers, which
/// bounds the memory. Whichever worker has the frame that is next in line writes it, and all that wait behind it.
final class FrameWriter: Sendable {
  private struct State {
    var free: [FrameBuffer]
    var pending: [FrameBuffer] = []
    /// Compressed frames that wait for their turn.
    var finished: [Int: FrameBuffer] = [:]
    var compressors: [FrameCompressor] = []
    var entries: [SeekTable.Entry] = []
    var submitted = 0
    var running = 0
    var isWriting = false
    /// The first failure: from then on frames are dropped.
    var failure: (any Error)?
  }

  private let sink: ArchiveSink
  private let level: Int32
  private let workers: Int
  private let state: Mutex<State>
  private let freeBuffers = DispatchSemaphore(value: 0)
  private let work = DispatchGroup()
  private let queue = DispatchQueue(label: "drydock.frames", attributes: .concurrent)

  /// More workers than this would outrun the one thread that reads and hashes.
  static let maximumWorkers = 4

  init(_ sink: ArchiveSink, level: Int32, workers: Int) {
    self.sink = sink
    self.level = level
    self.workers = min(max(workers, 1), Self.maximumWorkers)
    let buffers = (0..<self.workers + 2).map { _ in FrameBuffer() }
    state = Mutex(State(free: buffers))
    // Started at zero and raised: Dispatch traps when a semaphore is freed below its first value.
    for _ in buffers { freeBuffers.signal() }
  }

  /// An empty buffer; waits for one. Throws the failure of an earlier frame.
  func nextBuffer() throws -> FrameBuffer {
    freeBuffers.wait()
    let (buffer, failure) = state.withLock { state -> (FrameBuffer?, (any Error)?) in
      if let failure = state.failure { return (nil, failure) }
      return (state.free.popLast(), nil)
    }
    if let buffer { return buffer }
    freeBuffers.signal()
    throw failure ?? DrydockError(.invalidUse, "no frame buffer is free; report this")
  }

  /// Hands a filled buffer over. It must not be touched any more.
  func submit(_ buffer: FrameBuffer) {
    let startsWorker = state.withLock { state in
      buffer.sequence = state.submitted
      state.submitted += 1
      state.pending.append(buffer)
      guard state.running < workers else { return false }
      state.running += 1
      return true
    }
    if startsWorker { queue.async(group: work) { self.runWorker() } }
  }

  /// Waits for all frames and gives their entries for the seek table. Throws the first failure.
  func finish() throws -> [SeekTable.Entry] {
    work.wait()
    return try state.withLock { state in
      if let failure = state.failure { throw failure }
      return state.entries
    }
  }

  /// Drops what is not written yet and waits until no thread uses the sink any more.
  func cancel() {
    state.withLock { state in
      if state.failure == nil {
        state.failure = DrydockError(.invalidUse, "the archive was abandoned before it was finished")
      }
    }
    work.wait()
  }

  // MARK: Workers

  private func runWorker() {
    while let buffer = nextPending() {
      let failure = compress(buffer)
      state.withLock { state in
        if state.failure == nil { state.failure = failure }
        state.finished[buffer.sequence] = buffer
      }
      // The frame that is next in line and those behind it, unless another worker is at it: that one goes on with what was
      // finished meanwhile.
      while let next = nextInLine() {
        var failure: (any Error)?
        do {
          try sink.write(next.frame)
        } catch {
          failure = error
        }
        state.withLock { state in
          if state.failure == nil { state.failure = failure }
          state.entries.append(next.entry)
          state.free.append(next)
          state.isWriting = false
        }
        freeBuffers.signal()
      }
    }
  }

  private func nextPending() -> FrameBuffer? {
    state.withLock { state in
      // Leaving and being seen as gone is one step, so that `submit` never trusts a worker that has left.
      if state.pending.isEmpty {
        state.running -= 1
        return nil
      }
      return state.pending.removeFirst()
    }
  }

  private func compress(_ buffer: FrameBuffer) -> (any Error)? {
    let (hasFailed, pooled) = state.withLock { ($0.failure != nil, $0.compressors.popLast()) }
    if hasFailed { return nil }
    do {
      let compressor = try pooled ?? FrameCompressor(level: level)
      try compressor.compress(buffer)
      state.withLock { $0.compressors.append(compressor) }
      return nil
    } catch {
      return error
    }
  }

  private func nextInLine() -> FrameBuffer? {
    let (next, dropped) = state.withLock { state -> (FrameBuffer?, Int) in
      if state.failure != nil {
        // The caller may wait for a buffer: give all of them back, so that it wakes up and sees the failure.
        let count = state.finished.count
        state.free += state.finished.values
        state.finished = [:]
        return (nil, count)
      }
      guard !state.isWriting, let next = state.finished.removeValue(forKey: state.entries.count) else {
        return (nil, 0)
      }
      state.isWriting = true
      return (next, 0)
    }
    for _ in 0..<dropped { freeBuffers.signal() }
    return next
  }
}

/// The memory of one frame on its way into the file: its tar bytes, then its compressed bytes.
///
/// Unchecked because the compiler cannot see the hand-over: a buffer has one owner at any time (the caller that
/// fills it, the worker that compresses it, the worker that writes it), and it changes owner only under
/// `FrameWriter`'s lock.
final class FrameBuffer: @unchecked Sendable {
  let plain: UnsafeMutableRawBufferPointer
  let compressed: UnsafeMutableRawBufferPointer
  /// The tar bytes in `plain`.
  var plainCount = 0
  /// The frame's bytes in `compressed`.
  var compressedCount = 0
  /// The frame's place in the file: 0, 1, 2 …
  var sequence = 0

  init() {
    plain = .allocate(byteCount: ArchiveFormat.frameSize, alignment: 4096)
    compressed = .allocate(byteCount: Zstd.largestFrame, alignment: 4096)
  }

  deinit {
    plain.deallocate()
    compressed.deallocate()
  }

  var frame: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: compressed[..<compressedCount]) }

  /// The frame's entry in the seek table.
  ///
  /// The last 4 bytes of a frame with a checksum are the low half of XXH64, as in the seek table.
  var entry: SeekTable.Entry {
    let checksum = frame.littleEndian(at: compressedCount - 4, as: UInt32.self) ?? 0
    return SeekTable.Entry(
      compressedSize: UInt32(compressedCount), plainSize: UInt32(plainCount), checksum: checksum)
  }
}
