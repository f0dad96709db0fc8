import AgeEncryption
import AppContainer
import AppStores
import ArchiveSigning
import BackupRepository
import ContainerTransaction
import Cryptography
import DrydockErrors
import FileSystem
import Foundation
import MigrationEngine

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
    try Snapshot.take(self, to: .repository(repository.path), options.detectingVersion())
  }

  /// Takes a snapshot into a file, which must not exist.
  ///
  /// - Throws: as ``snapshot(into:options:)``.
  @discardableResult
  public func snapshot(
    to file: String, options: SnapshotOptions = SnapshotOptions()
  ) throws -> SnapshotReport {
    try Snapshot.take(self, to: .file(file), options.detectingVersion())
  }

  /// Takes the snapshot before a transaction, under its locks.
  func backUp(
    _ lock: ContainerLock, into repository: Repository, options: SnapshotOptions, schemaVersion: Int
  ) throws -> SnapshotReport {
    var options = options
    options.schemaVersion = schemaVersion
    let report = try Snapshot.take(self, to: .repository(repository.path), options, under: lock)
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

extension SnapshotOptions {
  fileprivate func detectingVersion() -> SnapshotOptions {
    var options = self
    options.readsVersion = { Drydock.schemaVersion(in: $0) }
    return options
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
  /// Whether a key is needed to read it.
  public var isEncrypted: Bool { encryption != nil }

  /// All its paths, in the order of the manifest.
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
    let listing = try list(keys: keys)
    return try Archive(
      path: listing.find(name), among: listing, keys: keys, limit: limit, trusted: trusted)
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
