import AppContainer
import DrydockErrors
import FileSystem
import Formats
import Foundation
import SystemPackage

struct JournalRecord: Codable, Sendable {
  enum Step: String, Codable {
    /// Staging starts; nothing of the container has changed.
    case begin
    /// The new tree, or everything that is to be moved in, is complete and on disk; the exchange or the moves follow.
    case commit
    /// Everything is in its place, and concurrent changes have been applied or kept. The value is the journal's format.
    case merged = "carried"
    /// Finished: the container is new and the undo is kept.
    case done
    /// Given up or found interrupted before the exchange: the container is old.
    case discarded
  }

  var step: Step
  var transaction: TransactionID
  var time: String
  // With `begin`:
  var kind: TransactionLogEntry.Kind?
  var summary: String?
  var source: String?
  /// The file name of the backup taken before this transaction.
  var archive: String?
  /// The run over many containers that it is a part of.
  var run: RunID?
  /// Counts the transactions of a container through all its journals.
  var number: Int?
  // With `commit`: the inode of what is exchanged before and after; no `before` when it is created.
  var rootBefore: FileIdentity?
  var rootAfter: FileIdentity?
  /// What is exchanged, where that is a part of the container, and the time that the directory above it keeps.
  var place: ContainerPath?
  var timeAbove: Int64?
  /// The groups that change with it.
  var groups: [CommittedGroup]?
  /// A journaled replacement: from here on the container is a mixture until `carried`.
  var inPlace: Bool?
  // With `done`:
  var changes: Int?
  /// The transactions that it has undone, and those that it has undone in part.
  var undoes: [TransactionID]?
  var partly: [TransactionID]?
  var conflicts: Int?
  var recovered: Bool?

  init(_ step: Step, _ transaction: TransactionID) {
    self.step = step
    self.transaction = transaction
    time = UTCTime.text(Date())
  }

  init(
    beginning kind: TransactionLogEntry.Kind, _ summary: String, source: String? = nil,
    _ options: TransactionOptions
  ) throws {
    self.init(.begin, try TransactionID.new())
    (self.kind, self.summary, self.source, run) = (kind, summary, source, options.run)
  }
}

/// The journal: the last transactions of a container, one JSON record a line, appended and synced.
struct Journal {
  let state: Directory

  /// Bytes of a journal, and of a record: more is not read. Versions that never wrote a journal anew stopped at 64 MiB.
  private static let (sizeLimit, lineLimit) = (80 << 20, 1 << 20)
  /// Bytes from which a journal is written anew, with this number of transactions: some 60 kB.
  private static let (large, kept) = (256 << 10, 200)

  /// All records; a last line without its end is a write that a crash cut, and does not count.
  ///
  /// - Throws: ``DrydockError`` with code `damagedState`, which says what is still known of the container.
  func records() throws -> [JournalRecord] {
    guard let status = try state.status(StateDirectory.journal) else { return [] }
    guard status.type == .file else {
      throw DrydockError(
        .damagedState,
        "the journal is not a file; " + (try standing([])),
        path: state.full(StateDirectory.journal))
    }
    let bytes = try state.contents(StateDirectory.journal, limit: Self.sizeLimit)
    var lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    lines.removeLast()
    let decoder = JSONDecoder()
    var records: [(record: JournalRecord, line: Int)] = []
    var damaged: (line: Int, cause: (any Error)?)?
    for (number, line) in lines.enumerated() where !line.isEmpty {
      do {
        guard line.count <= Self.lineLimit else { throw DrydockError(.malformed, "the line is too long") }
        let record = try decoder.decode(JournalRecord.self, from: Data(line))
        guard record.isSound else { throw DrydockError(.malformed, "a path in it is invalid") }
        records.append((record, number))
      } catch {
        damaged = damaged ?? (number, error)
      }
    }
    damaged = try damaged ?? firstDamaged(of: records, lines)
    guard let damaged else { return records.map(\.record) }
    throw DrydockError(
      .damagedState,
      "line \(damaged.line + 1) of the journal cannot be read; "
        + (try standing(records.map(\.record))),
      path: state.full(StateDirectory.journal), cause: damaged.cause)
  }

