import AppContainer
import DrydockErrors

extension Transaction {
  /// Undoes the newest transaction that is not undone yet, at each store's grain: settings by key, databases as
  /// a whole, files by path. What the app wrote since and the transaction did not touch stays.
  ///
  /// - Parameters:
  ///   - discardingNewer: gives up what the app changed since where the transaction had changed it too.
  ///   - redoing: undoes the newest rollback instead.
  /// - Throws: ``DrydockError``: `nothingToUndo`; `conflict`, with both sides, when nothing was changed.
  package static func rollback(
    _ container: Container, discardingNewer: Bool = false, redoing: Bool = false,
    options: TransactionOptions = TransactionOptions()
  ) throws -> TransactionOutcome<RollbackReport> {
    let recovered = try recover(container, lockTimeout: options.lockTimeout)
    let newest = try newest(container, redoing, options)
    // Whether a key is missing is known before anything is staged.
    try newest.kept.check(newest.record)
    let transaction = newest.record.transaction
    var outcome = try rollback(
      container, summary: "undid \(transaction)", discardingNewer: discardingNewer, redoing: redoing,
      options: options
    ) { rollback in
      guard try self.newest(container, redoing, options).record.transaction == transaction else {
        throw DrydockError(
          .changedMeanwhile,
          "another command changed the container meanwhile; nothing was changed, run it again",
          path: container.root)
      }
      try rollback.undo(transaction)
      return rollback.report
    }
    outcome.recovered = recovered + outcome.recovered
    return outcome
  }

  /// Goes back as far as a body says: several transactions, and parts of one, as one transaction that can be undone itself.
  ///
  /// - Throws: as ``run(on:_:summary:options:body:)``, and what ``Rollback/undo(_:)`` throws.
  package static func rollback<Value>(
    _ container: Container, summary: String, discardingNewer: Bool = false, redoing: Bool = false,
    options: TransactionOptions = TransactionOptions(), body: (Rollback) throws -> Value
  ) throws -> TransactionOutcome<Value> {
    var options = options
    // What comes back is what was there, damaged or not.
    options.checksResult = false
    return try run(on: container, redoing ? .redo : .rollback, summary: summary, options: options) {
      try body(Rollback($0, UndoReader(container, options), discardingNewer: discardingNewer))
    }
  }

  /// Goes back on a stage that is thrown away, and tells the difference that the real rollback would make.
  package static func dryRollback<Value>(
    _ container: Container, discardingNewer: Bool = false,
    options: TransactionOptions = TransactionOptions(), body: (Rollback) throws -> Value
  ) throws -> DryRunOutcome<Value> {
    var options = options
    options.checksResult = false
    return try dryRun(on: container, options: options) {
      try body(Rollback($0, UndoReader(container, options), discardingNewer: discardingNewer))
    }
  }

  /// The transaction that a rollback would undo now.
  ///
  /// - Parameter redoing: the rollback that would be redone instead.
  /// - Throws: ``DrydockError`` with code `nothingToUndo`; `DrydockError` with code `vaultLocked` when what it
  ///   replaced is kept sealed and no key at hand opens it.
  package static func newestUndo(
    of container: Container, redoing: Bool, options: TransactionOptions = TransactionOptions()
  ) throws -> TransactionID {
    let undo = try newest(container, redoing, options)
    try undo.kept.check(undo.record)
    return undo.record.transaction
  }

  private static func newest(
    _ container: Container, _ redoing: Bool, _ options: TransactionOptions
  ) throws -> KeptUndo {
    guard let undo = try UndoReader(container, options).undoable(redoing: redoing).first else {
      throw DrydockError(
        .nothingToUndo,
        redoing
          ? "the last transaction is no rollback, so there is nothing to redo"
          : "no transaction is left to undo; `drydock log` lists them", path: container.root)
    }
    return undo
  }
}
