import SystemPackage

/// Where the bytes of an archive go, in their order: into a file as they are, or sealed on their way.
///
/// Unchecked because the compiler cannot see that one thread at a time uses it: the worker whose frame is next in line,
/// then the caller who ends the archive.
final class ArchiveSink: @unchecked Sendable {
  private let file: FileDescriptor
  /// The bytes that went into the file.
  private(set) var fileSize: UInt64 = 0

  init(_ file: FileDescriptor) { self.file = file }

  /// Adds bytes. Throws `ArchiveError` `.io`.
  func write(_ bytes: UnsafeRawBufferPointer) throws { try append(bytes) }

  /// Ends the archive with its last bytes, of which there must be some.
  func finish(_ tail: [UInt8]) throws { try tail.withUnsafeBytes(append) }

  /// In pieces: given 4 MiB at once, Linux takes five times as long to find the memory for them.
  private func append(_ bytes: UnsafeRawBufferPointer) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      do {
        try file.writeAll(UnsafeRawBufferPointer(rebasing: rest.prefix(Self.pieceSize)))
      } catch {
        throw ArchiveError.io("writing the archive", error)
      }
      rest = rest.dropFirst(Self.pieceSize)
    }
    fileSize += UInt64(bytes.count)
  }

  private static let pieceSize = 256 << 10
}