  /// The first record that was not written so, of transactions without an end: what a recovery does goes by them. A field
  /// that is misspelt would be one that is not there.
  private func firstDamaged(
    of records: [(record: JournalRecord, line: Int)], _ lines: [ArraySlice<UInt8>]
  ) throws -> (line: Int, cause: (any Error)?)? {
    let ended = records.map(\.record).ended
    var begun: Set<TransactionID> = []
    for (record, line) in records where !ended.contains(record.transaction) {
      if record.step == .begin { begun.insert(record.transaction) }
      let isAsWritten = try lines[line].elementsEqual(record.stateRecord())
      if !isAsWritten { return (line, DrydockError(.malformed, "it is not what Drydock wrote")) }
      if !begun.contains(record.transaction) {
        return (line, DrydockError(.malformed, "no record says that its transaction began"))
      }
    }
    return nil
  }

  /// Appends a record, on disk when this returns.
  func append(_ record: JournalRecord) throws {
    let line = try record.stateRecord() + [UInt8(ascii: "\n")]
    // Names of many migrations, or many groups: it could not be read.
    guard line.count <= Self.lineLimit else {
      throw DrydockError(
        .unsupported,
        "the transaction's record has \(line.count) bytes, more than \(Self.lineLimit); change less in one transaction",
        path: state.full(StateDirectory.journal))
    }
    let isNew = try state.status(StateDirectory.journal) == nil
    if isNew { try state.create(StateDirectory.journal, []) }
    let file = try state.open(StateDirectory.journal, .readWrite)
    defer { try? file.close() }
    try DrydockError.translating("cannot write", state.full(StateDirectory.journal)) {
      let bytes = try file.contents(limit: Self.sizeLimit, path: state.full(StateDirectory.journal))
      let size = try file.seek(offset: 0, from: .end)
      // A byte that was not read would be taken for the end of a cut line.
      guard bytes.count == size else { throw Errno.ioError }
      // After a cut line the next one starts where the cut one did.
      let end = Int64((bytes.lastIndex(of: UInt8(ascii: "\n")) ?? -1) + 1)
      if size != end { try file.resize(to: end) }
      _ = try file.writeAll(toAbsoluteOffset: end, line)
    }
    try state.syncFile(file, StateDirectory.journal)
    if isNew { try state.sync() }
  }

  /// Ends a transaction whose stage is removed. Half a stage would look like a commit that has begun, so the record comes first;
  /// on a full disk only the removal makes room for it.
  func discard(_ transaction: TransactionID, removing: () throws -> Void) throws {
    let record = JournalRecord(.discarded, transaction)
    do { try append(record) } catch let error as DrydockError where error.code == .noSpace {
      try removing()
      return try append(record)
    }
    try removing()
  }

