import AgeEncryption
import AppContainer
import ArchiveSigning
import BackupRepository
import ContainerTransaction
import Cryptography
import DrydockErrors
import FileSystem
import Foundation
import MigrationEngine

public struct SnapshotOptions: Sendable {
  /// Who can read the archive; nil writes one that is not encrypted.
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
  /// Stores what rules exclude as well, except for Drydock's own state.
  public var includesExcluded = false
  /// Names for the archive, such as `keep`, stored beside it in the repository, and readable without a key.
  public var tags: [String] = []
  /// Seconds to wait for the locks of the container and of the repository; 0 fails at once.
  public var lockTimeout: Double = 0
  public var busyTimeout: Double = 5
  /// Counts what is stored.
  public var progress: WorkProgress?

  /// A snapshot that is not encrypted.
  public init() {}

  func request(_ target: SnapshotRequest.Target) -> SnapshotRequest {
    var request = SnapshotRequest(target: target, tool: DrydockVersion.tool)
    request.encryption = encryption
    // An archive that anyone can read never holds items of the vault, so the vault stays closed.
    if encryption != nil { request.deviceKeys = deviceKeys }
    (request.includesExcluded, request.tags) = (includesExcluded, tags)
    (request.isFull, request.keys, request.cache) = (isFull, keys, cache.map(ManifestCache.init))
    (request.lockTimeout, request.busyTimeout) = (lockTimeout, busyTimeout)
    request.signing = CopySigning(keys: signing, trusted: trusted)
    request.progress = progress
    return request
  }
}

extension Container {
  /// Takes a snapshot into a repository, under a name made of app, instance, time and id.
  ///
  /// The container is not changed, and may be in use.
  ///
  /// - Throws: ``DrydockError``: `locked`, `notFound` without the repository (see ``Repository/createIfNeeded()``),
  ///   `overlap` when one of the two contains the other. No archive is left then.
  @discardableResult
  public func snapshot(
    into repository: Repository, options: SnapshotOptions = SnapshotOptions()
  ) throws -> SnapshotReport {
    try Snapshot.take(self, lockedRequest(.repository(repository.path), options))
  }

  /// Takes a snapshot into a file, which must not exist.
  ///
  /// - Throws: as ``snapshot(into:options:)``.
  @discardableResult
  public func snapshot(
    to file: String, options: SnapshotOptions = SnapshotOptions()
  ) throws -> SnapshotReport {
    try Snapshot.take(self, lockedRequest(.file(file), options))
  }

  /// A request with the schema version, read under the lock that the content will be read under: nothing can migrate the
  /// container in between.
  private func lockedRequest(
    _ target: SnapshotRequest.Target, _ options: SnapshotOptions
  ) throws -> SnapshotRequest {
    var request = options.request(target)
    // The repository first: while this waits for it, the container is free for others.
    request.destination = try ArchiveDestination(target, outside: self, lockTimeout: options.lockTimeout)
    let lock = try ContainerLock(self, exclusive: false, timeout: options.lockTimeout)
    var transaction = TransactionOptions()
    transaction.busyTimeout = options.busyTimeout
    (request.schemaVersion, request.versionProblem) = try Drydock.schemaVersion(
      in: DiscardedStage(on: reopened(), under: lock, options: transaction))
    request.lock = lock
    return request
  }

  /// Takes the snapshot before a transaction, under its locks.
  func backUp(
    _ locked: LockedContainer, into repository: Repository, options: SnapshotOptions, schemaVersion: Int
  ) throws -> SnapshotReport {
    var request = options.request(.repository(repository.path))
    (request.lock, request.databaseLocks, request.schemaVersion) = (
      locked.lock, locked.databases, schemaVersion
    )
    let report = try Snapshot.take(self, request)
    if let lost = report.skipped.first(where: \.isLoss) {
      throw DrydockError(
        .notInArchive,
        "could not be backed up (\(lost.reason.rawValue)), so nothing was migrated; remove the cause, or migrate "
          + "without a snapshot", path: "\(lost.path)")
    }
    return report
  }

  /// The schema version as far as it is known without migrations, or why it is not: a container with damaged settings or
  /// a damaged history can still be backed up.
  func schemaVersion(options: TransactionOptions = TransactionOptions()) throws -> Int? {
    try Drydock.schemaVersion(in: DiscardedStage(on: self, options: options)).number
  }
}

/// The schema version of a container that is being read, or why it is not known.
func schemaVersion(in staged: StagedContainer) -> (number: Int?, problem: String?) {
  do {
    return (try DetectedVersion.detect(in: staged).version, nil)
  } catch let error as DrydockError where error.code == .unknownVersion {
    return (nil, nil)
  } catch {
    return (nil, String(describing: error))
  }
}

extension Archive {
  public var isEncrypted: Bool { encryption != nil }

  public func paths() throws -> [ContainerPath] {
    var paths: [ContainerPath] = []
    try manifest.entries { paths.append($0.path) }
    return paths
  }

  /// Checks the archive's structure: the seek table, the manifest, the header and the snapshot ID.
  ///
  /// - Parameters:
  ///   - data: reads every byte as well and compares it with its hash.
  ///   - progress: counts what is checked.
  /// - Throws: ``DrydockError`` with code `damaged` and what is wrong.
  @discardableResult
  public func verify(data: Bool = false, progress: WorkProgress? = nil) throws -> VerificationReport {
    try Verification.run(self, data: data, progress: progress)
  }
}

extension Repository {
  /// Creates the directory on its first use. Its parent must exist, so that a mistyped path does not become a repository; so
  /// must the bucket of a remote one.
  public func createIfNeeded() throws {
    if isRemote { return try createRemoteIfNeeded() }
    try requireSupported()
    let url = URL(fileURLWithPath: path)
    guard !FileManager.default.fileExists(atPath: path),
      FileManager.default.fileExists(atPath: url.deletingLastPathComponent().path)
    else { return }
    try Directory(url.deletingLastPathComponent().path).createDirectories(
      ContainerPath(url.lastPathComponent), mode: 0o700)
  }

  /// Opens an archive.
  ///
  /// - Parameters:
  ///   - name: its file name, the start of its ID, `latest`, `INSTANCE@latest` or `INSTANCE@2026-11-14`.
  ///   - keys: the identities and passphrases that open it.
  ///   - limit: how many bytes it may expand to.
  ///   - trusted: whose signatures it must have; nil for any archive.
  /// - Throws: ``DrydockError``: `notFound`, or `ambiguousArchive` with the candidates.
  public func archive(
    _ name: String = "latest", keys: AgeKeys = AgeKeys(), limit: ExpansionLimit = .standard,
    trusted: TrustedKeys? = nil
  ) throws -> Archive {
    try Archive(path: find(name, keys: keys), keys: keys, limit: limit, trusted: trusted)
  }
}

extension AgeKeys {
  /// The keys in identity files, as age-keygen writes them.
  public init(identityFiles: [String], passphrases: [SecretBytes] = []) throws {
    self.init(
      identities: try identityFiles.flatMap {
        try KeyFile.identities(in: SecretFile.read($0, limit: 1 << 20), path: $0)
      }, passphrases: passphrases)
  }
}
