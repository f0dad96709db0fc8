import Foundation
import TestSupport
import Testing

@testable import AppContainer
@testable import ContainerTransaction
@testable import FileSystem

/// What happens when others write, or the process stops, at each moment of a commit.
@Suite struct CommitFaultTests {

  static let files = [
    "Documents/empty.txt": "", "Documents/keep.txt": "keep", "Documents/Inbox/in": "i", "Library/x/y/z": "z",
    "Documents/saved": "s", "Library/gone/one": "1", "Library/gone/two": "2",
  ]
  static let before: [FaultPoint] = [.staged, .checked, .treeBuilt, .synced]
  static let between: [FaultPoint] = [.rewalked, .committed]
  static let after: [FaultPoint] = [.exchanged, .placed, .merged, .undoKept, .oldRemoved, .done]
  static let ofExchange = points(.beside)

  /// Those that a commit by a strategy reaches once.
  private static func points(_ commit: StateDirectory.Place) -> [FaultPoint] {
    let others: [FaultPoint] = [
      commit == .beside ? .placed : .exchanged, .moved, .sealed, .partlyExchanged, .reverted,
    ]
    return FaultPoint.allCases.filter { !others.contains($0) }
  }

  /// Runs the usual transaction with something done at one point.
  private func run(_ sandbox: Sandbox, at point: FaultPoint, _ body: @escaping @Sendable () throws -> Void)
    throws
    -> TransactionOutcome<Void>
  {
    try sandbox.run(faults: Seams { if $0 == point { try body() } })
  }

  @Test(arguments: before) func aChangeBeforeTheFirstLookStopsIt(point: FaultPoint) throws {
    let actions: [@Sendable (Sandbox) throws -> Void] = [
      { try $0.put("Documents/fresh.txt", "app") }, { try $0.save("Documents/saved", "app") },
      { try $0.put("Documents/keep.txt", "longer than before") },
      { try $0.live().removeFile("Documents/saved") },
      { try $0.live().createDirectory("Library/made") }, { try $0.live().setMode(0o700, of: "Library/x") },
      { try $0.live().setAttribute(ExtendedAttribute(name: "user.a", value: [1]), of: "Library/x/y") },
    ]
    for (number, action) in actions.enumerated() {
      let sandbox = try Sandbox(files: Self.files)
      let error = expectError { _ = try run(sandbox, at: point) { try action(sandbox) } }
      #expect(error?.code == .changedMeanwhile, "action \(number)")
      let now = try sandbox.listing()
      let expected = try Sandbox(files: Self.files)
      try action(expected)
      expectNone(now.changes(from: try expected.listing(), comparing: TreeListing.timeless), "\(number)")
      #expect(try sandbox.stages().isEmpty)
      #expect(try sandbox.log().isEmpty)
    }
  }

