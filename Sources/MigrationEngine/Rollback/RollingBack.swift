import AppContainer
import ContainerTransaction
import DrydockErrors

/// Takes a container back: the last transaction, several down to a version, or migrations by their steps.
package enum RollingBack {
  /// How far, and by which way.
  package struct Request: Sendable {
    /// The version to go back to; nil for the last transaction alone.
    package var version: Int?
    /// By the migrations' steps instead of by what the transactions replaced: newer data goes back, too.
    package var bySteps = false
    /// Where the app changed since what is to be undone, that is given up.
    package var discardingNewer = false
    /// Undoes the last rollback instead.
    package var redoing = false

    /// The last transaction.
    package init() {}
  }

  /// What a rollback did.
  package struct Report: Sendable {
    /// The schema version before and after, by the history; nil without one.
    package var from: Int?, to: Int?
    /// The transactions that were undone by what they had replaced, the newest first.
    package var undone: [RollbackReport.Undone] = []
    /// What the app had changed since and was given up.
    package var discarded: [RollbackConflict] = []
    /// The migrations that were taken back by their steps, the newest first.
    package var migrations: [MigrationReport.Outcome] = []
    /// Remarks that belong to no migration.
    package var notes: [String] = []

    /// Whether there was nothing to do.
    package var isEmpty: Bool { undone.isEmpty && migrations.isEmpty }
  }

  /// Goes back, in one transaction.
  ///
  /// - Parameter catalog: the migrations; nil when they are not at hand, and then nothing goes back by steps.
  /// - Throws: ``DrydockError``: `nothingToUndo`; `conflict`, with both sides and what can be done.
  ///   `DrydockError`: `noWayBack`, `stepFailed`, `usage`. Nothing has changed then.
  package static func run(
    _ container: Container, _ request: Request, _ catalog: MigrationCatalog?,
    options: TransactionOptions = TransactionOptions()
  ) throws -> TransactionOutcome<Report> {
    let recovered = try Transaction.recover(container, lockTimeout: options.lockTimeout)
    let way = try RollbackWay(container, request, catalog, options)
    if way.isThere { return TransactionOutcome(unchanged: way.report) }
    var outcome = try explaining(container, request, catalog, options) {
      try Transaction.rollback(
        container, summary: way.summary, discardingNewer: request.discardingNewer, redoing: request.redoing,
        options: options, body: way.go)
    }
    outcome.recovered = recovered + outcome.recovered
    return outcome
  }

  /// Goes back on a stage that is thrown away, and tells the difference that the real rollback would make.
  package static func dryRun(
    _ container: Container, _ request: Request, _ catalog: MigrationCatalog?,
    options: TransactionOptions = TransactionOptions()
  ) throws -> DryRunOutcome<Report> {
    let way = try RollbackWay(container, request, catalog, options)
    return try explaining(container, request, catalog, options) {
      try Transaction.dryRollback(
        container, discardingNewer: request.discardingNewer, options: options, body: way.go)
    }
  }

  /// A conflict names the other way where there is one.
  private static func explaining<Value>(
    _ container: Container, _ request: Request, _ catalog: MigrationCatalog?, _ options: TransactionOptions,
    _ body: () throws -> Value
  ) throws -> Value {
    do {
      return try body()
    } catch var error as DrydockError where error.code == .conflict && !request.redoing {
      // Only a hint: the conflict is reported in any case.
      if let catalog, (try? hasSteps(container, request, catalog, options)) == true {
        error.message +=
          ", or --down to take the migrations back by their steps, on the data as it is now"
      }
      throw error
    }
  }

  private static func hasSteps(
    _ container: Container, _ request: Request, _ catalog: MigrationCatalog, _ options: TransactionOptions
  ) throws -> Bool {
    let newest = try Transaction.log(container).last { $0.state == .undoable && $0.kind != .rollback }
    guard let newest, [.migrate, .redo].contains(newest.kind) else { return false }
    let status = try Transaction.inspect(container, options: options) {
      try MigrationStatus(catalog, of: $0)
    }
    let target = try request.version ?? RollbackWay.beforeLastRun(status)
    return try !StepRollback(status, to: target).migrations.isEmpty
  }
}
