import ContainerTransaction
import DrydockErrors

/// Reverts migrations by steps: each migration's `down` steps, or its own steps reverted in reverse order. Another tool's
/// statements are the first step, and never part of `down`.
///
/// What cannot be reverted is known, and refused, before anything is staged.
struct DownMigration {
  /// The container's version.
  let from: Int
  /// The version to go back to.
  let to: Int
  private let status: MigrationStatus
  /// The migrations to revert, the newest first.
  private let entries: [MigrationStatus.Entry]

  /// - Throws: `DrydockError`: `irreversible`, with the place of every step that cannot be reverted; `edited`, `missing`
  ///   for migrations whose files are not those that were run; `usage` for a later version.
  init(_ status: MigrationStatus, to version: Int) throws {
    (from, to, self.status) = (status.detected.version, version, status)
    guard version >= 0, version <= from else {
      throw DrydockError(
        .usage,
        "the container has version \(from): a rollback cannot go to \(version), only to earlier versions")
    }
    if let newer = status.newer { throw newer }
    let concerned = status.entries.filter { $0.number > version && $0.number <= status.detected.version }
    if let problem = concerned.lazy.compactMap(MigrationStatus.problem).first { throw problem }
    entries = concerned.reversed()
    let refusals = entries.compactMap(\.migration).flatMap(Self.refusals)
    if !refusals.isEmpty {
      throw DrydockError(
        .irreversible,
        refusals.joined(separator: "; "))
    }
  }

  private static func refusals(_ migration: Migration) -> [String] {
    if migration.isIrreversible {
      return ["\(migration.file): the migration \(migration.identifier) is marked irreversible"]
    }
    return migration.irreversibleSteps
  }

  /// The migrations to revert, the newest first.
  var migrations: [Migration] { entries.compactMap(\.migration) }

  /// The transactions of the migrations to revert, and those of the migrations that stay.
  var transactions: (reverted: Set<String>, staying: Set<String>) {
    let records = status.detected.history.records
    return (
      Set(records.filter { $0.number > to }.map(\.transaction)),
      Set(records.filter { $0.number <= to }.map(\.transaction))
    )
  }

  /// Requires the device key where a step needs it.
  ///
  /// - Throws: `DrydockError` with code `vaultLocked`.
  func requireKeys(for stage: StagedContainer) throws {
    for migration in migrations {
      let steps = migration.hasDownSteps ? migration.down : migration.steps
      guard let step = steps.first(where: \.operation.effects.needsVault) else { continue }
      try stage.requireDeviceKeys(
        "reverting \(step.name) of the migration \(migration.identifier)")
    }
  }

  /// Reverts the migrations, then the history and the version markers.
  ///
  /// - Returns: the reverted migrations, the newest first, and notes that belong to none.
  /// - Throws: `DrydockError` with the place of the step that failed.
  func run(on rollback: Rollback) throws -> (migrations: [MigrationReport.Outcome], notes: [String]) {
    let stage = rollback.staged
    try requireKeys(for: stage)
    var known: [String: PriorValues.Run] = [:]
    /// The recorded values of a migration's run, decoded once for each transaction; nil when its undo entry was removed. From
    /// now on `stage.kept` reads that entry.
    func values(for entry: MigrationStatus.Entry) throws -> PriorValues.Run? {
      guard let transaction = entry.record?.transaction else { return nil }
      try rollback.openKept(of: transaction)
      if known[transaction] == nil {
        known[transaction] = try stage.kept?.steps(of: transaction).map { try PriorValues.Run(decoding: $0) }
      }
      return known[transaction]
    }
    var outcomes: [MigrationReport.Outcome] = []
    for entry in entries {
      guard let migration = entry.migration else { continue }
      let start = ContinuousClock.now
      let notes =
        migration.hasDownSteps
        ? try runDownSteps(migration, on: stage)
          + revert(migration.steps.filter { $0.operation is RunToolSQL }, nil, on: stage)
        : try revert(
          migration.steps, values(for: entry)?.steps(of: entry.record?.formerly ?? entry.number),
          on: stage)
      outcomes.append(
        MigrationReport.Outcome(
          number: migration.number, name: migration.name, summary: migration.summary,
          milliseconds: start.millisecondsSince, notes: notes))
    }
    // Markers that the oldest run added are removed. When its values cannot be read, they only get their number.
    var oldest: PriorValues.Run?
    do {
      if let entry = entries.last { oldest = try values(for: entry) }
    } catch let error as DrydockError where [.vaultLocked, .damagedHistory].contains(error.code) {}
    try rollback.openKept(of: nil)
    var notes: [String] = []
    if var history = try MigrationHistory.read(stage) {
      history.removeAll(after: to)
      try history.write(to: stage)
      notes += try stage.updateToolRecord(history, status.catalog)
    }
    notes += try stage.writeMarkers(version: to)
    if let oldest, oldest.from == to { try oldest.removeMadeMarkers(on: stage) }
    return (outcomes, notes)
  }

  private func runDownSteps(_ migration: Migration, on stage: StagedContainer) throws -> [String] {
    try migration.down.flatMap { step in
      let notes = try Migrator.located(step.position, "down: " + step.name) {
        try step.operation.apply(to: stage)
      }
      return notes.map { "\(step.position): \(step.name): \($0)" }
    }
  }

  private func revert(
    _ ran: [MigrationStep], _ recorded: [PriorValues]?, on stage: StagedContainer
  ) throws -> [String] {
    // The number of steps is that of the files that were run: edited ones were refused.
    let steps: [PriorValues?] =
      recorded?.count == ran.count ? recorded ?? [] : ran.map { _ in nil }
    return try zip(ran, steps).reversed().flatMap { step, recorded in
      let name = step.name
      let notes = try Migrator.located(step.position, "reverting " + name) {
        try step.operation.revert(on: stage, recorded)
      }
      try recorded?.removeEmptyDirectories(on: stage)
      return notes.map { "\(step.position): \(name): \($0)" }
    }
  }
}