  /// Runs a body without the right of root to ignore modes, on this thread. Swift's module of the C library lacks these calls.
  private static func asOwner<T>(_ body: () throws -> T) throws -> T {
    typealias Call = @convention(c) (UnsafeMutablePointer<UInt32>, UnsafeMutablePointer<UInt32>) -> Int32
    let get = unsafeBitCast(try #require(dlsym(nil, "capget")), to: Call.self)
    let set = unsafeBitCast(try #require(dlsym(nil, "capset")), to: Call.self)
    var header: [UInt32] = [0x2008_0522, 0]
    var all = [UInt32](repeating: 0, count: 6)
    try #require(get(&header, &all) == 0)
    var fewer = all
    // Of the effective ones: CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH.
    fewer[0] &= ~0b110
    try #require(set(&header, &fewer) == 0)
    defer { _ = set(&header, &all) }
    return try body()
  }

  /// Without root, such a directory takes no file while it has its mode.
  @Test(arguments: between) func whatIsWrittenIntoReadOnlyDirectoriesIsMerged(point: FaultPoint) throws {
    let sandbox = try Sandbox(files: Self.files)
    let outcome = try Self.asOwner {
      try run(sandbox, at: point) {
        try sandbox.put("Library/made/deep/er.txt", "app")
        try sandbox.put("Library/x/fresh.txt", "app")
        try sandbox.live().removeFile("Library/x/y/z")
        for path in ["Library/made/deep", "Library/made", "Library/x/y", "Library/x"] as [ContainerPath] {
          try sandbox.live().setMode(0o500, of: path)
        }
      }
    }
    #expect(outcome.conflicts.isEmpty && outcome.notes.isEmpty, "\(outcome)")
    #expect(
      try sandbox.text("Library/made/deep/er.txt") == "app" && sandbox.text("Library/x/fresh.txt") == "app")
    #expect(try !sandbox.exists("Library/x/y/z"))
    for path in ["Library/made/deep", "Library/made", "Library/x/y", "Library/x"] as [ContainerPath] {
      #expect(try sandbox.live().status(path)?.mode == 0o500)
      // So that it can be removed.
      try sandbox.live().setMode(0o700, of: path)
    }
    #expect(try sandbox.stages().isEmpty)
  }

  @Test(arguments: between) func whatIsWrittenAtTheLastMomentIsMerged(point: FaultPoint) throws {
    let sandbox = try Sandbox(files: Self.files)
    let outcome = try run(sandbox, at: point) {
      try sandbox.put("Documents/fresh.txt", "app")
      try sandbox.put("Library/made/deep/er.txt", "app")
      try sandbox.save("Documents/saved", "saved by the app")
      try sandbox.put("Documents/keep.txt", "in place, by the app")
      try sandbox.live().removeFile("Library/x/y/z")
      try sandbox.live().removeTree("Library/gone")
      try sandbox.live().setMode(0o700, of: "Library/x")
    }
    #expect(outcome.conflicts.isEmpty && outcome.notes.isEmpty, "\(outcome)")
    #expect(
      try sandbox.text("Documents/fresh.txt") == "app" && sandbox.text("Library/made/deep/er.txt") == "app")
    #expect(try sandbox.text("Documents/saved") == "saved by the app")
    #expect(try sandbox.text("Documents/keep.txt") == "in place, by the app")
    #expect(
      try !sandbox.exists("Library/x/y/z") && sandbox.exists("Library/x/y")
        && !sandbox.exists("Library/gone"))
    #expect(try sandbox.live().status("Library/x")?.mode == 0o700)
    #expect(try sandbox.text("Documents/empty.txt") == "replaced" && !sandbox.exists("Documents/Inbox"))
    #expect(try sandbox.stages().isEmpty)
    try sandbox.rollback()
    #expect(try sandbox.text("Documents/fresh.txt") == "app" && sandbox.text("Documents/empty.txt") == "")
    #expect(try sandbox.exists("Documents/Inbox/in"))
  }

  @Test(
    arguments: between.map { (.beside, $0, 1) } + between.map { (.inside, $0, 1) }
      + (1...3).map { (.inside, .moved, $0) } as [(StateDirectory.Place, FaultPoint, Int)])
  func whatBothWroteIsKeptBeside(commit: StateDirectory.Place, point: FaultPoint, count: Int) throws {
    let sandbox = try Sandbox(files: Self.files)
    let outcome = try sandbox.run(
      faults: .at(point, count) {
        try sandbox.put("Documents/fresh.txt", "app")
        try sandbox.save("Documents/saved", "saved by the app")
        try sandbox.live().removeFile("Library/x/y/z")
        try sandbox.save("Documents/empty.txt", "the app's")
        try sandbox.put("Documents/written.txt", "the app's, too")
        try sandbox.put("Documents/Inbox/late", "into a removed directory")
      }, commit: commit)
    #expect(
      try sandbox.text("Documents/fresh.txt") == "app"
        && sandbox.text("Documents/saved") == "saved by the app")
    #expect(try !sandbox.exists("Library/x/y/z"))
    #expect(
      try sandbox.text("Documents/empty.txt") == "replaced"
        && sandbox.text("Documents/written.txt") == "written")
    #expect(try sandbox.stages().isEmpty)
    // A directory that had gone already when the app made it anew is the app's.
    let isGone = try !sandbox.exists("Documents/Inbox")
    #expect(isGone || (point == .moved && count > 1))
    let late: [ContainerPath] = isGone ? ["Documents/Inbox/late"] : []
    #expect(
      outcome.conflicts == late + ["Documents/empty.txt", "Documents/written.txt"], "\(outcome.conflicts)")
    #expect(try sandbox.conflictCopy("Documents/empty.txt", of: outcome, commit) == "the app's")
    #expect(try sandbox.conflictCopy("Documents/written.txt", of: outcome, commit) == "the app's, too")
    let path: ContainerPath = "Documents/Inbox/late"
    let text = try isGone ? sandbox.conflictCopy(path, of: outcome, commit) : sandbox.text(path)
    #expect(text == "into a removed directory")
  }

  /// By a program that was not seen, and has a directory of the old tree open.
  @Test(arguments: [FaultPoint.merged, .undoKept]) func whatIsMadeInTheOldTreeIsKept(point: FaultPoint)
    throws
  {
    let sandbox = try Sandbox(files: Self.files)
    let outcome = try run(sandbox, at: point) {
      let stages = try #require(try sandbox.state()).directory("stage")
      let folder = try stages.directory(ContainerPath(name: #require(stages.names().first)))
      try folder.create("tree/late.txt", Array("made in the old tree".utf8))
    }
    #expect(outcome.conflicts == ["Documents/late.txt"] && outcome.isFinished, "\(outcome)")
    #expect(try sandbox.conflictCopy("Documents/late.txt", of: outcome) == "made in the old tree")
    #expect(try !sandbox.exists("Documents/late.txt") && sandbox.stages().isEmpty)
  }

  /// As programs make a file that must not replace another: by a link to a temporary one.
  @Test func theLastNameOfAFileIsSeenAsTheLast() throws {
    let sandbox = try Sandbox(files: [:])
    let (live, pairs, taken) = (try sandbox.live(), 200, Counter())
    for pair in 0..<pairs {
      try sandbox.put("old/\(pair)/a/file", "")
      try live.createDirectory(ContainerPath("old/\(pair)/b"))
      try live.link(
        ContainerPath("old/\(pair)/a/file"), in: live, to: ContainerPath("old/\(pair)/b/file"))
    }
    _ = try CommittedFiles.none.removeTree("old", in: live, linkedInto: live) { status, path in
      #expect(status.links == 1)
      let name = try ContainerPath("taken \(taken.next())")
      try live.rename(path.rebased(from: .root, to: "old"), in: live, to: name)
      return true
    }
    #expect(try live.names().count == pairs)
  }

  @Test func theContainerIsReplacedByAnotherDirectory() throws {
    for point in [FaultPoint.staged, .rewalked, .committed] {
      let sandbox = try Sandbox(files: Self.files)
      let before = try sandbox.listing()
      let error = expectError {
        _ = try run(sandbox, at: point) {
          let parent = try Directory(sandbox.folder.path)
          try parent.rename("c", in: parent, to: "aside")
          try parent.createDirectory("c")
          try parent.create("c/stranger", [1])
        }
      }
      #expect(error?.code == .changedMeanwhile, "\(point)")
      #expect(try sandbox.listing().paths == ["stranger"], "\(point)")
      expectNone(try TreeListing(sandbox.folder("aside")).changes(from: before), "\(point)")
      #expect(try Transaction.recover(sandbox.container()).isEmpty && sandbox.stages().isEmpty)
      #expect(try sandbox.listing().paths == ["stranger"])
    }
  }

  @Test(arguments: [StateDirectory.Place.beside, .inside])
  func stoppedAtEveryPoint(_ commit: StateDirectory.Place) throws {
    for point in Self.points(commit) {
      let sandbox = try Sandbox(files: Self.files)
      let old = try sandbox.listing()
      let isNew = Self.after.contains(point)
      do {
        let outcome = try sandbox.run(faults: .at(point), commit: commit)
        #expect(isNew && (point == .done || !outcome.isFinished), "\(point) \(outcome.notes)")
        let isTold = outcome.notes.contains { $0.contains("recover the container") }
        #expect(point == .done || commit == .inside || isTold, "\(point) \(outcome.notes)")
      } catch is Stop {
        #expect(!isNew, "\(point)")
      }
      let reports = try Transaction.recover(sandbox.container()).map(\.outcome)
      // A clean failure before the commit record needs no recovery; the record itself does, but for moves, which are taken back.
      let isRecorded = commit == .beside && point == .committed
      #expect(reports == (isNew && point != .done ? [.new] : isRecorded ? [.old] : []), "\(point)")
      #expect(try sandbox.stages().isEmpty && (commit == .beside || sandbox.state() == nil), "\(point)")
      #expect(try Transaction.recover(sandbox.container()).isEmpty, "\(point)")
      if isNew {
        #expect(
          try sandbox.text("Documents/empty.txt") == "replaced"
            && sandbox.text("Documents/new/sub/deep.txt") == "deep", "\(point)")
        #expect(try !sandbox.exists("Documents/Inbox") && sandbox.log().map(\.state) == [.undoable])
        try sandbox.rollback(commit: commit)
      } else {
        #expect(try sandbox.log().isEmpty, "\(point)")
      }
      expectNone(try sandbox.listing().changes(from: old), "\(point)")
    }
  }
}

