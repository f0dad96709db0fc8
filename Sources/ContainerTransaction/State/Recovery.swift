import AppContainer

/// What a command found of an interrupted one, and made of it.
public struct RecoveryReport: Sendable, Equatable {
  /// How the container stands.
  public enum Outcome: String, Sendable {
    /// The interrupted transaction has changed nothing.
    case old
    /// The interrupted transaction is complete.
    case new
  }

  /// The interrupted transaction.
  public var transaction: TransactionID
  /// How the container stands after it.
  public var outcome: Outcome
  /// Paths that an app changed at the very moment of the commit, kept under `conflict/<transaction>/`.
  public var conflicts: [ContainerPath]
}

/// Ends what a killed transaction left, with the container's lock held, in one of the places where state can be.
struct Recovery {
  let container: Container
  let state: StateDirectory
  /// The live root, or nil when there is none.
  let root: Directory?

  /// Whether there may be something to end: a stage that is left, or a transaction without an end. Only looks.
  static func isNeeded(in state: StateDirectory) throws -> Bool {
    guard try state.directory.status(StateDirectory.stage) != nil else { return false }
    if try !state.directory.directory(StateDirectory.stage).names().isEmpty { return true }
    let records = try Journal(state: state.directory).records()
    let ended = Set(records.filter { $0.step == .done || $0.step == .discarded }.map(\.transaction))
    return records.contains { $0.step == .begin && !ended.contains($0.transaction) }
  }

  /// - Returns: a report for each interrupted transaction; leftovers of dry runs are removed in silence.
  func run() throws -> [RecoveryReport] {
    let journal = Journal(state: state.directory)
    let records = try journal.records()
    // Killed while the state directory itself was made, before any transaction.
    guard try state.directory.status(StateDirectory.stage) != nil else { return [] }
    let stages = try state.directory.directory(StateDirectory.stage)
    var reports: [RecoveryReport] = []
    for bytes in try stages.names() {
      let name = String(decoding: bytes, as: UTF8.self)
      let transaction = TransactionID(name)
      let own = records.filter { $0.transaction == transaction }
      let isEnded = own.contains { $0.step == .done || $0.step == .discarded }
      if let commit = own.first(where: { $0.step == .commit }), !isEnded {
        let folder = try stages.directory(ContainerPath(name: bytes))
        if let report = try resume(transaction, commit, own, folder, journal) {
          reports.append(report)
          continue
        }
      }
      try stages.removeTree(ContainerPath(name: bytes))
      guard own.contains(where: { $0.step == .begin }), !isEnded else { continue }
      try journal.append(JournalRecord(.discarded, transaction))
      reports.append(RecoveryReport(transaction: transaction, outcome: .old, conflicts: []))
    }
    return try reports + endWithoutStage(journal)
  }

  /// Killed between the removal of the stage and the record of it.
  private func endWithoutStage(_ journal: Journal) throws -> [RecoveryReport] {
    let records = try journal.records()
    let ended = Set(records.filter { $0.step == .done || $0.step == .discarded }.map(\.transaction))
    let open = records.filter { $0.step == .begin && !ended.contains($0.transaction) }
    return try open.map { record in
      try journal.append(JournalRecord(.discarded, record.transaction))
      return RecoveryReport(transaction: record.transaction, outcome: .old, conflicts: [])
    }
  }

  /// - Returns: nil when the container is old, so that the stage can go.
  private func resume(
    _ transaction: TransactionID, _ commit: JournalRecord, _ own: [JournalRecord], _ folder: Directory,
    _ journal: Journal
  ) throws -> RecoveryReport? {
    // Numbers of devices are given anew when a machine starts: inodes alone tell which root it is.
    guard let root, let after = commit.rootAfter?.inode else { return nil }
    let status = try root.status()
    if commit.inPlace != true && status.inode == commit.rootBefore?.inode { return nil }
    guard status.inode == after else {
      throw TransactionError(
        .damagedState,
        "transaction \(transaction) was interrupted, and since then the container was replaced by something "
          + "else; look at \(folder.path), and remove it when nothing in it is needed", path: root.path)
    }
    // The old tree and the record are there unless the interruption came after they were done with.
    let undoFolder = try StateDirectory.folder(StateDirectory.undo, transaction)
    let record =
      try folder.status(UndoRecord.file) != nil
      ? UndoRecord(in: folder) : UndoRecord(in: state.directory.directory(undoFolder))
    let isCarried = own.contains { $0.step == .carried }
    var index: TreeIndex?
    if !isCarried && commit.rootBefore != nil {
      index = try TreeIndex(
        decoding: folder.contents(TreeIndex.file, limit: 1 << 30), path: folder.full(TreeIndex.file),
        device: status.device)
    }
    let conflicts =
      commit.inPlace == true
      ? try finishInPlace(transaction, record, index, folder, root)
      : try finishExchange(transaction, commit, record, index, folder, root)
    return conflicts.map { RecoveryReport(transaction: transaction, outcome: .new, conflicts: $0) }
  }

  private func finishExchange(
    _ transaction: TransactionID, _ commit: JournalRecord, _ undo: UndoRecord, _ index: TreeIndex?,
    _ folder: Directory, _ root: Directory
  ) throws -> [ContainerPath]? {
    let old = try oldTree(of: transaction, commit, in: folder)
    let finish = Finish(
      container: container, state: state, transaction: transaction, folder: folder, old: old, faults: .none)
    return try finish.run(
      undo, recovered: true,
      carry: index.map { index in
        { try finish.carryOver(to: root, index, undo) }
      })
  }

  /// Forwards, and only where that cannot be done, back.
  ///
  /// - Returns: nil when the container is old.
  private func finishInPlace(
    _ transaction: TransactionID, _ undo: UndoRecord, _ index: TreeIndex?, _ folder: Directory,
    _ root: Directory
  ) throws -> [ContainerPath]? {
    let finish = Finish(
      container: container, state: state, transaction: transaction, folder: folder, old: nil, faults: .none)
    guard let index else { return try finish.run(undo, recovered: true, carry: nil) }
    let moves = InPlaceMoves(
      state: state, transaction: transaction, folder: folder, live: root, plan: try MovePlan(in: folder),
      undo: undo, faults: .none)
    do {
      try moves.forward()
    } catch {
      try moves.takeBack(after: error)
      return nil
    }
    return try finish.run(undo, recovered: true) { try moves.lookBack(at: index) }
  }

  /// The old tree, an empty directory when it is gone already.
  private func oldTree(
    of transaction: TransactionID, _ commit: JournalRecord, in folder: Directory
  ) throws -> Directory {
    guard let status = try folder.status(Commit.tree) else {
      let empty: ContainerPath = "empty"
      try folder.createDirectories(empty)
      return try folder.directory(empty)
    }
    // What is removed at the end must be what the transaction replaced, and nothing else.
    guard commit.rootBefore == nil || status.inode == commit.rootBefore?.inode else {
      throw TransactionError(
        .damagedState,
        "transaction \(transaction) was interrupted, and what it replaced is not what it had staged; put it back "
          + "from \(folder.full(Commit.tree)) by hand", path: folder.path)
    }
    return try folder.directory(Commit.tree)
  }
}
