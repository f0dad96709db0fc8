import Foundation
import TestSupport
import Testing

@testable import AppContainer
@testable import ContainerTransaction
@testable import FileSystem

@Suite struct RecoveryTests {
  private func created(_ sandbox: Sandbox) throws -> Container {
    Container(
      planned: sandbox.root, layout: .generic, app: "a", instance: "i",
      configuration: ContainerConfiguration())
  }

  @Test func creatingAContainer() throws {
    let folder = try TemporaryDirectory()
    let sandbox = Sandbox(folder: folder)
    let outcome = try Transaction.create(created(sandbox), .restore, summary: "new") { staged in
      try staged.write([1], to: "a/b")
    }
    #expect(outcome.transaction != nil && outcome.notes.isEmpty)
    #expect(try sandbox.live().contents("a/b") == [1])
    #expect(try sandbox.stages().isEmpty)
    expectError(.exists) {
      _ = try Transaction.create(created(sandbox), .restore, summary: "x") { _ in }
    }
    let dry = try sandbox.listing()
    _ = try Transaction.dryRun(on: sandbox.container()) { try $0.write([2], to: "a/b") }
    expectNone(try sandbox.listing().changes(from: dry, comparing: TreeListing.untouched))
  }

  @Test(arguments: CommitFaultTests.ofExchange) func creationStoppedAtEveryPoint(point: FaultPoint) throws {
    let folder = try TemporaryDirectory()
    let sandbox = Sandbox(folder: folder)
    let options = TransactionOptions(faults: .at(point))
    let isNew = CommitFaultTests.after.contains(point)
    do {
      _ = try Transaction.create(created(sandbox), .restore, summary: "new", options: options) {
        try $0.write([1], to: "a/b")
      }
      #expect(isNew)
    } catch is Stop {
      #expect(!isNew)
    }
    #expect(RawFiles.exists(Array(sandbox.root.utf8)) == isNew)
    // The next one says that it is there, or makes it.
    if isNew {
      expectError(.exists) {
        _ = try Transaction.create(created(sandbox), .restore, summary: "x") { _ in }
      }
      #expect(try sandbox.log().map(\.state) == [.undoable])
    } else {
      let outcome = try Transaction.create(created(sandbox), .restore, summary: "x") {
        try $0.write([1], to: "a/b")
      }
      #expect(outcome.recovered.map(\.outcome) == (point == .committed ? [.old] : []))
    }
    #expect(try sandbox.live().contents("a/b") == [1])
    #expect(try sandbox.stages().isEmpty)
  }

  @Test func whatAKillLeavesBetweenTheSteps() throws {
    let sandbox = try Sandbox(files: ["a": "a"])
    try sandbox.run { try $0.write([1], to: "b") }
    let before = try sandbox.listing()
    let state = try #require(try StateDirectory.existing(for: sandbox.container()))
    let journal = Journal(state: state.directory)
    // Begun; killed before the stage was made, or after it was removed.
    var begin = JournalRecord(.begin, TransactionID("20260101T000000Z-00000001"))
    begin.kind = .migrate
    try journal.append(begin)
    // A stage that was made before its record was written, and what a dry run left.
    try state.directory.createDirectories("stage/20260101T000000Z-00000002")
    try state.directory.createDirectories("stage/look-1")
    // A record that was cut.
    let file = try state.directory.open("journal", .readWrite)
    _ = try file.writeAll(
      toAbsoluteOffset: try file.seek(offset: 0, from: .end), Array("{\"step\":\"beg".utf8))
    try file.close()
    #expect(try sandbox.log().map(\.state) == [.undoable, .interrupted])
    let reports = try Transaction.recover(sandbox.container())
    #expect(reports == [.init(transaction: begin.transaction, outcome: .old, conflicts: [])])
    #expect(try sandbox.stages().isEmpty && sandbox.log().map(\.state) == [.undoable])
    expectNone(try sandbox.listing().changes(from: before, comparing: TreeListing.untouched))
    // The state directory itself, cut short.
    for name in ["stage", "conflict"] as [ContainerPath] { try state.directory.removeTree(name) }
    #expect(try Transaction.recover(sandbox.container()).isEmpty)
    try sandbox.rollback()
    #expect(try !sandbox.exists("b"))
  }

