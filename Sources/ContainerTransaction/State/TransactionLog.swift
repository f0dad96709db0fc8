import AppContainer

/// One transaction as the log shows it.
package struct TransactionLogEntry: Sendable, Codable, Equatable {
  /// How it stands.
  package enum State: String, Sendable, Codable {
    /// Committed; its undo is kept.
    case undoable
    /// Committed; its undo is no longer kept.
    case committed
    /// Undone by a later one.
    case undone
    /// It changed nothing: there was nothing to change, it failed, or it was killed before its commit.
    case discarded
    /// It was killed, and no command has looked since.
    case interrupted
  }

  /// Its name, what it was for, and when it began (UTC).
  package var transaction: TransactionID, kind: TransactionKind, summary: String, time: String
  /// How it stands.
  package var state: State
  /// The number of paths that it changed.
  package var changes: Int
  /// Bytes that its undo keeps on disk.
  package var undoBytes: UInt64
  /// The transactions that it undid, and those that it undid in part: by steps, down to a version in the middle.
  package var undoes: [TransactionID], partly: [TransactionID]
  /// Whose data a restore brought: an app and its instance.
  package var source: String?
  /// The file's name of the archive that the container was backed up to before.
  package var archive: String?
}

extension Transaction {
  /// All transactions of a container, oldest first, whether its state is beside it, in it, or in both places.
  package static func log(_ container: Container) throws -> [TransactionLogEntry] {
    try StateDirectory.requireReadable(container)
    let store = UndoStore(states: try StateDirectory.readable(of: container).states)
    let records = try store.records()
    let undoable = Set(try store.transactions())
    let steps = Dictionary(grouping: records, by: \.transaction).mapValues { Set($0.map(\.step)) }
    let undone = UndoStore.undone(records)
    let redoable = try store.redoable(records)
    return try records.filter { $0.step == .begin }.map { begin in
      let own = steps[begin.transaction] ?? []
      let entryState: TransactionLogEntry.State =
        if own.contains(.discarded) {
          .discarded
        } else if !own.contains(.done) {
          .interrupted
        } else if undone.contains(begin.transaction) {
          .undone
        } else {
          undoable.contains(begin.transaction)
            && (begin.kind != .rollback || redoable.contains(begin.transaction))
            ? .undoable : .committed
        }
      let done = records.first { $0.transaction == begin.transaction && $0.step == .done }
      return TransactionLogEntry(
        transaction: begin.transaction, kind: begin.kind ?? .migrate, summary: begin.summary ?? "",
        time: begin.time, state: entryState, changes: done?.changes ?? 0,
        undoBytes: try store.size(begin.transaction), undoes: done?.undoes ?? [], partly: done?.partly ?? [],
        source: begin.source, archive: begin.archive)
    }
  }
}
