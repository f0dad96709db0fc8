import AppContainer
import ArchiveFile
import ContainerTransaction
import Foundation

/// Takes a full snapshot of a container that may be in use, without changing it.
public enum Snapshot {
  /// Takes a snapshot and publishes it, never replacing a file. A killed one leaves no archive.
  ///
  /// - Throws: ``RepositoryError``, `ContainerError`, `TransactionError` (`locked`), `ArchiveError`.
  public static func take(_ container: Container, _ options: SnapshotOptions) throws -> SnapshotReport {
    let publication = try Publication(options.target, container, lockTimeout: options.lockTimeout)
    let lock = try ContainerLock(container, exclusive: false, timeout: options.lockTimeout)
    let now = Date()
    let id = try ArchiveID.new()
    let header = ArchiveHeader(
      archive: id, app: container.app, instance: container.instance, layout: container.layout,
      groups: container.groups.map(\.id), schemaVersion: options.schemaVersion, time: UTCTime.text(now),
      tool: options.tool)

    let assembly = ArchiveAssembly(header: header, time: now, encryption: options.encryption)
    return try assembly.publish(publication) { scratch, archive, manifest in
      let writer = try SnapshotWriter(
        root: lock.root, scratch: scratch, archive: archive, manifest: manifest,
        names: header.memberNames, options: options)
      try writer.storeAll(
        ContainerScan(
          lock.root, rules: ExclusionRules(container), entersExcluded: options.includesExcluded))
      try writer.addMissing(options.missing.excluded, options.missing.skipped)
      let vault = try SnapshotVault.look(container, lock.root, manifest, options)
      if let extract = vault?.1 { try assembly.add(extract, to: archive, manifest) }
      let snapshot = try manifest.finish(storesExcluded: options.includesExcluded)
      return { path, summary in
        SnapshotReport(
          path: path, archive: id, snapshot: snapshot.hex, header: header, entries: writer.entries,
          contentBytes: writer.contentBytes, archiveBytes: summary.fileSize,
          isEncrypted: assembly.isEncrypted, excluded: writer.excluded,
          skipped: writer.skipped, raw: writer.raw, vault: vault?.0)
      }
    }
  }
}
