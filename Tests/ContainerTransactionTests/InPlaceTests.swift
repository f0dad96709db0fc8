import Foundation
import TestSupport
import Testing

@testable import AppContainer
@testable import ContainerTransaction
@testable import FileSystem

/// The commit in place: what happens when it stops, and when others write, at each of its moments.
@Suite struct InPlaceTests {
  struct Stop: Error {}

  /// Stops, or does something, when a point is reached for the nth time.
  private func faults(
    _ point: FaultPoint, _ count: Int = 1, _ body: @escaping @Sendable () throws -> Void = { throw Stop() }
  ) -> FaultInjection {
    let seen = Counter()
    return FaultInjection { if $0 == point, seen.next() == count { try body() } }
  }

  static let points = FaultPoint.allCases.filter {
    ![.exchanged, .partlyExchanged, .moved, .sealed, .takenBack].contains($0)
  }
  static let after: [FaultPoint] = [.placed, .carried, .undoKept, .oldRemoved, .done]

  @Test(arguments: points) func stoppedAtEveryPoint(point: FaultPoint) throws {
    try Ship.withNotes { ship in
      let old = try ship.listing()
      let isNew = Self.after.contains(point)
      do {
        let outcome = try ship.run(faults: faults(point), commit: .inPlace)
        #expect(isNew && (point == .done || !outcome.isFinished), "\(outcome.notes)")
      } catch is Stop {
        #expect(!isNew)
      }
      let reports = try Transaction.recover(ship.container())
      #expect(reports.map(\.outcome) == (isNew && point != .done ? [.new] : []))
      #expect(try ship.stages().isEmpty && ship.state() == nil)
      if isNew {
        #expect(try ship.text("Documents/empty.txt") == "replaced")
        try ship.rollback(commit: .inPlace)
      }
      expectNone(try ship.listing().changes(from: old), "\(point)")
    }
  }

  @Test func stoppedAfterEveryMove() throws {
    try Ship.withNotes("--leave-wal") { ship in
      let old = try ship.listing()
      var stops = 0
      for number in 1...100 {
        do {
          try ship.run(faults: faults(.moved, number), commit: .inPlace)
          break
        } catch is Stop {
          stops += 1
          expectNone(try ship.listing().changes(from: old), "after move \(number)")
          #expect(try ship.stages().isEmpty && ship.log().allSatisfy { $0.state == .discarded })
          _ = try Transaction.inspect(ship.container()) { try $0.isDatabase(Ship.database) }
        }
      }
      #expect(stops > 6)
      try ship.rollback(commit: .inPlace)
      expectNone(try ship.listing().changes(from: old))
    }
  }

  /// After any move, and so after a crash at any of them: a main file with a log has its own.
  @Test func noMainFileStandsBesideAForeignLog() throws {
    try Ship.withNotes("--leave-wal") { ship in
      let own = ship
      let log = Ship.database.withSuffix("-wal")
      let pair: @Sendable () throws -> [UInt64?] = {
        // The directory that holds the place is no main file.
        try [Ship.database, log].map {
          let status = try own.live().status($0)
          return status?.type == .directory ? nil : status?.inode
        }
      }
      let old = try pair()
      #expect(old.allSatisfy { $0 != nil })
      let moves = Counter()
      let faults = FaultInjection {
        guard $0 == .moved else { return }
        _ = moves.next()
        let now = try pair()
        #expect(now[0] == nil || now[1] == nil || now == old)
        // The old main file without its log would lack what was committed last.
        #expect(now[0] != old[0] || now == old)
      }
      try ship.run(faults: faults, commit: .inPlace)
      var options = TransactionOptions()
      (options.commit, options.faults) = (.inPlace, faults)
      _ = try Transaction.rollback(ship.container(), options: options)
      #expect(try moves.next() > 8 && pair() == old)
    }
  }

  @Test func theSameAsByExchange() throws {
    try Ship.withNotes("--leave-wal") { ship in
      try Directory(ship.folder.path).createDirectory("copies")
      let copied = try Command.run("/bin/cp", ["-a", ship.root, ship.folder("copies/c")])
      #expect(copied.succeeded)
      let other = ship.folder("copies/c")
      let body = Ship.change
      try ship.run(commit: .inPlace, body)
      _ = try Transaction.run(on: Container(at: other), .migrate, summary: "x", body: body)
      let times = ["", "Documents", "Documents/new", "Documents/new/sub", Ship.settings.description]
      let written = ["Documents/written.txt", "Documents/empty.txt", "Documents/new/sub/deep.txt"]
      let now = try ship.listing()
      expectNone(
        now.changes(
          from: try TreeListing(other),
          ignoringTimesOf: times + written + ["Library/Preferences", Ship.database.description]))
      #expect(try !ship.exists(Ship.database.withSuffix("-wal")))
    }
  }

  @Test func aChangeBeforeTheLastLookStopsIt() throws {
    try Ship.withFiles(CommitFaultTests.files) { ship in
      let own = ship
      let error = ship.failure {
        try ship.run(faults: faults(.synced) { try own.put("Documents/fresh.txt", "app") }, commit: .inPlace)
      }
      #expect(error?.code == .changedMeanwhile)
      let (fresh, empty) = (try ship.text("Documents/fresh.txt"), try ship.text("Documents/empty.txt"))
      let stages = try ship.stages()
      #expect(fresh == "app" && empty == "" && stages.isEmpty)
    }
  }

