import AgeEncryption
import Cryptography
import DrydockErrors
import FileSystem
import SystemPackage

/// Where the bytes of an archive go, in their order: into a file as they are, or encrypted on their way.
///
/// Encrypting takes less time than any other step (3 GB/s on one core, ten times what compressing gives), so that the
/// one worker whose frame is next in line does it while others compress.
///
/// Unchecked because the compiler cannot see that one thread at a time uses it: that worker, then the caller who ends
/// the archive.
final class ArchiveSink: @unchecked Sendable {
  private let output: FileOutput
  private let encryptor: AgeWriter?
  private let hash: SHA256?
  /// Adds bytes. Throws `DrydockError` `.io`.
  let write: (UnsafeRawBufferPointer) throws -> Void

  /// - Parameter encryption: to whom it is encrypted; nil for one that everybody can read.
  /// - Parameter written: called with the size of what is in the file and final; see `FileOutput`.
  /// - Parameter isSigned: whether ``signed(header:manifest:)`` is wanted in the end.
  init(
    _ file: FileDescriptor, encryption: AgeTarget? = nil, written: FileOutput.Written? = nil,
    isSigned: Bool = false
  ) throws {
    hash = isSigned ? try SHA256() : nil
    let output = FileOutput(file, .init(.always), written: written)
    self.output = output
    let append = { [hash] (bytes: UnsafeRawBufferPointer) in
      hash?.update(bytes)
      try Self.writing { try output.append(bytes) }
    }
    let encryptor = try DrydockError.translating {
      try encryption.map { try AgeWriter(to: $0, sink: append) }
    }
    self.encryptor = encryptor
    if let encryptor {
      write = { bytes in try DrydockError.translating { try encryptor.write(bytes) } }
    } else {
      write = append
    }
  }

  var fileSize: UInt64 { output.size }

  /// What was written, once it is finished, read back with the key that it was written with. Throws `DrydockError`.
  func written(to file: FileDescriptor) throws -> ArchiveSource {
    let source = try ArchiveSource(file)
    guard let encryptor else { return source }
    return try DrydockError.translating {
      try AgeReader(size: source.size, writtenWith: encryptor.start) { try source.readExactly($0, at: $1) }
    }.content(requests: 0)
  }

  /// What a signature binds, once the archive is finished; nil unless that was asked for at the beginning.
  func signed(header: [UInt8], manifest: SHA256.Digest) throws -> SignedBytes? {
    guard let hash else { return nil }
    return SignedBytes(
      size: fileSize, sha256: try hash.finalize(),
      contents: try SignedBytes.contentsCode(
        header: header, manifest: manifest, key: encryptor?.start.cipher.codeKey))
  }

  /// Ends the archive. Throws `DrydockError` `.io`.
  func finish() throws {
    try DrydockError.translating { try encryptor?.finish() }
    _ = try Self.writing { try output.finish() }
  }

  private static func writing<T>(_ body: () throws -> T) throws -> T {
    do { return try body() } catch let error as Errno { throw DrydockError.io("writing the archive", error) }
  }
}
