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
    guard let entry = try UndoLog(container, options.deviceKeys).undoable(redoing: redoing).first else {
      throw DrydockError(
        .nothingToUndo,
        redoing
          ? "the last transaction is not a rollback, so there is nothing to redo"
          : "no transaction is left to undo", path: container.root)
    }
    try entry.check()
    return entry.transaction
  }

  /// The newest transactions that are not undone yet, as far as they are of a run or redid what it did, the newest first; none
  /// where the run has changed nothing or is undone already.
  ///
  /// - Throws: ``DrydockError``: `conflict` when transactions that are not of the run followed; `nothingToUndo` when the undo
  ///   log does not contain what the run replaced; `vaultLocked`.
  package static func undos(
    of run: RunID, in container: Container, options: TransactionOptions = TransactionOptions()
  ) throws -> [TransactionID] {
    let undoLog = try UndoLog(container, options.deviceKeys)
    let log = try undoLog.entries()
    let own = log.transactions(of: run)
    if own.isEmpty { return [] }
    let entries = try undoLog.undoable(redoing: false)
    let newest = entries.prefix { own.contains($0.transaction) }
    for entry in newest { try entry.check() }
    if !newest.isEmpty { return newest.map(\.transaction) }
    if let later = entries.first, entries.contains(where: { own.contains($0.transaction) }) {
      throw DrydockError(
        .conflict,
        "a later transaction is not of run \(run), so nothing was undone: \(later.transaction), which "
          + "\(later.record.summary); undo that one first",
        path: container.root)
    }
    if log.contains(where: { own.contains($0.transaction) && $0.state == .committed }) {
      throw DrydockError(
        .nothingToUndo,
        "the undo log does not contain what run \(run) replaced",
        path: container.root)
    }
    return []
  }

  /// What the steps of a transaction wrote down; nil when it is kept no more, or they wrote nothing.
  ///
  /// - Throws: `DrydockError` with code `vaultLocked` when it is kept sealed and no given key opens it.
  package static func steps(
    of transaction: TransactionID, in container: Container, options: TransactionOptions = TransactionOptions()
  ) throws -> [UInt8]? {
    try UndoLog(container, options.deviceKeys).entry(transaction)?.steps(of: transaction.description)
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
  /// A transaction that was undone.
  package struct Undone: Sendable, Codable, Equatable {
    package var transaction: TransactionID
    package var kind: TransactionLogEntry.Kind, summary: String
  }

  package let staged: StagedContainer
  /// The transactions that were undone, the newest first.
  package private(set) var undone: [Undone] = []
  /// What the app had changed since and was given up, with `discardingNewer`.
  package private(set) var discarded: [RollbackConflict] = []
  private let log: UndoLog
  private let discardingNewer: Bool

  package init(_ staged: StagedContainer, discardingNewer: Bool = false) throws {
    (self.staged, self.discardingNewer) = (staged, discardingNewer)
    log = try UndoLog(staged.container, staged.deviceKeys)
    // The restored data may be corrupt, if it was corrupt before.
    staged.checksResult = false
  }

  /// What is left to be undone, the newest first.
  ///
  /// - Parameter redoing: the rollbacks that can be redone instead.
  package func candidates(redoing: Bool = false) throws -> [UndoEntry] {
    try log.undoable(redoing: redoing).filter { !staged.undoes.contains($0.transaction) }
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
  package func undo(_ entry: UndoEntry) throws {
    let record = entry.record
    try entry.check()
    // The keys that the vault has now: what a device no longer trusts gets nothing new.
    let recipients = try record.sealing.map { sealing in
      do {
        if let vault = try staged.vault() { return vault.recipients }
      } catch let error as DrydockError where [.vaultLocked, .badVault].contains(error.code) {
        // The keys that it had.
      }
      return try sealing.recipients.map { try AgeRecipient($0) }
    }
    var rollback = EntryRollback(
      entry, on: staged, later: try log.partsUndone(of: entry.transaction), discardingNewer: discardingNewer)
    try rollback.run()
    try rollback.keepSealed(to: recipients ?? [])
    if !rollback.conflicts.isEmpty && !discardingNewer {
      throw DrydockError(
        .conflict,
        "the app has since changed what would be rolled back; nothing was changed\n"
          + rollback.conflicts.map(\.lines).joined(separator: "\n"), path: staged.container.root)
    }
    discarded += rollback.conflicts
    undone.append(Undone(transaction: entry.transaction, kind: record.kind, summary: record.summary))
    try staged.handOn(entry)
    staged.undoes.append(entry.transaction)
    // Undoing the redo of a partial rollback leaves the transaction partly rolled back again.
    if record.kind == .redo { staged.undoesPartly += log.partly(record.undoes) }
    staged.undoesPartly.removeAll(where: staged.undoes.contains)
  }

  /// Has `staged.kept` read the undo entry of a transaction: its own, or that of its redo.
  ///
  /// - Parameter origin: the transaction's name; nil for none.
  package func openKept(of origin: String?) throws {
    staged.kept = nil
    guard let origin else { return }
    // More is written than what was there before.
    staged.checksResult = true
    staged.kept = try log.undoable(redoing: false).first { $0.origins.contains(origin) }
  }

  /// Records that a transaction was reverted by down steps: as a whole, so that there is nothing left to undo, or in
  /// part.
  package func noteReverted(_ entry: UndoEntry, inPart: Bool) throws {
    if inPart { return staged.undoesPartly.append(entry.transaction) }
    try staged.handOn(entry)
    staged.undoes.append(entry.transaction)
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
  fileprivate var lines: String {
    """
      \(place)
        before       \(before)
        transaction  \(written)
        app          \(now)
    """
  }

  private var place: String { key.map { "\($0) in \(path)" } ?? path.description }
}
