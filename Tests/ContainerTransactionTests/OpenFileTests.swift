import DrydockErrors
import Foundation
import GRDB
import TestSupport
import Testing

@testable import AppStores
@testable import ContainerTransaction
@testable import FileSystem

/// Programs that still have open what a commit replaces.
@Suite struct OpenFileTests {
  static let strategies: [StateDirectory.Place] = [.beside, .inside]

  // MARK: Reverted

  @Test(arguments: strategies, [WritingApp.Kind.append, .map])
  func aWriterThatComesWithTheCommit(_ strategy: StateDirectory.Place, _ kind: WritingApp.Kind) throws {
    let app = try WritingApp()
    for point in [FaultPoint.synced, .rewalked, .committed] {
      let sandbox = try Sandbox(files: CommitFaultTests.files)
      let name = "\(strategy.rawValue)-\(kind.rawValue)-\(point.rawValue)"
      let path = sandbox.root + "/Documents/keep.txt"
      let faults = Seams.at(point) { try app.open(name, kind, path) }
      let error = try #require(
        expectError {
          try sandbox.run(faults: faults, commit: strategy) {
            try $0.write(Array("replaced".utf8), to: "Documents/keep.txt")
          }
        })
      let report = try app.stop(name)
      #expect([.inUse, .changedMeanwhile].contains(error.code), "\(point): \(error)")
      if point != .synced {
        #expect(error.message.contains("python3") && error.message.contains("reverted"), "\(error)")
      }
      let lines = report.rows.map { "line \($0)\n" }.joined()
      let text = try sandbox.text("Documents/keep.txt")
      #expect(kind == .map ? text.hasSuffix("eep") : text == "keep" + lines, "\(point): \(text)")
      #expect(try sandbox.stages().isEmpty && sandbox.log().isEmpty)
      #expect(try Transaction.recover(sandbox.container()).isEmpty)
    }
  }

  @Test func aShellThatEntersTheOldTree() throws {
    let app = try WritingApp()
    let sandbox = try Sandbox(files: CommitFaultTests.files)
    let before = try sandbox.listing()
    let path = sandbox.root + "/Documents"
    expectError(.inUse, "working directory") {
      try sandbox.run(faults: .at(.committed) { try app.open("shell", .stay, path) })
    }
    try app.stop("shell")
    expectNone(try sandbox.listing().changes(from: before))
  }

  /// What was written into the new tree before the change was reverted: merged into the old one, or kept.
  @Test(arguments: strategies) func whatWasWrittenMeanwhileIsKept(_ strategy: StateDirectory.Place) throws {
    let app = try WritingApp()
    let sandbox = try Sandbox(files: CommitFaultTests.files)
    let path = sandbox.root + "/Documents/empty.txt"
    let faults = Seams {
      if $0 == .committed { try app.open(strategy.rawValue, .hold, path) }
      if $0 == .marked {
        try sandbox.put("Documents/written.txt", "written into the new file")
        try sandbox.put("Documents/fresh.txt", "made beside it")
        try sandbox.put("Library/x/y/z", "an untouched one")
        try sandbox.live().removeFile("Documents/saved")
      }
    }
    let error = try #require(expectError { try sandbox.run(faults: faults, commit: strategy) })
    try app.stop(strategy.rawValue)
    #expect(error.code == .inUse && error.message.contains("Documents/written.txt"), "\(error)")
    #expect(try sandbox.text("Documents/fresh.txt") == "made beside it")
    #expect(try sandbox.text("Library/x/y/z") == "an untouched one" && !sandbox.exists("Documents/saved"))
    #expect(try sandbox.text("Documents/empty.txt") == "" && !sandbox.exists("Documents/written.txt"))
    let kept = try #require(try sandbox.state(strategy)).directory("conflict")
    let folder = try kept.directory(ContainerPath(name: #require(kept.names().first)))
    #expect(try folder.contents("Documents/written.txt") == Array("written into the new file".utf8))
    #expect(try sandbox.stages().isEmpty && sandbox.run(commit: strategy).conflicts.isEmpty)
  }

  /// A file that an app makes at a path that is new, while all is put in place: it would go on writing to what is kept
  /// aside.
  @Test(arguments: strategies) func aNewcomerInTheWayIsTakenBack(_ strategy: StateDirectory.Place) throws {
    let app = try WritingApp()
    let sandbox = try Sandbox(files: CommitFaultTests.files)
    let path = sandbox.root + "/Documents/written.txt"
    let faults = Seams.at(.committed) {
      try sandbox.put("Documents/written.txt", "the app's")
      try app.open(strategy.rawValue, .append, path)
    }
    let error = expectError { try sandbox.run(faults: faults, commit: strategy) }
    let report = try app.stop(strategy.rawValue)
    #expect(error?.code == .inUse, "\(error)")
    let lines = report.rows.map { "line \($0)\n" }.joined()
    #expect(try sandbox.text("Documents/written.txt") == "the app's" + lines)
  }

  @Test(arguments: strategies) func groupsGoBackToo(_ strategy: StateDirectory.Place) throws {
    let app = try WritingApp()
    let sandbox = try GroupSandbox()
    let before = try sandbox.listings()
    let path = sandbox.folder("Shared/one/note.txt")
    let error = expectError(.inUse) {
      try sandbox.run(
        commit: strategy,
        faults: .at(.committed) { try app.open(strategy.rawValue, .hold, path) })
    }
    #expect(error?.message.contains("note.txt") == true)
    try app.stop(strategy.rawValue)
    expectNone(try sandbox.changes(from: before))
    #expect(try Transaction.recover(sandbox.container()).isEmpty && sandbox.traces().isEmpty)
    #expect(try sandbox.run(commit: strategy).conflicts.isEmpty)
  }

  /// Each commit pays for two more looks.
  @Test func aLookTakesLittleTime() throws {
    let sandbox = try Sandbox(files: ["a": "a"])
    let status = try #require(try sandbox.live().status("a"))
    let search = OpenFileSearch(inodes: [status.identity: "a"], own: [])
    let time = processorTime { #expect(search.run().found.isEmpty) }
    print("a look through all processes took \(time)")
    #expect(time < .seconds(1))
  }

  @Test func onlyWhatIsFoundAgainAndAgainIsOpen() {
    func file(_ process: Int32, isStarting: Bool = false) -> OpenFile {
      var file = OpenFile(process: process, processName: "p", path: "a", mode: "open")
      file.isStarting = isStarting
      return file
    }
    func looks(_ found: (Int) -> [OpenFile]) -> Int {
      var looks = 0
      _ = OpenFileSearch.decided(pausing: 0) {
        looks += 1
        return (found(looks), UnseenProcesses())
      }
      return looks
    }
    #expect(looks { _ in [] } == 1)
    #expect(looks { _ in [file(1)] } == 4)
    #expect(looks { $0 < 3 ? [file(1)] : [] } == 3)
    // Programs that are started one after the other.
    #expect(looks { $0 < 30 ? [file(Int32($0))] : [] } == 30)
    // A process that takes long to start; then it runs, and has the file open.
    #expect(looks { [file(1, isStarting: $0 < 30)] } == 33)
    // A copy of this process that never runs another program.
    #expect(looks { _ in [file(1, isStarting: true)] } == OpenFileSearch.mostLooks)
  }

  #if os(Linux)
    @Test func aProgramThatRunsIsNotStarting() throws {
      let child = try Command.spawn("/bin/sleep", ["100"])
      var isStarting = true
      for _ in 0..<1000 where isStarting {
        usleep(10_000)
        isStarting = ProcessTable.isStarting(child.process)
      }
      #expect(!isStarting && !ProcessTable.isStarting(getpid()))
    }

    /// So it looks while the kernel starts another program and has not closed descriptors yet.
    @Test func aChildWithThisThreadsNameIsStarting() throws {
      let directory = try TemporaryDirectory()
      let program = directory(ProcessTable.name(of: getpid()))
      try FileManager.default.createSymbolicLink(atPath: program, withDestinationPath: "/bin/sleep")
      let child = try Command.spawn(program, ["100"])
      for _ in 0..<100 {
        #expect(ProcessTable.isStarting(child.process))
        usleep(1000)
      }
    }
  #endif

  // MARK: Afterwards

  @Test(arguments: strategies) func whatIsWrittenLaterIsFoundAndKept(_ strategy: StateDirectory.Place) throws
  {
    let app = try WritingApp()
    let sandbox = try Sandbox(files: CommitFaultTests.files)
    let path = sandbox.root + "/Documents/keep.txt"
    // Nobody sees it, and its file is replaced while it has it open.
    let faults = Seams(searchesOpenFiles: false) {
      if $0 == .rewalked { try app.open(strategy.rawValue, .hold, path) }
    }
    let outcome = try sandbox.run(faults: faults, commit: strategy) {
      try $0.write(Array("replaced".utf8), to: "Documents/keep.txt")
    }
    try app.stop(strategy.rawValue)
    #expect(try Transaction.recover(sandbox.container()).isEmpty)
    let state = try #require(try sandbox.state(strategy))
    let transaction = try #require(outcome.transaction)
    let undo = try state.directory("undo").directory(ContainerPath(transaction.description))
    let name = try #require(try undo.names().first { $0.starts(with: "before".utf8) })
    let late = "\(strategy.rawValue)-late"
    try app.open(late, .append, undo.full(ContainerPath(name: name)))
    try app.wait(late, for: "row")
    let lines = try app.stop(late).rows.map { "line \($0)\n" }.joined()
    let reports = try Transaction.recover(sandbox.container())
    #expect(reports.map(\.outcome) == [.writtenLater] && reports.map(\.conflicts) == [["Documents/keep.txt"]])
    #expect(try sandbox.conflictCopy("Documents/keep.txt", of: outcome, strategy) == "keep" + lines)
    // Once.
    #expect(try Transaction.recover(sandbox.container()).isEmpty)
    let error = try #require(expectError { try sandbox.rollback(commit: strategy) })
    #expect(error.code == .conflict && error.message.contains("nothing was changed"), "\(error)")
    #expect(error.message.contains(undo.full(ContainerPath(name: name))) && error.message.contains(path))
    try sandbox.rollback(discardingNewer: true, commit: strategy)
    #expect(try sandbox.text("Documents/keep.txt") == "keep" + lines)
    try sandbox.rollback(redoing: true, commit: strategy)
    #expect(try sandbox.text("Documents/keep.txt") == "replaced")
  }

  // MARK: Marks

  private func isMarked(_ sandbox: Sandbox) throws -> [Bool] {
    let undo = try #require(try sandbox.state()).directory("undo")
    return try undo.names().sorted { $0.lexicographicallyPrecedes($1) }.flatMap { folder in
      let kept = try undo.directory(ContainerPath(name: folder))
      return try kept.names().filter { $0.starts(with: "before".utf8) }.compactMap { name in
        let bytes = try kept.contents(ContainerPath(name: name))
        return bytes.count > 4000 ? ReplacedMark.isSet(bytes) : nil
      }
    }
  }

  private static func change(_ staged: StagedContainer) throws {
    try staged.writeDatabase(at: Sandbox.database) { try $0.execute(sql: "UPDATE task SET title = 'x'") }
  }

  @Test func aMarkGoesWithTheRollback() throws {
    let sandbox = try Sandbox(notes: [])
    let before = try sandbox.listing()
    try sandbox.run("x", Self.change)
    #expect(try isMarked(sandbox) == [true])
    // A dry run leaves it, and so does a rollback that fails.
    do {
      let rollback = try Rollback(DiscardedStage(on: sandbox.container()))
      try rollback.undo(#require(rollback.candidates().first))
    }
    #expect(try isMarked(sandbox) == [true])
    for point in [FaultPoint.checked, .treeBuilt, .rewalked, .marked] {
      _ = try? sandbox.rollback(faults: .at(point))
      #expect(try isMarked(sandbox) == [true], "\(point)")
    }
    try sandbox.rollback()
    expectNone(try sandbox.listing().changes(from: before))
    #expect(try isMarked(sandbox) == [true])
    try sandbox.rollback(redoing: true)
    try sandbox.rollback()
    expectNone(try sandbox.listing().changes(from: before))
  }

  /// A backup may share the inode with a hard link.
  @Test(arguments: strategies) func anotherNameOfADatabaseStaysWhole(_ strategy: StateDirectory.Place) throws
  {
    let sandbox = try Sandbox(notes: [])
    let outside = try Directory(sandbox.folder.path)
    try sandbox.live().link(Sandbox.database, in: outside, to: "backup")
    let before = try outside.contents("backup")
    try sandbox.run("x", commit: strategy, Self.change)
    #expect(try outside.contents("backup") == before)
    try sandbox.rollback(commit: strategy)
    #expect(try outside.contents("backup") == before && sandbox.live().contents(Sandbox.database) == before)
  }

  /// The two names have one inode, on which a process has one lock.
  @Test(arguments: strategies) func twoNamesOfADatabase(_ strategy: StateDirectory.Place) throws {
    let sandbox = try Sandbox(notes: [])
    let other: ContainerPath = "Documents/other.sqlite"
    try sandbox.live().link(Sandbox.database, in: sandbox.live(), to: other)
    let before = try sandbox.listing()
    let bytes = try sandbox.live().contents(other)
    try sandbox.run("x", commit: strategy, Self.change)
    #expect(try sandbox.live().contents(other) == bytes && sandbox.live().contents(Sandbox.database) != bytes)
    for point in [FaultPoint.rewalked, .marked] {
      _ = try? sandbox.rollback(commit: strategy, faults: .at(point))
      #expect(try sandbox.live().contents(other) == bytes, "\(point)")
    }
    try sandbox.rollback(commit: strategy)
    expectNone(try sandbox.listing().changes(from: before))
  }

  @Test func theMarkIsItsOwnInverse() throws {
    let sandbox = try Sandbox(notes: [])
    let live = try sandbox.live()
    let before = try live.contents(Sandbox.database)
    let status = try #require(try live.status(Sandbox.database))
    for _ in 0..<2 { try live.markReplaced(Sandbox.database) }
    let marked = try live.contents(Sandbox.database)
    #expect(marked.starts(with: "Drydock replaced".utf8) && marked[40...] == before[40...])
    #expect(throws: DatabaseError.self) {
      try DatabaseQueue(path: live.full(Sandbox.database)).read {
        try $0.execute(sql: "SELECT * FROM task")
      }
    }
    for _ in 0..<2 { try live.unmarkReplaced(Sandbox.database) }
    #expect(try live.contents(Sandbox.database) == before)
    #expect(try live.status(Sandbox.database)?.modified == status.modified)
  }

  // MARK: An app that does not wait

  /// Whenever it opens the database, it is told that that is locked, or in place that it cannot be opened; and it never
  /// removes a log.
  @Test(arguments: strategies) func anAppThatDoesNotWait(_ strategy: StateDirectory.Place) throws {
    let app = try WritingApp()
    for options in [["--leave-wal"], ["--rollback-journal"]] {
      let sandbox = try Sandbox(notes: options)
      let before = try sandbox.listing()
      let path = sandbox.root + "/" + Sandbox.database.description
      let count = Counter()
      let seen = Counter()
      let faults = Seams { point in
        guard ![.done].contains(point) else { return }
        let name = "\(strategy.rawValue)\(options[0])-\(count.next())"
        try app.start(name, .probe, path)
        let report = try app.wait(name)
        let wanted = ["database is locked", "unable to open database file"]
        #expect(report.errors.count == 1 && wanted.contains(report.errors[0]), "\(point): \(report.lines)")
        _ = seen.next()
      }
      try sandbox.run("x", faults: faults, commit: strategy, Self.change)
      #expect(seen.next() > 8)
      try sandbox.rollback(commit: strategy)
      expectNone(try sandbox.listing().changes(from: before))
    }
  }
}
