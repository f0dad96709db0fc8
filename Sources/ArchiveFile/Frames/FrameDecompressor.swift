import CLibZstd
import DrydockErrors

/// A zstd decompression context and the memory for one frame's compressed bytes, used by one thread at a time.
///
/// Unchecked because the compiler cannot see that: it is taken from `FrameDecoder`'s pool under its lock and put
/// back under it.
final class FrameDecompressor: @unchecked Sendable {
  private let context: OpaquePointer
  private let input: UnsafeMutableRawBufferPointer

  init() throws {
    guard let context = ZSTD_createDCtx() else { throw Zstd.outOfMemory }
    self.context = context
    input = .allocate(byteCount: ZSTD_compressBound(ArchiveFormat.frameSize), alignment: 4096)
  }

  deinit {
    ZSTD_freeDCtx(context)
    input.deallocate()
  }

  /// Reads a frame and decompresses it, checking everything that the frame and the seek table say of each other.
  func decompress(_ frame: ArchiveFrame, of archive: ArchiveBytes, into output: PlainFrame) throws {
    let doing = "reading the frame at byte \(frame.fileOffset)"
    let target = UnsafeMutableRawBufferPointer(rebasing: input[..<frame.compressedSize])
    try archive.readExactly(target, at: frame.fileOffset)
    let bytes = UnsafeRawBufferPointer(target)
    guard bytes.littleEndian(at: 0, as: UInt32.self) == ArchiveFormat.frameMagic else {
      throw DrydockError.damaged("\(doing) failed: no frame starts there")
    }
    // One frame and no more: libzstd would go on with whatever follows it inside of these bytes.
    let size = try Zstd.check(ZSTD_findFrameCompressedSize(bytes.baseAddress, bytes.count), doing)
    guard size == bytes.count, ZSTD_getFrameContentSize(bytes.baseAddress, size) == UInt64(frame.plainSize)
    else {
      throw DrydockError.damaged("\(doing) failed: its sizes are not those of the seek table")
    }
    // The byte after the magic: bit 2 says that the frame has a checksum, which libzstd then checks; bits 6 and 7
    // are the width of the size, bit 5 a layout; no dictionary and nothing reserved.
    guard bytes[4] & 0x1F == 0x04, bytes.littleEndian(at: size - 4, as: UInt32.self) == frame.checksum else {
      throw DrydockError.damaged("\(doing) failed: its checksum is not that of the seek table")
    }
    // Of a frame with a window the next byte is its size: stock programs refuse more than 8 MiB, or allocate it.
    guard bytes[4] & 0x20 != 0 || bytes[5] >> 3 <= 13 else {
      throw DrydockError(.limit, "\(doing) failed: it wants more than 8 MiB of memory for its window")
    }
    try output.fill(frame.plainSize) { plain in
      let count = try Zstd.check(
        ZSTD_decompressDCtx(context, plain.baseAddress, plain.count, bytes.baseAddress, bytes.count), doing)
      guard count == plain.count else {
        throw DrydockError.damaged("\(doing) failed: it is shorter than it says")
      }
    }
  }
}
