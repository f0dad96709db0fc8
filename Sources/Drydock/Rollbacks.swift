import AppContainer
import ContainerTransaction
import MigrationEngine

extension ContainerChange<MigrationRollback.Report> {
  /// Reverts changes in one transaction: those of the last transaction, or what the request asks for.
  ///
  /// What the app has written since stays. Where it changed the same setting, row or file, the two conflict. Without the
  /// migrations nothing is reverted by down steps.
  ///
  /// When it is applied, it throws ``DrydockError``: `nothingToUndo`; `conflict` with both sides; `irreversible`. Nothing has
  /// changed then.
  public static func rollback(
    _ request: MigrationRollback.Request = .lastTransaction, catalog: MigrationCatalog? = nil,
    options: TransactionOptions = TransactionOptions()
  ) -> Self {
    Self {
      try MigrationRollback.run($0, request, catalog, options: options)
    } dryRun: {
      try MigrationRollback.dryRun($0, request, catalog, options: options)
    }
  }

  /// Goes back to a schema version, undoing as many transactions as it takes; else as ``rollback(_:catalog:options:)``.
  public static func rollback(
    to version: Int, catalog: MigrationCatalog? = nil, options: TransactionOptions = TransactionOptions()
  ) -> Self {
    var request = MigrationRollback.Request()
    request.version = version
    return rollback(request, catalog: catalog, options: options)
  }
}

extension Container {
  /// The container's transactions, oldest first, and which can still be undone.
  public func log() throws -> [TransactionLogEntry] { try Transaction.log(self) }

  /// Completes or reverts interrupted transactions. Every change does this first.
  ///
  /// - Parameter lockTimeout: seconds to wait for the container's lock; 0 fails at once.
  @discardableResult
  public func recover(lockTimeout: Double = 0) throws -> [RecoveryReport] {
    try Transaction.recover(self, lockTimeout: lockTimeout)
  }
}

extension MigrationRollback.Request {
  /// The newest transaction, whatever it was.
  public static var lastTransaction: Self { Self() }

  /// The newest rollback.
  public static var redo: Self {
    var request = Self()
    request.redoing = true
    return request
  }

  /// Reverts migrations by their down steps, which take newer data along; without a version, those of the last run.
  public static func downSteps(to version: Int? = nil) -> Self {
    var request = Self()
    (request.version, request.bySteps) = (version, true)
    return request
  }
}

extension MigrationRollback.Report {
  /// The transactions that were undone, newest first.
  public var undoneTransactions: [TransactionID] { undone.map(\.transaction) }
}

extension TransactionOutcome {
  /// All that the caller should know, first which processes could not be seen.
  public var allNotes: [String] { [unseen?.note].compactMap(\.self) + notes }
}