/// Edits that keep a file's size and modification time, at each moment of a transaction that replaces or removes the file.
@Suite struct QuietEditTests {
  private static let files = ["Documents/keep.txt": "keep", "Documents/gone.txt": "gone", "Library/x": "x"]
  private static let replaced: [ContainerPath] = ["Documents/keep.txt", "Documents/gone.txt"]

  private func change(_ staged: StagedContainer) throws {
    try staged.write(Array("the transaction's".utf8), to: "Documents/keep.txt")
    try staged.remove("Documents/gone.txt")
  }

  private func edit(_ sandbox: Sandbox, at point: FaultPoint, _ paths: [ContainerPath]) -> Seams {
    Seams { if $0 == point { for path in paths { try sandbox.editQuietly(path) } } }
  }

  @Test(
    arguments: [FaultPoint.staged, .checked, .treeBuilt, .synced], [StateDirectory.Place.beside, .inside])
  func stopsTheCommit(point: FaultPoint, commit: StateDirectory.Place) throws {
    for path in Self.replaced {
      let sandbox = try Sandbox(files: Self.files)
      let error = expectError(.changedMeanwhile) {
        try sandbox.run(faults: edit(sandbox, at: point, [path]), commit: commit, change)
      }
      #expect(error?.message.contains(path.description) == true)
      let texts = try Self.replaced.map(sandbox.text)
      #expect(texts == (path == Self.replaced[0] ? ["KEEP", "gone"] : ["keep", "GONE"]))
      let (stages, states) = (try sandbox.stages(), try sandbox.log().map(\.state))
      #expect(stages.isEmpty && states.isEmpty)
    }
  }

