import Cryptography
import DrydockErrors
import FileSystem
import SystemPackage

/// Writes a file in large blocks, past the page cache where the file system allows it.
///
/// To find memory in the page cache for a large archive can take as long as compressing it, and it displaces what other
/// programs have there. The archive itself is seldom read soon.
final class FileOutput {
  private static let blockSize = 4 << 20
  /// Through the page cache: given 4 MiB at once, Linux takes five times as long to find the memory for them.
  private static let pieceSize = 256 << 10

  /// Takes the size of what is in the file and will not change; called after each block, and at the end.
  typealias Written = @Sendable (UInt64) throws -> Void

  private let file: FileDescriptor
  private let written: Written?
  /// Of all bytes, where a signature needs it.
  private let hash: SHA256?
  /// The bytes that were added, written or not.
  private(set) var size: UInt64 = 0
  /// Aligned as the system wants it of memory that a disk reads.
  private let block = UnsafeMutableRawBufferPointer.allocate(byteCount: blockSize, alignment: 4096)
  private var filled = 0
  /// The bytes in the file.
  private var fileSize: UInt64 = 0
  /// Nil before the first block, which a small archive does not fill.
  private var isDirect: Bool?

  /// - Parameters:
  ///   - written: for a reader that follows, for which the file stays in the page cache.
  ///   - hash: takes all bytes.
  init(_ file: FileDescriptor, written: Written? = nil, hash: SHA256? = nil) {
    (self.file, self.written, self.hash) = (file, written, hash)
    isDirect = written == nil ? nil : false
  }

  deinit { block.deallocate() }

  /// Adds bytes. Throws `DrydockError` `.io`.
  func append(_ bytes: UnsafeRawBufferPointer) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      let part = UnsafeRawBufferPointer(rebasing: rest.prefix(block.count - filled))
      UnsafeMutableRawBufferPointer(rebasing: block[filled...]).copyMemory(from: part)
      hash?.update(part)
      filled += part.count
      rest = rest.dropFirst(part.count)
      if filled == block.count { try writeBlock() }
    }
    size += UInt64(bytes.count)
  }

  /// Writes what is left. Throws `DrydockError` `.io`.
  func flush() throws {
    // Only whole blocks of the disk can be written past the page cache.
    endDirect()
    try writeBlock()
  }

  private func writeBlock() throws {
    if isDirect == nil {
      // The position is that of the first block, and stays a multiple of its alignment.
      isDirect = try filled == block.count && position() % 4096 == 0 && file.bypassCache(true)
    }
    var rest = UnsafeRawBufferPointer(rebasing: block[..<filled])
    while !rest.isEmpty {
      let piece = isDirect == true ? rest : UnsafeRawBufferPointer(rebasing: rest.prefix(Self.pieceSize))
      do {
        rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(try file.write(piece)))
      } catch Errno.invalidArgument where isDirect == true {
        // The file system wants another alignment, or none of it at all.
        endDirect()
      } catch {
        throw DrydockError.io("writing the archive", error)
      }
    }
    fileSize += UInt64(filled)
    filled = 0
    try written?(fileSize)
  }

  private func endDirect() {
    if isDirect == true { _ = file.bypassCache(false) }
    isDirect = false
  }

  private func position() throws -> Int64 {
    do { return try file.seek(offset: 0, from: .current) } catch {
      throw DrydockError.io("writing the archive", error)
    }
  }
}
