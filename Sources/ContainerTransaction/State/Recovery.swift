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

/// Ends what a killed transaction left, with the container's lock held.
struct Recovery {
  let state: StateDirectory
  /// The live root, or nil when there is none.
  let root: Directory?

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

  /// - Returns: nil when the exchange had not happened, so that the stage can go.
  private func resume(
    _ transaction: TransactionID, _ commit: JournalRecord, _ own: [JournalRecord], _ folder: Directory,
    _ journal: Journal
  ) throws -> RecoveryReport? {
    guard let root, let after = commit.rootAfter else { return nil }
    let live = try root.status().identity
    if live == commit.rootBefore { return nil }
    guard live == after else {
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
    let index =
      try isCarried || commit.rootBefore == nil
      ? nil
      : TreeIndex(
        decoding: folder.contents(TreeIndex.file, limit: 1 << 30), path: folder.full(TreeIndex.file))
    let old = try oldTree(of: transaction, commit, in: folder)
    let conflicts = try Finish(
      state: state, transaction: transaction, folder: folder, old: old, new: root,
      faults: .none
    ).run(record, index: index, recovered: true)
    return RecoveryReport(transaction: transaction, outcome: .new, conflicts: conflicts)
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
    guard commit.rootBefore == nil || status.identity == commit.rootBefore else {
      throw TransactionError(
        .damagedState,
        "transaction \(transaction) was interrupted, and what it replaced is not what it had staged; put it back "
          + "from \(folder.full(Commit.tree)) by hand", path: folder.path)
    }
    return try folder.directory(Commit.tree)
  }
}
