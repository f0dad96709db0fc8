import DrydockErrors

/// Makes readers of one archive's ranges, on any thread. The archive must stay open as long as they are used.
package struct RangeSource: Sendable {
  private let decoder: FrameDecoder
  private let index: FrameIndex
  private let path: String?

  init(_ decoder: FrameDecoder, _ index: FrameIndex, path: String?) {
    (self.decoder, self.index, self.path) = (decoder, index, path)
  }

  /// A new reader, which does not read ahead: the other threads are busy.
  package func reader() -> RangeReader { RangeReader(FrameReader(decoder, index), path: path) }
}

/// Reads ranges of one archive's tar stream, from one thread.
package final class RangeReader {
  let frameReader: FrameReader
  private let path: String?

  init(_ frameReader: FrameReader, path: String?) {
    self.frameReader = frameReader
    self.path = path
  }

  /// Reads a range, decompressing only its frames. `body` gets it piece by piece, in order; a piece is valid during
  /// the call only.
  ///
  /// - Throws: `DrydockError` (`.damaged` for a range outside of the stream, as ranges come from manifests), or
  ///   what `body` throws.
  package func read(offset: UInt64, length: UInt64, into body: (UnsafeRawBufferPointer) throws -> Void) throws
  {
    let index = frameReader.index
    guard offset <= index.tarSize, length <= index.tarSize - offset else {
      throw DrydockError.damaged(
        "the range of \(length) bytes at \(offset) lies outside of the tar stream of \(index.tarSize) bytes"
      ).at(path)
    }
    guard length > 0 else { return }
    let last = index.frame(at: offset + length - 1)
    for number in index.frame(at: offset)...last {
      let frame = index.frames[number]
      let plain: PlainFrame
      do {
        plain = try frameReader.frame(number, readingAheadTo: last)
      } catch let error as DrydockError {
        throw error.at(path)
      }
      let start = Int(max(offset, frame.tarOffset) - frame.tarOffset)
      let end = Int(min(offset + length, frame.tarEnd) - frame.tarOffset)
      try withExtendedLifetime(plain) { try body(UnsafeRawBufferPointer(rebasing: plain.bytes[start..<end])) }
    }
  }

  /// The bytes that content of a size takes in a tar stream: whole blocks.
  package static func padded(_ size: UInt64) -> UInt64 { ArchiveFormat.padded(size) }
}
