import AgeEncryption
import AppContainer
import ArchiveFile
import ArchiveSigning
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
  /// - Throws: `DrydockError`: `locked`, `overlap`, `notFound`, `noSpace`, `io`.
  package static func take(_ container: Container, _ request: SnapshotRequest) throws -> SnapshotReport {
    for tag in request.tags { try ArchiveTags.valid(tag) }
    let destination =
      try request.destination
      ?? ArchiveDestination(request.target, outside: container, lockTimeout: request.lockTimeout)
    let lock =
      try request.lock ?? ContainerLock(container, exclusive: false, timeout: request.lockTimeout)
    // Identity, version and content must belong together: all are read under one lock.
    let container = try container.reopened()
    guard !ArchiveLabel.isMark(container.instance) else {
      throw DrydockError(
        .usage,
        "the instance's name \(container.instance) has the form of a mark in names of archives; name it otherwise",
        path: container.root)
    }
    let now = request.now()
    var header = Archive.Header(
      archive: try Archive.ID.new(), app: container.app, instance: container.instance,
      layout: container.layout, groups: container.groups.map(\.id), schemaVersion: request.schemaVersion,
      time: UTCTime.text(now), tool: request.tool)
    header.session = request.session
    // Listed once: at a remote place each list is a request.
    let present = try destination.present()
    let others = present.map { destination.archives(of: header.app, header.instance, among: $0) } ?? []
    let clockWarning = others.first.flatMap { $0.label.time > header.time ? $0 : nil }.map {
      ClockWarning($0.label, $0.path, now) ?? ClockWarning(header, after: $0.label, $0.path)
    }
    var request = request
    (request.vaultPath, request.opaque) = (container.vaultPath, container.configuration.opaque)
    request.missing.skipped += container.lost.map { SkippedPath(path: $0, reason: .unreadable) }
    let isFull = request.isFull || !request.missing.excluded.isEmpty || !request.missing.skipped.isEmpty
    let (parent, parentProblem) =
      isFull
      ? (nil, nil)
      : try parent(
        of: header, in: destination.repository, present, request, container.configuration.fullArchives)
    /// A parent is older by itself. Without one, archives of the same second have no order where files' times are not kept.
    func named(_ isOlder: (String) -> Bool) -> [String]? {
      let older = others.filter { isOlder($0.label.time) }.prefix(Self.mostFollowed)
      return older.isEmpty ? nil : older.map { String($0.label.id.prefix(8)) }
    }
    header.follows = named { $0 > header.time }
    if parent == nil { header.followsOfSecond = named { $0 == header.time } }
    var report: SnapshotReport
    do {
      report = try write(container, header, parent, request, now, lock, to: destination)
      report.parentProblem = parentProblem
    } catch let error as DrydockError {
      // A damaged archive must not prevent the next one.
      guard let path = parent?.paths.first(where: { $0 == error.path }) else { throw error }
      header.followsOfSecond = named { $0 == header.time }
      report = try write(container, header, nil, request, now, lock, to: destination)
      report.parentProblem = "\(lastName(path)) cannot be read: \(error.message)"
    }
    report.clockWarning = clockWarning
    report.isPlainAmongEncrypted =
      !report.isEncrypted && present?.hasEncrypted(header.app, header.instance) == true
    return report
  }

  /// Writes an archive: the difference to a parent, or a full one.
  private static func write(
    _ container: Container, _ header: Archive.Header, _ parent: ParentManifest?, _ request: SnapshotRequest,
    _ now: Date, _ lock: ContainerLock, to destination: ArchiveDestination
  ) throws -> SnapshotReport {
    var header = header
    if let parent { (header.kind, header.parent) = (.incremental, parent.header.archive) }
    let draft = try ArchiveDraft(
      header, time: now, encryption: request.encryption, signing: request.signing.keys, to: destination)
    request.progress?.begin(.snapshot)
    do {
      let writer = try SnapshotWriter(
        lock.root, ExclusionRules(container), into: draft, names: header.memberNames, request: request,
        since: parent.map {
          try ParentSnapshot($0, of: lock.root, CommittedFiles(of: container), settling: request.settling)
        })
      try writer.storeAll()
      if let recipients = try request.encryption?.recipientsDigest() {
        try draft.manifest.add(recipients: recipients)
      }
      let vault = try SnapshotVault.store(
        from: container, lock.root, writer.vaultDigest, into: draft, request.deviceKeys)
      let snapshot = try draft.manifest.finish(storesExcluded: request.includesExcluded)
      let (path, size) = try draft.publish(tags: request.tags)
      try destination.requirePresent(parent?.headers.map(\.archive) ?? [], neededBy: path)
      var report = SnapshotReport(
        path: path, archive: header.archive, snapshot: snapshot.hex, header: header, entries: writer.entries,
        contentBytes: writer.contentBytes, archiveBytes: size, isEncrypted: draft.isEncrypted,
        excluded: writer.excluded, skipped: writer.skipped + request.missing.skipped, raw: writer.raw,
        behind: writer.behind, mapped: writer.mapped,
        vault: vault, versionProblem: request.versionProblem)
      report.signedBy = request.signing.keys.map(\.description)
      if let cache = request.cache, destination.repository != nil, case .recipients? = request.encryption {
        // The archive is there: nothing that goes wrong with the cache is an error.
        do { try draft.keepManifest(in: cache, of: path, parent) } catch {
          report.cacheProblem = DrydockError.reason(of: error)
        }
      }
      return report
    } catch let error as DrydockError {
      throw draft.explained(error)
    }
  }
}

