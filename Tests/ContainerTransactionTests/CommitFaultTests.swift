import Foundation
import TestSupport
import Testing

@testable import AppContainer
@testable import ContainerTransaction
@testable import FileSystem

/// What happens when others write, or the process stops, at each moment of a commit.
@Suite struct CommitFaultTests {
  struct Stop: Error {}

  static let files = [
    "Documents/empty.txt": "", "Documents/keep.txt": "keep", "Documents/Inbox/in": "i", "Library/x/y/z": "z",
    "Documents/saved": "s", "Library/gone/one": "1", "Library/gone/two": "2",
  ]
  static let before: [FaultPoint] = [.staged, .checked, .treeBuilt, .synced]
  static let between: [FaultPoint] = [.rewalked, .committed]
  static let after: [FaultPoint] = [.exchanged, .carried, .undoKept, .oldRemoved, .done]

  static let ofExchange = FaultPoint.allCases.filter {
    ![.moved, .placed, .sealed, .partlyExchanged, .takenBack].contains($0)
  }

  /// Runs the usual transaction with something done at one point.
  private func run(_ ship: Ship, at point: FaultPoint, _ body: @escaping @Sendable () throws -> Void) throws
    -> TransactionOutcome<Void>
  {
    try ship.run(faults: FaultInjection { if $0 == point { try body() } })
  }

  @Test(arguments: before) func aChangeBeforeTheFirstLookStopsIt(point: FaultPoint) throws {
    let actions: [@Sendable (Ship) throws -> Void] = [
      { try $0.put("Documents/fresh.txt", "app") }, { try $0.save("Documents/saved", "app") },
      { try $0.put("Documents/keep.txt", "longer than before") },
      { try $0.live().removeFile("Documents/saved") },
      { try $0.live().createDirectory("Library/made") }, { try $0.live().setMode(0o700, of: "Library/x") },
      { try $0.live().setAttribute(ExtendedAttribute(name: "user.a", value: [1]), of: "Library/x/y") },
    ]
    for (number, action) in actions.enumerated() {
      try Ship.withFiles(Self.files) { ship in
        let own = ship
        let error = ship.failure { _ = try run(own, at: point) { try action(own) } }
        #expect(error?.code == .changedMeanwhile, "action \(number)")
        let now = try ship.listing()
        try Ship.withFiles(Self.files) { expected in
          try action(expected)
          expectNone(now.changes(from: try expected.listing(), comparing: TreeListing.timeless), "\(number)")
        }
        #expect(try ship.stages().isEmpty)
        #expect(try ship.log().map(\.state) == [.discarded])
      }
    }
  }

  @Test(arguments: between) func whatIsWrittenAtTheLastMomentIsCarriedOver(point: FaultPoint) throws {
    try Ship.withFiles(Self.files) { ship in
      let own = ship
      let outcome = try run(ship, at: point) {
        try own.put("Documents/fresh.txt", "app")
        try own.put("Library/made/deep/er.txt", "app")
        try own.save("Documents/saved", "saved by the app")
        try own.put("Documents/keep.txt", "in place, by the app")
        try own.live().removeFile("Library/x/y/z")
        try own.live().removeTree("Library/gone")
        try own.live().setMode(0o700, of: "Library/x")
      }
      #expect(outcome.conflicts.isEmpty && outcome.notes.isEmpty, "\(outcome)")
      #expect(try ship.text("Documents/fresh.txt") == "app" && ship.text("Library/made/deep/er.txt") == "app")
      #expect(try ship.text("Documents/saved") == "saved by the app")
      #expect(try ship.text("Documents/keep.txt") == "in place, by the app")
      #expect(try !ship.exists("Library/x/y/z") && ship.exists("Library/x/y") && !ship.exists("Library/gone"))
      #expect(try ship.live().status("Library/x")?.mode == 0o700)
      #expect(try ship.text("Documents/empty.txt") == "replaced" && !ship.exists("Documents/Inbox"))
      #expect(try ship.stages().isEmpty)
      try ship.rollback()
      #expect(try ship.text("Documents/fresh.txt") == "app" && ship.text("Documents/empty.txt") == "")
      #expect(try ship.exists("Documents/Inbox/in"))
    }
  }

  @Test(arguments: between) func whatBothWroteIsKeptBeside(point: FaultPoint) throws {
    try Ship.withFiles(Self.files) { ship in
      let own = ship
      let outcome = try run(ship, at: point) {
        try own.save("Documents/empty.txt", "the app's")
        try own.put("Documents/written.txt", "the app's, too")
        try own.put("Documents/Inbox/late", "into a removed directory")
      }
      #expect(
        outcome.conflicts == ["Documents/Inbox/late", "Documents/empty.txt", "Documents/written.txt"],
        "\(outcome.conflicts)")
      #expect(
        try ship.text("Documents/empty.txt") == "replaced" && ship.text("Documents/written.txt") == "written")
      let kept = try #require(try ship.state()).directory("conflict")
      let folder = try kept.directory(ContainerPath(#require(outcome.transaction).description))
      #expect(try folder.contents("Documents/empty.txt") == Array("the app's".utf8))
      #expect(try folder.contents("Documents/written.txt") == Array("the app's, too".utf8))
      #expect(try folder.contents("Documents/Inbox/late") == Array("into a removed directory".utf8))
    }
  }