  @Test(arguments: [(FaultPoint.rewalked, 1), (.committed, 1), (.moved, 1), (.moved, 2), (.moved, 3)])
  func whatAnAppWritesMeanwhileIsNotLost(point: FaultPoint, count: Int) throws {
    try Ship.withFiles(CommitFaultTests.files) { ship in
      let own = ship
      let outcome = try ship.run(
        faults: faults(point, count) {
          try own.put("Documents/fresh.txt", "app")
          try own.save("Documents/saved", "saved by the app")
          try own.live().removeFile("Library/x/y/z")
          try own.save("Documents/empty.txt", "the app's")
          try own.put("Documents/written.txt", "the app's, too")
          try own.put("Documents/Inbox/late", "into a removed directory")
        }, commit: .inPlace)
      #expect(
        try ship.text("Documents/fresh.txt") == "app" && ship.text("Documents/saved") == "saved by the app")
      #expect(try !ship.exists("Library/x/y/z"))
      #expect(
        try ship.text("Documents/empty.txt") == "replaced" && ship.text("Documents/written.txt") == "written")
      #expect(try ship.stages().isEmpty)
      // A directory that had gone already when the app made it anew is the app's.
      let isGone = try !ship.exists("Documents/Inbox")
      #expect(isGone || (point == .moved && count > 1))
      let late: [ContainerPath] = isGone ? ["Documents/Inbox/late"] : []
      #expect(
        outcome.conflicts == late + ["Documents/empty.txt", "Documents/written.txt"], "\(outcome.conflicts)")
      let kept = try #require(try ship.state(.inside)).directory("conflict")
      let folder = try kept.directory(ContainerPath(#require(outcome.transaction).description))
      #expect(try folder.contents("Documents/empty.txt") == Array("the app's".utf8))
      #expect(try folder.contents("Documents/written.txt") == Array("the app's, too".utf8))
      let place = isGone ? folder : try ship.live()
      #expect(try place.contents("Documents/Inbox/late") == Array("into a removed directory".utf8))
    }
  }

  @Test func directoriesThatMayNotBeWritten() throws {
    try Ship.withFiles(CommitFaultTests.files) { ship in
      try ship.live().setMode(0o555, of: "Documents/Inbox")
      try ship.live().setMode(0o555, of: "Documents")
      let old = try ship.listing()
      let outcome = try ship.run(commit: .inPlace)
      #expect(outcome.transaction != nil)
      #expect(try ship.live().status("Documents")?.mode == 0o555)
      try ship.rollback(commit: .inPlace)
      expectNone(try ship.listing().changes(from: old))
    }
  }

  @Test func filesAndDirectoriesTakeEachOthersPlace() throws {
    try Ship.withFiles(["a/b/c": "1", "f": "2", "d/e": "3"]) { ship in
      try ship.live().createLink("l", target: Array("f".utf8))
      let old = try ship.listing()
      let body = { (staged: StagedContainer) in
        try staged.remove("a")
        try staged.write([1], to: "a")
        try staged.remove("f")
        try staged.write([2], to: "f/g/h")
        try staged.remove("l")
        try staged.putLink(at: "l", target: [0x61], metadata: nil)
        try staged.remove("d")
      }
      for number in 1...100 {
        do {
          try ship.run(faults: faults(.moved, number), commit: .inPlace, body)
          break
        } catch is Stop {
          expectNone(try ship.listing().changes(from: old), "after move \(number)")
        }
      }
      #expect(try ship.listing().paths == ["a", "f", "f/g", "f/g/h", "l"])
      try ship.rollback(commit: .inPlace)
      expectNone(try ship.listing().changes(from: old))
      try ship.rollback(redoing: true, commit: .inPlace)
      #expect(try ship.listing().paths == ["a", "f", "f/g", "f/g/h", "l"])
    }
  }

  @Test func stateInBothPlaces() throws {
    try Ship.withFiles(["a": "0"]) { ship in
      let old = try ship.listing()
      let ways: [CommitPreference] = [.exchange, .inPlace, .exchange, .inPlace]
      for (number, way) in ways.enumerated() {
        try ship.run("\(number)", commit: way) { try $0.write(Array("\(number + 1)".utf8), to: "a") }
      }
      #expect(try ship.log().map(\.summary) == ["0", "1", "2", "3"])
      for (number, way) in ways.enumerated() {
        #expect(try ship.text("a") == "\(4 - number)")
        try ship.rollback(commit: way)
      }
      expectNone(try ship.listing().changes(from: old))
      for number in 1...4 {
        try ship.rollback(redoing: true, commit: number < 3 ? .inPlace : .exchange)
        #expect(try ship.text("a") == "\(number)")
      }
      // Nobody who looks at the container sees the state that is in it.
      #expect(try ship.state() != nil && ship.state(.inside) != nil)
      let names = try Transaction.inspect(ship.container()) { try $0.children(of: .root) }
      #expect(names == ["a"])
      ship.expect(.exists) { try ship.run { try $0.write([1], to: ".drydock-state/x") } }
      #expect(try ship.stages().isEmpty)
    }
  }
}

final class Counter: @unchecked Sendable {
  private var value = 0
  private let lock = NSLock()

  func next() -> Int {
    lock.withLock {
      value += 1
      return value
    }
  }
}
