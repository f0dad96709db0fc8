import AppContainer
import ContainerTransaction

extension Transaction {
  /// Reads a container on a stage that is discarded when this returns.
  package static func inspect<Value>(
    _ container: Container, options: TransactionOptions = TransactionOptions(),
    body: (StagedContainer) throws -> Value
  ) throws -> Value {
    try body(DiscardedStage(on: container, options: options))
  }

  /// Changes a stage and discards it.
  package static func dryRun<Value>(
    on container: Container, options: TransactionOptions = TransactionOptions(),
    body: (StagedContainer) throws -> Value
  ) throws -> DryRunOutcome<Value> {
    let stage = try DiscardedStage(on: container, options: options)
    return try stage.outcome(body(stage))
  }

  /// Undoes the newest transaction, or redoes the newest rollback.
  package static func rollback(
    _ container: Container, discardingNewer: Bool = false, redoing: Bool = false,
    options: TransactionOptions = TransactionOptions()
  ) throws -> TransactionOutcome<RolledBack> {
    let recovered = try recover(container, lockTimeout: options.lockTimeout)
    let newest = try newestUndo(of: container, redoing: redoing, options: options)
    var outcome = try rollback(
      container, summary: "undid \(newest)", discardingNewer: discardingNewer, redoing: redoing,
      options: options
    ) { rollback -> RolledBack in
      try rollback.undoNewest(newest, redoing: redoing)
      return (rollback.undone, rollback.discarded)
    }
    outcome.recovered = recovered + outcome.recovered
    return outcome
  }
}

/// What a rollback undid, and what of the app it discarded.
package typealias RolledBack = (undone: [Rollback.Undone], discarded: [RollbackConflict])
