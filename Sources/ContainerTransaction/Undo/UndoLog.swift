import AgeEncryption
import AppContainer
import Cryptography
import DrydockErrors
import FileSystem

/// How much of what transactions replaced is kept.
package struct UndoLimits: Sendable {
  package var count = 10
  /// Bytes of all of them; the newest is always kept.
  package var bytes: UInt64 = 20 << 30

  package init() {}
}

/// The undo log of a container: what its last transactions replaced, wherever its state is.
struct UndoLog {
  let states: [StateDirectory]
  /// What opens files that are kept sealed.
  private let keys: AgeKeys

  init(states: [StateDirectory]) {
    (self.states, keys) = (states, AgeKeys())
  }

  /// The log as a rollback reads it.
  init(_ container: Container, _ deviceKeys: DeviceKeys?) throws {
    try StateDirectory.requireReadable(container)
    states = try StateDirectory.readable(of: container).states
    keys = AgeKeys(identities: deviceKeys?.identities ?? [])
  }

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

  /// The transactions that can be undone, in the order in which they were committed.
  func transactions(_ records: [JournalRecord]) throws -> [TransactionID] {
    let undone = Self.undone(records)
    return try records.filter { $0.step == .done }.map(\.transaction)
      .filter { try !undone.contains($0) && folder($0) != nil }
  }

  /// The transactions that a committed one has undone; a kill right after its commit may have left their folders.
  static func undone(_ records: [JournalRecord]) -> Set<TransactionID> {
    Set(records.flatMap { $0.undoes ?? [] })
  }

  /// The rollbacks that can be redone, the newest first: those that only rollbacks and redos have followed; a transaction that
  /// was undone since counts as well.
  func redoable(_ records: [JournalRecord]) throws -> [TransactionID] {
    let kinds = Dictionary(
      records.compactMap { record in record.kind.map { (record.transaction, $0) } }, uniquingKeysWith: { $1 })
    let undone = Self.undone(records)
    return try records.filter { $0.step == .done }.map(\.transaction).reversed()
      .prefix { kinds[$0] == .rollback || kinds[$0] == .redo }
      .filter { try kinds[$0] == .rollback && !undone.contains($0) && folder($0) != nil }
  }

  func entry(_ transaction: TransactionID) throws -> UndoEntry? {
    guard let folder = try folder(transaction) else { return nil }
    return UndoEntry(record: try UndoRecord(in: folder), kept: UndoFiles(directory: folder, keys: keys))
  }

  /// What can be undone, the newest first.
  ///
  /// - Parameter redoing: the rollbacks that can be redone instead.
  func undoable(redoing: Bool) throws -> [UndoEntry] {
    let records = try records()
    if redoing { return try redoable(records).compactMap(entry) }
    let done = Dictionary(
      records.filter { $0.step == .done }.map { ($0.transaction, $0) }, uniquingKeysWith: { $1 })
    return try transactions(records).reversed().compactMap(entry).filter { entry in
      guard entry.record.kind == .redo else { return entry.record.kind != .rollback }
      // The redo of a rollback that undid no transaction as a whole leaves these to be undone, and itself nothing.
      return entry.record.undoes.contains { done[$0]?.partly == nil || done[$0]?.undoes != nil }
    }
  }

  /// The rollbacks that undid a part of a transaction and are not undone themselves, the newest first.
  func partsUndone(of transaction: TransactionID) throws -> [UndoEntry] {
    try transactions(records()).reversed().compactMap(entry).filter {
      $0.record.kind == .rollback && $0.record.partly.contains(transaction)
    }
  }

