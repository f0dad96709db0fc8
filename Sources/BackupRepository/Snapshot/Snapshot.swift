import AppContainer
import ArchiveFile
import ContainerTransaction
import FileSystem
import Formats
import Foundation

/// Takes a full snapshot of a container that may be in use, without changing it.
package enum Snapshot {
  /// Takes a snapshot and publishes it, never replacing a file. A killed one leaves no archive.
  ///
  /// - Throws: ``DrydockError``, `DrydockError`, `DrydockError` (`locked`), `DrydockError`.
  package static func take(_ container: Container, _ options: SnapshotOptions) throws -> SnapshotReport {
    let publication = try Publication(options.target, container, lockTimeout: options.lockTimeout)
    // One lock for all: who the container is, its version and its content must belong together.
    let lock =
      try options.locked?.lock ?? ContainerLock(container, exclusive: false, timeout: options.lockTimeout)
    let container = try container.reopened()
    var reading = TransactionOptions()
    reading.busyTimeout = options.busyTimeout
    let version = try options.readsVersion.map { read in
      try Transaction.inspect(container, under: lock, options: reading) { read($0) }
    }
    let now = options.now()
    let id = try ArchiveID.new()
    var header = ArchiveHeader(
      archive: id, app: container.app, instance: container.instance, layout: container.layout,
      groups: container.groups.map(\.id), schemaVersion: version?.number ?? options.schemaVersion,
      time: UTCTime.text(now), tool: options.tool)
    let later = try publication.later(than: header.time, header.app, header.instance)
    header.follows = later?.newest
    let clockWarning = later.map { label, path, _ in
      ClockWarning(label, path, now) ?? ClockWarning(header, after: label, path)
    }

    let assembly = ArchiveAssembly(header: header, time: now, encryption: options.encryption)
    return try assembly.publish(publication) { [header] scratch, archive, manifest in
      let rules = ExclusionRules(container)
      let tree = TreeNames(lock.root, sidecarOf: DatabaseUnit.main(ofSidecar:)) { path in
        options.lists?(path)
        return options.includesExcluded || rules.mayTake(below: path)
      }
      let writer = try SnapshotWriter(
        root: lock.root, tree: tree, scratch: scratch, archive: archive, manifest: manifest,
        names: header.memberNames, options: options)
      try writer.storeAll(rules)
      try writer.addMissing(options.missing.excluded, options.missing.skipped)
      let vault = try SnapshotVault.look(container, lock.root, manifest, options)
      if let extract = vault?.1 { try assembly.add(extract, to: archive, manifest) }
      let snapshot = try manifest.finish(storesExcluded: options.includesExcluded)
      return { path, summary in
        SnapshotReport(
          path: path, archive: id, snapshot: snapshot.hex, header: header, entries: writer.entries,
          contentBytes: writer.contentBytes, archiveBytes: summary.fileSize,
          isEncrypted: assembly.isEncrypted, excluded: writer.excluded,
          skipped: writer.skipped, raw: writer.raw, vault: vault?.0, versionProblem: version?.problem,
          clockWarning: clockWarning)
      }
    }
  }
}
