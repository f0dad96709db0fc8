import CLibZstd

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
    compressed = .allocate(byteCount: ZSTD_compressBound(ArchiveFormat.frameSize), alignment: 4096)
  }

  deinit {
    plain.deallocate()
    compressed.deallocate()
  }

  var frame: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: compressed[..<compressedCount]) }

  /// What the seek table says of this frame.
  ///
  /// The last 4 bytes of a frame with a checksum are just what the seek table wants: the low half of XXH64.
  var entry: SeekTable.Entry {
    let checksum = frame.littleEndian(at: compressedCount - 4, as: UInt32.self) ?? 0
    return SeekTable.Entry(
      compressedSize: UInt32(compressedCount), plainSize: UInt32(plainCount), checksum: checksum)
  }
}
