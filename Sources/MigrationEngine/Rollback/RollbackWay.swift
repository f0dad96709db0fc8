import AppContainer
import ContainerTransaction
import DrydockErrors

/// One rollback: what can be known of it beforehand, and what is done on the stage.
struct RollbackWay {
  /// What the log says of it.
  let summary: String
  private let request: RollingBack.Request
  private let catalog: MigrationCatalog?
  private let container: Container
  /// The version by the history, and where a rollback by steps goes; nil for the last transaction.
  private let version: Int?
  private let target: Int?
  /// The transaction that a rollback of one undoes.
  private let newest: TransactionID?

  /// - Throws: whatever keeps the rollback from being done, as far as it is known before anything is staged.
  init(
    _ container: Container, _ request: RollingBack.Request, _ catalog: MigrationCatalog?,
    _ options: TransactionOptions
  ) throws {
    (self.container, self.request, self.catalog) = (container, request, catalog)
    if request.bySteps {
      guard let catalog else {
        throw DrydockError(.usage, "taking migrations back by their steps needs the migrations")
      }
      let plan = try Transaction.inspect(container, options: options) { stage in
        let status = try MigrationStatus(catalog, of: stage)
        let plan = try StepRollback(status, to: request.version ?? Self.beforeLastRun(status))
        try plan.requireKeys(for: stage)
        return plan
      }
      (version, target, newest) = (plan.from, plan.to, nil)
      summary = "went back to version \(plan.to) by steps"
      return
    }
    target = request.version
    if let target {
      newest = nil
      version = try Transaction.inspect(container, options: options) { try Self.version(of: $0, catalog) }
      guard target >= 0, target <= version ?? 0 else {
        throw DrydockError(
          .usage,
          "the container has version \(version ?? 0), and `rollback` only goes back: there is no way to \(target)"
        )
      }
      summary = "went back to version \(target)"
    } else {
      // Whatever state its history is in: what a transaction replaced can be put back.
      version = nil
      let newest = try Transaction.newestUndo(of: container, redoing: request.redoing, options: options)
      self.newest = newest
      summary = "undid \(newest)"
    }
  }

  /// Whether the container is where it is to go already.
  var isThere: Bool { target != nil && target == version }

  /// A report on nothing done.
  var report: RollingBack.Report { RollingBack.Report(from: version, to: version) }

  /// Goes the way.
  func go(_ rollback: Rollback) throws -> RollingBack.Report {
    var report = RollingBack.Report()
    let stage = rollback.staged
    report.from = try version ?? MigrationHistory.readable(stage)?.version
    if request.bySteps {
      try goBySteps(to: target ?? 0, rollback, &report)
    } else if let target {
      try go(to: target, rollback, &report)
    } else {
      let candidate = try rollback.candidates(redoing: request.redoing).first
      guard let candidate, candidate.transaction == newest else {
        throw DrydockError(
          .changedMeanwhile,
          "another command changed the container meanwhile; nothing was changed, run it again",
          path: container.root)
      }
      try rollback.undo(candidate)
    }
    (report.undone, report.discarded) = (rollback.report.undone, rollback.report.discarded)
    report.to = try target ?? MigrationHistory.readable(stage)?.version
    return report
  }

  /// Undoes transactions as long as they lie beyond the version. One that began before it, or whose undo is gone, goes by
  /// steps.
  private func go(to target: Int, _ rollback: Rollback, _ report: inout RollingBack.Report) throws {
    while let version = try Self.version(of: rollback.staged, catalog), version > target {
      // A change of the vault by hand has no version: it stays, as what the app wrote does.
      guard let newest = try rollback.candidates().first(where: { $0.kind != .vault }),
        try versionBefore(newest, rollback) ?? target >= target
      else { return try goBySteps(to: target, rollback, &report) }
      try rollback.undo(newest)
    }
  }

  private func goBySteps(to target: Int, _ rollback: Rollback, _ report: inout RollingBack.Report) throws {
    guard let catalog else {
      throw DrydockError(
        .nothingToUndo,
        "the way to version \(target) goes through the middle of a transaction, or of one whose undo is gone: that goes by "
          + "the migrations' steps; name them with -m DIRECTORY", path: container.root)
    }
    let status = try MigrationStatus(catalog, of: rollback.staged)
    let plan = try StepRollback(status, to: target)
    let (taken, staying) = plan.transactions
    (report.migrations, report.notes) = try plan.run(on: rollback)
    for candidate in try rollback.candidates() where candidate.origins.contains(where: taken.contains) {
      // A restore is more than the migrations that came with it.
      let stays = candidate.kind == .restore || candidate.origins.contains(where: staying.contains)
      try rollback.tookBack(candidate, inPart: stays)
    }
  }

  // MARK: Versions

  /// The version that the history says, or where there is none, the markers; nil when nothing does. Of another tool's
  /// migrations, what that tool's record says.
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
  private func versionBefore(_ candidate: Rollback.Candidate, _ rollback: Rollback) throws -> Int? {
    let path = container.historyPath
    let before = try rollback.before(candidate, path)
    guard before.isChanged else { return nil }
    let version =
      try before.bytes.map { try MigrationHistory(bytes: $0, path: path.description).version } ?? 0
    // What the app had migrated itself, and the transaction only recorded, was there before.
    let recorded = try MigrationHistory.read(rollback.staged)?.records.last {
      $0.origin == .app && candidate.origins.contains($0.transaction)
    }
    return max(version, recorded?.number ?? 0)
  }

  /// The version before the last run of migrations: before the records that the last transaction made by running.
  static func beforeLastRun(_ status: MigrationStatus) throws -> Int {
    let records = status.detected.history.records
    guard let last = records.last, last.origin == .applied else {
      throw DrydockError(
        .usage, "no migration that Drydock ran is the last one here: say with --to how far back to go")
    }
    return records.last { $0.transaction != last.transaction || $0.origin != .applied }?.number ?? 0
  }
}