  /// Writes a large journal anew, with the last transactions that changed something, and the last of all, with the
  /// highest number; those that have not ended, have a stage or an undo entry; the last restore, which says whose data
  /// this is; what these have undone, and what has undone one of these or of the other journal. Of one that has ended
  /// and has no stage only the begin and the end stay.
  ///
  /// A migration that fails each night must not push the last one that succeeded out of the journal.
  ///
  /// - Parameter log: what all journals of the container have.
  func compact(by log: UndoLog) throws {
    guard try state.status(StateDirectory.journal)?.size ?? 0 > Self.large else { return }
    let (own, begun) = (try records(), log.records.filter { $0.step == .begin })
    let done = log.done.map(\.transaction)
    let whole = try Set(own.unended.map(\.transaction)).union(transactions(in: StateDirectory.stage))
    let open = try whole.union(log.kept())
    // A restore that can be undone may be undone: then the restore before it is the last one.
    let settled = Set(done).subtracting(open.union(log.undone))
    let restores = begun.filter { $0.kind == .restore && settled.contains($0.transaction) }
    let last = done.suffix(Self.kept) + (begun.suffix(10) + restores.suffix(1)).map(\.transaction)
    let mine = Set(own.map(\.transaction))
    // Without its rollbacks: rollbacks and redos in turns, in both places, would keep each other.
    let others = begun.filter { $0.kind != .rollback && !mine.contains($0.transaction) }
    let first = open.union(last)
    let targets = first.union(others.map(\.transaction))
    var needed = first
    for record in log.records {
      let undone = record.undoes ?? []
      if undone.contains(where: targets.contains) { needed.insert(record.transaction) }
      if first.contains(record.transaction) { needed.formUnion(undone) }
    }
    let kept = own.filter {
      needed.contains($0.transaction) && ($0.step == .begin || $0.isEnd || whole.contains($0.transaction))
    }
    try state.replace(
      StateDirectory.journal, with: kept.flatMap { try $0.stateRecord() + [UInt8(ascii: "\n")] })
  }

  /// The transactions that have a folder in a directory of the state.
  func transactions(in directory: ContainerPath) throws -> [TransactionID] {
    guard try state.status(directory)?.type == .directory else { return [] }
    return try state.directory(directory).names().map { String(decoding: $0, as: UTF8.self) }
      .filter(TransactionID.isWellFormed).map { TransactionID($0) }
  }

  /// Sets space aside for the records that end a transaction.
  func reserve() throws {
    let file = try state.open(StateDirectory.journal, .readWrite)
    defer { try? file.close() }
    try state.reserve(4096, behind: file, StateDirectory.journal)
  }
}

extension JournalRecord {
  /// Whether nothing is left to be done after it.
  var isEnd: Bool { step == .done || step == .discarded }

  /// Whether the container is whole after it, old or new.
  var isWhole: Bool { isEnd || step == .merged }

  /// Whether its paths are such as a commit writes: one that leads into the state, or a tree that is not directly in the
  /// transaction's folder, was made up.
  fileprivate var isSound: Bool {
    let own = ContainerPath.stateDirectory.bytes
    if let place, place.components.contains(own) || place == .groups || place.isInside(.groups) {
      return false
    }
    let groups = groups ?? []
    guard Set(groups.map(\.id)).count == groups.count else { return false }
    return groups.allSatisfy { group in
      group.tree.isRoot || group.tree.parent.isRoot && group.tree.bytes.starts(with: "tree-".utf8)
    }
  }
}

extension [JournalRecord] {
  /// The transactions of which nothing is left to be done.
  var ended: Set<TransactionID> { Set(filter(\.isEnd).map(\.transaction)) }

  /// The beginnings of transactions without an end.
  var unended: [JournalRecord] {
    let ended = ended
    return filter { $0.step == .begin && !ended.contains($0.transaction) }
  }

  /// The commit in place that was interrupted before the container was whole again.
  var unfinishedInPlace: JournalRecord? {
    first { commit in
      commit.step == .commit && commit.inPlace == true
        && !contains { $0.transaction == commit.transaction && $0.isWhole }
    }
  }
}

/// What is known of a container whose journal cannot be read: by the records that can, and by the stages that are left.
/// Every commit leaves its stage until it is over, so that without one the container is whole.
extension Journal {
  private func standing(_ readable: [JournalRecord]) throws -> String {
    let open = try openTransactions(readable)
    for transaction in open {
      let folder = try StateDirectory.folder(StateDirectory.stage, transaction)
      let commit = readable.first { $0.transaction == transaction && $0.step == .commit }
      func has(_ name: ContainerPath) throws -> Bool {
        try state.status(folder.appending(name: name.bytes)) != nil
      }
      if try commit?.inPlace == true || has(Move.plan) {
        return
          "transaction \(transaction) was interrupted in place, so the container may be a mixture of old "
          + "and new: what it has not moved yet and what it has replaced are in \(state.full(folder))"
      }
      if try commit?.groups?.isEmpty == false || has("tree-1") {
        return
          "transaction \(transaction) was interrupted, so some of the container and its groups may be old "
          + "and others new: the other tree of each is in \(state.full(folder))"
      }
    }
    let advice = "move the journal's directory away to continue without it and without its undo log"
    guard let transaction = open.first else {
      return "the container is whole: no transaction was interrupted; \(advice)"
    }
    let folder = try StateDirectory.folder(StateDirectory.stage, transaction)
    return
      "the container is whole, but transaction \(transaction) was interrupted: check whether what it replaced is "
      + "needed, in \(state.full(folder)), then \(advice)"
  }

