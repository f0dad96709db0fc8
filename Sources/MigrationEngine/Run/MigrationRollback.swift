import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem

/// Rolls a container back: undoes the newest transaction, or several down to a version, from the undo log; or reverts
/// migrations by their down steps.
public struct MigrationRollback {
  /// What to roll back.
  public struct Request: Sendable {
    /// The version to go back to; nil for the newest transaction alone.
    public var version: Int?
    /// Runs the down steps instead of restoring from the undo log: newer data is kept, in its old form.
    public var bySteps = false
    /// Discards what the app changed since in what the undo log restores.
    public var discardingNewer = false
    /// Undoes the newest rollback instead.
    public var redoing = false
    /// Undoes what this run changed, if nothing else followed; nil for the newest transaction, whatever it is of.
    public var run: RunID?

    /// The newest transaction.
    public init() {}
  }

  /// What a rollback did.
  public struct Report: Sendable {
    /// The schema version before and after, by the history; nil without one.
    public var from: Int?, to: Int?
    /// The same of a container without a history, by its version markers; nil when it has none.
    package var versions: (before: Int?, after: Int?) = (nil, nil)
    /// The transactions that were undone from the undo log, the newest first.
    package var undone: [Rollback.Undone] = []
    /// Changes by the app that were discarded.
    package var discarded: [RollbackConflict] = []
    /// The migrations that were reverted by their down steps, the newest first.
    public var migrations: [MigrationReport.Outcome] = []
    /// Notes that belong to no migration.
    public var notes: [String] = []

    /// Whether nothing was undone.
    public var isEmpty: Bool { undone.isEmpty && migrations.isEmpty }
  }

  /// For the transaction log.
  private let summary: String
  private let request: Request
  /// The migrations; nil when they are unknown, and then no down steps are run.
  private let catalog: MigrationCatalog?
  private let container: Container
  private let options: TransactionOptions
  /// The version now and the one to go back to; nil for the newest transaction.
  private let version: Int?
  private let target: Int?
  /// The transactions that a rollback without a version undoes, the newest first.
  private let newest: [TransactionID]

  /// Rolls back in one transaction.
  ///
  /// - Throws: `DrydockError`: `nothingToUndo`; `conflict`, with both sides and what can be done; `irreversible`,
  ///   `stepFailed`, `usage`. Nothing has changed then.
  package static func run(
    _ container: Container, _ request: Request, _ catalog: MigrationCatalog?,
    options: TransactionOptions = TransactionOptions()
  ) throws -> TransactionOutcome<Report> {
    let recovered = try Transaction.recover(container, lockTimeout: options.lockTimeout)
    let rollback = try Self(container, request, catalog, options)
    if rollback.isDone { return TransactionOutcome(unchanged: rollback.nothingDone) }
    var outcome = try rollback.explaining {
      try Transaction.rollback(
        container, summary: rollback.summary, discardingNewer: request.discardingNewer,
        redoing: request.redoing, options: options, body: rollback.run)
    }
    outcome.recovered = recovered + outcome.recovered
    return outcome
  }

  /// Rolls back on a stage that is discarded, and reports the difference that the real rollback would make.
  package static func dryRun(
    _ container: Container, _ request: Request, _ catalog: MigrationCatalog?,
    options: TransactionOptions = TransactionOptions()
  ) throws -> DryRunOutcome<Report> {
    let rollback = try Self(container, request, catalog, options)
    return try rollback.explaining {
      let stage = try DiscardedStage(on: container, options: options)
      return try stage.outcome(rollback.run(Rollback(stage, discardingNewer: request.discardingNewer)))
    }
  }

  /// Plans a rollback, before anything is staged.
  private init(
    _ container: Container, _ request: Request, _ catalog: MigrationCatalog?, _ options: TransactionOptions
  ) throws {
    (self.container, self.request, self.catalog, self.options) = (container, request, catalog, options)
    if request.bySteps {
      guard let catalog else {
        throw DrydockError(.usage, "down steps need the migrations: name their directory")
      }
      let stage = try DiscardedStage(on: container, options: options)
      let status = try MigrationStatus(catalog, of: stage)
      let down = try DownMigration(status, to: request.version ?? Self.versionBeforeLastRun(status))
      try down.requireKeys(for: stage)
      (version, target, newest) = (down.from, down.to, [])
      summary = "reverted to version \(down.to) by down steps"
      return
    }
    target = request.version
    if let target {
      newest = []
      version = try Self.version(of: DiscardedStage(on: container, options: options), catalog)
      guard target >= 0, target <= version ?? 0 else {
        throw DrydockError(
          .usage,
          "the container has version \(version ?? 0): a rollback cannot go to \(target), only to earlier versions"
        )
      }
      summary = "went back to version \(target)"
    } else {
      // The undo log can restore whatever state the history is in.
      version = nil
      newest =
        if let run = request.run {
          try Transaction.undos(of: run, in: container, options: options)
        } else {
          [try Transaction.newestUndo(of: container, redoing: request.redoing, options: options)]
        }
      summary = "undid \(newest.map(\.description).joined(separator: ", "))"
    }
  }

  /// Whether the container has the target version already, or nothing of the run.
  private var isDone: Bool { target != nil && target == version || request.run != nil && newest.isEmpty }

