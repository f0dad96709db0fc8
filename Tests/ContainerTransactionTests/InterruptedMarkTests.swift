import GRDB
import TestSupport
import Testing

@testable import AppStores
@testable import ContainerTransaction
@testable import FileSystem

/// A power cut, or a kill, while a main file gets its mark or loses it: the disk may have the time of the change without
/// its bytes. No app has written to the file then.
@Suite struct InterruptedMarkTests {
  private var sandbox: Sandbox

  init() throws {
    sandbox = try Sandbox(notes: [])
    sandbox.isScratch = true
  }

  private static func change(_ staged: StagedContainer) throws {
    try staged.writeDatabase(at: Sandbox.database) { try $0.execute(sql: "UPDATE task SET title = 'x'") }
  }

  /// Stops a transaction after all marks are set, and before anything is compared.
  private func stop(_ strategy: StateDirectory.Place, isRollback: Bool = false) throws {
    let faults = Seams.at(strategy == .beside ? .exchanged : .placed)
    if isRollback {
      try sandbox.run(commit: strategy, Self.change)
      try sandbox.rollback(commit: strategy, faults: faults)
    } else {
      try sandbox.run(faults: faults, commit: strategy, Self.change)
    }
  }

  /// The one file of the state that a condition holds for.
  private func file(in state: Directory, where isMeant: (WalkEntry) throws -> Bool) throws -> ContainerPath {
    var found: [ContainerPath] = []
    try state.walk {
      if try isMeant($0) { found.append($0.path) }
      return .into
    }
    #expect(found.count == 1, "\(found)")
    return try #require(found.first)
  }

  private func marked(_ strategy: StateDirectory.Place) throws -> (Directory, ContainerPath) {
    let state = try #require(try sandbox.state(strategy))
    return (state, try file(in: state) { try state.isReplaced($0.path) })
  }

  /// What of the change of a mark is on the disk beside its note and its time.
  enum Lost: CaseIterable { case nothing, bytes }
  /// What an app does to the file afterwards.
  enum Write: CaseIterable { case later, atOnce }

  /// Leaves a file as an interrupted change does.
  private func interrupt(
    _ name: ContainerPath, in directory: Directory, _ lost: Lost, _ write: Write? = nil
  ) throws {
    let status = try #require(try directory.status(name))
    var bytes = try directory.contents(name)
    let moment = FileStatus.timeOfChangesNow()
    let note = ReplacedMark.note(keeping: status.modified, at: moment, header: bytes)
    if lost == .bytes { ReplacedMark.remove(from: &bytes) }
    // A commit of SQLite with a rollback journal changes the counter.
    if write == .atOnce { bytes[27] ^= 0x40 }
    try RawFiles.write(bytes, to: Array(directory.full(name).utf8))
    try directory.setAttribute(ExtendedAttribute(name: ExtendedAttribute.ownNote, value: note), of: name)
    try directory.setModified(moment + (write == .later ? 1_000_000_001 : 3_000_001), of: name)
  }

  private func expectNoNote(_ name: ContainerPath, in directory: Directory) throws {
    #expect(try directory.attribute(ExtendedAttribute.ownNote, of: name) == nil)
  }

  @Test(
    arguments: OpenFileTests.strategies,
    [(false, .nothing), (false, .bytes), (true, .nothing), (true, .bytes)] as [(Bool, Lost)])
  func ofAReplacedFile(_ strategy: StateDirectory.Place, _ cut: (isRollback: Bool, lost: Lost)) throws {
    let old = try sandbox.listing()
    try stop(strategy, isRollback: cut.isRollback)
    let new = try sandbox.listing()
    let (state, name) = try marked(strategy)
    let status = try #require(try state.status(name))
    try interrupt(name, in: state, cut.lost)
    let reports = try Transaction.recover(sandbox.container())
    #expect(reports.map(\.outcome) == [.new] && reports.map(\.conflicts) == [[]])
    expectNone(try sandbox.listing().changes(from: new))
    let kept = try file(in: state) { $0.status.inode == status.inode }
    #expect(try state.status(kept)?.modified == status.modified)
    try expectNoNote(kept, in: state)
    #expect(try Transaction.recover(sandbox.container()).isEmpty)
    // What was replaced can come back.
    try sandbox.rollback(redoing: cut.isRollback, commit: strategy)
    if cut.isRollback { try sandbox.rollback(commit: strategy) }
    expectNone(try sandbox.listing().changes(from: old))
  }

  @Test(arguments: OpenFileTests.strategies, Write.allCases)
  func ofAReplacedFileThatAnAppWroteTo(_ strategy: StateDirectory.Place, _ write: Write) throws {
    try stop(strategy)
    let (state, name) = try marked(strategy)
    try interrupt(name, in: state, .nothing, write)
    let reports = try Transaction.recover(sandbox.container())
    #expect(reports.map(\.outcome) == [.new] && reports.map(\.conflicts) == [[Sandbox.database]])
    try expectNoNote(marked(strategy).1, in: state)
  }

  /// In place, a kill during the reversal leaves the old main file where it was: if no app has used it, the commit is
  /// completed.
  @Test(arguments: [nil, .later, .atOnce] as [Write?]) func ofALiveFile(_ write: Write?) throws {
    let old = try sandbox.listing()
    let faults = Seams { if [.moved, .reverted].contains($0) { throw Stop() } }
    expectError(.interrupted) { try sandbox.run(faults: faults, commit: .inside, Self.change) }
    expectNone(try sandbox.listing().changes(from: old))
    try interrupt(Sandbox.database, in: sandbox.live(), .nothing, write)
    let reports = try Transaction.recover(sandbox.container())
    #expect(reports.map(\.outcome) == [write == nil ? .new : .old] && reports.map(\.conflicts) == [[]])
    try expectNoNote(Sandbox.database, in: sandbox.live())
    guard write == nil else { return }
    let (state, name) = try marked(.inside)
    try expectNoNote(name, in: state)
  }

  /// A rollback removes the mark of a file that the undo log keeps. If it ends then, the file is as it was.
  @Test(arguments: Lost.allCases, [nil, .later, .atOnce] as [Write?])
  func ofAKeptFile(_ lost: Lost, _ write: Write?) throws {
    let old = try sandbox.listing()
    try sandbox.run("x", Self.change)
    let (state, name) = try marked(.beside)
    let time = try state.status(name)?.modified
    try interrupt(name, in: state, lost, write)
    let reports = try Transaction.recover(sandbox.container())
    try expectNoNote(name, in: state)
    guard write == nil else {
      #expect(reports.map(\.outcome) == [.writtenLater])
      #expect(reports.map(\.conflicts) == [[Sandbox.database]])
      return
    }
    #expect(try reports.isEmpty && marked(.beside).1 == name && state.status(name)?.modified == time)
    try sandbox.rollback()
    expectNone(try sandbox.listing().changes(from: old))
  }

  /// The time is right already, and nothing compares the file before it comes back.
  @Test func aNoteDoesNotComeBack() throws {
    let old = try sandbox.listing()
    try sandbox.run("x", Self.change)
    let (state, name) = try marked(.beside)
    let time = try #require(try state.status(name)?.modified)
    try interrupt(name, in: state, .bytes)
    try state.setModified(time, of: name)
    try sandbox.rollback()
    expectNone(try sandbox.listing().changes(from: old))
  }
}
