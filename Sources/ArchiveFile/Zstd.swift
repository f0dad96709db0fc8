import CLibZstd
import DrydockErrors

/// The only file that imports libzstd: its results as this module's errors.
enum Zstd {
  /// The most bytes that a frame of the format has.
  static let largestFrame = ZSTD_compressBound(ArchiveFormat.frameSize)

  /// The result of a call that can fail, as a count.
  fileprivate static func check(_ result: Int, _ doing: String) throws -> Int {
    guard ZSTD_isError(result) != 0 else { return result }
    let reason = ZSTD_getErrorName(result).map { String(cString: $0) } ?? "no reason given"
    switch ZSTD_getErrorCode(result) {
    case ZSTD_error_memory_allocation:
      throw DrydockError(.io, "\(doing) failed: libzstd is out of memory; free some and try again")
    default:
      // Compressing fails for want of memory only; all else comes from reading a damaged frame.
      throw DrydockError.damaged("\(doing) failed: \(reason)")
    }
  }

  fileprivate static let outOfMemory = DrydockError(
    .io, "libzstd could not start: out of memory; free some and try again")

  /// Whether the first bytes of a zstd file may be those of an archive, whose frames always announce a small size
  /// and a checksum.
  static func mayBeArchive(head: [UInt8]) -> Bool {
    let size = head.withUnsafeBytes { ZSTD_getFrameContentSize($0.baseAddress, $0.count) }
    // The two results that are no size are macros that Swift does not import: unknown, and less than a header.
    let isUnknown = size == UInt64.max
    let isTooShort = size == UInt64.max - 1
    let hasChecksum = head.count > 4 && head[4] & 0x04 != 0
    return isTooShort || (!isUnknown && size <= UInt64(ArchiveFormat.frameSize) && hasChecksum)
  }
}

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

/// A zstd decompression context and the memory for one frame's compressed bytes, used by one thread at a time.
///
/// Unchecked because the compiler cannot see that: it is taken from a `RangeSource`'s pool under its lock and put
/// back under it.
final class FrameDecompressor: @unchecked Sendable {
  private let context: OpaquePointer
  private let input: UnsafeMutableRawBufferPointer

  init() throws {
    guard let context = ZSTD_createDCtx() else { throw Zstd.outOfMemory }
    self.context = context
    input = .allocate(byteCount: Zstd.largestFrame, alignment: 4096)
  }

  deinit {
    ZSTD_freeDCtx(context)
    input.deallocate()
  }

  /// Reads a frame and decompresses it, checking everything that the frame and the seek table say of each other.
  func decompress(_ frame: ArchiveFrame, of archive: ArchiveSource, into output: PlainFrame) throws {
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
    // Of a frame with a window the next byte is its size, 0x68 for 8 MiB: stock programs refuse more, or allocate it.
    guard bytes[4] & 0x20 != 0 || bytes[5] <= 0x68 else {
      throw DrydockError(.limit, "\(doing) failed: it needs more than 8 MiB of memory for its window")
    }
    try output.fill(frame.plainSize) { plain in
      let count = try Zstd.check(
        ZSTD_decompressDCtx(context, plain.baseAddress, plain.count, bytes.baseAddress, bytes.count), doing)
      guard count == plain.count else {
        throw DrydockError.damaged("\(doing) failed: it is shorter than it announces")
      }
      // Other content with the same checksum can be made, and would not count against the limit on expansion.
      guard !frame.isHole || plain.assumingMemoryBound(to: UInt64.self).allSatisfy({ $0 == 0 }) else {
        throw DrydockError.damaged("\(doing) failed: it has the checksum of zeros, and other content")
      }
    }
  }
}
