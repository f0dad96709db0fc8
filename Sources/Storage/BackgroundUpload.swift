import ArchiveFile
import DrydockErrors
import FileSystem
import Foundation

/// What a server does with the pieces of an upload.
protocol PieceReceiver: AnyObject, Sendable {
  /// The body of a request with some of the upload's bytes.
  typealias Body = (Range<UInt64>) -> ArchiveSource

  /// The size of the next piece; nil while there are too few bytes for one.
  ///
  /// - Parameters:
  ///   - number: how many pieces were sent before.
  ///   - ready: the bytes that are there and not in a piece.
  ///   - isComplete: whether no more bytes follow, so that the last piece may be short.
  func pieceSize(_ number: Int, ready: UInt64, isComplete: Bool) -> UInt64?
  /// Sends a piece; several threads may do so at a time.
  ///
  /// - Returns: false when the server's file has other bytes than were sent, and everything must be sent again.
  func send(_ piece: Range<UInt64>, number: Int, _ body: Body) throws -> Bool
  /// Gives the file its name, after all pieces were sent. Nil when another file has it.
  func finish(_ size: UInt64, pieces: Int, _ body: Body) throws -> PlaceFile?
  /// Removes what was sent, as far as the server can be reached.
  func discard()
}

/// A file on its way to a server: threads send its pieces in the background as soon as their bytes are there.
final class BackgroundUpload: PlaceUpload, @unchecked Sendable {
  // Everything mutable is used with the lock of `condition`.
  let name: ContainerPath
  let isSent = true
  private let receiver: any PieceReceiver
  private let source: ArchiveSource.Read
  private let path: String
  private let threads: Int
  private let condition = NSCondition()

  private var announced: UInt64 = 0
  private var isComplete = false
  private var isStopped = false
  private var failure: (any Error)?
  private var nextPiece = 0
  private var nextOffset: UInt64 = 0
  private var working = 0
  /// A repeated `publish` reports what the first one did.
  private var published: PlaceFile?

  private static let restartLimit = 5

  /// - Parameters:
  ///   - path: the file's, for messages.
  ///   - threads: how many pieces are sent at the same time.
  init(
    _ name: ContainerPath, path: String, threads: Int, to receiver: any PieceReceiver,
    _ source: @escaping ArchiveSource.Read
  ) {
    (self.name, self.path, self.threads) = (name, path, max(threads, 1))
    (self.receiver, self.source) = (receiver, source)
  }

  deinit {
    condition.withLock { isStopped = true }
  }

  // MARK: PlaceUpload

  func extend(to size: UInt64) throws {
    try condition.withLock {
      if let failure { throw failure }
      announced = max(announced, size)
      startThreads()
    }
  }

  func publish(size: UInt64) throws -> PlaceFile? {
    let earlier = try condition.withLock { () -> PlaceFile? in
      if let published { return published }
      announced = max(announced, size)
      isComplete = true
      startThreads()
      while failure == nil, working > 0 { condition.wait() }
      if let failure { throw failure }
      return nil
    }
    if let earlier { return earlier }
    guard let file = try receiver.finish(size, pieces: condition.withLock({ nextPiece }), body) else {
      cancel()
      return nil
    }
    condition.withLock { published = file }
    return file
  }

  func cancel() {
    let isLeft = condition.withLock { () -> Bool in
      isStopped = true
      while working > 0 { condition.wait() }
      return published == nil && nextPiece > 0
    }
    if isLeft { receiver.discard() }
  }

  // MARK: Threads

  private func body(_ range: Range<UInt64>) -> ArchiveSource {
    ArchiveSource(size: UInt64(range.count)) { [weak self, source] target, offset in
      // Cancelled: the request ends at once.
      guard let self, !condition.withLock({ isStopped }) else { throw CancellationError() }
      try source(target, range.lowerBound + offset)
    }
  }

  /// The size of the next piece, if its bytes are there. Called with the lock.
  private var readySize: UInt64? {
    guard !isStopped, failure == nil else { return nil }
    return receiver.pieceSize(nextPiece, ready: announced - nextOffset, isComplete: isComplete)
  }

  /// Starts threads for the pieces that are ready, up to the allowed number. Called with the lock.
  private func startThreads() {
    guard let size = readySize else { return }
    while working < threads {
      working += 1
      let thread = Thread { self.work() }
      thread.stackSize = 1 << 20
      thread.start()
      // More threads than pieces would only start and end.
      if announced - nextOffset <= UInt64(working) * size { break }
    }
  }

  private func work() {
    var restarts = 0
    while let (piece, number) = condition.withLock({ takePiece() }) {
      do {
        if try receiver.send(piece, number: number, body) { continue }
        restarts += 1
        guard restarts <= Self.restartLimit else {
          throw DrydockError(
            .io, "cannot be written: the file on the server is not what was sent; check the server",
            path: path)
        }
        receiver.discard()
        condition.withLock { (nextPiece, nextOffset) = (0, 0) }
      } catch {
        condition.withLock { failure = failure ?? error }
      }
    }
  }

  /// The next piece; nil when there is none yet, and this thread's work is done. Called with the lock.
  private func takePiece() -> (piece: Range<UInt64>, number: Int)? {
    guard let size = readySize else {
      working -= 1
      condition.broadcast()
      return nil
    }
    defer { (nextPiece, nextOffset) = (nextPiece + 1, nextOffset + size) }
    return (nextOffset..<(nextOffset + size), nextPiece)
  }
}
