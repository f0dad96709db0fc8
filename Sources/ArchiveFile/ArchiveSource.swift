import Cryptography
import DrydockErrors
import FileSystem
import SystemPackage

#if canImport(Glibc)
  import Glibc
#endif

/// The bytes of an archive, of its file or of a part of it, at any offset and from any thread, wherever the file is.
package struct ArchiveSource: Sendable {
  /// Fills a buffer with the bytes at an offset, or throws.
  package typealias Read =
    @Sendable (_ into: UnsafeMutableRawBufferPointer, _ offset: UInt64) throws -> Void

  package let size: UInt64
  /// How many requests are sent to a server at a time; 0 when a read takes none.
  package let requests: Int
  private let read: Read

  /// - Parameter read: throws `DrydockError` `.truncated` when the file ends before.
  package init(size: UInt64, requests: Int = 0, read: @escaping Read) {
    (self.size, self.requests, self.read) = (size, requests, read)
  }

  /// Whether every read takes a request to a server: then a few large ones, and several at a time, take less time.
  package var isRemote: Bool { requests > 0 }

  /// An open file, which must stay open as long as the source is used, and whose position is moved.
  ///
  /// - Throws: `DrydockError` `.io`, as for a pipe.
  package init(_ file: FileDescriptor) throws {
    self.init(size: try file.size()) { try file.readExactly($0, at: $1) }
  }

  /// Bytes in memory.
  package init(_ bytes: [UInt8]) {
    self.init(size: UInt64(bytes.count)) { $0.copyBytes(from: bytes[Int($1)..<Int($1) + $0.count]) }
  }

  /// Opens a file; it is closed when the last copy of the source is gone.
  ///
  /// - Throws: `DrydockError` `.io`.
  package init(path: String) throws {
    do {
      // Without waiting: a FIFO must be refused instead of hanging.
      try self.init(
        owning: FileDescriptor.open(FilePath(path), .readOnly, options: [.closeOnExec, .nonBlocking]))
    } catch let error as Errno {
      throw DrydockError.io("opening the archive", error).at(path)
    } catch let error as DrydockError {
      throw error.at(path)
    }
  }

  /// An open file, which is closed when the last copy of the source is gone.
  package init(owning file: FileDescriptor) throws {
    let owned = OwnedFile(file)
    self.init(size: try file.size()) { try owned.file.readExactly($0, at: $1) }
  }

  /// Throws `DrydockError` `.truncated` when the file ends before.
  package func readExactly(_ target: UnsafeMutableRawBufferPointer, at offset: UInt64) throws {
    try read(target, offset)
  }

  func readExactly(_ count: Int, at offset: UInt64) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    try bytes.withUnsafeMutableBytes { try read($0, offset) }
    return bytes
  }

  /// A range of the file, read into memory now, at its offsets.
  func part(_ range: Range<UInt64>) throws -> ArchiveSource {
    // Not filled with zeros: while a server's reply is on its way, its memory is not in use yet.
    let bytes = try [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
      try read(UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: range.count), range.lowerBound)
      count = range.count
    }
    return ArchiveSource(size: range.upperBound) { target, offset in
      guard range.lowerBound <= offset, offset + UInt64(target.count) <= range.upperBound else {
        throw DrydockError.truncated("what was fetched does not have these bytes")
      }
      let start = Int(offset - range.lowerBound)
      target.copyBytes(from: bytes[start..<start + target.count])
    }
  }

  /// The first bytes of the file, as many as there are.
  package func beginning(_ count: Int) throws -> [UInt8] {
    try readExactly(Int(min(size, UInt64(count))), at: 0)
  }

  /// The hash of all bytes.
  ///
  /// - Parameter body: takes each piece, and the number of bytes up to its end.
  package func digest(
    _ body: (UnsafeRawBufferPointer, UInt64) throws -> Void = { _, _ in }
  ) throws -> SHA256.Digest {
    let digest = try SHA256()
    var done: UInt64 = 0
    let read = { (offset: UInt64, buffer: UnsafeMutableRawBufferPointer) throws -> Int in
      try self.read(buffer, offset)
      return buffer.count
    }
    try readInPieces(0..<size, read: read) { piece in
      digest.update(piece)
      done += UInt64(piece.count)
      try body(piece, done)
    }
    return try digest.finalize()
  }
}

private final class OwnedFile: Sendable {
  let file: FileDescriptor

  init(_ file: FileDescriptor) { self.file = file }

  deinit { try? file.close() }
}

extension FileDescriptor {
  /// The file's size in bytes. Throws `DrydockError` `.io`, as for a pipe.
  fileprivate func size() throws -> UInt64 {
    do {
      return UInt64(clamping: try seek(offset: 0, from: .end))
    } catch {
      throw DrydockError.io("finding the archive's size", error)
    }
  }

  /// Reads that many bytes at a place. Throws `DrydockError` `.truncated` when the file ends before.
  fileprivate func readExactly(_ target: UnsafeMutableRawBufferPointer, at offset: UInt64) throws {
    let count: Int
    do { count = try fill(target, at: offset) } catch Errno.isDirectory {
      throw DrydockError(
        .notAnArchive,
        "a directory, not an archive: give a .tar.zst of drydock")
    } catch { throw DrydockError.io("reading the archive", error) }
    guard count == target.count else { throw DrydockError.truncated("the archive shrank while it was read") }
  }

  /// Drops the file from the page cache where the system allows it, so that the next read comes from the disk.
  func forgetCached() {
    #if canImport(Glibc)
      posix_fadvise(rawValue, 0, 0, POSIX_FADV_DONTNEED)
    #endif
  }
}
