import AgeEncryption
import AppContainer
import ArchiveFile
import DrydockErrors
import Foundation

/// What an export wrote.
package struct ExportReport: Sendable {
  /// The new archive's path, what it is, and the snapshot in it.
  package var path: String, header: ArchiveHeader, snapshot: String
  /// Number of stored paths, bytes of their content, and bytes of the archive.
  package var entries: Int, contentBytes: UInt64, archiveBytes: UInt64
  /// Whether the vault's items for other devices were left out: an archive that is not encrypted never has them.
  package var dropsVaultItems: Bool
}

/// Writes the snapshot of an archive into a full archive of its own, which needs no other one to be read.
package enum Export {
  /// Writes an archive with a new id: the same snapshot, and all that is known of what is not in it. Every byte is
  /// compared with its hash on its way; nothing is published unless all are right.
  ///
  /// - Parameters:
  ///   - encryption: to whom the new archive is encrypted; nil for one that everybody can read.
  ///   - lockTimeout: seconds to wait while something is removed from the repository.
  ///   - tool: the program's name and version, for the header.
  ///   - progress: called now and then with the bytes of content that were written so far.
  /// - Throws: ``DrydockError`` (`damaged`, `overlap`, `notFound`), `DrydockError`, `DrydockError`.
  package static func run(
    _ archive: Archive, to target: SnapshotOptions.Target, encryption: AgeLock? = nil, tool: String,
    lockTimeout: Double = 0, progress: (@Sendable (UInt64) -> Void)? = nil
  ) throws -> ExportReport {
    try archive.checkExpansion()
    let publication = try Publication(target, lockTimeout: lockTimeout)
    var header = archive.header
    (header.archive, header.exportedFrom, header.tool) = (try ArchiveID.new(), archive.header.archive, tool)
    let assembly = ArchiveAssembly(header: header, time: try time(of: archive), encryption: encryption)
    return try assembly.publish(publication) { [header] _, writer, manifest in
      let copy = Copy(archive, writer, manifest, progress)
      try archive.manifest.entries(copy.add)
      for path in try archive.manifest.excluded() { try manifest.add(path) }
      for path in try archive.manifest.skipped() { try manifest.add(path) }
      if assembly.isEncrypted, let extract = try archive.vaultExtract() {
        try assembly.add(extract, to: writer, manifest)
      }
      let snapshot = try manifest.finish(storesExcluded: archive.manifest.storesExcluded()).hex
      guard snapshot == archive.snapshot else {
        throw DrydockError(
          .damaged, "the manifest's entries do not give its snapshot id; use another archive",
          path: archive.path)
      }
      return { path, summary in
        ExportReport(
          path: path, header: header, snapshot: snapshot, entries: copy.entries, contentBytes: copy.bytes,
          archiveBytes: summary.fileSize, dropsVaultItems: archive.vault != nil && !assembly.isEncrypted)
      }
    }
  }

  private static func time(of archive: Archive) throws -> Date {
    guard let time = try? Date(archive.header.time, strategy: .iso8601),
      (0..<0x1p33).contains(time.timeIntervalSince1970)
    else {
      throw DrydockError(.damaged, "its header has a time that makes no sense", path: archive.path)
    }
    return time
  }
}

/// Copies entry after entry.
private final class Copy {
  private(set) var entries = 0
  private(set) var bytes: UInt64 = 0
  private let archive: Archive
  private let writer: ArchiveWriter
  private let manifest: ManifestWriter
  private var names: MemberNames { archive.header.memberNames }
  private let progress: (@Sendable (UInt64) -> Void)?

  init(
    _ archive: Archive, _ writer: ArchiveWriter, _ manifest: ManifestWriter,
    _ progress: (@Sendable (UInt64) -> Void)?
  ) {
    (self.archive, self.writer, self.manifest, self.progress) = (archive, writer, manifest, progress)
  }

  func add(_ source: ManifestEntry) throws {
    var entry = source
    entry.offset = nil
    if let first = entry.hardLink {
      try writer.addMember(names.member(entry, .hardLink(target: names.name(of: first))))
    } else if entry.isFile {
      entry.offset = try writer.beginMember(names.member(entry, .file(size: entry.size)))
      try archive.content(of: source, otherwise: "nothing was written, use another archive") {
        try writer.write($0)
      }
      try writer.endMember()
      bytes += entry.size
    } else if let target = entry.linkTarget {
      try writer.addMember(names.member(entry, .symbolicLink(target: target)))
    } else {
      try writer.addMember(names.member(entry, .directory))
    }
    entries += 1
    try manifest.add(entry)
    progress?(bytes)
  }
}