  @Test func theContainerIsReplacedByAnotherDirectory() throws {
    for point in [FaultPoint.staged, .rewalked, .committed] {
      try Ship.withFiles(Self.files) { ship in
        let own = ship
        let before = try ship.listing()
        let error = ship.failure {
          _ = try run(ship, at: point) {
            let parent = try Directory(own.folder.path)
            try parent.rename("c", in: parent, to: "aside")
            try parent.createDirectory("c")
            try parent.create("c/stranger", [1])
          }
        }
        #expect(error?.code == .changedMeanwhile, "\(point)")
        #expect(try ship.listing().paths == ["stranger"], "\(point)")
        expectNone(try TreeListing(ship.folder("aside")).changes(from: before), "\(point)")
        #expect(try Transaction.recover(ship.container()).isEmpty && ship.stages().isEmpty)
        #expect(try ship.listing().paths == ["stranger"])
      }
    }
  }

  @Test(arguments: ofExchange) func stoppedAtEveryPoint(point: FaultPoint) throws {
    try Ship.withFiles(Self.files) { ship in
      let old = try ship.listing()
      let isNew = Self.after.contains(point)
      do {
        let outcome = try run(ship, at: point) { throw Stop() }
        #expect(isNew)
        #expect(
          point == .done || outcome.notes.contains { $0.contains("drydock recover") }, "\(outcome.notes)")
      } catch is Stop {
        #expect(!isNew)
      }
      let reports = try Transaction.recover(ship.container())
      // A clean failure before the commit record needs no recovery; the record itself does.
      #expect(
        reports.map(\.outcome) == (isNew ? (point == .done ? [] : [.new]) : point == .committed ? [.old] : [])
      )
      #expect(try ship.stages().isEmpty)
      #expect(try Transaction.recover(ship.container()).isEmpty)
      if isNew {
        #expect(
          try ship.text("Documents/empty.txt") == "replaced"
            && ship.text("Documents/new/sub/deep.txt") == "deep")
        #expect(try !ship.exists("Documents/Inbox") && ship.log().map(\.state) == [.undoable])
        try ship.rollback()
      } else {
        #expect(try ship.log().map(\.state) == [.discarded])
      }
      expectNone(try ship.listing().changes(from: old))
    }
  }

  /// As after a kill: nothing at all is cleaned up by the process itself.
  @Test(arguments: ofExchange) func abandonedAtEveryPoint(point: FaultPoint) throws {
    try Ship.withFiles(Self.files) { ship in
      let old = try ship.listing()
      // What the disk looks like at the point is copied away, and put back afterwards.
      let own = ship
      _ = try? run(ship, at: point) {
        let copied = try Command.run("/bin/cp", ["-a", own.folder.path, own.folder.path + "-frozen"])
        guard copied.succeeded else { throw SystemFailure("\(copied)") }
      }
      // Inode numbers differ in a copy; the journal's are made to agree, as they would after a kill.
      let frozen = ship.folder.path + "-frozen"
      defer { try? RawFiles.remove(Array(frozen.utf8)) }
      let container = try Container(at: frozen + "/c")
      let state = try #require(try StateDirectory.existing(for: container))
      let isExchanged = Self.after.contains(point) || [.marked, .looked].contains(point)
      try renumber(state, live: Directory(frozen + "/c"), isExchanged: isExchanged)
      let reports = try Transaction.recover(container)
      #expect(reports.map(\.outcome) == (point == .done ? [] : isExchanged ? [.new] : [.old]), "\(point)")
      #expect(try state.directory.directory("stage").names().isEmpty)
      let listing = try TreeListing(frozen + "/c")
      if isExchanged {
        expectNone(listing.changes(from: try ship.listing()))
        _ = try Transaction.rollback(container)
        expectNone(try TreeListing(frozen + "/c").changes(from: old))
      } else {
        expectNone(listing.changes(from: old))
        #expect(try Transaction.log(container).map(\.state) == [.discarded])
      }
    }
  }

  private func renumber(_ state: StateDirectory, live: Directory, isExchanged: Bool) throws {
    try state.noteTreesAnew()
    let journal = Journal(state: state.directory)
    var records = try journal.records()
    guard let commit = records.firstIndex(where: { $0.step == .commit }) else { return }
    let folder = try StateDirectory.folder(StateDirectory.stage, records[commit].transaction)
    let staged = try state.directory.status(folder.appending("tree"))?.identity
    let place = records[commit].place ?? .root
    let own = try live.status(place)?.identity
    let none = FileIdentity(device: 0, inode: 1)
    (records[commit].rootBefore, records[commit].rootAfter) =
      isExchanged ? (staged ?? none, own) : (own, staged ?? none)
    try state.directory.removeFile("journal")
    for record in records { try journal.append(record) }
    // The index, too, knows the old tree by its inodes.
    let file = try folder.appending("index")
    guard isExchanged, try state.directory.status(file) != nil else { return }
    try state.directory.removeFile(file)
    let tree = try folder.appending("tree")
    var old = try TreeIndex(of: live)
    old.paths = old.paths.filter { !$0.key.isInside(place) }
    if try state.directory.status(tree) != nil {
      for (path, status) in try TreeIndex(of: state.directory.directory(tree)).paths {
        old.paths[path.rebased(from: .root, to: place)] = status
      }
    }
    try state.directory.create(file, old.encoded())
  }
}
