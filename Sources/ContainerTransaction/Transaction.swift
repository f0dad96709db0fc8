import AppContainer

/// How a transaction is run.
public struct TransactionOptions: Sendable {
  /// Seconds to wait for the container's lock; 0 fails at once.
  public var lockTimeout: Double = 0
  /// Seconds to wait for a database that is locked, in a dry run.
  public var busyTimeout: Double = 5
  /// Whether staged databases and property lists are checked before the commit.
  public var checksResult = true
  /// How much of what is replaced is kept.
  public var undoLimits = UndoLimits()
  /// Where tests interrupt.
  public var faults = FaultInjection.none
  /// The transaction that this one undoes.
  public var undoes: TransactionID?

  /// The usual options.
  public init() {}
}

/// What a transaction did.
public struct TransactionOutcome<Value> {
  /// What the body gave.
  public var value: Value
  /// Its name; nil when there was nothing to change.
  public var transaction: TransactionID?
  /// The number of paths that changed.
  public var changes: Int
  /// Paths that an app changed at the same moment, kept under `conflict/<transaction>/`.
  public var conflicts: [ContainerPath]
  /// What could not be made sure of.
  public var notes: [String]
  /// What was found of interrupted transactions.
  public var recovered: [RecoveryReport]
}

/// The one door through which a container is changed: lock, recover, refuse when in use, stage, check, commit.
public enum Transaction {
  /// Runs a transaction. The body works on a staged container; when it throws, nothing has changed.
  ///
  /// - Throws: ``TransactionError``, `ContainerError`, and whatever the body throws.
  public static func run<Value>(
    on container: Container, _ kind: TransactionKind, summary: String,
    options: TransactionOptions = TransactionOptions(), body: (StagedContainer) throws -> Value
  ) throws -> TransactionOutcome<Value> {
    let lock = try ContainerLock(container.root, exclusive: true, timeout: options.lockTimeout)
    let state = try StateDirectory.create(for: container)
    let recovered = try Recovery(state: state, root: lock.root).run()
    // A recovery may have changed nothing of the root's inode, but the tree below it: look only now.
    try ExchangeProbe(container, root: lock.root, state: state).run()
    let index = try TreeIndex(of: lock.root)
    let use = try UseGuard(container, root: lock.root, index: index)

    let transaction = try TransactionID.new()
    let journal = Journal(state: state.directory)
    var begin = JournalRecord(.begin, transaction)
    (begin.kind, begin.summary, begin.undoes) = (kind, summary, options.undoes)
    let stage = try StateDirectory.folder(StateDirectory.stage, transaction)
    try state.directory.createDirectory(stage)
    do {
      try journal.append(begin)
      let folder = try state.directory.directory(stage)
      let staged = StagedContainer(
        container, live: lock.root, stage: folder, locks: use.locks, keepsBefore: false,
        busyTimeout: options.busyTimeout)
      let value = try body(staged)
      try options.faults.reach(.staged)
      if options.checksResult { try StageCheck(staged).run() }
      try options.faults.reach(.checked)

      let changes = try ChangeList(staged)
      var outcome = TransactionOutcome(
        value: value, transaction: transaction, changes: changes.changes.count, conflicts: [],
        notes: use.notes,
        recovered: recovered)
      if changes.changes.isEmpty {
        try discard(transaction, state)
        outcome.transaction = nil
        return outcome
      }
      let undo = UndoRecord(
        transaction: transaction, kind: kind, summary: summary, time: begin.time, changes: changes.changes)
      outcome.conflicts = try Commit(
        staged: staged, state: state, transaction: transaction, folder: folder, index: index,
        faults: options.faults
      ).run(changes, undo: undo, record: JournalRecord(.commit, transaction))
      if let undone = options.undoes { try UndoStore(state: state).remove(undone) }
      try UndoStore(state: state).prune(options.undoLimits)
      return outcome
    } catch {
      // Before the exchange everything is discarded; after it the next command finishes.
      if try !isCommitted(transaction, state) { try? discard(transaction, state) }
      throw error
    }
  }

  /// Ends what an interrupted transaction left, as every command does at its start.
  public static func recover(_ container: Container, lockTimeout: Double = 0) throws -> [RecoveryReport] {
    guard let state = try StateDirectory.existing(for: container) else { return [] }
    let lock = try ContainerLock(container.root, exclusive: true, timeout: lockTimeout)
    return try Recovery(state: state, root: lock.root).run()
  }

  private static func discard(_ transaction: TransactionID, _ state: StateDirectory) throws {
    try state.directory.removeTree(StateDirectory.folder(StateDirectory.stage, transaction))
    try Journal(state: state.directory).append(JournalRecord(.discarded, transaction))
  }

  private static func isCommitted(_ transaction: TransactionID, _ state: StateDirectory) throws -> Bool {
    let steps = try Journal(state: state.directory).records().filter { $0.transaction == transaction }.map(
      \.step)
    return steps.contains(.commit) && !steps.contains(.discarded)
  }
}
