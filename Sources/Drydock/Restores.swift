import AppContainer
import BackupRepository
import ContainerTransaction
import DrydockErrors
import FileSystem
import Foundation
import MigrationEngine

/// What a restore did, and which migrations it ran first.
public struct RestoreResult: Sendable {
  public var restore: RestoreReport
  /// The migrations; nil when none were asked for.
  public var migration: MigrationReport?
}

extension Archive {
  /// Makes the container at a path what the archive holds, in one transaction; creates it where nothing is yet.
  ///
  /// What a rule excludes from backups stays as it is in the container. The directory that the path is in must exist. With
  /// migrations, all of an archive is migrated to the latest version, a part of one to the container's version.
  ///
  /// - Throws: ``DrydockError``: `mismatch` for another app's or instance's data, or a part of another schema version;
  ///   `inUse`, `locked`, `damaged`. Nothing has changed then.
  @discardableResult
  public func restore(
    to path: String, configuration: ContainerConfiguration = ContainerConfiguration(),
    instance: String? = nil, options: RestoreOptions = RestoreOptions(),
    migrating catalog: MigrationCatalog? = nil
  ) throws -> TransactionOutcome<RestoreResult> {
    let target = try target(path, configuration, instance, options)
    return try restore(to: target, options: options, migrating: catalog)
  }

  /// Does what ``restore(to:configuration:instance:options:migrating:)`` does on a stage, discards it, and returns the
  /// difference. The archive's content is read and checked.
  public func dryRunRestore(
    to path: String, configuration: ContainerConfiguration = ContainerConfiguration(),
    instance: String? = nil, options: RestoreOptions = RestoreOptions(),
    migrating catalog: MigrationCatalog? = nil
  ) throws -> DryRunOutcome<RestoreResult> {
    let target = try target(path, configuration, instance, options)
    return try dryRunRestore(to: target, options: options, migrating: catalog)
  }

  /// What the archive would be restored to: an existing container, or one that is to be created.
  package func target(
    _ path: String, _ configuration: ContainerConfiguration, _ instance: String?, _ options: RestoreOptions,
    opened: Container? = nil
  ) throws -> Container {
    try Restore.target(
      path, opened: opened, for: self, configuration: configuration, instance: instance,
      fromOther: options.fromOther)
  }

  package func restore(
    to target: Container, options: RestoreOptions, migrating catalog: MigrationCatalog?
  ) throws -> TransactionOutcome<RestoreResult> {
    let options = checkingVersion(options, of: target)
    var migration: MigrationReport?
    guard options.isPartial, let catalog else {
      let outcome = try Restore.run(self, target, options) {
        if let catalog { migration = try Container.migrate($0, catalog, nil) }
      }
      return outcome.map { RestoreResult(restore: $0, migration: migration) }
    }
    return try withMigrated(target, options, catalog) { migrated, options, migration in
      try Restore.run(migrated, target, options).map { result($0, migration) }
    }
  }

  package func dryRunRestore(
    to target: Container, options: RestoreOptions, migrating catalog: MigrationCatalog?
  ) throws -> DryRunOutcome<RestoreResult> {
    let options = checkingVersion(options, of: target)
    var migration: MigrationReport?
    guard options.isPartial, let catalog else {
      let outcome = try Restore.dryRun(self, target, options) {
        if let catalog { migration = try Container.migrate($0, catalog, nil) }
      }
      return outcome.map { RestoreResult(restore: $0, migration: migration) }
    }
    return try withMigrated(target, options, catalog) { migrated, options, migration in
      try Restore.dryRun(migrated, target, options).map { result($0, migration) }
    }
  }

  /// A part of an archive must be of the container's schema version.
  private func checkingVersion(_ options: RestoreOptions, of target: Container) -> RestoreOptions {
    guard options.isPartial || options.acceptsIncomplete, !target.isPlanned else { return options }
    var options = options
    options.readsVersion = { schemaVersion(in: $0).number }
    return options
  }

  private func result(_ restore: RestoreReport, _ migration: MigrationReport?) -> RestoreResult {
    var restore = restore
    restore.bytesRead = bytesRead
    return RestoreResult(restore: restore, migration: migration)
  }

  /// Calls the body with an archive of the migrated snapshot, and the options for a restore from it.
  ///
  /// All of an archive is staged and migrated there, in one transaction. A part cannot be, because a version belongs to
  /// a whole container: so the whole snapshot is restored into a private directory and migrated to the container's
  /// version, and the part is taken from that.
  private func withMigrated<Value>(
    _ target: Container, _ options: RestoreOptions, _ catalog: MigrationCatalog,
    _ body: (Archive, RestoreOptions, MigrationReport?) throws -> Value
  ) throws -> Value {
    let version = try requireVersion(target, options)
    let scratch = try Transaction.workDirectory(for: target)
    let work = scratch.directory
    var configuration = target.configuration
    configuration.groups = try groupDirectories(in: work)
    let whole = Container(
      planned: work.path + "/whole", layout: header.layout, app: header.app,
      instance: header.instance, configuration: configuration)
    var migration: MigrationReport?
    let copy = try Restore.run(self, whole, options.forCopy()) {
      migration = try Container.migrate($0, catalog, version)
    }
    try capTimes(of: whole)
    // The directory of an archive is locked, and this one is already.
    try work.createDirectory("archive")
    var snapshot = SnapshotOptions()
    snapshot.schemaVersion = version
    snapshot.includesExcluded = options.includeExcluded
    snapshot.missing = (try manifest.excluded(), try manifest.skipped())
    let copied = try Snapshot.take(whole, to: .file(work.full("archive/migrated")), snapshot).path
    var outer = options.fromCopy(copy.value)
    outer.summary = options.summary ?? Restore.summary(header) + ", migrated to \(version)"
    return try body(Archive(path: copied), outer, migration)
  }

  /// Directories for the copies of an archive's groups.
  private func groupDirectories(in work: Directory) throws -> [String: String] {
    var groups: [String: String] = [:]
    for (number, id) in (header.groups ?? []).enumerated() {
      let name = try ContainerPath("group-\(number)")
      try work.createDirectory(name)
      groups[id] = work.full(name)
    }
    return groups
  }

  /// Dates what the migration wrote back to the snapshot, so that restoring twice gives the same.
  private func capTimes(of whole: Container) throws {
    guard let time = try? Date(header.time, strategy: .iso8601).timeIntervalSince1970 else { return }
    let captured = Int64(time) * 1_000_000_000
    let root = try whole.open()
    try root.walk { entry in
      // The header's time has no fraction of a second: a file of the snapshot can be newer.
      if entry.status.modified > captured,
        try manifest.entry(entry.path)?.metadata.modified != entry.status.modified
      {
        try root.setModified(captured, of: entry.path)
      }
      return .into
    }
  }

  /// The version of the container, which the restore from the migrated copy checks again under its lock.
  private func requireVersion(_ target: Container, _ options: RestoreOptions) throws -> Int {
    guard !target.isPlanned, let version = try target.schemaVersion(options: options.transaction) else {
      throw DrydockError(
        .mismatch,
        "the container's schema version is not known, so that a part cannot be migrated to it; name a version "
          + "marker in drydock.yaml, or set its baseline", path: target.root)
    }
    if let own = header.schemaVersion, own > version {
      throw DrydockError(
        .mismatch,
        "the archive is of schema version \(own) and the container of \(version); migrate the container first",
        path: path)
    }
    return version
  }
}
