import AppContainer
import BackupRepository
import ContainerTransaction
import DrydockErrors
import FileSystem
import Foundation
import MigrationEngine

/// Restores an archive of an older schema version, migrated on the way.
///
/// All of an archive is staged and migrated there, in one transaction. A part of one cannot be: what belongs to a
/// version is the whole container. So the whole snapshot is restored into a private directory and migrated to the
/// container's version, and the part is taken from that.
package enum MigratedRestore {
  /// What a restore did, and what was migrated before it was in place.
  package struct Report: Sendable {
    /// The restore.
    package var restore: RestoreReport
    /// The migrations.
    package var migration: MigrationReport?

    /// A report from its parts.
    package init(restore: RestoreReport, migration: MigrationReport?) {
      (self.restore, self.migration) = (restore, migration)
    }
  }

  /// Restores and migrates: everything to the latest version, a part to the container's own. Without a catalog it only
  /// restores.
  ///
  /// - Throws: as `Restore.run` and `Migrating.run`; ``DrydockError`` with code `mismatch` when a part is of a
  ///   newer version than the container, or the container's version is not known. Nothing has changed then.
  package static func run(
    _ archive: Archive, _ target: Restore.Target, _ options: RestoreOptions, _ catalog: MigrationCatalog?
  ) throws -> TransactionOutcome<Report> {
    var migration: MigrationReport?
    guard options.isPartial, let catalog else {
      let outcome = try Restore.run(archive, target, options) {
        if let catalog { migration = try Migrating.migrate($0, catalog, nil) }
      }
      return outcome.map { Report(restore: $0, migration: migration) }
    }
    return try withMigrated(archive, target, options, catalog) { migrated, options, migration in
      try Restore.run(migrated, target, options).map {
        report($0, migration, archive)
      }
    }
  }

  /// Does what ``run(_:_:_:_:)`` does and throws it away.
  package static func dryRun(
    _ archive: Archive, _ target: Restore.Target, _ options: RestoreOptions, _ catalog: MigrationCatalog?
  ) throws -> DryRunOutcome<Report> {
    var migration: MigrationReport?
    guard options.isPartial, let catalog else {
      let outcome = try Restore.dryRun(archive, target, options) {
        if let catalog { migration = try Migrating.migrate($0, catalog, nil) }
      }
      return outcome.map { Report(restore: $0, migration: migration) }
    }
    return try withMigrated(archive, target, options, catalog) { migrated, options, migration in
      try Restore.dryRun(migrated, target, options).map { report($0, migration, archive) }
    }
  }

  private static func report(
    _ restore: RestoreReport, _ migration: MigrationReport?, _ archive: Archive
  ) -> Report {
    var restore = restore
    restore.bytesRead = archive.bytesRead
    return Report(restore: restore, migration: migration)
  }

  /// Gives an archive of the migrated snapshot, and the options for a restore from it.
  private static func withMigrated<Value>(
    _ archive: Archive, _ target: Restore.Target, _ options: RestoreOptions, _ catalog: MigrationCatalog,
    _ body: (Archive, RestoreOptions, MigrationReport?) throws -> Value
  ) throws -> Value {
    let version = try requireVersion(archive, target, options)
    let container = target.container
    return try Transaction.withWorkDirectory(for: container) { work in
      var configuration = container.configuration
      configuration.groups = try groups(of: archive, in: work)
      let whole = Container(
        planned: work.path + "/whole", layout: archive.header.layout, app: archive.header.app,
        instance: archive.header.instance, configuration: configuration)
      var migration: MigrationReport?
      let copy = try Restore.run(archive, .absent(whole), options.forCopy()) {
        migration = try Migrating.migrate($0, catalog, version)
      }
      try settleTimes(of: whole, archive.header)
      var snapshot = SnapshotOptions(target: .file(work.path + "/migrated"), tool: DrydockVersion.tool)
      snapshot.schemaVersion = version
      snapshot.includesExcluded = options.includeExcluded
      snapshot.missing = (try archive.manifest.excluded(), try archive.manifest.skipped())
      let path = try Snapshot.take(whole, snapshot).path
      var outer = options.fromCopy(copy.value)
      outer.summary = options.summary ?? Restore.summary(archive.header) + ", migrated to \(version)"
      return try body(Archive(path: path), outer, migration)
    }
  }

  /// Directories for the copies of an archive's groups.
  private static func groups(of archive: Archive, in work: Directory) throws -> [String: String] {
    var groups: [String: String] = [:]
    for (number, id) in (archive.header.groups ?? []).enumerated() {
      let name = try ContainerPath("group-\(number)")
      try work.createDirectory(name)
      groups[id] = work.full(name)
    }
    return groups
  }

  /// What the migration wrote is as old as the snapshot: restored once more, it is the same.
  private static func settleTimes(of whole: Container, _ header: ArchiveHeader) throws {
    guard let time = try? Date(header.time, strategy: .iso8601).timeIntervalSince1970 else { return }
    let captured = Int64(time) * 1_000_000_000
    let root = try whole.open()
    try root.walk { entry in
      // What a snapshot holds is not younger than itself, but for a second that the header's time does not tell.
      if entry.status.modified > captured + 1_000_000_000 { try root.setModified(captured, of: entry.path) }
      return .into
    }
  }

  private static func requireVersion(
    _ archive: Archive, _ target: Restore.Target, _ options: RestoreOptions
  ) throws -> Int {
    guard let version = options.schemaVersion else {
      throw DrydockError(
        .mismatch,
        "the container's schema version is not known, so that a part cannot be migrated to it; name a version "
          + "marker in drydock.yaml, or set it with `drydock baseline`", path: target.container.root)
    }
    if let own = archive.header.schemaVersion, own > version {
      throw DrydockError(
        .mismatch,
        "the archive is of schema version \(own) and the container of \(version); migrate the container first",
        path: archive.path)
    }
    return version
  }
}
