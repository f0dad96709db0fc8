import AppContainer
import AppStores
import DrydockErrors
import FileSystem

/// How a transaction is run.
public struct TransactionOptions: Sendable {
  /// Seconds to wait for the container's lock; 0 fails at once.
  public var lockTimeout: Double = 0
  /// Seconds to wait for a database that is locked, in a dry run.
  public var busyTimeout: Double = 5
  /// Whether a transaction is refused where a process may have the container open without being seen: those of other
  /// users without root, and those outside a PID namespace.
  public var requiresVisible = false
  /// Hides secrets: one for the whole run, so that equal ones are recognizable in all output.
  package var redactor = Redactor()
  /// How much of what transactions replaced is kept: the number of entries, and the bytes of all of them.
  package var undoLimits: (count: Int, bytes: UInt64) = (10, 20 << 30)
  /// What opens the vault; nil leaves it sealed.
  public var deviceKeys: DeviceKeys?
  /// The run over many containers that a transaction is a part of, for its record.
  public var run: RunID?
  /// Counts what is done.
  public var progress: WorkProgress?
  /// Where the state is to be, and with it the strategy of a commit; nil for an exchange where it works.
  package var commit: StateDirectory.Place?
  package var seams = Seams.none

  /// Waits for no other command, and opens no vault.
  public init() {}
}

/// What a transaction did; it has the members of its value, too.
@dynamicMemberLookup
public struct TransactionOutcome<Value> {
  /// What the change reports, such as the versions of a migration.
  public var value: Value
  /// Its name; nil when there was nothing to change.
  public var transaction: TransactionID?
  /// How many paths were changed.
  public var changes = 0
  /// Paths that an app changed at the same moment, kept under `conflict/<transaction>/`.
  public var conflicts: [ContainerPath] = []
  /// Beside the container after an exchange, inside after a journaled replacement; nil when there was nothing to change.
  package var place: StateDirectory.Place?
  /// What could not be verified, and why it was not put in place by exchange.
  public var notes: [String] = []
  /// Processes that may have the container open without having been seen; nil when all could be seen.
  package var unseen: UnseenProcesses?
  /// Interrupted transactions that were completed or reverted first.
  public var recovered: [RecoveryReport] = []
  /// False when the change is made, but moving what it replaced to the undo log failed; the next command does it.
  public var isFinished = true
}

extension TransactionOutcome {
  /// A member of the value.
  public subscript<Member>(dynamicMember member: KeyPath<Value, Member>) -> Member { value[keyPath: member] }

  package init(unchanged value: Value) { self.init(value: value) }

  package func map<Other>(_ body: (Value) throws -> Other) rethrows -> TransactionOutcome<Other> {
    TransactionOutcome<Other>(
      value: try body(value), transaction: transaction, changes: changes, conflicts: conflicts, notes: notes,
      unseen: unseen, recovered: recovered, isFinished: isFinished)
  }
}

package enum TransactionPlan<Plan, Value> {
  /// Nothing needs to change: users of the container are not looked for, and nothing is written.
  case unchanged(Value)
  /// A change, with its summary for the log.
  ///
  /// `backUp` runs before anything is staged, under the transaction's locks, and returns the archive's file name for the
  /// journal. What it throws ends the transaction.
  case change(Plan, summary: String, backUp: ((ContainerLock) throws -> String)? = nil)
}

