import AgeEncryption
import AppContainer
import ContainerTransaction
import FileSystem
import Foundation

/// Where a snapshot goes and how it is taken.
package struct SnapshotOptions: Sendable {
  /// Where the archive goes.
  package enum Target: Sendable {
    /// A directory of archives; the name is made.
    case repository(String)
    /// A file that must not exist.
    case file(String)
  }

  /// Where the archive goes.
  package var target: Target
  /// To whom the archive is encrypted; nil for one that everybody can read. Nothing of it is read back: who has only
  /// recipients can write archives that they cannot open.
  package var encryption: AgeLock?
  /// What opens the vault: its items that may leave the device are in the archive too, when that is encrypted. Nil
  /// stores the sealed file alone.
  package var deviceKeys: DeviceKeys?
  /// The number of the last applied migration, for the header; nil when it is not known.
  package var schemaVersion: Int?
  /// Reads the schema version, or says why it is not known, under the lock that the content is read under: nothing can
  /// migrate the container in between. `Migrating.schemaVersion(in:)` does.
  package var readsVersion: (@Sendable (StagedContainer) -> (number: Int?, problem: String?))?
  /// Seconds to wait for the container's lock, and for the repository's.
  package var lockTimeout: Double = 0
  /// Seconds to wait for a database that is locked.
  package var busyTimeout: Double = 5
  /// What was kept out, or could not be stored, when the container was captured before: a copy made of an archive
  /// does not have it, and says so.
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

  /// Options for a target.
  package init(target: Target, tool: String) {
    self.target = target
    self.tool = tool
  }
}

/// What a snapshot stored.
package struct SnapshotReport: Sendable {
  /// The archive's path.
  package var path: String
  /// Its random id, and the id of its content.
  package var archive: ArchiveID, snapshot: String
  /// What its header says.
  package var header: ArchiveHeader
  /// Number of stored paths, and bytes of their content.
  package var entries: Int, contentBytes: UInt64
  /// Bytes of the archive.
  package var archiveBytes: UInt64
  /// Whether it is encrypted.
  package var isEncrypted: Bool
  /// What a rule excludes; stored all the same with ``SnapshotOptions/includesExcluded``.
  package var excluded: [ExcludedPath]
  /// What could not be stored.
  package var skipped: [SkippedPath]
  /// Databases that SQLite could not open and that are stored as they were, with the reason.
  package var raw: [ContainerPath: String]

  /// What it has of the vault; nil when it holds none.
  package var vault: SnapshotVault?
  /// Why the header does not tell the schema version, when there is a reason.
  package var versionProblem: String?
  /// What cannot be right about the time of this archive, or of another one in the repository.
  package var clockWarning: ClockWarning?

  /// Whether something is missing that should be there.
  package var isIncomplete: Bool {
    skipped.contains(where: \.isLoss) || !raw.isEmpty || vault?.problem != nil
  }
}
