import Drydock
import Synchronization

/// The snapshot that `migrate` takes first, where there is a repository.
struct MigrationBackup: Sendable {
  /// How it is taken; nil for none.
  let options: MigrationOptions.Backup?
  private let taken = Taken()

  /// - Throws: `UsageError` for flags that contradict each other.
  init(_ command: MigrateCommand, _ configuration: ContainerConfiguration, _ options: TransactionOptions)
    throws
  {
    let lock = try command.recipients.lock(configuration)
    guard !command.noSnapshot, let path = command.repository.path(configuration) else {
      self.options = nil
      return
    }
    let repository = Repository(path)
    try repository.createIfNeeded()
    var snapshot = SnapshotOptions()
    (snapshot.lockTimeout, snapshot.busyTimeout) = (options.lockTimeout, options.busyTimeout)
    (snapshot.encryption, snapshot.deviceKeys) = (lock, options.deviceKeys)
    let isShown = !command.common.json
    self.options = MigrationOptions.Backup(into: repository, options: snapshot) { [taken] report in
      taken.path.withLock { $0 = report.path }
      if isShown { Output.advice("backed up to \(report.path)") }
    }
  }

  /// The archive's path, once it is there.
  var path: String? { taken.path.withLock { $0 } }

  private final class Taken: Sendable {
    let path = Mutex<String?>(nil)
  }

  /// A failure after the snapshot says how to get back to it.
  func explaining<T>(_ container: Container, _ body: () throws -> T) throws -> T {
    do { return try body() } catch {
      if let path {
        Output.note(
          "drydock: note: `drydock restore \(path) \(container.root)` brings back what was there before")
      }
      throw error
    }
  }
}
