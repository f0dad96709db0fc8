import AgeEncryption
import AppContainer
import ContainerTransaction
import Foundation

/// Where a snapshot goes and how it is taken.
public struct SnapshotOptions: Sendable {
  /// Where the archive goes.
  public enum Target: Sendable {
    /// A directory of archives; the name is made.
    case repository(String)
    /// A file that must not exist.
    case file(String)
  }

  /// Where the archive goes.
  public var target: Target
  /// To whom the archive is encrypted; nil for one that everybody can read. Nothing of it is read back: who has only
  /// recipients can write archives that they cannot open.
  public var encryption: AgeLock?
  /// What opens the vault: its items that may leave the device are in the archive too, when that is encrypted. Nil
  /// stores the sealed file alone.
  public var deviceKeys: DeviceKeys?
  /// The number of the last applied migration, for the header; nil when it is not known.
  public var schemaVersion: Int?
  /// Reads the schema version, or says why it is not known, under the lock that the content is read under: nothing can
  /// migrate the container in between. `Migrating.schemaVersion(in:)` does.
  public var readsVersion: (@Sendable (StagedContainer) -> (number: Int?, problem: String?))?
  /// Seconds to wait for the container's lock, and for the repository's.
  public var lockTimeout: Double = 0
  /// Seconds to wait for a database that is locked.
  public var busyTimeout: Double = 5
  /// What was kept out, or could not be stored, when the container was captured before: a copy made of an archive
  /// does not have it, and says so.
  public var missing: (excluded: [ExcludedPath], skipped: [SkippedPath]) = ([], [])
  /// Stores what rules exclude too, but for Drydock's own state; the archive records the rules all the same.
  public var includesExcluded = false
  /// The program's name and version, for the header.
  public var tool: String
  /// Called now and then with the bytes of content that were stored so far.
  public var progress: (@Sendable (UInt64) -> Void)?
  /// The container as a transaction has locked it; nil locks it.
  package var locked: LockedContainer?
  /// The clock.
  package var now: @Sendable () -> Date = { Date() }
  /// Called for each directory that is about to be listed: the moment at which tests change something.
  package var lists: (@Sendable (ContainerPath) -> Void)?

  /// Options for a target.
  public init(target: Target, tool: String) {
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
  /// What a rule excludes; stored all the same with ``SnapshotOptions/includesExcluded``.
  public var excluded: [ExcludedPath]
  /// What could not be stored.
  public var skipped: [SkippedPath]
  /// Databases that SQLite could not open and that are stored as they were, with the reason.
  public var raw: [ContainerPath: String]

  /// What it has of the vault; nil when it holds none.
  public var vault: SnapshotVault?
  /// Why the header does not tell the schema version, when there is a reason.
  public var versionProblem: String?
  /// What cannot be right about the time of this archive, or of another one in the repository.
  public var clockWarning: ClockWarning?

  /// Whether something is missing that should be there.
  public var isIncomplete: Bool {
    skipped.contains(where: \.isLoss) || !raw.isEmpty || vault?.problem != nil
  }
}