package struct SnapshotRequest: Sendable {
  package enum Target: Sendable {
    /// A directory of archives; the name is made.
    case repository(String)
    /// A file that must not exist.
    case file(String)
  }

  package var target: Target
  /// The recipients; nil for an unencrypted archive. Nothing is read back: this machine need not be able to
  /// open the archive.
  package var encryption: AgeTarget?
  /// The keys that sign the archive, and whose signatures its parent must have if there are any.
  package var signing = CopySigning()
  /// Opens the vault: an encrypted archive then also holds its items that may leave the device. Nil stores the
  /// sealed file alone.
  package var deviceKeys: DeviceKeys?
  /// The number of the last applied migration, for the header; nil when it is not known, with the reason if it is an error.
  package var schemaVersion: Int?, versionProblem: String?
  /// Writes a full archive also when the repository has an earlier one of the container.
  package var isFull = false
  /// What opens the earlier archives, to which an incremental one is the difference.
  package var keys = AgeKeys()
  /// Where the manifests of encrypted archives are kept, which no key opens here; nil for nowhere.
  package var cache: ManifestCache?
  /// Seconds after which a path counts as unchanged when its status is; tests shorten it.
  var settling: Double = 60
  /// The boot session, for the header.
  var session = MachineIdentity.session
  /// Where the vault's file is.
  var vaultPath: ContainerPath?
  /// Databases that are stored as their bytes.
  var opaque: Set<ContainerPath> = []
  /// Seconds to wait for the container's lock, and for the repository's.
  package var lockTimeout: Double = 0
  /// Seconds to wait for a locked database.
  package var busyTimeout: Double = 5
  /// What was excluded or could not be stored before: when the container was captured, for the archive of a restored copy,
  /// or when it was unpacked.
  package var missing: (excluded: [ExcludedPath], skipped: [SkippedPath]) = ([], [])
  /// Stores what rules exclude too, except Drydock's own state; the archive still records the rules.
  package var includesExcluded = false
  /// Written beside the archive, in a repository.
  package var tags: [String] = []
  /// The program's name and version, for the header.
  package var tool: String
  package var progress: WorkProgress?
  /// The destination, when the caller has opened and so locked it.
  package var destination: ArchiveDestination?
  /// The container's lock, when the caller holds it, and exclusive locks on databases.
  package var lock: ContainerLock?, databaseLocks: [ContainerPath: DatabaseLock] = [:]
  package var now: @Sendable () -> Date = { Date() }
  /// Called for each directory that is about to be listed: the moment at which tests change something.
  package var lists: (@Sendable (ContainerPath) -> Void)?
  /// Called for each path that was stored: the same.
  var stores: (@Sendable () -> Void)?

  package init(target: Target, tool: String) {
    self.target = target
    self.tool = tool
  }
}

public struct SnapshotReport: Sendable {
  public var path: String
  /// Its random id, and the id of its content.
  public var archive: Archive.ID, snapshot: String
  public var header: Archive.Header
  /// Number of stored paths, and bytes of their content.
  public var entries: Int, contentBytes: UInt64
  public var archiveBytes: UInt64
  public var isEncrypted: Bool
  /// What a rule excludes; stored all the same with ``SnapshotRequest/includesExcluded``.
  package var excluded: [ExcludedPath]
  public var skipped: [SkippedPath]
  /// Databases that SQLite could not open and that are stored as they were, with the reason.
  package var raw: [ContainerPath: String]
  /// Databases with bytes behind their last page, and their number: they are not stored, since SQLite does not use them. Not known
  /// of databases that have not changed since the parent.
  package var behind: [ContainerPath: UInt64]
  /// Files that were stored while a process had them mapped for writing: their content may be mixed from different moments.
  package var mapped: [OpenFile]
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
