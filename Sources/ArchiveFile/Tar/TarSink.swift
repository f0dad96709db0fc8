/// The tar stream on its way into frames: what libarchive's write callback feeds.
final class TarSink {
  /// The bytes of the tar stream so far.
  private(set) var position: UInt64 = 0
  /// The failure that made the callback refuse; libarchive's own message for it says less.
  private(set) var failure: (any Error)?
  private let frames: FrameWriter
  private var buffer: FrameBuffer?

  init(_ frames: FrameWriter) { self.frames = frames }

  /// The one copy of the content on its way. False after a failure.
  func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard failure == nil else { return false }
    do {
      var rest = bytes[...]
      while !rest.isEmpty {
        let buffer = try currentBuffer()
        let count = min(rest.count, ArchiveFormat.frameSize - buffer.plainCount)
        UnsafeMutableRawBufferPointer(rebasing: buffer.plain[buffer.plainCount..<buffer.plainCount + count])
          .copyMemory(from: UnsafeRawBufferPointer(rebasing: rest.prefix(count)))
        buffer.plainCount += count
        rest = rest.dropFirst(count)
        if buffer.plainCount == ArchiveFormat.frameSize { flush() }
      }
      position += UInt64(bytes.count)
      return true
    } catch {
      failure = error
      return false
    }
  }

  /// Hands over the frame that is being filled, if there is one.
  func flush() {
    guard let buffer else { return }
    self.buffer = nil
    frames.submit(buffer)
  }

  private func currentBuffer() throws -> FrameBuffer {
    if let buffer { return buffer }
    let next = try frames.nextBuffer()
    next.plainCount = 0
    buffer = next
    return next
  }
}
