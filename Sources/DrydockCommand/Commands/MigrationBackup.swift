import Drydock
import Synchronization

/// The snapshot that `migrate` takes first, where there is a repository.
final class MigrationBackup: Sendable {
  /// How it is taken; nil for none.
  let options: SnapshotOptions?
  private let taken = Mutex<String?>(nil)
  private let isShown: Bool

  /// - Throws: `UsageError` for flags that contradict each other.
  init(_ command: MigrateCommand, _ configuration: Configuration, _ options: TransactionOptions) throws {
    isShown = !command.common.json
    let lock = try command.recipients.lock(configuration)
    guard !command.noSnapshot, let path = command.repository.path(configuration) else {
      self.options = nil
      return
    }
    try RepositoryOptions.make(path)
    var snapshot = SnapshotOptions(target: .repository(path), tool: DrydockVersion.tool)
    (snapshot.lockTimeout, snapshot.busyTimeout) = (options.lockTimeout, options.busyTimeout)
    snapshot.encryption = lock
    // An archive that everybody can read never has what is in a vault: nobody looks.
    if lock != nil { snapshot.deviceKeys = options.deviceKeys }
    self.options = snapshot
  }

  /// The archive's path, once it is there.
  var path: String? { taken.withLock { $0 } }

  /// Says that it is there.
  func note(_ report: SnapshotReport) {
    taken.withLock { $0 = report.path }
    if isShown { Output.advice("backed up to \(report.path)") }
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
