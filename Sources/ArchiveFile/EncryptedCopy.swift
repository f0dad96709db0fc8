import AgeEncryption
import Cryptography
import DrydockErrors
import FileSystem
import SystemPackage

/// A copy of an archive, the same byte for byte, encrypted to others.
///
/// It has a new file key. Wrapping the old one for other recipients would take no time; but whoever could open the old
/// file may have kept its file key, and would open the copy as well.
package final class EncryptedCopy {
  private let file: FileDescriptor
  private let sink: ArchiveSink
  private let digest: SHA256.Digest
  private let contentSize: UInt64
  private let manifest: SHA256.Digest

  package var fileSize: UInt64 { sink.fileSize }

  /// Writes a copy into a new file, which is to be open for reading, too.
  ///
  /// - Parameters:
  ///   - isSigned: whether ``signed(header:)`` is wanted.
  ///   - progress: called now and then with the bytes that were copied so far.
  /// - Throws: `DrydockError`: `damaged` when the archive's encrypted data is, `io`.
  package init(
    of reader: ArchiveReader, into file: FileDescriptor, encryption: AgeTarget, isSigned: Bool = false,
    progress: (UInt64) -> Void = { _ in }
  ) throws {
    let sink = try ArchiveSink(file, encryption: encryption, isSigned: isSigned)
    // A failure to write is not an error about the archive that is read.
    var failure: (any Error)?
    do {
      digest = try reader.located {
        try reader.archive.digest {
          do { try sink.write($0) } catch {
            failure = error
            throw error
          }
          progress($1)
        }
      }
    } catch {
      throw failure ?? error
    }
    try sink.finish()
    (self.file, self.sink, contentSize) = (file, sink, reader.archive.size)
    manifest = reader.manifest.sha256
  }

  /// What a signature binds of the copy.
  package func signed(header: [UInt8]) throws -> SignedBytes? {
    try sink.signed(header: header, manifest: manifest)
  }

  /// Reads the file back, from disk once it was synced, and compares it with what was copied. It takes no key: a
  /// machine that encrypts a copy to others may not be able to open it.
  package func verify() throws {
    file.forgetCached()
    let written = try sink.written(to: file)
    guard written.size == contentSize, try written.digest() == digest else {
      throw DrydockError.damaged("the copy differs from what was written into it")
    }
  }
}
