import AgeEncryption
import AppContainer
import ArchiveFile
import ContainerTransaction
import Foundation
import SystemPackage

/// Takes a full snapshot of a container that may be in use, without changing it.
public enum Snapshot {
  /// Takes a snapshot and publishes it, never replacing a file. A killed one leaves no archive.
  ///
  /// - Throws: ``RepositoryError``, `ContainerError`, `TransactionError` (`locked`), `ArchiveError`.
  public static func take(_ container: Container, _ options: SnapshotOptions) throws -> SnapshotReport {
    let publication = try Publication(options.target, container, lockTimeout: options.lockTimeout)
    let lock = try ContainerLock(container.root, exclusive: false, timeout: options.lockTimeout)
    let now = Date()
    let id = try ArchiveID.new()
    let header = ArchiveHeader(
      archive: id, app: container.app, instance: container.instance, layout: container.layout,
      schemaVersion: options.schemaVersion, time: UTCTime.text(now), tool: options.tool)

    return try publication.with { scratch in
      let name: ContainerPath = "archive"
      let file = try scratch.createFile(name, mode: 0o644)
      defer { try? file.close() }
      let archive = try ArchiveWriter(to: file)
      let json = try header.encoded()
      _ = try archive.addMember(
        .file(
          ArchiveHeader.memberName, size: UInt64(json.count),
          modified: Int64(now.timeIntervalSince1970) * 1_000_000_000),
        contents: json)
      // The header alone is what a list of archives reads.
      try archive.startFrame()
      let manifestName: ContainerPath = "manifest"
      let manifest = try ManifestWriter(path: scratch.full(manifestName), archive: id)
      let writer = try SnapshotWriter(
        root: lock.root, scratch: scratch, archive: archive, manifest: manifest, options: options)
      try writer.storeAll(
        ContainerScan(
          lock.root, rules: ExclusionRules(container), entersExcluded: options.includesExcluded))
      try writer.addMissing(options.missing.excluded, options.missing.skipped)
      let snapshot = try manifest.finish(storesExcluded: options.includesExcluded)

      let location = try store(manifestName, scratch, archive, now)
      let summary = try archive.finish(manifest: location)
      try scratch.syncFile(file, name)
      let path = try publication.publish(
        name, in: scratch,
        as: ArchiveName.candidates(
          app: container.app, instance: container.instance, time: UTCTime.compact(now), id: id))
      return SnapshotReport(
        path: path, archive: id, snapshot: snapshot.hex, header: header, entries: writer.entries,
        contentBytes: writer.contentBytes, archiveBytes: summary.compressedSize, excluded: writer.excluded,
        skipped: writer.skipped, raw: writer.raw)
    }
  }

  private static func store(
    _ manifest: ContainerPath, _ scratch: Directory, _ archive: ArchiveWriter, _ now: Date
  ) throws -> ManifestLocation {
    let file = try scratch.open(manifest, .readOnly)
    defer { try? file.close() }
    let size = try scratch.status(manifest)?.size ?? 0
    try archive.startFrame()
    let offset = try archive.beginMember(
      .file(MemberNames.manifest, size: size, modified: Int64(now.timeIntervalSince1970) * 1_000_000_000))
    let hash = try SHA256()
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
    defer { buffer.deallocate() }
    while true {
      let count = try file.read(into: buffer)
      if count == 0 { break }
      let chunk = UnsafeRawBufferPointer(rebasing: buffer[..<count])
      hash.update(chunk)
      try archive.write(chunk)
    }
    _ = try archive.endMember()
    return ManifestLocation(offset: offset, length: size, sha256: try hash.finalize())
  }
}
