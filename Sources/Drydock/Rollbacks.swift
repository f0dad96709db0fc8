import AppContainer
import ContainerTransaction
import MigrationEngine

extension Container {
  /// Reverts changes in one transaction: those of the last transaction, or what ``MigrationRollback/Request`` asks for.
  ///
  /// What the app has written since stays. Where it changed the same setting, row or file, the two conflict. Without the
  /// migrations nothing is reverted by down steps.
  ///
  /// - Throws: ``DrydockError``: `nothingToUndo`; `conflict` with both sides; `irreversible`. Nothing has changed then.
  @discardableResult
  public func rollback(
    _ request: MigrationRollback.Request = .lastTransaction, catalog: MigrationCatalog? = nil,
    options: TransactionOptions = TransactionOptions()
  ) throws -> TransactionOutcome<MigrationRollback.Report> {
    try MigrationRollback.run(self, request, catalog, options: options)
  }

  /// Does what ``rollback(_:catalog:options:)`` does on a stage, discards it, and returns the difference.
  public func dryRunRollback(
    _ request: MigrationRollback.Request = .lastTransaction, catalog: MigrationCatalog? = nil,
    options: TransactionOptions = TransactionOptions()
  ) throws -> DryRunOutcome<MigrationRollback.Report> {
    try MigrationRollback.dryRun(self, request, catalog, options: options)
  }

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
  public static var lastTransaction: Self { Self() }

  public static var redo: Self {
    var request = Self()
    request.redoing = true
    return request
  }

  /// Goes back to a schema version, undoing as many transactions as it takes. Can discard what the app has written since
  /// where that conflicts.
  public static func version(_ version: Int, discardingNewer: Bool = false) -> Self {
    var request = Self()
    (request.version, request.discardingNewer) = (version, discardingNewer)
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