/// Changes a container: lock, recover, plan, refuse when in use, stage, check, commit. Nothing else changes one.
package enum Transaction {
  /// Runs a transaction. The body works on a staged container; when it throws, nothing has changed.
  ///
  /// - Parameter source: whose data a restore brings, for the journal: an app and its instance.
  package static func run<Value>(
    on container: Container, _ kind: TransactionLogEntry.Kind, summary: String, source: String? = nil,
    options: TransactionOptions = TransactionOptions(), body: (StagedContainer) throws -> Value
  ) throws -> TransactionOutcome<Value> {
    let (lock, recovered) = try lockRecovered(container, timeout: options.lockTimeout)
    let begin = try JournalRecord(beginning: kind, summary, source: source, options)
    var outcome = try change(container, under: lock, begin, options: options, body: body)
    outcome.recovered = recovered
    return outcome
  }

  /// Runs a transaction whose change depends on what is in the container: it is planned once, inside the lock.
  ///
  /// - Parameters:
  ///   - plan: decides, on a stage that is discarded. A container that needs no change may be in use.
  ///   - body: carries the plan out on the staged container; when it throws, nothing has changed.
  /// - Throws: ``DrydockError`` with code `changedMeanwhile` when what the plan has read has changed before the stage begins;
  ///   else as ``run(on:_:summary:source:options:body:)``.
  package static func run<Plan, Value>(
    on container: Container, _ kind: TransactionLogEntry.Kind,
    options: TransactionOptions = TransactionOptions(),
    plan: (StagedContainer) throws -> TransactionPlan<Plan, Value>,
    body: (StagedContainer, Plan) throws -> Value
  ) throws -> TransactionOutcome<Value> {
    let (lock, recovered) = try lockRecovered(container, timeout: options.lockTimeout)
    let (decision, planned) = try decide(container, under: lock, options, plan)
    var outcome: TransactionOutcome<Value>
    switch decision {
    case .unchanged(let value): outcome = TransactionOutcome(unchanged: value)
    case .change(let plan, let summary, let backUp):
      outcome = try change(
        container, under: lock, JournalRecord(beginning: kind, summary, options), planned: planned,
        backUp: backUp, options: options
      ) { try body($0, plan) }
    }
    outcome.recovered = recovered
    return outcome
  }

  /// Runs the planning phase.
  ///
  /// - Returns: what it decided, and the container that it has read.
  private static func decide<Decision>(
    _ container: Container, under lock: ContainerLock, _ options: TransactionOptions,
    _ plan: (StagedContainer) throws -> Decision
  ) throws -> (Decision, LiveContainer) {
    let stage = try DiscardedStage(on: container, under: lock, options: options)
    stage.liveContainer.beginPlanning()
    return (try plan(stage), stage.liveContainer)
  }

  /// Changes a container whose lock is held.
  ///
  /// - Parameter planned: the container by which the change was planned.
  private static func change<Value>(
    _ container: Container, under lock: ContainerLock, _ begin: JournalRecord,
    planned: LiveContainer? = nil, backUp: ((ContainerLock) throws -> String)? = nil,
    options: TransactionOptions, body: (StagedContainer) throws -> Value
  ) throws -> TransactionOutcome<Value> {
    var (lock, begin, index) = (lock, begin, try TreeIndex(of: lock.root))
    let state: StateDirectory, reason: String?
    do {
      (state, reason) = try CommitChoice(container: container, root: lock.root, index: index).make(
        options.commit)
    } catch { throw index.explained(error, in: container) }
    do {
      try lock.requireUnused(
        container, own: [state.parent], index: index, requiresVisible: options.requiresVisible)
      // From the index on, the commit's revalidation finds every change; before it, only this does.
      try planned?.requireUnchangedReads()
      begin.archive = try backUp?(lock)
    } catch {
      state.removeIfUnused()
      throw index.explained(error, in: container)
    }
    // There a database of a lower layer becomes one of the upper layer when it is opened to be locked.
    if lock.root.isOverlay() { index = try TreeIndex(of: lock.root) }
    var outcome = try perform(container, begin, options, state, body) { [lock, index] _ in (lock, index) }
    if let reason, options.commit == nil, outcome.transaction != nil {
      outcome.notes.insert("changed in place: \(reason)", at: 0)
    }
    return outcome
  }

  /// Locks a container and recovers an interrupted transaction.
  private static func lockRecovered(
    _ container: Container, timeout: Double
  ) throws -> (ContainerLock, [RecoveryReport]) {
    do {
      _ = try StateDirectory.all(of: container)
    } catch let error as DrydockError where error.code == .foreignState {
      // A half changed container is reported as such, although that state cannot be recovered.
      _ = try ContainerLock(container, exclusive: false, timeout: timeout)
      throw error
    }
    var recovered: [RecoveryReport] = []
    while true {
      let lock = try ContainerLock(container, exclusive: true, timeout: timeout)
      let reports = try recover(container, root: lock.root)
      recovered += reports
      // A recovery may have exchanged roots, with the inodes that are locked. Between the two locks another command may
      // have run, and been killed.
      if !container.groups.isEmpty, reports.contains(where: { $0.outcome != .writtenLater }) { continue }
      try GroupMarker.requireFinished(container)
      return (lock, recovered)
    }
  }

  /// Creates a container at a free path, atomically.
  ///
  /// - Throws: ``DrydockError`` with code `exists` when something is there; else as ``run(on:_:summary:source:options:body:)``.
  package static func create<Value>(
    _ container: Container, _ kind: TransactionLogEntry.Kind, summary: String, source: String? = nil,
    options: TransactionOptions = TransactionOptions(), body: (StagedContainer) throws -> Value
  ) throws -> TransactionOutcome<Value> {
    let state: StateDirectory
    do {
      state = try StateDirectory.create(for: container)
    } catch let error as DrydockError where error.code == .permission {
      throw DrydockError(
        .notWritable,
        "cannot be created: its parent directory cannot be written; run this as the owner of that directory",
        path: container.root, cause: error)
    }
    try lock(state, of: container)
    let isThere = try state.parent.status(state.rootName) != nil
    // What an interrupted creation left may be the container itself.
    let present =
      isThere ? try ContainerLock(container, exclusive: true, timeout: options.lockTimeout) : nil
    let recovered = try Recovery(
      container: container, state: state, root: present?.root, own: [state.parent]
    ).run()
    guard !isThere else {
      throw DrydockError(
        .exists, "already exists; name a path that does not exist, or change this container",
        path: container.root)
    }
    let begin = try JournalRecord(beginning: kind, summary, source: source, options)
    let makesBundle = try state.createBundle(of: container)
    defer { if makesBundle { state.removeEmptyBundle() } }
    var outcome = try perform(container, begin, options, state, creates: true, body) { folder in
      let root = try emptyRoot(of: container, in: folder, exclusive: true, options)
      if let flags = try state.rootParent().flags() { _ = root.setFlags(flags.inherited(by: .directory)) }
      var lock = ContainerLock(holding: root)
      if root.groups.isEmpty { return (lock, nil) }
      try GroupMarker.requireFinished(container)
      let index = try TreeIndex(of: root)
      try lock.requireUnused(
        container, own: [state.parent], index: index, requiresVisible: options.requiresVisible)
      return (lock, index)
    }
    outcome.recovered = recovered
    return outcome
  }

  /// Locks the state of a container that does not exist: otherwise the lock is on the inode of its root.
  static func lock(_ state: StateDirectory, of container: Container) throws {
    guard try state.directory.tryLock(exclusive: true) else {
      throw DrydockError(
        .locked, "locked by another process that is creating it; wait until it has finished",
        path: container.root)
    }
  }

  /// - Parameter before: the lock, and what a walk found in the live root: no index when there is nothing yet.
  private static func perform<Value>(
    _ container: Container, _ begin: JournalRecord, _ options: TransactionOptions, _ state: StateDirectory,
    creates: Bool = false, _ body: (StagedContainer) throws -> Value,
    before: (Directory) throws -> (ContainerLock, TreeIndex?)
  ) throws -> TransactionOutcome<Value> {
    var begin = begin
    let transaction = begin.transaction
    let states = try StateDirectory.all(of: container)
    let (log, journal) = (try UndoLog(states: states), Journal(state: state.directory))
    begin.number = (log.records.compactMap(\.number).max() ?? 0) + 1
    // A rollback that makes room on a full disk goes on with the long one.
    do { try journal.compact(by: log) } catch let error as DrydockError where error.code == .noSpace {}
    let stage = try StateDirectory.folder(StateDirectory.stage, transaction)
    try state.directory.createDirectory(stage)
    var prepared: StagedContainer?
    var index: TreeIndex?
    do {
      try journal.append(begin)
      let folder = try state.directory.directory(stage)
      let (lock, found) = try before(folder)
      index = found
      let staged = StagedContainer(
        container, live: lock.root, stage: folder, transaction: transaction, locks: lock.databases,
        options: options)
      staged.index = found
      prepared = staged
      let value = try body(staged)
      try options.seams.reach(.staged)
      options.progress?.begin(.check)
      let notes = try staged.check()
      try options.seams.reach(.checked)

      let changes = try ChangeRecords(of: staged)
      var outcome = TransactionOutcome(
        value: value, transaction: transaction, changes: changes.count,
        place: state.place, notes: notes, unseen: lock.unseen)
      if changes.isEmpty && !creates {
        try discard(transaction, state)
        (outcome.transaction, outcome.place) = (nil, nil)
        return outcome
      }
      var undo = UndoRecord(
        transaction: transaction, kind: begin.kind ?? .migrate, summary: begin.summary ?? "",
        time: begin.time, changes: changes)
      undo.sealing = try Sealing(staged, states)
      (undo.undoes, undo.partly, undo.steps) = (
        staged.undoes, staged.undoesPartly, staged.undoSteps
      )
      options.progress?.begin(.commit)
      // The locks on the databases are the stage's: they are held until the commit is over.
      let result = try withExtendedLifetime(staged) {
        try Commit(
          staged: staged, state: state, folder: folder, index: index, undo: undo,
          faults: options.seams, creates: creates, own: states.flatMap { [$0.parent, $0.directory] }
        ).run()
      }
      do {
        outcome.conflicts = try result.get()
        try UndoLog(states: states).prune(options.undoLimits)
      } catch {
        outcome.isFinished = false
        outcome.notes.append(
          "the change is committed, but its cleanup failed (\(DrydockError.reason(of: error))); "
            + "recover the container to finish it")
      }
      return outcome
    } catch {
      // Errors are thrown only while the container is unchanged, or with code `interrupted`; a journal that could not
      // be written is left to a recovery.
      let steps = try journal.records().filter { $0.transaction == transaction }.map(\.step)
      if steps.contains(.commit) && !steps.contains(.discarded) { throw error }
      try? prepared?.markAdopted()
      try? discard(transaction, state)
      throw index?.explained(error, in: container) ?? error
    }
  }

  private static func discard(_ transaction: TransactionID, _ state: StateDirectory) throws {
    let stage = try StateDirectory.folder(StateDirectory.stage, transaction)
    if try state.directory.status(stage) != nil {
      try state.directory.directory(stage).requireOwnTrees()
    }
    try Journal(state: state.directory).discard(transaction) { try state.directory.removeTree(stage) }
  }
}
