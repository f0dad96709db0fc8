import AppContainer
import DrydockErrors
import FileSystem
import SystemPackage

extension Transaction {
  /// Ends what an interrupted transaction left, as every command does at its start: an app that uses containers which may
  /// be changed in place calls it before it opens anything in its own.
  ///
  /// With nothing to do it costs a few system calls: then no lock is taken and nothing written.
  ///
  /// - Returns: what was found, and how the container is; empty when nothing was interrupted.
  /// - Throws: ``DrydockError``: `locked` (another command runs, and nothing may be interrupted), `inUse` (a
  ///   program uses the container), `damagedState`, `foreignState`, `interrupted` (the container is not where it was, or a
  ///   commit in place can go neither forwards nor back now).
  @discardableResult
  package static func recover(_ container: Container, lockTimeout: Double = 0) throws -> [RecoveryReport] {
    _ = try StateDirectory.all(of: container)
    return try recoverOwn(container, lockTimeout: lockTimeout)
  }

  /// As ``recover(_:lockTimeout:)``, for a command that may be one that only reads.
  ///
  /// - Returns: what was found, and what was left as it is, with the reason.
  package static func recoverForReading(
    _ container: Container
  ) throws -> (reports: [RecoveryReport], notes: [String]) {
    var notes = try StateDirectory.readable(of: container).foreign.map(\.description)
    do {
      return (try recoverOwn(container, lockTimeout: 0), notes)
    } catch let error as DrydockError where error.code == .locked {
      // Another command runs on it: nothing is interrupted, and taking the lock reports it.
    } catch let error as DrydockError where [.inUse, .permission].contains(error.code) {
      // A whole container can still be read; a half changed one cannot: taking the lock reports that.
      notes.append(error.description)
    }
    return ([], notes)
  }

  private static func recoverOwn(_ container: Container, lockTimeout: Double) throws -> [RecoveryReport] {
    // Leftovers of killed commands: who cannot remove them is not kept from recovering.
    try? ScratchDirectory.removeStaleTemporary()
    guard try isRecoveryNeeded(container) else { return [] }
    if FollowedStatus.identity(container.root) == nil {
      let states = try StateDirectory.readable(of: container).states
      for state in states { try lock(state, of: container) }
      return try states.flatMap {
        try Recovery(container: container, state: $0, root: nil, own: [$0.parent]).run()
      }
    }
    let lock = try ContainerLock(container, exclusive: true, timeout: lockTimeout)
    return try recover(container, root: lock.root)
  }

  /// Opens the state for no longer than that: open directories of the container count as use of it.
  private static func isRecoveryNeeded(_ container: Container) throws -> Bool {
    let states = try StateDirectory.readable(of: container).states
    return try states.contains(where: Recovery.isNeeded) || LateWrites.mayBeThere(in: states)
  }

  /// With the lock held; the state inside first, whose commits leave mixtures.
  static func recover(_ container: Container, root: Directory) throws -> [RecoveryReport] {
    let states = try StateDirectory.readable(of: container).states
    let recovered = try states.reversed().flatMap {
      try Recovery(container: container, state: $0, root: root, own: states.map(\.parent)).run()
    }
    return try recovered + LateWrites.keep(in: states)
  }
}

/// What a command found of an interrupted one, and made of it.
public struct RecoveryReport: Sendable, Equatable {
  /// What became of an interrupted transaction.
  public enum Outcome: String, Sendable {
    /// The interrupted transaction has changed nothing.
    case old
    /// The interrupted transaction is complete.
    case new
    /// The transaction was not interrupted: what it had replaced was written to afterwards.
    case writtenLater = "written-later"
  }

  /// The interrupted transaction.
  public var transaction: TransactionID
  /// The state of the container after it.
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
  /// Other directories that Drydock itself has open.
  let own: [Directory]

  /// Whether there may be something to end: a stage that is left, or a transaction without an end. Only looks.
  static func isNeeded(in state: StateDirectory) throws -> Bool {
    if try state.directory.status(StateDirectory.stage) != nil,
      try !state.directory.directory(StateDirectory.stage).names().isEmpty
    {
      return true
    }
    return try !Journal(state: state.directory).records().unended.isEmpty
  }

