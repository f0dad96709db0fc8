import ArchiveManifest
import AgeEncryption
import AppContainer
import AppStores
import ArchiveFile
import ContainerTransaction
import Cryptography
import DrydockErrors
import FileSystem
import Formats
import Foundation

/// Takes a snapshot of a container that may be in use, without changing it.
package enum Snapshot {
  /// At most this many archives of a later time are named: a clock that was ahead for months makes no large header.
  private static let mostFollowed = 400

  /// Takes a snapshot and publishes it, never replacing a file. A killed one leaves no archive.
  ///
  /// - Parameter held: the container's lock, when the caller holds it.
  /// - Throws: `DrydockError`: `locked`, `overlap`, `notFound`, `noSpace`, `io`.
  package static func take(
    _ container: Container, to target: ArchiveTarget, _ options: SnapshotOptions = SnapshotOptions(),
    under held: ContainerLock? = nil
  ) throws -> SnapshotReport {
    for tag in options.tags { try ArchiveTags.valid(tag) }
    // The repository first: while this waits for it, the container is free for others.
    let destination = try ArchiveDestination(
      target, outside: container, signing: options.signing, lockTimeout: options.lockTimeout)
    let lock =
      try held ?? ContainerLock(container, exclusive: false, timeout: options.lockTimeout)
    // Identity, version and content must belong together: all are read under one lock.
    let container = try container.reopened()
    guard !ArchiveLabel.isMark(container.instance) else {
      throw DrydockError(
        .usage,
        "the instance's name \(container.instance) has the form of a mark in names of archives; name it otherwise",
        path: container.root)
    }
    var transaction = TransactionOptions()
    transaction.busyTimeout = options.busyTimeout
    let version =
      try options.readsVersion?(DiscardedStage(on: container, under: lock, options: transaction))
      ?? (number: options.schemaVersion, problem: nil)
    let now = options.seams.now()
    var header = Archive.Header(
      archive: try Archive.ID.new(), app: container.app, instance: container.instance,
      layout: container.layout, groups: lock.root.groups.map(\.id), schemaVersion: version.number,
      time: UTCTime.text(now))
    header.session = options.seams.session
    // Listed once: at a remote place each list is a request.
    let present = try destination.present()
    let others = present.map { destination.archives(of: header.app, header.instance, among: $0) } ?? []
    let clockWarning = others.first.flatMap { $0.label.time > header.time ? $0 : nil }.map {
      ClockWarning(future: $0.label.time, of: $0.path, now: now)
        ?? ClockWarning(kind: .later, archive: $0.path, time: $0.label.time, otherTime: header.time)
    }
    var options = options
    options.missing.skipped += container.lost.map { SkippedPath(path: $0, reason: .unreadable) }
    let isFull = options.isFull || !options.missing.excluded.isEmpty || !options.missing.skipped.isEmpty
    let (parent, parentProblem) =
      isFull
      ? (nil, nil)
      : try parent(
        of: header, in: destination.repository, present, options, container.configuration.fullArchives)
    /// A parent is older by itself. Without one, archives of the same second have no order where files' times are not kept.
    func named(_ isOlder: (String) -> Bool) -> [String]? {
      let older = others.filter { isOlder($0.label.time) }.prefix(Self.mostFollowed)
      return older.isEmpty ? nil : older.map { String($0.label.id.prefix(8)) }
    }
    header.follows = named { $0 > header.time }
    if parent == nil { header.followsOfSecond = named { $0 == header.time } }
    var report: SnapshotReport
    do {
      report = try write(container, header, parent, options, lock, to: destination)
      report.parentProblem = parentProblem
    } catch let error as DrydockError {
      // A damaged archive must not prevent the next one.
      guard let path = parent?.parts.map(\.path).first(where: { $0 == error.path }) else { throw error }
      header.followsOfSecond = named { $0 == header.time }
      report = try write(container, header, nil, options, lock, to: destination)
      report.parentProblem = "\(lastName(path)) cannot be read: \(error.message)"
    }
    report.versionProblem = version.problem
    report.clockWarning = clockWarning
    report.isPlainAmongEncrypted =
      !report.isEncrypted && others.contains { $0.path.hasSuffix(ArchiveLabel.encryptedSuffix) }
    return report
  }

  /// Writes an archive: the difference to a parent, or a full one.
  private static func write(
    _ container: Container, _ header: Archive.Header, _ parent: Manifest?, _ options: SnapshotOptions,
    _ lock: ContainerLock, to destination: ArchiveDestination
  ) throws -> SnapshotReport {
    var header = header
    if let parent { (header.kind, header.parent) = (.incremental, parent.header.archive) }
    let draft = try ArchiveDraft(
      header, since: parent, encryption: options.encryption, to: destination)
    options.progress?.begin(.snapshot)
    do {
      let capture = try parent.map {
        try CaptureTime(
          $0.header, of: lock.root, CommittedFiles(of: container), settling: options.seams.settling)
      }
      let writer = try SnapshotWriter(container, lock, into: draft, options, since: capture ?? .none)
      try writer.storeRoot()
      var scan = writer.scan()
      let skip: ContainerScan.Unreadable = { path, error in
        writer.skip(path, error.code == .inUse ? .unstable : .unreadable)
      }
      while let scanned = try scan.nextEntry(unreadable: skip) { try writer.store(scanned) }
      try writer.finish()
      let vault = try SnapshotVault.store(
        from: container, lock.root, writer.vaultDigest, into: draft, options.deviceKeys)
      let snapshot = try draft.manifest.finish(storesExcluded: options.includesExcluded)
      let (path, size) = try draft.publish(tags: options.tags)
      try destination.requirePresent(parent?.parts.map(\.archive) ?? [], neededBy: path)
      var report = writer.report
      (report.path, report.snapshot, report.archiveBytes, report.vault) = (path, snapshot.hex, size, vault)
      report.skipped += options.missing.skipped
      report.signedBy = options.signing.map(\.description)
      if let cache = options.cache, destination.repository != nil, case .recipients? = options.encryption {
        // The archive is there: nothing that goes wrong with the cache is an error.
        do { try draft.keepManifest(in: ManifestCache(cache), of: path) } catch {
          report.cacheProblem = DrydockError.reason(of: error)
        }
      }
      return report
    } catch let error as DrydockError {
      throw draft.explained(error)
    }
  }
}

