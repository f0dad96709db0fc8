import AgeEncryption
import AppContainer
import AppStores
import Cryptography
import DrydockErrors
import FileSystem

/// The undo log of a container: what its last transactions replaced, wherever its state is.
struct UndoLog {
  let states: [StateDirectory]
  /// The records of all journals, transactions in the order in which they began.
  let records: [JournalRecord]
  /// What opens files that are kept sealed.
  private let keys: AgeKeys

  init(states: [StateDirectory], keys: AgeKeys = AgeKeys()) throws {
    (self.states, self.keys) = (states, keys)
    records = try Self.merged(states.map { try Journal(state: $0.directory).records() })
  }

  /// The log as a rollback reads it.
  init(_ container: Container, _ deviceKeys: DeviceKeys? = nil) throws {
    try self.init(
      states: StateDirectory.readable(of: container, isRequired: true).states,
      keys: AgeKeys(identities: deviceKeys?.identities ?? []))
  }

  private static func merged(_ journals: [[JournalRecord]]) -> [JournalRecord] {
    if journals.count == 1 { return journals[0] }
    let numbers = Dictionary(
      journals.joined().compactMap { record in record.number.map { (record.transaction, $0) } },
      uniquingKeysWith: { first, _ in first })
    return journals.joined().enumerated().sorted { left, right in
      let (a, b) = (numbers[left.element.transaction] ?? 0, numbers[right.element.transaction] ?? 0)
      return (a, left.offset) < (b, right.offset)
    }.map(\.element)
  }

  var done: [JournalRecord] { records.filter { $0.step == .done } }

  /// The transactions that a committed one has undone; a kill right after its commit may have left their folders.
  var undone: Set<TransactionID> { Set(records.flatMap { $0.undoes ?? [] }) }

  /// The transactions that have a folder, wherever it is.
  func kept() throws -> Set<TransactionID> {
    Set(try states.flatMap { try Journal(state: $0.directory).transactions(in: StateDirectory.undo) })
  }

  /// The transactions that can be undone, in the order in which they were committed.
  func transactions() throws -> [TransactionID] {
    let kept = try kept().subtracting(undone)
    return try done.map(\.transaction).filter { try kept.contains($0) && folder($0) != nil }
  }

  /// The rollbacks that can be redone, the newest first: those that only rollbacks and redos have followed; a transaction that
  /// was undone since counts as well.
  func redoable() throws -> [TransactionID] {
    let kinds = Dictionary(
      records.compactMap { record in record.kind.map { (record.transaction, $0) } }, uniquingKeysWith: { $1 })
    let undoable = Set(try transactions())
    return done.map(\.transaction).reversed()
      .prefix { kinds[$0] == .rollback || kinds[$0] == .redo }
      .filter { kinds[$0] == .rollback && undoable.contains($0) }
  }

  func entry(_ transaction: TransactionID) throws -> UndoEntry? {
    guard let folder = try folder(transaction) else { return nil }
    return UndoEntry(record: try UndoRecord(in: folder), directory: folder, keys: keys)
  }

  /// What can be undone, the newest first.
  ///
  /// - Parameter redoing: the rollbacks that can be redone instead.
  func undoable(redoing: Bool) throws -> [UndoEntry] {
    if redoing { return try redoable().compactMap(entry) }
    let done = Dictionary(done.map { ($0.transaction, $0) }, uniquingKeysWith: { $1 })
    return try transactions().reversed().compactMap(entry).filter { entry in
      guard entry.kind == .redo else { return entry.kind != .rollback }
      // The redo of a rollback that undid no transaction as a whole leaves these to be undone, and itself nothing.
      return entry.record.undoes.contains { done[$0]?.partly == nil || done[$0]?.undoes != nil }
    }
  }

  /// The rollbacks that undid a part of a transaction and are not undone themselves, the newest first.
  func partsUndone(of transaction: TransactionID) throws -> [UndoEntry] {
    try transactions().reversed().compactMap(entry).filter {
      $0.kind == .rollback && $0.record.partly.contains(transaction)
    }
  }

  /// What rollbacks have undone in part.
  func partly(_ transactions: [TransactionID]) -> [TransactionID] {
    done.filter { transactions.contains($0.transaction) }.flatMap { $0.partly ?? [] }
  }

  private func folder(_ transaction: TransactionID) throws -> Directory? {
    let path = try StateDirectory.folder(StateDirectory.undo, transaction)
    for state in states where try state.directory.status(path.appending(name: UndoRecord.file.bytes)) != nil {
      return try state.directory.directory(path)
    }
    return nil
  }

  func size(_ transaction: TransactionID) throws -> UInt64 {
    guard let folder = try folder(transaction) else { return 0 }
    return try folder.names().reduce(0) {
      try $0 + (folder.status(ContainerPath(name: $1))?.blocks ?? 0) * 512
    }
  }

  /// Removes an entry; one in a state directory that this user may not write stays.
  private func remove(_ transaction: TransactionID) throws {
    for state in states {
      do {
        try state.directory.removeTree(StateDirectory.folder(StateDirectory.undo, transaction))
      } catch let error as DrydockError where error.code == .permission && states.count > 1 {}
    }
  }

  /// Removes the oldest beyond the limits; the newest is always kept.
  func prune(_ limits: (count: Int, bytes: UInt64)) throws {
    for transaction in try kept().intersection(undone) { try remove(transaction) }
    var bytes: UInt64 = 0
    for (number, transaction) in try transactions().reversed().enumerated() {
      bytes += try size(transaction)
      if number > 0 && (number >= limits.count || bytes > limits.bytes) { try remove(transaction) }
    }
  }
}
