import Foundation
import TestSupport
import Testing

@testable import AppContainer
@testable import ContainerTransaction
@testable import FileSystem

/// What a journal keeps when it is written anew.
@Suite struct JournalTests {
  private let sandbox: Sandbox

  init() throws {
    var sandbox = try Sandbox(files: ["a": "a"])
    sandbox.isScratch = true
    self.sandbox = sandbox
    _ = try StateDirectory.create(for: sandbox.container())
  }

  /// Transactions that are to be in a journal.
  private struct Records {
    private(set) var all: [JournalRecord] = []
    /// The number of the last one.
    var count = 0

    /// Adds a transaction, with a long summary.
    @discardableResult
    mutating func add(
      _ kind: TransactionLogEntry.Kind = .migrate, _ end: JournalRecord.Step? = .done, source: String? = nil,
      undoes: TransactionID? = nil, partly: TransactionID? = nil
    ) -> TransactionID {
      count += 1
      let transaction = TransactionID(String(format: "20250102T000000Z-%08x", count))
      var begin = JournalRecord(.begin, transaction)
      (begin.kind, begin.source, begin.number) = (kind, source, count)
      begin.summary = String(repeating: "s", count: 500)
      var commit = JournalRecord(.commit, transaction)
      commit.rootAfter = FileIdentity(device: 1, inode: 2)
      all += end == .discarded ? [begin] : [begin, commit, JournalRecord(.merged, transaction)]
      guard let end else { return transaction }
      var done = JournalRecord(end, transaction)
      (done.undoes, done.partly) = (undoes.map { [$0] }, partly.map { [$0] })
      all.append(done)
      return transaction
    }

    mutating func add(_ number: Int, _ end: JournalRecord.Step = .done) {
      for _ in 0..<number { add(.migrate, end) }
    }

    func encoded() throws -> [UInt8] {
      try all.flatMap { try $0.stateRecord() + [UInt8(ascii: "\n")] }
    }
  }

  private func state(_ place: StateDirectory.Place = .beside) throws -> Directory {
    try #require(try sandbox.state(place))
  }

  private func write(_ records: Records, _ place: StateDirectory.Place = .beside) throws {
    try state(place).replace("journal", with: records.encoded())
    #expect(try records.encoded().count > 256 << 10)
  }

  private func makeUndo(_ transaction: TransactionID, _ place: StateDirectory.Place = .beside) throws {
    try state(place).createDirectories(StateDirectory.folder(StateDirectory.undo, transaction))
  }

  /// Compacts the journal in a place.
  ///
  /// - Returns: what is kept.
  @discardableResult
  private func compacted(_ place: StateDirectory.Place = .beside) throws -> [JournalRecord] {
    let journal = Journal(state: try state(place))
    try journal.compact(by: UndoLog(states: StateDirectory.all(of: sandbox.container())))
    return try journal.records()
  }

  private func begun(_ records: [JournalRecord]) -> Set<TransactionID> {
    Set(records.filter { $0.step == .begin }.map(\.transaction))
  }

  @Test func endedTransactionsHaveTheirBeginAndTheirEnd() throws {
    var records = Records()
    let (staged, open) = (records.add(), records.add(.migrate, nil))
    records.add(400)
    records.add(5, .discarded)
    try write(records)
    try state().createDirectories(StateDirectory.folder(StateDirectory.stage, staged))
    let kept = try compacted()
    let whole = kept.filter { [staged, open].contains($0.transaction) }
    #expect(whole.map(\.step) == [.begin, .commit, .merged, .done, .begin, .commit, .merged])
    let rest = kept.dropFirst(whole.count)
    #expect(rest.count == 410 && Set(rest.map(\.step)) == [.begin, .done, .discarded])
    // 200 that changed something and 5 that did not; the highest number is of one of these.
    #expect(rest.compactMap(\.number) == Array(203...407))
    #expect(try state().status("journal")?.size ?? 0 < 256 << 10)
    #expect(try state().status("journal.drydock-new") == nil)
  }

  @Test func theHighestNumberStays() throws {
    var records = Records()
    records.add(210)
    records.add(400, .discarded)
    try write(records)
    #expect(try compacted().compactMap(\.number) == Array(11...210) + Array(601...610))
  }

  @Test func theLastRestoreSaysWhoseDataItIs() throws {
    var records = Records()
    records.add(.restore, source: "app first")
    records.add(.restore, source: "app second")
    let undone = records.add(.restore, source: "app undone")
    records.add(.rollback, undoes: undone)
    records.add(.restore, .discarded, source: "app discarded")
    let undoable = records.add(.restore, source: "app undoable")
    records.add(400)
    try write(records)
    try makeUndo(undoable)
    #expect(try compacted().compactMap(\.source) == ["app second", "app undoable"])
  }