  /// What rollbacks have undone in part.
  func partly(_ transactions: [TransactionID]) throws -> [TransactionID] {
    try records().filter { $0.step == .done && transactions.contains($0.transaction) }
      .flatMap { $0.partly ?? [] }
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

struct UndoEntry {
  let record: UndoRecord
  let kept: UndoFiles

  var candidate: Rollback.Candidate {
    let own = record.transaction.description
    let origins = record.steps.map(StepFile.transaction)
    return Rollback.Candidate(
      transaction: record.transaction, kind: record.kind, summary: record.summary,
      origins: origins.contains(own) ? origins : origins + [own])
  }
}

/// The record of an undo entry: `undo/<transaction>/record.json` beside the kept inodes.
struct UndoRecord: Codable, Sendable {
  static let file: ContainerPath = "record.json"

  var transaction: TransactionID
  var kind: TransactionLogEntry.Kind
  var summary: String
  var time: String
  /// Sorted by path, parents first.
  var changes: ChangeRecords
  /// What is kept sealed; nil when no setting was moved into the vault.
  var sealing: Sealing?
  /// Of a rollback: the transactions that it has undone, and those that it has undone in part.
  var undoes: [TransactionID] = []
  var partly: [TransactionID] = []
  /// Files of this folder: what the steps of migrations wrote down for their down steps.
  var steps: [ContainerPath] = []
}

extension UndoRecord {
  init(in folder: Directory) throws {
    self = try StateRecord.read(
      Self.file, in: folder, damaged: "the record of a transaction is corrupt, so it cannot be undone")
  }

  /// The paths that the transaction itself changed; a directory whose names changed is not among them.
  var changed: Set<ContainerPath> {
    Set(changes.filter { !($0.granularity == .directory && $0.before != nil && $0.after != nil) }.map(\.path))
  }

  /// The same, with a database's sidecars, also those that stay.
  var touched: Set<ContainerPath> {
    var touched = changed
    for change in changes where change.granularity == .database && touched.contains(change.path) {
      for suffix in DatabaseFormat.sidecarSuffixes { touched.insert(change.path.withSuffix(suffix)) }
    }
    return touched
  }
}

struct ChangeRecord: Codable, Sendable {
  enum Granularity: String, Codable {
    /// Key by key.
    case settings
    /// Item by item, with the device key.
    case vault
    /// As a whole, compared by captured content.
    case database
    /// A `-wal`, `-shm` or `-journal` that went with the database's old content.
    case sidecar
    /// As a whole.
    case file
    /// Only its existence and metadata.
    case directory
  }

  var path: ContainerPath
  var granularity: Granularity
  var before: NodeRecord?
  var after: NodeRecord?
  /// The name of the kept inode in the entry's folder, when there was a file or link before.
  var kept: ContainerPath?
  /// The name of a copy of the new settings file or vault there, so that keys or items can be compared later.
  var settingsAfter: ContainerPath?

  private enum CodingKeys: String, CodingKey {
    case path, before, after, kept, settingsAfter
    case granularity = "grain"
  }
}

struct NodeRecord: Codable, Sendable, Hashable {
  var type: FileType
  var metadata: FileMetadata
  var size: UInt64
  /// SHA-256 of a file's content; a database's with the header fields normalized that differ between captures.
  var digest: SHA256.Digest?
  /// Of a directory: what `chattr` had set; a file that comes back has its own.
  var flags: InodeFlags?
}

extension FileType {
  /// The digest of something without content: it equals itself, and no file's.
  var digest: SHA256.Digest {
    get throws { try SHA256.hash(Array(rawValue.utf8)) }
  }
}

/// What a stage adds to its transaction's undo entry besides the changes.
struct UndoNotes {
  /// Settings whose values a step has moved into the vault, and to whose keys an undo of them is sealed.
  var movedSecrets: [MovedSecret] = []
  var recipients: Set<AgeRecipient> = []
  /// Of a rollback: the transactions that it has undone, and those that it has undone in part.
  var undoes: [TransactionID] = []
  var partly: [TransactionID] = []
  /// Files of the stage: what steps wrote down for their down steps.
  var steps: [ContainerPath] = []
  /// Main files that the undo log keeps and that are to come back, without their marks.
  var adopted: [(undo: Directory, name: ContainerPath, modified: Int64)] = []
  /// Whether the result is checked, whatever the options say: a rollback writes more than what was there before.
  var requiresCheck = false
}
