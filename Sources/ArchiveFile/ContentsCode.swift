import Cryptography
import DrydockErrors
import FileSystem

/// What a signature binds of an archive's file.
package struct SignedBytes: Sendable {
  package let size: UInt64
  /// Of all bytes of the file.
  package let sha256: SHA256.Digest
  /// See ``contentsCode(header:manifest:key:)``.
  package let contents: SHA256.Digest

  package init(size: UInt64, sha256: SHA256.Digest, contents: SHA256.Digest) {
    (self.size, self.sha256, self.contents) = (size, sha256, contents)
  }

  /// A code over an archive's header and manifest, which have the hashes of all that is restored: with it a part of an archive
  /// is verified without reading the rest.
  ///
  /// It is beside encrypted archives, too. There its key follows from the file key, so that nobody can test guesses of what
  /// is in the archive who cannot open it.
  ///
  /// - Parameters:
  ///   - header: the content of the first member.
  ///   - manifest: the hash of the manifest.
  ///   - key: of an encrypted archive.
  static func contentsCode(
    header: [UInt8], manifest: SHA256.Digest, key: SecretBytes?
  ) throws -> SHA256.Digest {
    let code = try (key ?? SecretBytes([])).code(of: SHA256.hash(header).bytes + manifest.bytes)
    guard let digest = SHA256.Digest(bytes: code) else {
      throw DrydockError(.cryptography, "a code has the wrong length")
    }
    return digest
  }
}

extension ArchiveReader {
  /// The code over the header, which the caller has read, and the manifest that this archive announces. What is read of the
  /// manifest is compared with its hash.
  package func contentsCode(header: [UInt8]) throws -> SHA256.Digest {
    try SignedBytes.contentsCode(header: header, manifest: manifest.sha256, key: codeKey)
  }

  /// The hash of all bytes of the file, which are read once more.
  package func fileDigest() throws -> SHA256.Digest {
    try located { try source.digest() }
  }
}