  /// - Returns: a report for each interrupted transaction; leftovers of dry runs are removed in silence.
  func run() throws -> [RecoveryReport] {
    let journal = Journal(state: state.directory)
    let records = try journal.records()
    guard try state.directory.status(StateDirectory.stage) != nil else {
      return try endWithoutStage(records, journal)
    }
    let stages = try state.directory.directory(StateDirectory.stage)
    var reports: [RecoveryReport] = []
    var handled: Set<TransactionID> = []
    for bytes in try stages.names() {
      let name = String(decoding: bytes, as: UTF8.self)
      let transaction = TransactionID(name)
      handled.insert(transaction)
      let own = records.filter { $0.transaction == transaction }
      let isEnded = own.contains(where: \.isEnd)
      if let commit = own.first(where: { $0.step == .commit }), !isEnded {
        let folder = try stages.directory(ContainerPath(name: bytes))
        if let conflicts = try InterruptedCommit(self, commit, own, folder: folder)?.end() {
          reports.append(RecoveryReport(transaction: transaction, outcome: .new, conflicts: conflicts))
          continue
        }
      }
      if !isEnded { try requireUnmoved(own, ContainerPath(name: bytes), in: stages) }
      if own.contains(where: { $0.step == .discarded }) {
        try stages.directory(ContainerPath(name: bytes)).requireOwnTrees()
      }
      defer { removeMarkers(own) }
      let remove = { try removeStage(ContainerPath(name: bytes), in: stages) }
      guard own.contains(where: { $0.step == .begin }), !isEnded else {
        try remove()
        continue
      }
      try journal.discard(transaction, removing: remove)
      reports.append(RecoveryReport(transaction: transaction, outcome: .old, conflicts: []))
    }
    return try reports + endWithoutStage(records.filter { !handled.contains($0.transaction) }, journal)
  }

  /// Without COMMIT in the journal, nothing may have been moved: the record may be what was lost, and the stage the only place
  /// of what a commit has replaced. Without any record, nothing is known.
  private func requireUnmoved(_ records: [JournalRecord], _ name: ContainerPath, in stages: Directory) throws
  {
    guard try stages.status(name)?.type == .directory else { return }
    let folder = try stages.directory(name)
    let files = [Move.plan, Commit.tree, "tree-1"]
    if records.isEmpty {
      guard try files.contains(where: { try folder.status($0) != nil }) else { return }
    } else {
      guard !records.contains(where: { $0.step == .commit }) else { return }
      let moves = try folder.status(Move.plan) == nil ? [] : [Move](in: folder)
      guard try moves.haveBegun(in: folder, root) || folder.hasExchangedTrees() else {
        return
      }
    }
    throw DrydockError(
      .damagedState,
      "the journal has no record of this transaction's commit, which may have begun: the container may be a mixture of "
        + "old and new. Check what is here, and remove it only when nothing in it is needed",
      path: folder.path)
  }

  /// A script that the killed command had started goes on in its copy, and may write there at this very moment: then the
  /// stage stays until the next command.
  private func removeStage(_ name: ContainerPath, in stages: Directory) throws {
    do {
      try stages.removeTree(name)
    } catch let error as DrydockError
      where error.code == .notFound || error.cause as? Errno == .directoryNotEmpty
    {}
  }

  /// What is left of the markers of a transaction that has an end.
  private func removeMarkers(_ records: [JournalRecord]) {
    for group in records.compactMap(\.groups).joined() {
      // A path that a record names is not reason enough to open it.
      guard container.groups.contains(where: { $0.root == group.root }) else { continue }
      for transaction in Set(records.map(\.transaction)) {
        GroupMarker.removeEnded(group.root, transaction, state)
      }
    }
  }

  /// Killed between the removal of the stage and the record of it.
  private func endWithoutStage(_ records: [JournalRecord], _ journal: Journal) throws -> [RecoveryReport] {
    try records.unended.map { record in
      try journal.append(JournalRecord(.discarded, record.transaction))
      return RecoveryReport(transaction: record.transaction, outcome: .old, conflicts: [])
    }
  }
}
