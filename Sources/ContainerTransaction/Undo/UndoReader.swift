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
    store = UndoStore(states: try StateDirectory.all(of: container))
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
    let done = Dictionary(
      records.filter { $0.step == .done }.map { ($0.transaction, $0) }, uniquingKeysWith: { $1 })
    var found: [KeptUndo] = []
    for transaction in try store.transactions().reversed() {
      guard let undo = try undo(of: transaction) else { continue }
      let kind = undo.record.kind
      if redoing {
        // Redos stand between two rollbacks that are redone one after the other; anything else ends it.
        if kind == .rollback { found.append(undo) } else if kind != .redo { break }
      } else if kind != .rollback {
        // The redo of a rollback that undid no transaction as a whole leaves these to be undone, and itself nothing.
        let isOfParts =
          kind == .redo
          && undo.record.undoes.allSatisfy { done[$0]?.partly != nil && done[$0]?.undoes == nil }
        if !isOfParts { found.append(undo) }
      }
    }
    return found
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
