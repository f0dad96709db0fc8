import AppContainer
import ContainerTransaction
import DrydockErrors

/// Takes migrations back by their steps: the `down` steps of each, or its own steps in reverse order.
///
/// What is taken back is known, and refused, before anything is staged.
package struct StepRollback {
  /// The version that the container has.
  package let from: Int
  /// The version to go back to.
  package let to: Int
  private let status: MigrationStatus
  /// What is to be taken back, the newest first.
  private let entries: [MigrationStatus.Entry]

  /// Plans the way from a container's version down to another one.
  ///
  /// - Throws: ``DrydockError``: `noWayBack`, naming every step that has none, with its place; `edited`, `missing` for
  ///   migrations whose files are not those that were run; `usage` for a version that is ahead.
  package init(_ status: MigrationStatus, to version: Int) throws {
    (from, to, self.status) = (status.detected.version, version, status)
    guard version >= 0, version <= from else {
      throw DrydockError(
        .usage, "the container has version \(from), and `rollback` only goes back: \(version) is ahead of it")
    }
    if let newer = status.newer { throw newer }
    let concerned = status.entries.filter { $0.number > version && $0.number <= status.detected.version }
    if let problem = concerned.lazy.compactMap(MigrationStatus.problem).first { throw problem }
    entries = concerned.reversed()
    let refusals = entries.compactMap(\.migration).flatMap(Self.refusals)
    if !refusals.isEmpty {
      throw DrydockError(
        .irreversible,
        refusals.joined(separator: "; ")
          + ". Without `--down`, `rollback` undoes whole transactions by what they replaced"
      )
    }
  }

  private static func refusals(_ migration: Migration) -> [String] {
    if migration.isIrreversible {
      return ["\(migration.file): the migration \(migration.identifier) says that it is irreversible"]
    }
    return migration.stepsWithoutWayBack.map(\.description)
  }

  /// The migrations that are taken back, the newest first.
  package var migrations: [Migration] { entries.compactMap(\.migration) }

  /// The transactions that these migrations were run in, and those of which others stay.
  package var transactions: (taken: Set<String>, staying: Set<String>) {
    let records = status.detected.history.records
    return (
      Set(records.filter { $0.number > to }.map(\.transaction)),
      Set(records.filter { $0.number <= to }.map(\.transaction))
    )
  }

  /// Looks whether the device key is at hand where a step needs it.
  ///
  /// - Throws: `DrydockError` with code `vaultLocked`.
  package func requireKeys(for stage: StagedContainer) throws {
    for migration in migrations {
      let steps = migration.hasDownSteps ? migration.down : migration.steps
      guard let step = steps.first(where: \.operation.needsVault) else { continue }
      try stage.requireDeviceKeys(
        "the way back of \(step.operation.name) of the migration \(migration.identifier)")
    }
  }

  /// Takes them back, and sets history and version markers back.
  ///
  /// - Returns: what was taken back, the newest first, and remarks that belong to none.
  /// - Throws: ``DrydockError`` with the place of the step that failed.
  package func run(on rollback: Rollback) throws -> (migrations: [MigrationReport.Outcome], notes: [String]) {
    let stage = rollback.staged
    try requireKeys(for: stage)
    var memories = MemoryReader(rollback)
    var outcomes: [MigrationReport.Outcome] = []
    for entry in entries {
      guard let migration = entry.migration else { continue }
      let start = ContinuousClock.now
      let notes =
        migration.hasDownSteps
        ? try down(migration, on: stage)
        : try revert(migration, memories.of(entry), on: stage)
      let seconds = (ContinuousClock.now - start) / .milliseconds(1)
      outcomes.append(
        MigrationReport.Outcome(
          number: migration.number, name: migration.name, summary: migration.summary,
          milliseconds: Int(seconds.rounded()), notes: notes))
    }
    // Markers that its run had made go with the oldest. Should its memory be locked away, they only get their number.
    var oldest: StepMemories?
    do {
      if let entry = entries.last { oldest = try memories.of(entry) }
    } catch let error as DrydockError where error.code == .vaultLocked {
    } catch let error as DrydockError where error.code == .damagedHistory {}
    try rollback.openKept(of: nil)
    var notes: [String] = []
    if var history = try MigrationHistory.read(stage) {
      history.removeAll(after: to)
      try history.write(to: stage)
      notes += try stage.settle(history, status.catalog)
    }
    notes += try stage.writeMarkers(version: to)
    if let oldest, oldest.from == to { try oldest.removeMadeMarkers(on: stage) }
    return (outcomes, notes)
  }

  private func down(_ migration: Migration, on stage: StagedContainer) throws -> [String] {
    try migration.down.flatMap { step in
      var memory = StepMemory()
      let remarks = try Migrator.located(step.position, "down: " + step.operation.name) {
        try step.operation.apply(to: stage, &memory)
      }
      return remarks.map { "\(step.position): \(step.operation.name): \($0)" }
    }
  }

  private func revert(
    _ migration: Migration, _ memories: StepMemories?, on stage: StagedContainer
  ) throws -> [String] {
    let steps = memories?.steps(of: migration.number)
    // The number of steps is that of the very files that were run: others were refused as edited.
    let memory: [StepMemory?] =
      steps?.count == migration.steps.count ? steps ?? [] : migration.steps.map { _ in nil }
    return try zip(migration.steps, memory).reversed().flatMap { step, memory in
      let name = step.operation.name
      let remarks = try Migrator.located(step.position, "taking back " + name) {
        try step.operation.revert(on: stage, memory)
      }
      try memory?.removeEmptyDirectories(on: stage)
      return remarks.map { "\(step.position): \(name): \($0)" }
    }
  }
}

/// What steps wrote down, read once for each transaction.
private struct MemoryReader {
  let rollback: Rollback
  private var known: [String: StepMemories] = [:]

  init(_ rollback: Rollback) { self.rollback = rollback }

  /// The memories of a migration's transaction, whose undo is what `stage.kept` reads from now on; nil when it is gone.
  mutating func of(_ entry: MigrationStatus.Entry) throws -> StepMemories? {
    guard let transaction = entry.record?.transaction else { return nil }
    try rollback.openKept(of: transaction)
    if let memories = known[transaction] { return memories }
    let memories = try rollback.staged.kept?.steps().map { try StepMemories(decoding: $0) }
    known[transaction] = memories
    return memories
  }
}