  @Test func whatIsDamagedIsSaid() throws {
    let sandbox = try Sandbox(files: ["a": "a"])
    try sandbox.run { try $0.write([1], to: "b") }
    let state = try #require(try sandbox.state())
    let journal = try state.contents("journal")
    try state.removeFile("journal")
    try state.create("journal", Array("nonsense\n".utf8) + journal)
    let error = expectError(.damagedState, "line 1") { try sandbox.run() }
    #expect(error?.path?.hasSuffix("/journal") == true)
    try state.removeFile("journal")
    try state.create("journal", journal)
    let folder = try state.directory("undo").names()
    let record = try ContainerPath(bytes: Array("undo/".utf8) + folder[0] + Array("/record.json".utf8))
    try state.removeFile(record)
    try state.create(record, Array("{}".utf8))
    expectError(.damagedState) { try sandbox.rollback() }
    #expect(try sandbox.text("a") == "a")
  }

  @Test func aRollbackKilledAfterItsCommitIsNotDoneTwice() throws {
    let sandbox = try Sandbox(files: ["a": "0"])
    try sandbox.run { try $0.write([UInt8(ascii: "1")], to: "a") }
    try sandbox.run { try $0.write([UInt8(ascii: "2")], to: "a") }
    try sandbox.rollback(faults: .at(.exchanged))
    #expect(try sandbox.text("a") == "1")
    let outcome = try sandbox.rollback()
    #expect(outcome.recovered.map(\.outcome) == [.new])
    #expect(try sandbox.text("a") == "0")
    expectError(.nothingToUndo) { try sandbox.rollback() }
  }

  @Test func namesThatAreHardForAState() throws {
    let folder = try TemporaryDirectory()
    let parent = try Directory(folder.path)
    let long = String(repeating: "n", count: 255)
    for name in [long, "with space", "Grüße", "-rf", "a\nb"] {
      try parent.createDirectory(ContainerPath(name))
      try parent.create(ContainerPath(name + "/f"), [0])
      let container = try Container(at: folder(name))
      let outcome = try Transaction.run(on: container, .migrate, summary: "s") {
        try $0.write([1], to: "f")
      }
      #expect(outcome.changes == 2)
      _ = try Transaction.rollback(container)
      #expect(try parent.contents(ContainerPath(name + "/f")) == [0])
    }
    // A bundle's state is beside it.
    try parent.createDirectories("B.xcappdata/AppData/Documents")
    let bundle = try Container(at: folder("B.xcappdata/AppData"))
    let outcome = try Transaction.run(on: bundle, .migrate, summary: "s") {
      try $0.write([1], to: "Documents/x")
    }
    #expect(outcome.changes == 2 && outcome.notes.isEmpty)
    #expect(try parent.directory("B.xcappdata").names() == [Array("AppData".utf8)])
    #expect(try parent.contents("B.xcappdata/AppData/Documents/x") == [1])
    // Through a link, it is the container that changes, not the link.
    try parent.createLink("link", target: Array("-rf".utf8))
    _ = try Transaction.run(on: Container(at: folder("link")), .migrate, summary: "s") {
      try $0.write([7], to: "f")
    }
    #expect(try parent.status("link")?.type == .symbolicLink && parent.contents("-rf/f") == [7])
  }

  @Test func manyTransactionsLeaveNoDescriptors() throws {
    let sandbox = try Sandbox(files: ["a": "0", "d/e": "1"])
    func count() throws -> Int {
      try RawFiles.names(in: Array("/proc/self/fd".utf8)).filter {
        let target = try? RawFiles.linkTarget(Array("/proc/self/fd/".utf8) + $0)
        return target.map { String(decoding: $0, as: UTF8.self).hasPrefix(sandbox.folder.path) } ?? false
      }.count
    }
    for number in 0..<5 {
      try sandbox.run { try $0.write(Array("\(number)".utf8), to: "a") }
      _ = try Transaction.dryRun(on: sandbox.container()) { try $0.remove("d") }
      try sandbox.rollback()
      _ = try? sandbox.run { try $0.write([1], to: "a/b") }
    }
    #expect(try count() == 0)
  }

  @Test(arguments: ["plan", "tree"])
  func aStageWithoutARecordIsNotRemoved(_ name: String) throws {
    let sandbox = try Sandbox(files: ["a": "one"])
    try sandbox.run { try $0.write(Array("two".utf8), to: "a") }
    let state = try #require(try sandbox.state())
    let stage: ContainerPath = "stage/20261121T020658Z-04d74cd5"
    try state.createDirectories(stage)
    try state.create(stage.appending(name), Array("the only copy".utf8))
    expectError(.damagedState) { try Transaction.recover(sandbox.container()) }
    expectError(.damagedState) { try sandbox.run { try $0.write(Array("three".utf8), to: "a") } }
    #expect(try state.status(stage.appending(name)) != nil && sandbox.text("a") == "two")
  }
}
