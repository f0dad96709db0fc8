import AppContainer
import DrydockErrors
import FileSystem

extension UndoRecord {
  /// Reads the record in a folder.
  ///
  /// - Throws: ``DrydockError`` with code `damagedState`.
  init(in folder: Directory) throws {
    self = try StateRecord.read(
      Self.file, in: folder,
      damaged: "the record of a transaction cannot be read, so that it cannot be undone")
  }
}

/// How much of what transactions replaced is kept.
package struct UndoLimits: Sendable {
  /// The number of transactions.
  package var count = 10
  /// Bytes of all of them; the newest is always kept.
  package var bytes: UInt64 = 20 << 30

  /// The usual limits.
  package init() {}
}

/// The undos that are kept, wherever a container's state is.
struct UndoStore {
  let states: [StateDirectory]

  /// The records of all journals, transactions in the order in which they began.
  func records() throws -> [JournalRecord] {
    let journals = try states.map { try Journal(state: $0.directory).records() }
    if journals.count == 1 { return journals[0] }
    let numbers = Dictionary(
      journals.joined().compactMap { record in record.number.map { (record.transaction, $0) } },
      uniquingKeysWith: { first, _ in first })
    return journals.joined().enumerated().sorted { left, right in
      let (a, b) = (numbers[left.element.transaction] ?? 0, numbers[right.element.transaction] ?? 0)
      return (a, left.offset) < (b, right.offset)
    }.map(\.element)
  }

  /// The transactions that can be undone, in the order they were committed.
  func transactions() throws -> [TransactionID] { try transactions(records()) }

  private func transactions(_ records: [JournalRecord]) throws -> [TransactionID] {
    let done = records.filter { $0.step == .done }.map(\.transaction)
    let undone = Self.undone(records)
    return try done.filter { try !undone.contains($0) && folder($0) != nil }
  }

  /// The transactions that a committed one has undone; a kill right after its commit may have left their folders.
  static func undone(_ records: [JournalRecord]) -> Set<TransactionID> {
    Set(records.flatMap { $0.undoes ?? [] })
  }

  /// The rollbacks that can be redone, the newest first: those after which nothing came but rollbacks and redos, not even
  /// what was undone since.
  func redoable(_ records: [JournalRecord]) throws -> [TransactionID] {
    let kinds = Dictionary(
      records.compactMap { record in record.kind.map { (record.transaction, $0) } }, uniquingKeysWith: { $1 })
    let undone = Self.undone(records)
    return try records.filter { $0.step == .done }.map(\.transaction).reversed()
      .prefix { kinds[$0] == .rollback || kinds[$0] == .redo }
      .filter { try kinds[$0] == .rollback && !undone.contains($0) && folder($0) != nil }
  }

  func folder(_ transaction: TransactionID) throws -> Directory? {
    let path = try StateDirectory.folder(StateDirectory.undo, transaction)
    for state in states where try state.directory.status(path.appending(name: UndoRecord.file.bytes)) != nil {
      return try state.directory.directory(path)
    }
    return nil
  }

  /// Bytes that an undo keeps on disk.
  func size(_ transaction: TransactionID) throws -> UInt64 {
    guard let folder = try folder(transaction) else { return 0 }
    return try folder.names().reduce(0) {
      try $0 + (folder.status(ContainerPath(name: $1))?.blocks ?? 0) * 512
    }
  }

  /// Removes an undo; one in a state that this user may not write stays.
  private func remove(_ transaction: TransactionID) throws {
    for state in states {
      do {
        try state.directory.removeTree(StateDirectory.folder(StateDirectory.undo, transaction))
      } catch let error as DrydockError where error.code == .permission && states.count > 1 {}
    }
  }

  /// Removes the oldest beyond the limits.
  func prune(_ limits: UndoLimits) throws {
    let records = try records()
    for transaction in Self.undone(records) { try remove(transaction) }
    var bytes: UInt64 = 0
    for (number, transaction) in try transactions(records).reversed().enumerated() {
      bytes += try size(transaction)
      if number > 0 && (number >= limits.count || bytes > limits.bytes) { try remove(transaction) }
    }
  }
}