  @Test(arguments: [FaultPoint.rewalked, .committed]) func isKeptAfterTheLastLook(point: FaultPoint) throws {
    let sandbox = try Sandbox(files: Self.files)
    let outcome = try sandbox.run(faults: edit(sandbox, at: point, Self.replaced), commit: .beside, change)
    #expect(outcome.conflicts == Self.replaced.sorted())
    #expect(try sandbox.text("Documents/keep.txt") == "the transaction's")
    #expect(try sandbox.conflictCopy("Documents/keep.txt", of: outcome) == "KEEP")
    #expect(try sandbox.conflictCopy("Documents/gone.txt", of: outcome) == "GONE")
  }

  @Test(arguments: [FaultPoint.rewalked, .committed]) func stopsTheMoves(point: FaultPoint) throws {
    let sandbox = try Sandbox(files: Self.files)
    expectError(.changedMeanwhile) {
      try sandbox.run(faults: edit(sandbox, at: point, Self.replaced), commit: .inside, change)
    }
    let texts = try Self.replaced.map(sandbox.text)
    #expect(texts == ["KEEP", "GONE"])
    let (stages, reports) = (try sandbox.stages(), try Transaction.recover(sandbox.container()))
    #expect(stages.isEmpty && reports.isEmpty)
  }

  @Test func isSeenByARecovery() throws {
    let sandbox = try Sandbox(files: Self.files)
    let stop = Seams { point in
      if point == .committed { try sandbox.editQuietly("Documents/keep.txt") }
      if point == .exchanged { throw Stop() }
    }
    let outcome = try sandbox.run(faults: stop, commit: .beside, change)
    #expect(!outcome.isFinished)
    let report = try #require(try Transaction.recover(sandbox.container()).first)
    #expect(report.outcome == .new && report.conflicts == ["Documents/keep.txt"])
  }

  /// The commit links a file with another name that stays: that moves its change time, and is nobody's edit.
  @Test(arguments: [StateDirectory.Place.beside, .inside]) func ofAFileWithAnotherName(
    commit: StateDirectory.Place
  ) throws {
    let sandbox = try Sandbox(files: Self.files)
    try sandbox.live().link("Documents/keep.txt", in: sandbox.live(), to: "Library/other")
    expectError(.changedMeanwhile) {
      try sandbox.run(faults: edit(sandbox, at: .staged, [Self.replaced[0]]), commit: commit, change)
    }
    let outcome = try sandbox.run(commit: commit, change)
    let other = try sandbox.text("Library/other")
    #expect(outcome.conflicts.isEmpty && other == "KEEP")
    try sandbox.rollback(commit: commit)
    let kept = try sandbox.text("Documents/keep.txt")
    #expect(kept == "KEEP")
  }
}