  @Test(arguments: StateDirectory.Place.allCases)
  func aRestoreThatWasUndoneInTheOtherPlace(place: StateDirectory.Place) throws {
    _ = try StateDirectory.create(for: sandbox.container(), .inside)
    let other: StateDirectory.Place = place == .beside ? .inside : .beside
    var (restores, rollbacks) = (Records(), Records())
    restores.add(.restore, source: "app first")
    let undone = restores.add(.restore, source: "app undone")
    restores.add(400)
    rollbacks.count = 1000
    let rollback = rollbacks.add(.rollback, undoes: undone)
    rollbacks.add(400)
    try write(restores, place)
    try write(rollbacks, other)
    func expectTheFirst() throws {
      let last = try sandbox.log().last { $0.kind == .restore && $0.state != .undone }
      #expect(last?.source == "app first")
    }
    #expect(try begun(compacted(other)).contains(rollback))
    try expectTheFirst()
    #expect(try compacted(place).compactMap(\.source) == ["app first"])
    try expectTheFirst()
    // Nothing is left that it had undone.
    rollbacks.add(200)
    try write(rollbacks, other)
    #expect(try !begun(compacted(other)).contains(rollback))
    try expectTheFirst()
  }

  @Test func whatUndidThemAndWhatTheyUndid() throws {
    _ = try StateDirectory.create(for: sandbox.container(), .inside)
    var records = Records()
    let (old, other, there) = (records.add(), records.add(), records.add())
    let rollback = records.add(.rollback, undoes: old, partly: other)
    let redo = records.add(.redo, undoes: rollback)
    let again = records.add(.rollback, undoes: redo)
    let undoes = records.add(.rollback, undoes: there)
    records.add(400)
    try write(records)
    try makeUndo(again)
    // The entry of the other one could not be removed.
    try makeUndo(there, .inside)
    let kept = begun(try compacted())
    #expect(kept.isSuperset(of: [redo, again, there, undoes]) && kept.count == 204)
  }

  @Test func rollbacksAndRedosInTurnsAreNotAllKept() throws {
    _ = try StateDirectory.create(for: sandbox.container(), .inside)
    var turns = [Records(), Records()]
    var last = turns[0].add(.restore, source: "app first")
    for number in 1...1200 {
      turns[number % 2].count = number
      last = turns[number % 2].add(number % 2 == 1 ? .rollback : .redo, undoes: last)
    }
    try write(turns[0])
    try write(turns[1], .inside)
    for _ in 1...2 {
      for place in StateDirectory.Place.allCases { try compacted(place) }
    }
    #expect(try begun(UndoLog(sandbox.container()).records).count <= 205)
  }

  @Test func whatCanBeUndoneStays() throws {
    try sandbox.run { try $0.write([1], to: "b") }
    // A migration that fails each night.
    var records = Records()
    records.add(500, .discarded)
    try state().replace("journal", with: state().contents("journal") + records.encoded())
    // The removal of the first one's stage did not finish, and its exchange had been reversed.
    let left = try StateDirectory.folder(StateDirectory.stage, records.all[0].transaction)
    try state().createDirectories(left)
    try compacted()
    try state().createDirectory(left.appending(name: Array("tree".utf8)))
    #expect(throws: Stop.self) { try sandbox.run { _ in throw Stop() } }
    #expect(try state().status("journal")?.size ?? 0 < 1 << 16)
    try sandbox.rollback()
    #expect(try !sandbox.exists("b"))
  }

  @Test func transactionsOfALargeJournal() throws {
    try sandbox.run { try $0.write([1], to: "b") }
    // Before them, one that has not ended.
    var records = Records()
    let open = records.add(.migrate, nil)
    records.add(400)
    try state().replace("journal", with: records.encoded() + state().contents("journal"))
    try sandbox.run { try $0.write([2], to: "b") }
    let kept = try Journal(state: state()).records()
    #expect(!kept.contains { $0.transaction == open }, "it was found to be interrupted, and has ended")
    #expect(try sandbox.log().count == 201 && kept.compactMap(\.number).max() == 402)
    try sandbox.rollback()
    try sandbox.rollback()
    #expect(try !sandbox.exists("b"))
  }

  @Test func aRecordThatCouldNotBeReadIsNotWritten() throws {
    expectError(.unsupported, "more than 1048576") {
      try sandbox.run(String(repeating: "s", count: 1 << 20)) { try $0.write([1], to: "b") }
    }
    #expect(try !sandbox.exists("b") && sandbox.stages().isEmpty && sandbox.log().isEmpty)
    try sandbox.run { try $0.write([1], to: "b") }
    #expect(try sandbox.log().map(\.state) == [.undoable])
  }
}
