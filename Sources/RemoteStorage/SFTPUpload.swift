import DrydockErrors
import Foundation

/// A file on its way to an SFTP server: one thread appends what is announced to a file under another name, and goes on at the
/// server's size when the connection breaks.
final class SFTPUpload: RemoteUpload, @unchecked Sendable {
  // Everything mutable is used with the lock of `condition`, but for what only the thread uses.
  private let store: SFTPStore
  private let name: String
  private let source: RemoteSource
  private let condition = NSCondition()

  private var announced: UInt64 = 0
  private var isComplete = false
  private var isStopped = false
  private var isWorking = false
  private var failure: (any Error)?
  private var published: RemoteFile?
  private var temporary = SFTPStore.temporaryName()
  /// How much the server has confirmed; nil before the file was made.
  private var confirmed: UInt64?

  /// Less is not sent before the end: each request needs several replies.
  private static let smallestPiece: UInt64 = 8 << 20
  private static let largestPiece: UInt64 = 64 << 20
  /// How much before the place where an upload goes on is compared.
  private static let comparedBytes: UInt64 = 64 << 10
  private static let restartLimit = 5

  init(_ store: SFTPStore, _ name: String, _ source: @escaping RemoteSource) {
    (self.store, self.name, self.source) = (store, name, source)
  }

  deinit {
    condition.withLock { isStopped = true }
  }

  // MARK: RemoteUpload

  func extend(to size: UInt64) throws {
    try condition.withLock {
      if let failure { throw failure }
      announced = max(announced, size)
      startWorker()
    }
  }

  func publish(size: UInt64) throws -> RemoteFile? {
    let earlier = try condition.withLock { () -> RemoteFile? in
      if let published { return published }
      announced = max(announced, size)
      isComplete = true
      startWorker()
      while isWorking { condition.wait() }
      if let failure { throw failure }
      return nil
    }
    if let earlier { return earlier }
    let file = try store.retries.run(store.label("cannot be written", "rename", name)) { _ in
      try store.rename(temporary, to: name, size: size) ? try store.state(name) : nil
    }
    guard let file else {
      cancel()
      return nil
    }
    condition.withLock { published = file }
    return file
  }

  func cancel() {
    let (isPublished, isBegun) = condition.withLock { () -> (Bool, Bool) in
      isStopped = true
      while isWorking { condition.wait() }
      return (published != nil, confirmed != nil || failure != nil)
    }
    if !isPublished, isBegun { remove(temporary) }
  }

  private func remove(_ temporary: String) {
    _ = try? store.retries.run(store.label("cannot be cancelled", "rm", name)) { _ in
      try store.run(["*rm \(store.place.argument(temporary))"])
    }
  }

  // MARK: The thread

  /// What is to be sent next, if it is enough for a request. Called with the lock.
  private var nextPiece: Range<UInt64>? {
    guard !isStopped, failure == nil else { return nil }
    let start = confirmed ?? 0
    let rest = announced - start
    guard rest >= Self.smallestPiece || (isComplete && (rest > 0 || confirmed == nil)) else { return nil }
    return start..<(start + min(rest, Self.largestPiece))
  }

  private func startWorker() {
    guard !isWorking, nextPiece != nil else { return }
    isWorking = true
    let thread = Thread { self.work() }
    thread.stackSize = 1 << 20
    thread.start()
  }

  private func work() {
    var restarts = 0
    while let piece = condition.withLock({ takePiece() }) {
      do {
        let isSent = try send(piece)
        if !isSent {
          restarts += 1
          guard restarts <= Self.restartLimit else {
            throw DrydockError(
              .io, "cannot be written: the file on the server is not what was sent; check the server",
              path: "\(store.url)/\(name)")
          }
          remove(temporary)
        }
        condition.withLock {
          confirmed = isSent ? piece.upperBound : nil
          if !isSent { temporary = SFTPStore.temporaryName() }
        }
      } catch {
        condition.withLock { failure = failure ?? error }
      }
    }
  }

  /// The next piece; nil when there is none yet, and the thread ends. Called with the lock.
  private func takePiece() -> Range<UInt64>? {
    if let piece = nextPiece { return piece }
    isWorking = false
    condition.broadcast()
    return nil
  }

  /// Appends a piece.
  ///
  /// - Returns: false when the server's file has other bytes than were sent, and everything must be sent again.
  private func send(_ piece: Range<UInt64>) throws -> Bool {
    var start = piece.lowerBound
    var mustCompare = false
    return try store.retries.run(store.label("cannot be written", "write", name)) { attempt in
      if mustCompare {
        let size = try settledSize()
        // A first request makes the file anew.
        if piece.lowerBound > 0 || size > 0 {
          guard size >= start, size <= piece.upperBound, try hasSentBytes(before: size) else { return false }
          if size > start { attempt.progressed() }
          start = size
        }
      }
      mustCompare = true
      if start < piece.upperBound || start == 0 {
        let body = RequestBody(size: piece.upperBound - start) { [weak self, source, start] target, offset in
          guard let self, !condition.withLock({ isStopped }) else { throw CancellationError() }
          try source(target, start + offset)
        }
        var request = CurlRequest(url: store.place.location(temporary), operation: .send("", body))
        request.appendOffset = start
        try store.send(request)
      }
      guard try store.state(temporary)?.size == piece.upperBound else { return false }
      return true
    }
  }

  /// The size of what is on the server, when it no longer changes: after a connection broke, the server may still write what
  /// had arrived.
  private func settledSize() throws -> UInt64 {
    var last = try store.state(temporary)?.size ?? 0
    for _ in 0..<20 {
      Thread.sleep(forTimeInterval: min(store.options.firstPause, 0.5))
      let size = try store.state(temporary)?.size ?? 0
      if size == last { return size }
      last = size
    }
    throw RemoteFailure(.io, "the file on the server keeps changing", isTransient: true)
  }

  /// Whether the server's file ends with what was sent: bytes of an earlier connection may have come in between.
  private func hasSentBytes(before size: UInt64) throws -> Bool {
    let count = Int(min(size, Self.comparedBytes))
    guard count > 0 else { return true }
    let buffers = UnsafeMutableRawBufferPointer.allocate(byteCount: 2 * count, alignment: 16)
    defer { buffers.deallocate() }
    let here = UnsafeMutableRawBufferPointer(rebasing: buffers[..<count])
    let there = UnsafeMutableRawBufferPointer(rebasing: buffers[count...])
    try source(here, size - UInt64(count))
    var received = 0
    _ = try store.perform(
      CurlRequest(
        url: store.place.location(temporary), operation: .get, range: "\(size - UInt64(count))-\(size - 1)",
        target: .buffer(there, contentRange: nil)),
      received: &received)
    return received == count && here.elementsEqual(there)
  }
}
