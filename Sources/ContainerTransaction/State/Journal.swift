import AppContainer
import DrydockErrors
import FileSystem
import Formats
import Foundation
import SystemPackage

/// What a transaction is for.
package enum TransactionKind: String, Sendable, Codable {
  case migrate, restore, rollback, redo, baseline, repair, vault
}

/// One line of the journal.
struct JournalRecord: Codable, Sendable {
  enum Step: String, Codable {
    /// Staging starts; nothing of the container has changed.
    case begin
    /// The new tree, or everything that is to be moved in, is complete and on disk; the exchange or the moves follow.
    case commit
    /// All is in its place, and what the app wrote at that moment has been carried over or kept.
    case carried
    /// Finished: the container is new and the undo is kept.
    case done
    /// Given up or found interrupted before the exchange: the container is old.
    case discarded
  }

  var step: Step
  var transaction: TransactionID
  var time: String
  // With `begin`:
  var kind: TransactionKind?
  var summary: String?
  var source: String?
  /// The file's name of the archive that the container was backed up to before.
  var archive: String?
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
  /// The commit is in place: from here on the container is a mixture until `carried`.
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
}

/// The journal: every transaction of a container, one JSON record a line, appended and synced.
struct Journal {
  let state: Directory

  /// Bytes of a journal, some 80,000 transactions, and of a record: more is not read.
  private static let (sizeLimit, lineLimit) = (64 << 20, 1 << 20)

  /// All records; a last line without its end is a write that a crash cut, and does not count.
  ///
  /// - Throws: ``DrydockError`` with code `damagedState`, which says what is known of the container all the same.
  func records() throws -> [JournalRecord] {
    guard let status = try state.status(StateDirectory.journal) else { return [] }
    guard status.type == .file else {
      throw DrydockError(
        .damagedState,
        "the journal is not a file; " + (try DamagedJournal(state: state, readable: []).standing()),
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
        guard record.isSound else { throw DrydockError(.malformed, "a path in it cannot be right") }
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
        + (try DamagedJournal(state: state, readable: records.map(\.record)).standing()),
      path: state.full(StateDirectory.journal), cause: damaged.cause)
  }

  /// The first record that was not written so, of transactions without an end: what a recovery does goes by them. A field
  /// that is misspelt would be one that is not there.
  private func firstDamaged(
    of records: [(record: JournalRecord, line: Int)], _ lines: [ArraySlice<UInt8>]
  ) throws -> (line: Int, cause: (any Error)?)? {
    let ended = Set(records.map(\.record).filter(\.isEnd).map(\.transaction))
    var begun: Set<TransactionID> = []
    for (record, line) in records where !ended.contains(record.transaction) {
      if record.step == .begin { begun.insert(record.transaction) }
      let isAsWritten = try lines[line].elementsEqual(StateRecord.encode(record))
      if !isAsWritten { return (line, DrydockError(.malformed, "it is not as it was written")) }
      if !begun.contains(record.transaction) {
        return (line, DrydockError(.malformed, "no record says that its transaction began"))
      }
    }
    return nil
  }

  /// Appends a record, on disk when this returns.
  func append(_ record: JournalRecord) throws {
    let line = try StateRecord.encode(record) + [UInt8(ascii: "\n")]
    let isNew = try state.status(StateDirectory.journal) == nil
    if isNew { try state.create(StateDirectory.journal, []) }
    let file = try state.open(StateDirectory.journal, .readWrite)
    defer { try? file.close() }
    do {
      // After a cut line the next one starts where the cut one did.
      let end = try endOfLastLine(file)
      if try file.seek(offset: 0, from: .end) != end { try file.resize(to: end) }
      _ = try file.writeAll(toAbsoluteOffset: end, line)
    } catch let error as Errno {
      throw DrydockError.system("cannot write", state.full(StateDirectory.journal), error)
    }
    try state.syncFile(file, StateDirectory.journal)
    if isNew { try state.sync() }
  }

  /// Sets space aside for the records that end a transaction.
  func reserve() throws {
    let file = try state.open(StateDirectory.journal, .readWrite)
    defer { try? file.close() }
    try state.reserve(4096, behind: file, StateDirectory.journal)
  }

  private func endOfLastLine(_ file: FileDescriptor) throws -> Int64 {
    let bytes = try file.contents(limit: 64 << 20, path: state.full(StateDirectory.journal))
    return Int64((bytes.lastIndex(of: UInt8(ascii: "\n")) ?? -1) + 1)
  }
}

extension JournalRecord {
  /// Whether nothing is left to be done after it.
  var isEnd: Bool { step == .done || step == .discarded }

  /// Whether its paths are such as a commit writes: one that leads into the state, or a tree that is not directly in the
  /// transaction's folder, was made up.
  fileprivate var isSound: Bool {
    let own = ContainerPath.stateDirectory.bytes
    if let place, place.components.contains(own) || place == .groups || place.isInside(.groups) {
      return false
    }
    return (groups ?? []).allSatisfy { group in
      group.tree.isRoot || group.tree.parent.isRoot && group.tree.bytes.starts(with: "tree-".utf8)
    }
  }
}

extension [JournalRecord] {
  /// The commit in place that was interrupted before the container was whole again.
  var unfinishedInPlace: JournalRecord? {
    first { commit in
      commit.step == .commit && commit.inPlace == true
        && !contains {
          $0.transaction == commit.transaction && [.carried, .done, .discarded].contains($0.step)
        }
    }
  }
}
