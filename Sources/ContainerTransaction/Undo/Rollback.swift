import AgeEncryption
import AppContainer
import Cryptography
import DrydockErrors
import FileSystem

extension Transaction {
  /// Reverts as much as a closure selects, several transactions or a part of one, in one transaction.
  ///
  /// - Throws: as ``run(on:_:summary:source:options:body:)``, and what ``Rollback/undo(_:)`` throws.
  package static func rollback<Value>(
    _ container: Container, summary: String, discardingNewer: Bool = false, redoing: Bool = false,
    options: TransactionOptions = TransactionOptions(), body: (Rollback) throws -> Value
  ) throws -> TransactionOutcome<Value> {
    try run(on: container, redoing ? .redo : .rollback, summary: summary, options: options) {
      try body(Rollback($0, discardingNewer: discardingNewer))
    }
  }

  /// The transaction that a rollback would undo now.
  ///
  /// - Parameter redoing: the rollback that would be redone instead.
  /// - Throws: ``DrydockError``: `nothingToUndo`; `vaultLocked` when what it
  ///   replaced is kept sealed and no given key opens it.
  package static func newestUndo(
    of container: Container, redoing: Bool, options: TransactionOptions = TransactionOptions()
  ) throws -> TransactionID {
    guard let undo = try UndoLog(container, options.deviceKeys).undoable(redoing: redoing).first else {
      throw DrydockError(
        .nothingToUndo,
        redoing
          ? "the last transaction is not a rollback, so there is nothing to redo"
          : "no transaction is left to undo; `drydock log` lists them", path: container.root)
    }
    try undo.kept.check(undo.record)
    return undo.record.transaction
  }
}

extension Transaction {
  /// The newest transactions that are not undone yet, as far as they are of a run or redid what it did, the newest first; none
  /// where the run has changed nothing or is undone already.
  ///
  /// - Throws: ``DrydockError``: `conflict` when transactions that are not of the run followed; `nothingToUndo` when the undo
  ///   log does not contain what the run replaced; `vaultLocked`.
  package static func undos(
    of run: RunID, in container: Container, options: TransactionOptions = TransactionOptions()
  ) throws -> [TransactionID] {
    let log = try log(container)
    let own = log.transactions(of: run)
    if own.isEmpty { return [] }
    let entries = try UndoLog(container, options.deviceKeys).undoable(redoing: false)
    let newest = entries.prefix { own.contains($0.record.transaction) }
    for entry in newest { try entry.kept.check(entry.record) }
    if !newest.isEmpty { return newest.map(\.record.transaction) }
    if let later = entries.first, entries.contains(where: { own.contains($0.record.transaction) }) {
      throw DrydockError(
        .conflict,
        "a later transaction is not of run \(run), so nothing was undone: \(later.record.transaction), which "
          + "\(later.record.summary); `drydock rollback \(container.root)` undoes that one",
        path: container.root)
    }
    if log.contains(where: { own.contains($0.transaction) && $0.state == .committed }) {
      throw DrydockError(
        .nothingToUndo,
        "the undo log does not contain what run \(run) replaced; `drydock log` lists what can be undone",
        path: container.root)
    }
    return []
  }
}

extension [TransactionLogEntry] {
  /// The transactions of a run but for rollbacks, and those that redid them.
  fileprivate func transactions(of run: RunID) -> Set<TransactionID> {
    let undone = Dictionary(map { ($0.transaction, $0.undoes) }, uniquingKeysWith: { $1 })
    var own: Set<TransactionID> = []
    for entry in self where entry.kind != .rollback {
      // A redo names the rollbacks that it undid.
      let redone = entry.kind == .redo ? entry.undoes.flatMap { undone[$0, default: []] } : []
      if entry.run == run || !redone.isEmpty && redone.allSatisfy(own.contains) {
        own.insert(entry.transaction)
      }
    }
    return own
  }
}