  /// The transactions without an end: those with a stage, and those of which a record says it.
  private func openTransactions(_ readable: [JournalRecord]) throws -> [TransactionID] {
    let ended = Set(readable.filter(\.isWhole).map(\.transaction))
    var found = readable.filter { $0.step == .commit }.map(\.transaction)
    found += try transactions(in: StateDirectory.stage)
    return Set(found).subtracting(ended).sorted { $0.description < $1.description }
  }
}

/// A transaction in the log of a container.
public struct TransactionLogEntry: Sendable, Codable, Equatable {
  /// What a transaction does.
  public enum Kind: String, Sendable, Codable {
    case migrate, restore, rollback, redo, baseline, repair, vault, defaults
  }

  /// What became of a transaction.
  public enum State: String, Sendable, Codable {
    /// Committed; its undo is kept.
    case undoable
    /// Committed; the undo log does not contain it any more.
    case committed
    /// Undone by a later one.
    case undone
    /// It was killed, and no command has recovered it yet.
    case interrupted
  }

  /// Its name, what it was for, and when it began (UTC).
  public var transaction: TransactionID, kind: TransactionLogEntry.Kind, summary: String, time: String
  /// What became of it.
  public var state: State
  /// The number of changed paths.
  public var changes: Int
  /// Bytes that its undo keeps on disk.
  public var undoBytes: UInt64
  /// The transactions that it undid, and those that it undid in part: by steps, down to a version in the middle.
  public var undoes: [TransactionID], partly: [TransactionID]
  /// Whose data a restore brought: an app and its instance.
  public var source: String?
  /// The file name of the backup taken before this transaction.
  public var archive: String?
  /// The run over many containers that it is a part of.
  public var run: RunID?
}

extension Transaction {
  /// All transactions of a container, oldest first, whether its state is beside it, in it, or in both places. Those that
  /// changed nothing are left out: they failed, were refused, or were killed before the commit.
  package static func log(_ container: Container) throws -> [TransactionLogEntry] {
    try UndoLog(container).entries()
  }
}

extension UndoLog {
  func entries() throws -> [TransactionLogEntry] {
    let (undone, undoable, redoable) = (undone, Set(try transactions()), Set(try redoable()))
    let own = Dictionary(grouping: records, by: \.transaction)
    return try records.filter { $0.step == .begin }.compactMap { begin in
      let own = own[begin.transaction] ?? []
      if own.contains(where: { $0.step == .discarded }) { return nil }
      let done = own.first { $0.step == .done }
      let entryState: TransactionLogEntry.State =
        if done == nil {
          .interrupted
        } else if undone.contains(begin.transaction) {
          .undone
        } else {
          (begin.kind == .rollback ? redoable : undoable).contains(begin.transaction) ? .undoable : .committed
        }
      return TransactionLogEntry(
        transaction: begin.transaction, kind: begin.kind ?? .migrate, summary: begin.summary ?? "",
        time: begin.time, state: entryState, changes: done?.changes ?? 0,
        undoBytes: try size(begin.transaction), undoes: done?.undoes ?? [], partly: done?.partly ?? [],
        source: begin.source, archive: begin.archive, run: begin.run)
    }
  }
}
