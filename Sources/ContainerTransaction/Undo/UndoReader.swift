import AgeEncryption
import AppContainer

/// One undo that is kept.
struct KeptUndo {
  let record: UndoRecord
  let kept: KeptFiles

  var candidate: Rollback.Candidate {
    let own = record.transaction.description
    let origins = record.steps.map(StepFile.transaction)
    return Rollback.Candidate(
      transaction: record.transaction, kind: record.kind, summary: record.summary,
      origins: origins.contains(own) ? origins : origins + [own])
  }
}

/// The undos of a container, as a rollback looks at them.
struct UndoReader {
  private let store: UndoStore
  private let keys: AgeKeys

  init(_ container: Container, _ options: TransactionOptions) throws {
    try StateDirectory.requireReadable(container)
    store = UndoStore(states: try StateDirectory.readable(of: container).states)
    keys = AgeKeys(identities: options.deviceKeys?.identities ?? [])
  }

  func undo(of transaction: TransactionID) throws -> KeptUndo? {
    guard let folder = try store.folder(transaction) else { return nil }
    return KeptUndo(record: try UndoRecord(in: folder), kept: KeptFiles(directory: folder, keys: keys))
  }

  /// What can be undone, the newest first.
  ///
  /// - Parameter redoing: the rollbacks that can be redone instead.
  func undoable(redoing: Bool) throws -> [KeptUndo] {
    let records = try store.records()
    if redoing { return try store.redoable(records).compactMap(undo) }
    let done = Dictionary(
      records.filter { $0.step == .done }.map { ($0.transaction, $0) }, uniquingKeysWith: { $1 })
    return try store.transactions().reversed().compactMap(undo).filter { undo in
      guard undo.record.kind == .redo else { return undo.record.kind != .rollback }
      // The redo of a rollback that undid no transaction as a whole leaves these to be undone, and itself nothing.
      return undo.record.undoes.contains { done[$0]?.partly == nil || done[$0]?.undoes != nil }
    }
  }

  /// The rollbacks that took back a part of a transaction and still stand, the newest first.
  func partsUndone(of transaction: TransactionID) throws -> [KeptUndo] {
    try store.transactions().reversed().compactMap(undo).filter {
      $0.record.kind == .rollback && $0.record.partly.contains(transaction)
    }
  }

  /// What rollbacks have undone in part.
  func partly(_ transactions: [TransactionID]) throws -> [TransactionID] {
    try store.records().filter { $0.step == .done && transactions.contains($0.transaction) }
      .flatMap { $0.partly ?? [] }
  }
}