/// What a snapshot stored.
public struct SnapshotReport: Sendable {
  /// The archive's path.
  public var path = ""
  /// The id of its content.
  public var snapshot = ""
  /// What the archive says of itself.
  public var header: Archive.Header
  /// Its random id.
  public var archive: Archive.ID { header.archive }
  /// Number of stored paths, and bytes of their content.
  public var entries = 0, contentBytes: UInt64 = 0
  /// The size of the archive's file.
  public var archiveBytes: UInt64 = 0
  /// Whether a key is needed to read it.
  public var isEncrypted: Bool
  /// What a rule excludes; stored all the same with ``SnapshotOptions/includesExcluded``.
  package var excluded: [ExcludedPath] = []
  /// What is missing in it.
  public var skipped: [SkippedPath] = []
  /// Databases that SQLite could not open and that are stored as they were, with the reason.
  package var raw: [ContainerPath: String] = [:]
  /// Databases with bytes behind their last page, and their number: they are not stored, since SQLite does not use them. Not known
  /// of databases that have not changed since the parent.
  package var behind: [ContainerPath: UInt64] = [:]
  /// Files that were stored while a process had them mapped for writing: their content may be mixed from different moments.
  package var mapped: [OpenFile] = []
  /// Paths with extended attributes that are not stored: their names are not UTF-8. Not known of paths that have not changed since
  /// the parent.
  package var unnamedAttributes: Set<ContainerPath> = []
  package var vault: SnapshotVault?
  /// Why the header lacks the schema version, when there is a reason.
  public var versionProblem: String?
  /// Why the archive is a full one, when an earlier archive could not be read.
  public var parentProblem: String?
  /// Why the manifest is not kept for the next snapshot, when that failed.
  public var cacheProblem: String?
  /// What is wrong with the time of this archive, or of another one in the repository.
  package var clockWarning: ClockWarning?
  /// The public keys of the signatures.
  package var signedBy: [String] = []
  /// Whether the archive is not encrypted, and earlier ones of the container in its repository are.
  package var isPlainAmongEncrypted = false

  init(_ header: Archive.Header, isEncrypted: Bool) {
    (self.header, self.isEncrypted) = (header, isEncrypted)
  }

  /// Whether nothing but the root is stored: a disk that is not mounted looks like that.
  package var isBare: Bool { entries <= 1 && contentBytes == 0 }

  /// Whether something is missing that should be there.
  public var isIncomplete: Bool {
    skipped.contains(where: \.isLoss) || !raw.isEmpty || !mapped.isEmpty || vault?.problem != nil
  }
}

package struct SnapshotVault: Sendable, Codable, Equatable {
  package var path: ContainerPath
  /// The number of items that can be restored on other devices, and of the others; nil without a device key or without
  /// encryption: then no item can.
  package var leaving: Int?, staying: Int?
  /// Why the items were not copied although there was a device key.
  package var problem: String?

  /// Adds the items that may leave the device to an encrypted archive, when the vault's file was stored in it; nil
  /// when it was not.
  static func store(
    from container: Container, _ root: Directory, _ digest: SHA256.Digest?, into draft: ArchiveDraft,
    _ keys: DeviceKeys?
  ) throws -> SnapshotVault? {
    let path = container.vaultPath
    guard let digest else { return nil }
    var report = SnapshotVault(path: path)
    guard draft.isEncrypted, let keys else { return report }
    let extract: VaultExtract
    do {
      let sealed = try root.contents(path, limit: Vault.sizeLimit)
      guard try SHA256.hash(sealed) == digest else {
        report.problem = "it changed meanwhile"
        return report
      }
      extract = VaultExtract(of: try Vault(opening: sealed, with: keys, path: path.description))
    } catch let error as DrydockError {
      // The sealed file is in the archive: less than was asked for, and better than no archive.
      report.problem = error.message
      return report
    }
    (report.leaving, report.staying) = (extract.document.items.count, extract.staying.count)
    try draft.add(extract)
    return report
  }
}
