/// Drydock takes an app's data out of the water: it snapshots a container, migrates it, and restores it, each in
/// one atomic step.
///
/// A worked example: back up, migrate with a look at what will change, and go back.
///
/// ```swift
/// import Drydock
///
/// let configuration = try Configuration(file: "drydock.yaml")
/// let container = try Container(at: "Notes", configuration: configuration)
/// let backup = try Snapshot.take(
///   container, SnapshotOptions(target: .repository("Backups"), tool: "my tool 1.0"))
///
/// let migrations = try MigrationCatalog.load("Migrations")
/// print(try Migrating.dryRun(container, migrations).difference)
/// _ = try Migrating.run(container, migrations)
///
/// // Only what the migration changed goes back; what the app wrote since stays.
/// _ = try Transaction.rollback(container)
///
/// let archive = try Archive(path: backup.path)
/// let target = try Restore.target("Notes", for: archive, configuration: configuration)
/// _ = try Restore.run(archive, target)
/// ```
@_exported import AgeEncryption
@_exported import AppContainer
@_exported import ArchiveFile
@_exported import BackupRepository
@_exported import ContainerDiff
@_exported import ContainerTransaction
@_exported import DrydockErrors
@_exported import FileSystem
@_exported import Formats
@_exported import MigrationEngine

/// The version of this library and of the program.
package enum DrydockVersion {
  /// Such as `0.1.0`.
  package static let number = "0.1.0"
  /// What archives and histories name as their writer.
  package static let tool = "drydock \(number)"
}
