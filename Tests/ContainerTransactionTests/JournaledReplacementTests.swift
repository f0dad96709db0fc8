import Foundation
import TestSupport
import Testing

@testable import AppContainer
@testable import ContainerTransaction
@testable import FileSystem

/// The commit in place: what happens when it stops, and when others write, at each of its moments.
@Suite struct InPlaceTests {
  /// Stops the commit of a change after each of its moves, and at last commits it; gives the number of stops.
  private func stopped(_ sandbox: Sandbox, _ body: (StagedContainer) throws -> Void) throws -> Int {
    let old = try sandbox.listing()
    for number in 1...100 {
      do {
        try sandbox.run(faults: .at(.moved, number), commit: .inside, body)
        return number - 1
      } catch is Stop {
        expectNone(try sandbox.listing().changes(from: old), "after move \(number)")
        #expect(try sandbox.stages().isEmpty && sandbox.log().isEmpty)
        _ = try Transaction.inspect(sandbox.container()) { try $0.status(of: Sandbox.database) }
      }
    }
    return 100
  }

  @Test func stoppedAfterEveryMove() throws {
    let sandbox = try Sandbox(notes: ["--leave-wal"])
    let old = try sandbox.listing()
    #expect(try stopped(sandbox, Sandbox.change) > 6)
    try sandbox.rollback(commit: .inside)
    expectNone(try sandbox.listing().changes(from: old))
  }

  /// After any move, and so after a crash at any of them: a main file with a log has its sandbox.
  @Test func noMainFileStandsBesideAForeignLog() throws {
    let sandbox = try Sandbox(notes: ["--leave-wal"])
    let log = Sandbox.database.withSuffix("-wal")
    let pair: @Sendable () throws -> [UInt64?] = {
      // The directory that holds the place is no main file.
      try [Sandbox.database, log].map {
        let status = try sandbox.live().status($0)
        return status?.type == .directory ? nil : status?.inode
      }
    }
    let old = try pair()
    #expect(old.allSatisfy { $0 != nil })
    let moves = Counter()
    let faults = Seams {
      guard $0 == .moved else { return }
      _ = moves.next()
      let now = try pair()
      #expect(now[0] == nil || now[1] == nil || now == old)
      // The old main file without its log would lack what was committed last.
      #expect(now[0] != old[0] || now == old)
    }
    try sandbox.run(faults: faults, commit: .inside)
    try sandbox.rollback(commit: .inside, faults: faults)
    #expect(try moves.next() > 8 && pair() == old)
  }

  @Test func theSameAsByExchange() throws {
    let sandbox = try Sandbox(notes: ["--leave-wal"])
    try Directory(sandbox.folder.path).createDirectory("copies")
    try Command.succeed("/bin/cp", ["-a", sandbox.root, sandbox.folder("copies/c")])
    let other = sandbox.folder("copies/c")
    let body = Sandbox.change
    try sandbox.run(commit: .inside, body)
    _ = try Transaction.run(on: Container(at: other), .migrate, summary: "x", body: body)
    let times = ["", "Documents", "Documents/new", "Documents/new/sub", Sandbox.settings.description]
    let written = ["Documents/written.txt", "Documents/empty.txt", "Documents/new/sub/deep.txt"]
    let now = try sandbox.listing()
    expectNone(
      now.changes(
        from: try TreeListing(other),
        ignoringTimesOf: times + written + ["Library/Preferences", Sandbox.database.description]))
    #expect(try !sandbox.exists(Sandbox.database.withSuffix("-wal")))
  }

  @Test func aChangeBeforeTheLastLookStopsIt() throws {
    let sandbox = try Sandbox(files: CommitFaultTests.files)
    expectError(.changedMeanwhile) {
      try sandbox.run(faults: .at(.synced) { try sandbox.put("Documents/fresh.txt", "app") }, commit: .inside)
    }
    let texts = try ["Documents/fresh.txt", "Documents/empty.txt"].map { try sandbox.text(ContainerPath($0)) }
    #expect(try texts == ["app", ""] && sandbox.stages().isEmpty)
  }

  @Test func directoriesThatMayNotBeWritten() throws {
    let sandbox = try Sandbox(files: CommitFaultTests.files)
    try sandbox.live().setMode(0o555, of: "Documents/Inbox")
    try sandbox.live().setMode(0o555, of: "Documents")
    let old = try sandbox.listing()
    let outcome = try sandbox.run(commit: .inside)
    #expect(outcome.transaction != nil)
    #expect(try sandbox.live().status("Documents")?.mode == 0o555)
    try sandbox.rollback(commit: .inside)
    expectNone(try sandbox.listing().changes(from: old))
  }

  @Test func filesAndDirectoriesTakeEachOthersPlace() throws {
    let sandbox = try Sandbox(files: ["a/b/c": "1", "f": "2", "d/e": "3"])
    try sandbox.live().createLink("l", target: Array("f".utf8))
    let old = try sandbox.listing()
    let body = { (staged: StagedContainer) in
      try staged.remove("a")
      try staged.write([1], to: "a")
      try staged.remove("f")
      try staged.write([2], to: "f/g/h")
      try staged.remove("l")
      try staged.putLink(at: "l", target: [0x61], metadata: nil)
      try staged.remove("d")
    }
    #expect(try stopped(sandbox, body) > 2)
    #expect(try sandbox.listing().paths == ["a", "f", "f/g", "f/g/h", "l"])
    try sandbox.rollback(commit: .inside)
    expectNone(try sandbox.listing().changes(from: old))
    try sandbox.rollback(redoing: true, commit: .inside)
    #expect(try sandbox.listing().paths == ["a", "f", "f/g", "f/g/h", "l"])
  }

  @Test func stateInBothPlaces() throws {
    let sandbox = try Sandbox(files: ["a": "0"])
    let old = try sandbox.listing()
    let ways: [StateDirectory.Place] = [.beside, .inside, .beside, .inside]
    for (number, way) in ways.enumerated() {
      try sandbox.run("\(number)", commit: way) { try $0.write(Array("\(number + 1)".utf8), to: "a") }
    }
    #expect(try sandbox.log().map(\.summary) == ["0", "1", "2", "3"])
    for (number, way) in ways.enumerated() {
      #expect(try sandbox.text("a") == "\(4 - number)")
      try sandbox.rollback(commit: way)
    }
    expectNone(try sandbox.listing().changes(from: old))
    for number in 1...4 {
      try sandbox.rollback(redoing: true, commit: number < 3 ? .inside : .beside)
      #expect(try sandbox.text("a") == "\(number)")
    }
    // Nobody who looks at the container sees the state that is in it.
    #expect(try sandbox.state() != nil && sandbox.state(.inside) != nil)
    let names = try Transaction.inspect(sandbox.container()) { try $0.children(of: .root) }
    #expect(names == ["a"])
    expectError(.exists) { try sandbox.run { try $0.write([1], to: ".drydock-state/x") } }
    #expect(try sandbox.stages().isEmpty)
  }
}
