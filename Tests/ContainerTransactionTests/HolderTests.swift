import DrydockErrors
import Foundation
import GRDB
import TestSupport
import Testing

@testable import AppContainer
@testable import ContainerTransaction
@testable import FileSystem

/// Programs that still have open what a commit replaces.
@Suite struct HolderTests {
  static let strategies: [CommitPreference] = [.exchange, .inPlace]

  private func at(_ point: FaultPoint, _ body: @escaping @Sendable () throws -> Void) -> FaultInjection {
    let seen = Counter()
    return FaultInjection { if $0 == point, seen.next() == 1 { try body() } }
  }

  // MARK: Taken back

  @Test(arguments: strategies, [WritingApp.Kind.append, .map])
  func aWriterThatComesWithTheCommit(_ strategy: CommitPreference, _ kind: WritingApp.Kind) throws {
    let app = try WritingApp()
    for point in [FaultPoint.synced, .rewalked, .committed] {
      try Ship.withFiles(CommitFaultTests.files) { ship in
        let name = "\(strategy.rawValue)-\(kind.rawValue)-\(point.rawValue)"
        let path = ship.root + "/Documents/keep.txt"
        let faults = at(point) { try app.open(name, kind, path) }
        let error = try #require(
          ship.failure {
            try ship.run(faults: faults, commit: strategy) {
              try $0.write(Array("replaced".utf8), to: "Documents/keep.txt")
            }
          })
        let report = try app.stop(name)
        #expect([.inUse, .changedMeanwhile].contains(error.code), "\(point): \(error)")
        if point != .synced {
          #expect(error.message.contains("python3") && error.message.contains("taken back"), "\(error)")
        }
        let lines = report.rows.map { "line \($0)\n" }.joined()
        let text = try ship.text("Documents/keep.txt")
        #expect(kind == .map ? text.hasSuffix("eep") : text == "keep" + lines, "\(point): \(text)")
        #expect(try ship.stages().isEmpty && ship.log().map(\.state) == [.discarded])
        #expect(try Transaction.recover(ship.container()).isEmpty)
      }
    }
  }

  @Test func aShellThatEntersTheOldTree() throws {
    let app = try WritingApp()
    try Ship.withFiles(CommitFaultTests.files) { ship in
      let before = try ship.listing()
      let path = ship.root + "/Documents"
      let error = ship.failure {
        try ship.run(faults: at(.committed) { try app.open("shell", .stay, path) })
      }
      #expect(error?.code == .inUse && error?.message.contains("working directory") == true, "\(error)")
      try app.stop("shell")
      expectNone(try ship.listing().changes(from: before))
    }
  }

  /// What was written into the new tree before it was taken back: carried into the old one, or kept.
  @Test(arguments: strategies) func whatWasWrittenMeanwhileIsKept(_ strategy: CommitPreference) throws {
    let app = try WritingApp()
    try Ship.withFiles(CommitFaultTests.files) { ship in
      let own = ship
      let path = ship.root + "/Documents/empty.txt"
      let faults = FaultInjection {
        if $0 == .committed { try app.open(strategy.rawValue, .hold, path) }
        if $0 == .marked {
          try own.put("Documents/written.txt", "written into the new file")
          try own.put("Documents/fresh.txt", "made beside it")
          try own.put("Library/x/y/z", "an untouched one")
          try own.live().removeFile("Documents/saved")
        }
      }
      let error = try #require(ship.failure { try ship.run(faults: faults, commit: strategy) })
      try app.stop(strategy.rawValue)
      #expect(error.code == .inUse && error.message.contains("Documents/written.txt"), "\(error)")
      #expect(try ship.text("Documents/fresh.txt") == "made beside it")
      #expect(try ship.text("Library/x/y/z") == "an untouched one" && !ship.exists("Documents/saved"))
      #expect(try ship.text("Documents/empty.txt") == "" && !ship.exists("Documents/written.txt"))
      let place: StateDirectory.Place = strategy == .exchange ? .beside : .inside
      let kept = try #require(try ship.state(place)).directory("conflict")
      let folder = try kept.directory(ContainerPath(name: #require(kept.names().first)))
      #expect(try folder.contents("Documents/written.txt") == Array("written into the new file".utf8))
      #expect(try ship.stages().isEmpty && ship.run(commit: strategy).conflicts.isEmpty)
    }
  }

  /// A file that an app makes at a path that is new, while all is put in place: it would go on writing to what is kept
  /// aside.
  @Test(arguments: strategies) func aNewcomerInTheWayIsTakenBack(_ strategy: CommitPreference) throws {
    let app = try WritingApp()
    try Ship.withFiles(CommitFaultTests.files) { ship in
      let own = ship
      let path = ship.root + "/Documents/written.txt"
      let faults = at(.committed) {
        try own.put("Documents/written.txt", "the app's")
        try app.open(strategy.rawValue, .append, path)
      }
      let error = ship.failure { try ship.run(faults: faults, commit: strategy) }
      let report = try app.stop(strategy.rawValue)
      #expect(error?.code == .inUse, "\(error)")
      let lines = report.rows.map { "line \($0)\n" }.joined()
      #expect(try ship.text("Documents/written.txt") == "the app's" + lines)
    }
  }

  @Test(arguments: strategies) func groupsGoBackToo(_ strategy: CommitPreference) throws {
    let app = try WritingApp()
    try GroupLab.with { lab in
      let before = try lab.listings()
      let path = lab.folder("Shared/one/note.txt")
      let error = #expect(throws: DrydockError.self) {
        try lab.run(
          commit: strategy,
          faults: at(.committed) { try app.open(strategy.rawValue, .hold, path) })
      }
      #expect(error?.code == .inUse && error?.message.contains("note.txt") == true, "\(error)")
      try app.stop(strategy.rawValue)
      expectNone(try lab.changes(from: before))
      #expect(try Transaction.recover(lab.container()).isEmpty && lab.traces().isEmpty)
      #expect(try lab.run(commit: strategy).conflicts.isEmpty)
    }
  }

  /// Each commit pays for two more looks.
  @Test func aLookTakesLittleTime() throws {
    try Ship.withFiles(["a": "a"]) { ship in
      let status = try #require(try ship.live().status("a"))
      let search = HolderSearch(inodes: [status.identity: "a"], own: [])
      let clock = ContinuousClock()
      let times = (0..<5).map { _ in clock.measure { #expect(search.run().found.isEmpty) } }
      let least = try #require(times.min())
      print("a look through all processes took \(least)")
      #expect(least < .seconds(1))
    }
  }

  // MARK: Afterwards

  @Test(arguments: strategies) func whatIsWrittenLaterIsFoundAndKept(_ strategy: CommitPreference) throws {
    let app = try WritingApp()
    try Ship.withFiles(CommitFaultTests.files) { ship in
      let path = ship.root + "/Documents/keep.txt"
      var options = TransactionOptions()
      (options.commit, options.looksForHolders) = (strategy, false)
      // Nobody sees it, and its file is replaced while it has it open.
      options.faults = FaultInjection {
        if $0 == .rewalked { try app.open(strategy.rawValue, .hold, path) }
      }
      let outcome = try Transaction.run(
        on: ship.container(), .migrate, summary: "x", options: options
      ) { try $0.write(Array("replaced".utf8), to: "Documents/keep.txt") }
      try app.stop(strategy.rawValue)
      #expect(try Transaction.recover(ship.container()).isEmpty)
      let place: StateDirectory.Place = strategy == .exchange ? .beside : .inside
      let state = try #require(try ship.state(place))
      let transaction = try #require(outcome.transaction)
      let undo = try state.directory("undo").directory(ContainerPath(transaction.description))
      let name = try #require(try undo.names().first { $0.starts(with: "before".utf8) })
      let late = "\(strategy.rawValue)-late"
      try app.open(late, .append, undo.full(ContainerPath(name: name)))
      try app.wait(late, for: "row")
      let lines = try app.stop(late).rows.map { "line \($0)\n" }.joined()
      let reports = try Transaction.recover(ship.container())
      #expect(
        reports.map(\.outcome) == [.writtenLater] && reports.map(\.conflicts) == [["Documents/keep.txt"]])
      let aside = try state.directory("conflict").directory(ContainerPath(transaction.description))
      #expect(try aside.contents("Documents/keep.txt") == Array(("keep" + lines).utf8))
      // Once.
      #expect(try Transaction.recover(ship.container()).isEmpty)
      let error = try #require(ship.failure { try ship.rollback(commit: strategy) })
      #expect(error.code == .conflict && error.message.contains("--discard-newer"), "\(error)")
      #expect(error.message.contains(undo.full(ContainerPath(name: name))) && error.message.contains(path))
      try ship.rollback(discardingNewer: true, commit: strategy)
      #expect(try ship.text("Documents/keep.txt") == "keep" + lines)
      try ship.rollback(redoing: true, commit: strategy)
      #expect(try ship.text("Documents/keep.txt") == "replaced")
    }
  }

  // MARK: Marks

  private func isMarked(_ ship: Ship) throws -> [Bool] {
    let undo = try #require(try ship.state()).directory("undo")
    return try undo.names().sorted { $0.lexicographicallyPrecedes($1) }.flatMap { folder in
      let kept = try undo.directory(ContainerPath(name: folder))
      return try kept.names().filter { $0.starts(with: "before".utf8) }.compactMap { name in
        let bytes = try kept.contents(ContainerPath(name: name))
        return bytes.count > 4000 ? ReplacedMark.isSet(bytes) : nil
      }
    }
  }

  private static func change(_ staged: StagedContainer) throws {
    try staged.writeDatabase(at: Ship.database) { try $0.execute(sql: "UPDATE task SET title = 'x'") }
  }

  @Test func aMarkGoesWithTheRollback() throws {
    try Ship.withNotes { ship in
      let before = try ship.listing()
      try ship.run("x", Self.change)
      #expect(try isMarked(ship) == [true])
      // A dry run leaves it, and so does a rollback that fails.
      _ = try Transaction.dryRollback(ship.container()) { rollback in
        try rollback.undo(#require(rollback.candidates().first))
      }
      #expect(try isMarked(ship) == [true])
      for point in [FaultPoint.checked, .treeBuilt, .rewalked, .marked] {
        var options = TransactionOptions()
        options.faults = FaultInjection { if $0 == point { throw CommitFaultTests.Stop() } }
        _ = try? Transaction.rollback(ship.container(), options: options)
        #expect(try isMarked(ship) == [true], "\(point)")
      }
      try ship.rollback()
      expectNone(try ship.listing().changes(from: before))
      #expect(try isMarked(ship) == [true])
      try ship.rollback(redoing: true)
      try ship.rollback()
      expectNone(try ship.listing().changes(from: before))
    }
  }

  /// A backup may share the inode with a hard link.
  @Test(arguments: strategies) func anotherNameOfADatabaseStaysWhole(_ strategy: CommitPreference) throws {
    try Ship.withNotes { ship in
      let outside = try Directory(ship.folder.path)
      try ship.live().link(Ship.database, in: outside, to: "backup")
      let before = try outside.contents("backup")
      try ship.run("x", commit: strategy, Self.change)
      #expect(try outside.contents("backup") == before)
      try ship.rollback(commit: strategy)
      #expect(try outside.contents("backup") == before && ship.live().contents(Ship.database) == before)
    }
  }

  @Test func theMarkIsItsOwnInverse() throws {
    try Ship.withNotes { ship in
      let live = try ship.live()
      let before = try live.contents(Ship.database)
      let status = try #require(try live.status(Ship.database))
      for _ in 0..<2 { try live.markReplaced(Ship.database, modified: status.modified) }
      let marked = try live.contents(Ship.database)
      #expect(marked.starts(with: "Drydock replaced".utf8) && marked[40...] == before[40...])
      #expect(throws: DatabaseError.self) {
        try DatabaseQueue(path: live.full(Ship.database)).read { try $0.execute(sql: "SELECT * FROM task") }
      }
      for _ in 0..<2 { try live.unmarkReplaced(Ship.database, modified: status.modified) }
      #expect(try live.contents(Ship.database) == before)
      #expect(try live.status(Ship.database)?.modified == status.modified)
    }
  }

  // MARK: An app that does not wait

  /// Whenever it opens the database, it is told that that is locked, or in place that it cannot be opened; and it never
  /// removes a log.
  @Test(arguments: strategies) func anAppThatDoesNotWait(_ strategy: CommitPreference) throws {
    let app = try WritingApp()
    for options in [["--leave-wal"], ["--rollback-journal"]] {
      try TemporaryDirectory.with { folder in
        let made = try Command.run(try Tools.notesApp(), ["create", folder("c")] + options)
        #expect(made.succeeded, "\(made)")
        let ship = Ship(folder: folder)
        let before = try ship.listing()
        let path = ship.root + "/" + Ship.database.description
        let count = Counter()
        let seen = Counter()
        let faults = FaultInjection { point in
          guard ![.done].contains(point) else { return }
          let name = "\(strategy.rawValue)\(options[0])-\(count.next())"
          try app.start(name, .probe, path)
          let report = try app.wait(name)
          let wanted = ["database is locked", "unable to open database file"]
          #expect(report.errors.count == 1 && wanted.contains(report.errors[0]), "\(point): \(report.lines)")
          _ = seen.next()
        }
        try ship.run("x", faults: faults, commit: strategy, Self.change)
        #expect(seen.next() > 8)
        try ship.rollback(commit: strategy)
        expectNone(try ship.listing().changes(from: before))
      }
    }
  }
}
