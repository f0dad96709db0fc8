import AppContainer
import BackupRepository
import ContainerTransaction
import DrydockErrors
import FileSystem
import Foundation
import MigrationEngine

/// What a restore did, with the members of its report, and which migrations it ran first.
@dynamicMemberLookup
public struct RestoreResult: Sendable {
  /// What came back, and what was removed for it.
  public var restore: RestoreReport
  /// The migrations; nil when none were asked for.
  public var migration: MigrationReport?

  /// A member of the report.
  public subscript<Member>(dynamicMember member: KeyPath<RestoreReport, Member>) -> Member {
    restore[keyPath: member]
  }
}

extension ContainerChange<RestoreResult> {
  /// Makes a container what an archive holds.
  ///
  /// What a rule excludes from backups stays as it is in the container. With migrations, all of an archive is migrated to the
  /// latest version, a part of one to the container's version.
  ///
  /// When it is applied, it throws ``DrydockError``: `mismatch` for another app's or instance's data, or a part of another
  /// schema version; `inUse`, `locked`, `damaged`. Nothing has changed then.
  public static func restore(
    _ archive: Archive, options: RestoreOptions = RestoreOptions(), migrating catalog: MigrationCatalog? = nil
  ) -> Self {
    Self {
      try archive.restore(to: $0, options, catalog, by: Restore.run)
    } dryRun: {
      try archive.restore(to: $0, options, catalog, by: Restore.dryRun)
    }
  }
}

extension Archive {
  /// Makes the container at a path what the archive holds, in one transaction; creates it where nothing is yet. The directory
  /// that the path is in must exist.
  ///
  /// - Throws: as ``ContainerChange/restore(_:options:migrating:)``.
  @discardableResult
  public func restore(
    to path: String, configuration: ContainerConfiguration = ContainerConfiguration(),
    instance: String? = nil, options: RestoreOptions = RestoreOptions(),
    migrating catalog: MigrationCatalog? = nil
  ) throws -> TransactionOutcome<RestoreResult> {
    let target = try Restore.target(
      path, for: self, configuration: configuration, instance: instance, fromOther: options.fromOther)
    return try target.apply(.restore(self, options: options, migrating: catalog))
  }

  /// Restores to a container, by a transaction or by a dry run.
  fileprivate func restore<Outcome>(
    to container: Container, _ options: RestoreOptions, _ catalog: MigrationCatalog?,
    by run: (
      Archive, Container, RestoreOptions, (StagedContainer, RestoreReport) throws -> RestoreResult
    ) throws -> Outcome
  ) throws -> Outcome {
    let target =
      try container.isPlanned
      ? container
      : Restore.target(
        container.root, opened: container, for: self, configuration: container.configuration,
        instance: container.instance, fromOther: options.fromOther)
    var options = options
    // A part of an archive must be of the container's schema version.
    if options.isPartial || options.acceptsIncomplete, !target.isPlanned {
      options.readsVersion = { schemaVersion(in: $0).number }
    }
    guard options.isPartial, let catalog else {
      return try run(self, target, options) { staged, report in
        RestoreResult(restore: report, migration: try catalog.map { try Container.migrate(staged, $0, nil) })
      }
    }
    return try withMigrated(target, options, catalog) { migrated, options, migration in
      try run(migrated, target, options) { _, report in
        var report = report
        report.bytesRead = bytesRead
        return RestoreResult(restore: report, migration: migration)
      }
    }
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
    let copy = try Restore.run(self, whole, options.forCopy()) {
      RestoreResult(restore: $1, migration: try Container.migrate($0, catalog, version))
    }
    try capTimes(of: whole)
    // The directory of an archive is locked, and this one is already.
    try work.createDirectory("archive")
    var snapshot = SnapshotOptions()
    snapshot.schemaVersion = version
    snapshot.includesExcluded = options.includeExcluded
    snapshot.missing = (try manifest.excluded(), try manifest.skipped())
    let copied = try Snapshot.take(whole, to: .file(work.full("archive/migrated")), snapshot).path
    var outer = options.fromCopy(copy.restore)
    outer.summary = options.summary ?? Restore.summary(header) + ", migrated to \(version)"
    return try body(Archive(path: copied), outer, copy.migration)
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
