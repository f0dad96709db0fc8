import ArchiveManifest
import AppStores
import AgeEncryption
import AppContainer
import ArchiveSigning
import ContainerTransaction
import FileSystem
import Foundation

/// What a snapshot contains, and how it is written.
public struct SnapshotOptions: Sendable {
  /// The recipients of the archive; nil writes it unencrypted. Nothing is read back: this machine need not be able to
  /// open the archive.
  public var encryption: AgeTarget?
  /// The keys that sign the archive, at most one of minisign and one of signify or OpenSSH.
  public var signing: [SigningKey] = []
  /// Whose signatures the parent of a signed archive must have; by default those of ``signing``. Without them the archive is
  /// full.
  public var trusted: TrustedKeys?
  /// What opens the vault: an encrypted archive then also holds the items that may leave the device. Without, it holds
  /// the sealed file alone.
  public var deviceKeys: DeviceKeys?
  /// Writes a full archive. By default a repository gets what changed since the newest archive of the container there.
  public var isFull = false
  /// What opens the repository's earlier archives. If it does not open the newest one, the archive is full.
  public var keys = AgeKeys()
  /// A directory where the manifests of encrypted archives are kept for the next snapshot, so that it can be incremental
  /// without a key. It holds names, sizes and hashes, and no contents; it can be removed at any time. Nil for none.
  public var cache: String?
  /// Stores what rules exclude as well, except for Drydock's own state; the archive still records the rules.
  public var includesExcluded = false
  /// Names for the archive, such as `keep`, stored beside it in the repository, and readable without a key.
  public var tags: [String] = []
  /// Seconds to wait for the locks of the container and of the repository; 0 fails at once.
  public var lockTimeout: Double = 0
  /// Seconds to wait for a locked database.
  public var busyTimeout: Double = 5
  /// Counts what is stored.
  public var progress: WorkProgress?

  /// Reads the schema version for the header, or why it is not known: under the lock that the content is read under, so that
  /// nothing migrates the container in between.
  package var readsVersion: (@Sendable (StagedContainer) throws -> (number: Int?, problem: String?))?
  /// The schema version where it is known already.
  package var schemaVersion: Int?
  /// What was excluded or could not be stored before: when the container was captured, for the archive of a restored copy,
  /// or when it was unpacked.
  package var missing: (excluded: [ExcludedPath], skipped: [SkippedPath]) = ([], [])
  var seams = Seams.none

  /// A snapshot that is not encrypted.
  public init() {}

  /// Whose signatures the parent must have; nil for any parent.
  var sources: TrustedKeys? { CopySigning(keys: signing, trusted: trusted).sources }
}
