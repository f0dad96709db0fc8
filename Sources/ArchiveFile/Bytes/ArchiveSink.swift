import AgeEncryption
import DrydockErrors
import SystemPackage

/// Where the bytes of an archive go, in their order: into a file as they are, or sealed on their way.
///
/// Sealing takes less time than any other step (3 GB/s on one core, ten times what compressing gives), so that the one
/// worker whose frame is next in line does it while others compress.
///
/// Unchecked because the compiler cannot see that one thread at a time uses it: that worker, then the caller who ends
/// the archive.
final class ArchiveSink: @unchecked Sendable {
  private let output: FileOutput
  private let seal: AgeWriter?

  /// - Parameter encryption: to whom it is encrypted; nil for nobody, that is for everybody.
  /// - Throws: `DrydockError`.
  init(_ file: FileDescriptor, encryption: AgeLock? = nil) throws {
    let output = FileOutput(file)
    self.output = output
    seal = try DrydockError.translating { try encryption.map { try AgeWriter(to: $0, sink: output.append) } }
  }

  /// The bytes that went into the file.
  var fileSize: UInt64 { output.size }

  /// Adds bytes. Throws `DrydockError` `.io`.
  func write(_ bytes: UnsafeRawBufferPointer) throws {
    if let seal { return try DrydockError.translating { try seal.write(bytes) } }
    // In pieces: given 4 MiB at once, Linux takes five times as long to find the memory for them.
    var rest = bytes[...]
    while !rest.isEmpty {
      try output.append(UnsafeRawBufferPointer(rebasing: rest.prefix(Self.pieceSize)))
      rest = rest.dropFirst(Self.pieceSize)
    }
  }

  private static let pieceSize = 256 << 10

  /// What was written, once it is finished, read back with the key that it was written with. Throws `DrydockError`.
  func written(to file: FileDescriptor) throws -> ArchiveBytes {
    let size = try file.size()
    guard let seal else { return .plain(file, size: size) }
    return .sealed(
      try DrydockError.translating {
        try AgeReader(size: size, writtenWith: seal.start) { try file.readExactly($0, at: $1) }
      })
  }

  /// Ends the archive. Throws `DrydockError` `.io`.
  func finish() throws { try DrydockError.translating { try seal?.finish() } }
}

/// A file that grows.
private final class FileOutput {
  private let file: FileDescriptor
  private(set) var size: UInt64 = 0

  init(_ file: FileDescriptor) { self.file = file }

  func append(_ bytes: UnsafeRawBufferPointer) throws {
    do {
      try file.writeAll(bytes)
    } catch {
      throw DrydockError.io("writing the archive", error)
    }
    size += UInt64(bytes.count)
  }
}
