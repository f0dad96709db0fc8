import DrydockErrors
import FileSystem
import Foundation
import Synchronization

/// A file on its way to an SFTP server: one thread appends what is announced to a file under another name, and goes on at the
/// server's size when the connection breaks.
final class SFTPUpload: PieceReceiver {
  private let place: SFTPPlace
  private let name: ContainerPath
  /// The name until it is published.
  private let temporary = Mutex(SFTPPlace.temporaryName())

  /// Less is not sent before the end: each request needs several replies.
  private static let smallestPiece: UInt64 = 8 << 20
  private static let largestPiece: UInt64 = 64 << 20
  /// How much before the place where an upload goes on is compared.
  private static let comparedBytes: UInt64 = 64 << 10

  init(_ place: SFTPPlace, _ name: ContainerPath) { (self.place, self.name) = (place, name) }

  func pieceSize(_ number: Int, ready: UInt64, isComplete: Bool) -> UInt64? {
    let isLast = isComplete && (ready > 0 || number == 0)
    return ready >= Self.smallestPiece || isLast ? min(ready, Self.largestPiece) : nil
  }

  func finish(_ size: UInt64, pieces: Int, _ body: Body) throws -> PlaceFile? {
    try place.retrying("cannot be written", "rename", name) { _ in
      try place.rename(temporary.withLock { $0 }, to: name, size: size) ? try place.state(name) : nil
    }
  }

  func discard() {
    let sent = temporary.withLock { name -> ContainerPath in
      defer { name = SFTPPlace.temporaryName() }
      return name
    }
    _ = try? place.retrying("cannot be cancelled", "rm", name) { _ in
      try place.run(["*rm \(place.address.argument(sent))"])
    }
  }

  /// Appends a piece.
  func send(_ piece: Range<UInt64>, number: Int, _ body: Body) throws -> Bool {
    let temporary = temporary.withLock { $0 }
    var start = piece.lowerBound
    var mustCompare = false
    return try place.retrying("cannot be written", "write", name) { hasProgress in
      if mustCompare {
        let size = try settledSize(temporary)
        // A first request makes the file anew.
        if piece.lowerBound > 0 || size > 0 {
          guard size >= start, size <= piece.upperBound, try hasSentBytes(before: size, in: temporary, body)
          else { return false }
          if size > start { hasProgress = true }
          start = size
        }
      }
      mustCompare = true
      if start < piece.upperBound || start == 0 {
        var request = CurlRequest(
          url: place.address.location(temporary), operation: .send("", body(start..<piece.upperBound)))
        request.appendOffset = start
        try place.send(request)
      }
      return try place.state(temporary)?.size == piece.upperBound
    }
  }

  /// The size of what is on the server, when it no longer changes: after a connection broke, the server may still write what
  /// had arrived.
  private func settledSize(_ temporary: ContainerPath) throws -> UInt64 {
    var last = try place.state(temporary)?.size ?? 0
    for _ in 0..<20 {
      Thread.sleep(forTimeInterval: min(place.options.firstPause, 0.5))
      let size = try place.state(temporary)?.size ?? 0
      if size == last { return size }
      last = size
    }
    throw RemoteFailure(.io, "the file on the server keeps changing", isTransient: true)
  }

  /// Whether the server's file ends with what was sent: bytes of an earlier connection may have come in between.
  private func hasSentBytes(before size: UInt64, in temporary: ContainerPath, _ body: Body) throws -> Bool {
    let count = Int(min(size, Self.comparedBytes))
    guard count > 0 else { return true }
    let buffers = UnsafeMutableRawBufferPointer.allocate(byteCount: 2 * count, alignment: 16)
    defer { buffers.deallocate() }
    let here = UnsafeMutableRawBufferPointer(rebasing: buffers[..<count])
    let there = UnsafeMutableRawBufferPointer(rebasing: buffers[count...])
    try body(size - UInt64(count)..<size).readExactly(here, at: 0)
    let reply = ReplyBuffer(there, at: size - UInt64(count), of: size)
    _ = try place.perform(
      CurlRequest(url: place.address.location(temporary), operation: .get, range: reply.range, buffer: reply))
    return reply.isFull && here.elementsEqual(there)
  }
}
