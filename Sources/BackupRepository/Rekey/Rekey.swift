import AgeEncryption
import ArchiveFile
import FileSystem

/// What a change of keys wrote.
package struct RekeyReport: Sendable {
  /// The archive that was read, and the one that is encrypted to others now: the same path when it was replaced.
  package var source: String, path: String
  /// What both are.
  package var header: ArchiveHeader
  /// Bytes of the new file.
  package var archiveBytes: UInt64
}

/// Encrypts an archive to others: the same archive, byte for byte, under a new file key (see `SealedCopy`).
///
/// Whoever could open the old file, and kept a copy of it, can open that copy for ever.
package enum Rekey {
  /// Writes the archive as another file, never replacing one. The old one stays.
  ///
  /// - Parameters:
  ///   - encryption: to whom.
  ///   - lockTimeout: seconds to wait while something is removed from the repository.
  ///   - progress: called now and then with the bytes that were copied so far.
  /// - Throws: `DrydockError`, ``DrydockError`` (`overlap`, `notFound`, `locked`), `DrydockError`.
  package static func copy(
    _ archive: Archive, to target: SnapshotOptions.Target, encryption: AgeLock, lockTimeout: Double = 0,
    progress: (UInt64) -> Void = { _ in }
  ) throws -> RekeyReport {
    let header = archive.header
    let names = ArchiveName.candidates(
      app: header.app, instance: header.instance, time: header.compactTime, id: header.archive,
      isEncrypted: true)
    let publication = try Publication(target, lockTimeout: lockTimeout)
    return try publication.with { scratch in
      let size = try write(archive, into: scratch, encryption, progress)
      let path = try publication.publish(file, in: scratch, as: names)
      return RekeyReport(source: archive.path, path: path, header: header, archiveBytes: size)
    }
  }

  static let file: ContainerPath = "archive"

  /// Writes the copy into a private directory: synced, read back and compared when this returns.
  static func write(
    _ archive: Archive, into scratch: Directory, _ encryption: AgeLock, _ progress: (UInt64) -> Void
  ) throws -> UInt64 {
    let output = try scratch.createFile(file, mode: 0o644)
    defer { try? output.close() }
    let copy = try SealedCopy(of: archive.reader, into: output, encryption: encryption, progress: progress)
    try scratch.syncFile(output, file)
    try copy.verify()
    return copy.fileSize
  }
}

extension ArchiveHeader {
  /// The time as names have it: `20261120T101500Z`.
  var compactTime: String { time.filter { $0 != "-" && $0 != ":" } }
}
