import AgeEncryption
import ArchiveFile
import ArchiveSigning
import DrydockErrors
import FileSystem

extension Repository {
  /// Signs an archive that is there already, after all of it was verified. Its signatures are replaced.
  ///
  /// - Parameters:
  ///   - path: the archive's file.
  ///   - keys: what opens it.
  ///   - lockTimeout: seconds to wait for those who remove from the repository.
  /// - Throws: `DrydockError`: `damaged`, `notFound`, `locked`.
  package static func sign(
    _ path: String, with signing: [SigningKey], keys: AgeKeys, limit: ExpansionLimit = .standard,
    lockTimeout: Double = 0, progress: WorkProgress? = nil
  ) throws -> VerificationReport {
    let (folder, name) = try Places.ofFile(path)
    let place = try RepositoryLock(folder.path, exclusive: true, timeout: lockTimeout).place
    let archive = try Archive(path: place.full(name), keys: keys, limit: limit)
    let report = try Verification.run(archive, data: true, progress: progress)
    let part = archive.parts[0]
    let bytes = SignedBytes(
      size: part.reader.fileSize, sha256: try part.reader.fileDigest(),
      contents: try part.reader.contentsCode(header: part.json))
    try SignatureDraft(header: part.header, bytes: bytes, keys: signing).write(name, at: place)
    try place.sync()
    return report
  }
}
