import CLibZstd

/// A zstd compression context, used by one worker at a time.
///
/// Unchecked because the compiler cannot see that: a compressor is taken from `FrameWriter`'s pool under its lock
/// and put back under it.
final class FrameCompressor: @unchecked Sendable {
  private let context: OpaquePointer

  init(level: Int32) throws {
    guard let context = ZSTD_createCCtx() else { throw Zstd.outOfMemory }
    self.context = context
    // From here on `deinit` frees the context, as every stored property is set.
    for (parameter, value) in [
      (ZSTD_c_compressionLevel, level), (ZSTD_c_checksumFlag, 1), (ZSTD_c_contentSizeFlag, 1),
    ] {
      _ = try Zstd.check(ZSTD_CCtx_setParameter(context, parameter, value), "setting up compression")
    }
  }

  deinit { ZSTD_freeCCtx(context) }

  /// Compresses the buffer's tar bytes into one frame.
  func compress(_ buffer: FrameBuffer) throws {
    buffer.compressedCount = try Zstd.check(
      ZSTD_compress2(
        context, buffer.compressed.baseAddress, buffer.compressed.count, buffer.plain.baseAddress,
        buffer.plainCount),
      "compressing a frame")
  }
}