/// A rollback on a stage: undoes transactions one after the other, and offers what their undo entries still hold to down
/// steps.
package final class Rollback {
  package let staged: StagedContainer
  package private(set) var report = RollbackReport(undone: [], discarded: [])
  private let undos: UndoLog
  private let discardingNewer: Bool

  package init(_ staged: StagedContainer, discardingNewer: Bool = false) throws {
    (self.staged, self.discardingNewer) = (staged, discardingNewer)
    undos = try UndoLog(staged.container, staged.deviceKeys)
    // The restored data may be corrupt, if it was corrupt before.
    staged.checksResult = false
  }

  /// A transaction that can be undone.
  package struct Candidate: Sendable {
    package let transaction: TransactionID
    package let kind: TransactionLogEntry.Kind
    package let summary: String
    /// The transactions whose steps it contains: its own, or those that it has redone.
    package let origins: [String]
  }

  /// The transactions that are left to be undone, the newest first.
  ///
  /// - Parameter redoing: the rollbacks that can be redone instead.
  package func candidates(redoing: Bool = false) throws -> [Candidate] {
    try undos.undoable(redoing: redoing).filter { undo in
      !staged.undoNotes.undoes.contains(undo.record.transaction)
    }
    .map(\.candidate)
  }

  /// What was at a path before a transaction, as its undo keeps it; nil when nothing was, or the path was not changed.
  package func before(_ candidate: Candidate, _ path: ContainerPath) throws -> (
    isChanged: Bool, bytes: [UInt8]?
  ) {
    guard let undo = try undos.entry(candidate.transaction),
      let change = undo.record.changes[path]
    else { return (false, nil) }
    return (true, try change.kept.map(undo.kept.contents))
  }

  /// Undoes the newest transaction, which must be the one that the rollback was planned for.
  package func undoNewest(_ planned: TransactionID, redoing: Bool) throws {
    guard let newest = try candidates(redoing: redoing).first, newest.transaction == planned else {
      throw DrydockError(
        .changedMeanwhile,
        "another command changed the container meanwhile; nothing was changed, run it again",
        path: staged.container.root)
    }
    try undo(newest)
  }

  /// Undoes a transaction at each store's granularity: settings by key, vault items one by one, databases as a whole, files by
  /// path. What the app wrote since and the transaction did not touch stays.
  ///
  /// - Throws: ``DrydockError``: `nothingToUndo`; `conflict`, with both sides.
  package func undo(_ candidate: Candidate) throws {
    let transaction = candidate.transaction
    guard let undo = try undos.entry(transaction) else {
      throw DrydockError(
        .nothingToUndo, "the undo log does not contain what transaction \(transaction) replaced",
        path: staged.container.root)
    }
    let record = undo.record
    try undo.kept.check(record)
    // The keys that the vault has now: what a device no longer trusts gets nothing new.
    let recipients = try record.sealing.map { sealing in
      do {
        if let vault = try staged.vault() { return vault.recipients }
      } catch let error as DrydockError where [.vaultLocked, .badVault].contains(error.code) {
        // The keys that it had.
      }
      return try sealing.recipients.map { try AgeRecipient($0) }
    }
    var kept = undo.kept
    kept.takesChanged = discardingNewer
    var undoing = TransactionUndo(
      staged: staged, kept: kept, later: try undos.partsUndone(of: transaction),
      discardingNewer: discardingNewer)
    try undoing.run(record)
    try undoing.keepSealed(record, to: recipients ?? [])
    if !undoing.conflicts.isEmpty && !discardingNewer { throw conflict(undoing.conflicts) }
    report.discarded += undoing.conflicts
    report.undone.append(.init(transaction: transaction, kind: record.kind, summary: record.summary))
    try staged.handOn(record, in: undo.kept.directory)
    staged.undoNotes.undoes.append(transaction)
    // Undoing the redo of a partial rollback leaves the transaction partly rolled back again.
    if record.kind == .redo { staged.undoNotes.partly += try undos.partly(record.undoes) }
    staged.undoNotes.partly.removeAll(where: staged.undoNotes.undoes.contains)
  }

  private func conflict(_ conflicts: [RollbackConflict]) -> DrydockError {
    DrydockError(
      .conflict,
      "the app has since changed what would be rolled back; nothing was changed\n"
        + conflicts.map(\.lines).joined(separator: "\n"), path: staged.container.root)
  }

  /// Has `staged.kept` read the undo entry of a transaction: its own, or that of its redo.
  ///
  /// - Parameter origin: the transaction's name; nil for none.
  package func openKept(of origin: String?) throws {
    staged.kept = nil
    guard let origin else { return }
    staged.undoNotes.requiresCheck = true
    let undo = try undos.undoable(redoing: false).first { $0.candidate.origins.contains(origin) }
    staged.kept = undo.map {
      RevertSource(origin: origin, staged: staged, record: $0.record, files: $0.kept)
    }
  }

  /// Records that a transaction was reverted by down steps: as a whole, so that there is nothing left to undo, or in
  /// part.
  package func tookBack(_ candidate: Candidate, inPart: Bool) throws {
    if inPart { return staged.undoNotes.partly.append(candidate.transaction) }
    if let undo = try undos.entry(candidate.transaction) {
      try staged.handOn(undo.record, in: undo.kept.directory)
    }
    staged.undoNotes.undoes.append(candidate.transaction)
  }
}

/// Something that both a transaction and, since then, the app changed.
package struct RollbackConflict: Sendable, Codable, Equatable, CustomStringConvertible {
  /// Where: the path, and the key of a setting.
  package var path: ContainerPath, key: String?
  /// What the transaction replaced, what it wrote, and what is there now, for people; secrets redacted.
  package var before: String, written: String, now: String

  /// Such as `theme in Library/…plist: was "dark", the transaction wrote "light", now "blue"`.
  package var description: String {
    "\(place): was \(before), the transaction wrote \(written), now \(now)"
  }

  /// The same over several lines, both sides below each other.
  var lines: String {
    """
      \(place)
        before       \(before)
        transaction  \(written)
        app          \(now)
    """
  }

  private var place: String { key.map { "\($0) in \(path)" } ?? path.description }
}

package struct RollbackReport: Sendable {
  package struct Undone: Sendable, Codable, Equatable {
    package var transaction: TransactionID
    package var kind: TransactionLogEntry.Kind, summary: String
  }

  /// The transactions that were undone, the newest first.
  package var undone: [Undone]
  /// What the app had changed since and was given up, with `discardingNewer`.
  package var discarded: [RollbackConflict]
}
