import AgeEncryption
import AppContainer
import ArchiveFile
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats
import Foundation

/// Takes a full snapshot of a container that may be in use, without changing it.
package enum Snapshot {
  /// Takes a snapshot and publishes it, never replacing a file. A killed one leaves no archive.
  ///
  /// - Throws: `DrydockError`: `locked`, `overlap`, `notFound`, `noSpace`, `io`.
  package static func take(_ container: Container, _ options: SnapshotRequest) throws -> SnapshotReport {
    let place = try ArchivePlace(options.target, outside: container, lockTimeout: options.lockTimeout)
    // One lock: who the container is, its version and its content must belong together.
    let lock =
      try options.locked?.lock ?? ContainerLock(container, exclusive: false, timeout: options.lockTimeout)
    let container = try container.reopened()
    let version = try schemaVersion(of: container, under: lock, options)
    let now = options.now()
    var header = ArchiveHeader(
      archive: try ArchiveID.new(), app: container.app, instance: container.instance,
      layout: container.layout, groups: container.groups.map(\.id),
      schemaVersion: version?.number ?? options.schemaVersion, time: UTCTime.text(now), tool: options.tool)
    let later = try place.later(than: header.time, header.app, header.instance)
    header.follows = later?.newest
    let clockWarning = later.map {
      ClockWarning($0.label, $0.path, now) ?? ClockWarning(header, after: $0.label, $0.path)
    }

    return try place.withScratch(isEncrypted: options.encryption != nil) { [header] scratch, work in
      let draft = try ArchiveDraft(
        header, time: now, encryption: options.encryption, in: scratch, work: work)
      let writer = try SnapshotWriter(
        container, lock.root, into: draft, names: header.memberNames, options: options)
      try writer.storeAll()
      let vault = try SnapshotVault.store(from: container, lock.root, into: draft, options)
      let snapshot = try draft.manifest.finish(storesExcluded: options.includesExcluded)
      let (path, size) = try draft.publish(at: place)
      return SnapshotReport(
        path: path, archive: header.archive, snapshot: snapshot.hex, header: header, entries: writer.entries,
        contentBytes: writer.contentBytes, archiveBytes: size, isEncrypted: draft.isEncrypted,
        excluded: writer.excluded, skipped: writer.skipped, raw: writer.raw, vault: vault,
        versionProblem: version?.problem, clockWarning: clockWarning)
    }
  }

  private static func schemaVersion(
    of container: Container, under lock: ContainerLock, _ options: SnapshotRequest
  ) throws -> (number: Int?, problem: String?)? {
    guard let read = options.readsVersion else { return nil }
    var reading = TransactionOptions()
    reading.busyTimeout = options.busyTimeout
    return try Transaction.inspect(container, under: lock, options: reading) { read($0) }
  }
}

/// Where a snapshot goes and how it is taken.
package struct SnapshotRequest: Sendable {
  /// Where the archive goes.
  package enum Target: Sendable {
    /// A directory of archives; the name is made.
    case repository(String)
    /// A file that must not exist.
    case file(String)
  }

  /// Where the archive goes.
  package var target: Target
  /// To whom the archive is encrypted; nil for one that everybody can read. Nothing of it is read back: recipients
  /// suffice to write archives that this machine cannot open.
  package var encryption: AgeLock?
  /// What opens the vault: an encrypted archive then also holds its items that may leave the device. Nil stores the
  /// sealed file alone.
  package var deviceKeys: DeviceKeys?
  /// The number of the last applied migration, for the header; nil when it is not known.
  package var schemaVersion: Int?
  /// Reads the schema version, or says why it is not known, under the lock that the content is read under: nothing can
  /// migrate the container in between.
  package var readsVersion: (@Sendable (StagedContainer) -> (number: Int?, problem: String?))?
  /// Seconds to wait for the container's lock, and for the repository's.
  package var lockTimeout: Double = 0
  /// Seconds to wait for a database that is locked.
  package var busyTimeout: Double = 5
  /// What was excluded or could not be stored when the container was captured before: the archive of a restored copy
  /// records it too.
  package var missing: (excluded: [ExcludedPath], skipped: [SkippedPath]) = ([], [])
  /// Stores what rules exclude too, but for Drydock's own state; the archive records the rules all the same.
  package var includesExcluded = false
  /// The program's name and version, for the header.
  package var tool: String
  /// Called now and then with the bytes of content that were stored so far.
  package var progress: (@Sendable (UInt64) -> Void)?
  /// The container as a transaction has locked it; nil locks it.
  package var locked: LockedContainer?
  /// The clock.
  package var now: @Sendable () -> Date = { Date() }
  /// Called for each directory that is about to be listed: the moment at which tests change something.
  package var lists: (@Sendable (ContainerPath) -> Void)?

  package init(target: Target, tool: String) {
    self.target = target
    self.tool = tool
  }
}

/// What a snapshot stored.
public struct SnapshotReport: Sendable {
  /// The archive's path.
  public var path: String
  /// Its random id, and the id of its content.
  public var archive: ArchiveID, snapshot: String
  /// What its header says.
  public var header: ArchiveHeader
  /// Number of stored paths, and bytes of their content.
  public var entries: Int, contentBytes: UInt64
  /// Bytes of the archive.
  public var archiveBytes: UInt64
  /// Whether it is encrypted.
  public var isEncrypted: Bool
  /// What a rule excludes; stored all the same with ``SnapshotRequest/includesExcluded``.
  package var excluded: [ExcludedPath]
  /// What could not be stored.
  public var skipped: [SkippedPath]
  /// Databases that SQLite could not open and that are stored as they were, with the reason.
  package var raw: [ContainerPath: String]
  /// What it has of the vault; nil when it holds none.
  package var vault: SnapshotVault?
  /// Why the header lacks the schema version, when there is a reason.
  public var versionProblem: String?
  /// What is wrong with the time of this archive, or of another one in the repository.
  package var clockWarning: ClockWarning?

  /// Whether something is missing that should be there.
  public var isIncomplete: Bool {
    skipped.contains(where: \.isLoss) || !raw.isEmpty || vault?.problem != nil
  }
}

/// What a snapshot has of the container's vault.
package struct SnapshotVault: Sendable, Codable, Equatable {
  /// Its place.
  package var path: ContainerPath
  /// How many items other devices can get, and how many stay with this one; nil when no device key was at hand, or the
  /// archive is not encrypted: then all of them do.
  package var leaving: Int?, staying: Int?
  /// What kept the items from being copied although a device key was at hand.
  package var problem: String?

  /// Adds the items that may leave the device to an encrypted archive, when the vault's file was stored in it; nil
  /// when it was not.
  static func store(
    from container: Container, _ root: Directory, into draft: ArchiveDraft, _ options: SnapshotRequest
  ) throws -> SnapshotVault? {
    let path = container.vaultPath
    guard let digest = try draft.manifest.digest(of: path) else { return nil }
    var report = SnapshotVault(path: path)
    guard draft.isEncrypted, let keys = options.deviceKeys else { return report }
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