  /// The report when nothing is done.
  private var nothingDone: Report {
    var report = Report(from: version, to: version)
    report.notes = request.run.map { ["nothing of run \($0) is left to undo"] } ?? []
    return report
  }

  private func run(_ rollback: Rollback) throws -> Report {
    if request.run != nil && newest.isEmpty { return nothingDone }
    var report = Report()
    let stage = rollback.staged
    report.from = try version ?? MigrationHistory.readable(stage)?.version
    report.versions.before = report.from ?? Self.shownVersion(of: stage, catalog)
    if request.bySteps {
      try runDownSteps(to: target ?? 0, rollback, &report)
    } else if let target {
      try undo(to: target, rollback, &report)
    } else {
      for transaction in newest { try rollback.undoNewest(transaction, redoing: request.redoing) }
    }
    (report.undone, report.discarded) = (rollback.undone, rollback.discarded)
    report.to = try target ?? MigrationHistory.readable(stage)?.version
    report.versions.after = report.to ?? Self.shownVersion(of: stage, catalog)
    return report
  }

  /// The version for a report: what cannot be read does not end a rollback, which restores whatever there was.
  private static func shownVersion(of stage: StagedContainer, _ catalog: MigrationCatalog?) -> Int? {
    (try? version(of: stage, catalog)) ?? nil
  }

  /// Undoes transactions while the version is above the target. Down steps replace a transaction that began below it, or
  /// whose undo entry was removed.
  private func undo(to target: Int, _ rollback: Rollback, _ report: inout Report) throws {
    while let version = try Self.version(of: rollback.staged, catalog), version > target {
      // A change of the vault by hand has no version: it stays, as what the app wrote does.
      guard let newest = try rollback.candidates().first(where: { $0.kind != .vault }),
        try versionBefore(newest, rollback.staged) ?? target >= target
      else { return try runDownSteps(to: target, rollback, &report) }
      try rollback.undo(newest)
    }
  }

  private func runDownSteps(to target: Int, _ rollback: Rollback, _ report: inout Report) throws {
    guard let catalog else {
      throw DrydockError(
        .nothingToUndo,
        "version \(target) can only be reached by the migrations' down steps, since a transaction began before it or "
          + "its undo entry was removed; name the migrations", path: container.root)
    }
    let status = try MigrationStatus(catalog, of: rollback.staged)
    let down = try DownMigration(status, to: target)
    let (reverted, staying) = down.transactions
    (report.migrations, report.notes) = try down.run(on: rollback)
    for entry in try rollback.candidates() where entry.origins.contains(where: reverted.contains) {
      // A restore is more than the migrations that came with it.
      let stays = entry.kind == .restore || entry.origins.contains(where: staying.contains)
      try rollback.noteReverted(entry, inPart: stays)
    }
  }

  /// The version by another tool's record, the history, or the markers; nil when nothing says it.
  private static func version(of stage: StagedContainer, _ catalog: MigrationCatalog?) throws -> Int? {
    if let catalog, catalog.tool != nil { return try MigrationStatus(catalog, of: stage).detected.version }
    if let history = try MigrationHistory.read(stage) { return history.version }
    do {
      return try DetectedVersion.detect(in: stage).version
    } catch let error as DrydockError where error.code == .unknownVersion {
      return nil
    }
  }

  /// The version before a transaction; nil when it changed no version.
  private func versionBefore(_ entry: UndoEntry, _ stage: StagedContainer) throws -> Int? {
    let path = container.historyPath
    let before = try entry.before(path)
    guard before.isChanged else { return nil }
    let version =
      try before.bytes.map { try MigrationHistory(bytes: $0, path: path.description).version } ?? 0
    // Migrations that the app had applied, and the transaction only recorded, were there before.
    let recorded = try MigrationHistory.read(stage)?.records.last {
      $0.origin == .app && entry.origins.contains($0.transaction)
    }
    return max(version, recorded?.number ?? 0)
  }

  private static func versionBeforeLastRun(_ status: MigrationStatus) throws -> Int {
    let records = status.detected.history.records
    guard let last = records.last, last.origin == .applied else {
      throw DrydockError(
        .usage, "the last migration here was not run by Drydock: name the version to go back to")
    }
    return records.last { $0.transaction != last.transaction || $0.origin != .applied }?.number ?? 0
  }

  /// Adds the down steps to the advice of a conflict, where there are any.
  private func explaining<Value>(_ body: () throws -> Value) throws -> Value {
    do {
      return try body()
    } catch var error as DrydockError where error.code == .conflict && !request.redoing {
      // The conflict is reported even when this lookup fails.
      if (try? hasDownSteps()) == true {
        error.message += "\n  Down migrations can revert the steps on the data as it is now"
      }
      throw error
    }
  }

  private func hasDownSteps() throws -> Bool {
    guard let catalog,
      let newest = try Transaction.log(container).last(where: {
        $0.state == .undoable && $0.kind != .rollback
      }),
      [.migrate, .redo].contains(newest.kind)
    else { return false }
    let status = try MigrationStatus(catalog, of: DiscardedStage(on: container, options: options))
    let target = try request.version ?? Self.versionBeforeLastRun(status)
    return try !DownMigration(status, to: target).migrations.isEmpty
  }
}
