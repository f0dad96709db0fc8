import AgeEncryption
import ArchiveFile
import ArchiveSigning
import Cryptography
import DrydockErrors
import FileSystem
import Foundation

/// Writes the snapshot of an archive into a full archive that needs no other one to be read.
package enum Export {
  /// Writes an archive with a new id: the same snapshot, and the same record of what is not in it. Every byte is
  /// compared with its hash on its way; nothing is published unless all are right.
  ///
  /// - Parameters:
  ///   - encryption: to whom the new archive is encrypted; nil for one that everybody can read.
  ///   - signing: the keys that sign the new archive.
  ///   - tool: the program's name and version, for the header.
  ///   - lockTimeout: seconds to wait while something is removed from the repository.
  ///   - progress: counts what is read of the archive.
  /// - Throws: `DrydockError`: `damaged`, `overlap`, `notFound`, `locked`.
  package static func run(
    _ archive: Archive, to target: ArchiveTarget, encryption: AgeTarget? = nil,
    signing: [SigningKey] = [],
    tool: String,
    lockTimeout: Double = 0, progress: WorkProgress? = nil
  ) throws -> ExportReport {
    try archive.requireComplete()
    try archive.checkExpansion()
    progress?.begin(.export, reading: archive)
    let destination = try ArchiveDestination(target, lockTimeout: lockTimeout)
    var header = archive.fullHeader()
    (header.archive, header.exportedFrom, header.tool) = (try Archive.ID.new(), archive.header.archive, tool)
    let draft = try ArchiveDraft(
      header, time: archive.captureTime(), encryption: encryption, signing: signing, to: destination)
    do {
      var (entries, bytes) = (0, UInt64(0))
      try archive.manifest.entries { source in
        try copy(source, of: archive, into: draft)
        entries += 1
        bytes += source.extents.length
        progress?.add(files: 1)
      }
      for path in try archive.manifest.excluded() { try draft.manifest.add(path) }
      for path in try archive.manifest.skipped() { try draft.manifest.add(path) }
      if draft.isEncrypted, let extract = try archive.vaultExtract() { try draft.add(extract) }
      let snapshot = try draft.manifest.finish(storesExcluded: archive.manifest.storesExcluded()).hex
      try archive.expectSnapshot(snapshot)
      let (path, size) = try draft.publish()
      return ExportReport(
        path: path, header: header, snapshot: snapshot, entries: entries, contentBytes: bytes,
        archiveBytes: size, dropsVaultItems: archive.vault != nil && !draft.isEncrypted)
    } catch let error as DrydockError {
      throw draft.explained(error)
    }
  }

  /// Copies an entry with its content.
  private static func copy(
    _ source: ManifestEntry, of archive: Archive, into draft: ArchiveDraft
  ) throws {
    let (names, writer) = (archive.header.memberNames, draft.archive)
    var entry = source
    (entry.extents, entry.linkArchive) = (Extents(), nil)
    if let first = entry.hardLink {
      try writer.addMember(names.member(entry, .hardLink(target: names.name(of: first))))
    } else if entry.isFile {
      entry.extents = try draft.copyContent(
        of: source, in: archive, as: entry, otherwise: "nothing was written, use another archive")
    } else if let target = entry.linkTarget {
      try writer.addMember(names.member(entry, .symbolicLink(target: target)))
    } else {
      try writer.addMember(names.member(entry, .directory))
    }
    try draft.manifest.add(entry)
  }
}

package struct ExportReport: Sendable {
  /// The new archive's path, what it is, and the snapshot in it.
  package var path: String, header: Archive.Header, snapshot: String
  /// Number of stored paths, bytes of their content, and bytes of the archive.
  package var entries: Int, contentBytes: UInt64, archiveBytes: UInt64
  /// Whether the vault's items for other devices were left out: an archive without encryption never has them.
  package var dropsVaultItems: Bool
}
