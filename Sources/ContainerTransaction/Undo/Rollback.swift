import AgeEncryption
import AppContainer

/// Something that both a transaction and, since then, the app changed.
public struct RollbackConflict: Sendable, Codable, Equatable, CustomStringConvertible {
  /// Where: the path, and the key of a setting.
  public var path: ContainerPath, key: String?
  /// What the transaction replaced, what it wrote, and what is there now, for people; secrets redacted.
  public var before: String, written: String, now: String

  /// Such as `theme in Library/…plist: was "dark", the transaction wrote "light", now "blue"`.
  public var description: String {
    let place = key.map { "\($0) in \(path)" } ?? path.description
    return "\(place): was \(before), the transaction wrote \(written), now \(now)"
  }
}

/// What a rollback did.
public struct RollbackReport: Sendable {
  /// The transaction that was undone.
  public var undone: TransactionID
  /// Its kind and summary.
  public var kind: TransactionKind, summary: String
  /// What the app had changed since and was given up, with `discardingNewer`.
  public var discarded: [RollbackConflict]
}

extension Transaction {
  /// Undoes the newest transaction that is not undone yet, at each store's grain: settings by key, databases as
  /// a whole, files by path. What the app wrote since and the transaction did not touch stays.
  ///
  /// - Parameters:
  ///   - discardingNewer: gives up what the app changed since where the transaction had changed it too.
  ///   - redoing: undoes the newest rollback instead.
  /// - Throws: ``TransactionError``: `nothingToUndo`; `conflict`, with both sides, when nothing was changed.
  public static func rollback(
    _ container: Container, discardingNewer: Bool = false, redoing: Bool = false,
    options: TransactionOptions = TransactionOptions()
  ) throws -> TransactionOutcome<RollbackReport> {
    let recovered = try recover(container, lockTimeout: options.lockTimeout)
    let (record, folder) = try newestUndo(container, redoing: redoing)
    let kept = KeptFiles(directory: folder, keys: AgeKeys(identities: options.deviceKeys?.identities ?? []))
    try kept.check(record)
    var options = options
    options.undoes = record.transaction
    // What comes back is what was there, damaged or not.
    options.checksResult = false
    var outcome = try run(
      on: container, redoing ? .redo : .rollback,
      summary: "undid \(record.transaction)", options: options
    ) { staged in
      guard try newestUndo(container, redoing: redoing).0.transaction == record.transaction else {
        throw TransactionError(
          .changedMeanwhile,
          "another command changed the container meanwhile; nothing was changed, run it again",
          path: container.root)
      }
      var undoing = Undoing(staged: staged, kept: kept, discardingNewer: discardingNewer)
      // The keys that the vault has now: what a device no longer trusts gets nothing new.
      let recipients = try record.sealing.map { sealing in
        try (try? staged.vault())?.recipients ?? sealing.recipients.map { try AgeRecipient($0) }
      }
      try undoing.run(record)
      try undoing.keepSealed(record, to: recipients ?? [])
      if !undoing.conflicts.isEmpty && !discardingNewer { throw conflict(undoing.conflicts, container) }
      return RollbackReport(
        undone: record.transaction, kind: record.kind, summary: record.summary, discarded: undoing.conflicts)
    }
    outcome.recovered = recovered + outcome.recovered
    return outcome
  }

  private static func newestUndo(_ container: Container, redoing: Bool) throws -> (UndoRecord, Directory) {
    let none = TransactionError(
      .nothingToUndo,
      redoing
        ? "the last transaction is no rollback, so there is nothing to redo"
        : "no transaction is left to undo; `drydock log` lists them", path: container.root)
    let store = UndoStore(states: try StateDirectory.all(of: container))
    for transaction in try store.transactions().reversed() {
      guard let folder = try store.folder(transaction) else { continue }
      let record = try UndoRecord(in: folder)
      if (record.kind == .rollback) == redoing { return (record, folder) }
      // Other redos stand between two rollbacks that are redone one after the other; anything else ends it.
      if redoing && record.kind != .redo { break }
    }
    throw none
  }

  private static func conflict(_ conflicts: [RollbackConflict], _ container: Container) -> TransactionError {
    TransactionError(
      .conflict,
      "the app has changed since what would be rolled back; nothing was changed: "
        + conflicts.map(\.description).joined(separator: "; ")
        + ". Give --discard-newer to give up what the app wrote there", path: container.root)
  }
}
