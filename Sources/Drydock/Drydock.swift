/// Drydock backs up an app's data, and migrates and restores it in one atomic step.
///
/// The library reads as nouns with verbs:
///
/// | Noun | Verbs |
/// |---|---|
/// | ``Container`` | `inspect`, `audit`, `snapshot(into:)`, `status`, `plan`, `apply`, `migrateEach`, `recover`, `log`, `settings`, `vault`, `vaultItem` |
/// | ``ContainerChange`` | what `plan` and `apply` take: `.migrate(catalog)`, `.rollback()`, `.rollback(to:)`, `.restore(archive)`, `.set(key, to:)`, `.settings(change)`, `.vault(change)`, `.baseline(catalog, version:)`, `.repair(catalog)` |
/// | ``Archive`` | `restore(to:)`, `verify`, `paths` |
/// | ``Repository`` | `list`, `archive`, `forget`, `forgetEverything`, `tag` |
/// | ``MigrationCatalog`` | the migrations of a directory, or of a ``MigrationPlan`` in Swift |
///
/// Back up, preview, migrate, and undo:
///
/// ```swift
/// import Drydock
///
/// let configuration = try ContainerConfiguration(file: "drydock.yaml")
/// let container = try Container(at: "Notes", configuration: configuration)
/// let repository = Repository("Backups")
/// try repository.createIfNeeded()
/// let backup = try container.snapshot(into: repository)
///
/// let plan = container.plan(.migrate(try MigrationCatalog.load("Migrations")))
/// print(try plan.difference)
/// let migrated = try plan.apply()
/// print("version \(migrated.from) → \(migrated.to)")
///
/// // Reverts only what the migration changed; what the app has written since stays.
/// try container.apply(.rollback())
///
/// try container.apply(.restore(Archive(path: backup.path)))
/// ```
///
/// Every change of a container is one transaction: it locks the container, works on a staged copy of what changes,
/// checks the result, puts it in place at once, and keeps what it replaced in the undo log. A call that throws has
/// changed nothing (but for the earlier migrations of `migrateEach`), and what it throws is a ``DrydockError``. A
/// ``ChangePlan`` has the difference that its change would make; applied, it returns a ``TransactionOutcome``.
///
/// The verbs are extensions in this module, a file for each group of them; they combine the modules below, which it
/// re-exports.
///
/// The program `drydock` uses this module: its commands call these verbs, and the modules below for what has no public verb,
/// such as `export`, `rekey` and `diff`.
@_exported import AgeEncryption
@_exported import AppContainer
@_exported import AppFrameworks
@_exported import AppStores
@_exported import ArchiveFile
@_exported import ArchiveManifest
@_exported import ArchiveSigning
@_exported import BackupRepository
@_exported import ContainerAudit
@_exported import ContainerDiff
@_exported import ContainerTransaction
@_exported import Cryptography
@_exported import DeviceBackups
@_exported import DrydockErrors
@_exported import FileSystem
@_exported import Formats
@_exported import MigrationEngine
