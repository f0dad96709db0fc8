import DrydockErrors
import Synchronization
import TestSupport
import Testing

@testable import AppContainer
@testable import ContainerTransaction
@testable import FileSystem

/// One transaction over a container and its groups: all roots old, or all new.
@Suite struct GroupCommitTests {
  struct Stop: Error {}

  static let ways: [CommitPreference] = [.exchange, .inPlace]

  @Test(arguments: ways) func changeAndRollback(_ commit: CommitPreference) throws {
    try GroupLab.with { lab in
      let before = try lab.listings()
      let outcome = try lab.run(commit: commit)
      #expect(try lab.isNew() && outcome.conflicts.isEmpty && outcome.isFinished, "\(outcome.notes)")
      #expect(try Directory(lab.folder("Shared")).status("one")?.mode == 0o750)
      #expect(try lab.text("d/Documents/d.txt") == "d" && lab.traces().isEmpty)
      var options = TransactionOptions()
      options.commit = commit
      _ = try Transaction.rollback(lab.container(), options: options)
      expectNone(try lab.changes(from: before))
      _ = try Transaction.rollback(lab.container(), redoing: true, options: options)
      #expect(try lab.isNew() && lab.traces().isEmpty)
      #expect(try Transaction.log(lab.container()).map(\.kind) == [.migrate, .rollback, .redo])
    }
  }

  @Test func aDryRunTouchesNothingAndTellsAll() throws {
    try GroupLab.with { lab in
      let before = try lab.listings()
      let outcome = try Transaction.dryRun(on: lab.container(), body: GroupLab.change)
      expectNone(try lab.changes(from: before, comparing: TreeListing.untouched))
      let paths = outcome.difference.files.map(\.path.description)
      #expect(paths.contains(".groups/group.shared/note.txt") && paths.contains("Documents/a.txt"))
      #expect(!paths.contains(".groups") && !paths.contains(".groups/group.shared"), "\(paths)")
      #expect(try lab.traces().isEmpty)
    }
  }

  @Test func aScriptsCopyHasTheGroups() throws {
    try GroupLab.with { lab in
      let before = try lab.listings()
      try lab.run { staged in
        try staged.changeCopy { copy in
          #expect(try copy.root.contents(".groups/group.own/own.txt") == Array("own".utf8))
          try copy.root.create(".groups/group.shared/deep/made", [1])
          try copy.root.removeTree(".groups/group.shared/gone.txt")
          try copy.root.rename("Documents/keep", in: copy.root, to: ".groups/group.own/keep")
        }
      }
      #expect(try lab.text("Shared/one/deep/made") == "\u{1}" && lab.text("Shared/two/keep/b.txt") == "b")
      #expect(try !lab.exists("Shared/one/gone.txt") && !lab.exists("c/.groups"))
      _ = try Transaction.rollback(lab.container())
      expectNone(try lab.changes(from: before))
      for wrong in ["group.new", "file"] {
        #expect(throws: DrydockError.self) {
          try lab.run { try $0.changeCopy { try $0.root.createDirectory(ContainerPath(".groups/\(wrong)")) } }
        }
      }
      #expect(throws: DrydockError.self) {
        try lab.run { try $0.changeCopy { try $0.root.removeTree(".groups/group.own") } }
      }
      expectNone(try lab.changes(from: before))
    }
  }

  @Test func rootsOfWhichNothingChangesStayAsTheyAre() throws {
    try GroupLab.with { lab in
      let base = try Directory(lab.folder.path)
      let one = try base.status("Shared/one")
      try lab.run { try $0.write([1], to: GroupLab.own.appending("own.txt")) }
      #expect(try base.status("Shared/one") == one)
      // The other container sees what was written to what both share.
      try lab.run { try $0.write([1], to: GroupLab.shared.appending("note.txt")) }
      let seen = try Transaction.inspect(lab.container("d")) {
        try $0.read(GroupLab.shared.appending("note.txt"))
      }
      #expect(seen == [1])
    }
  }

  // MARK: Stops

  private static let after: [FaultPoint] = [
    .exchanged, .placed, .carried, .undoKept, .oldRemoved, .done,
  ]

  @Test(arguments: FaultPoint.allCases.filter { ![.sealed, .takenBack].contains($0) }, ways)
  func stoppedAtEveryPoint(_ point: FaultPoint, _ commit: CommitPreference) throws {
    let foreign: [FaultPoint] = commit == .exchange ? [.moved, .placed] : [.exchanged, .partlyExchanged]
    guard !foreign.contains(point) else { return }
    for count in [.moved, .partlyExchanged].contains(point) ? 1...2 : 1...1 {
      try GroupLab.with { lab in
        let before = try lab.listings()
        let isNew = Self.after.contains(point)
        let seen = Mutex(0)
        let faults = FaultInjection {
          guard $0 == point else { return }
          let isNow = seen.withLock { seen in
            seen += 1
            return seen == count
          }
          if isNow { throw Stop() }
        }
        do {
          _ = try lab.run(commit: commit, faults: faults)
          #expect(isNew)
        } catch is Stop {
          #expect(!isNew)
        }
        _ = try Transaction.recover(lab.container())
        #expect(try lab.isNew() == isNew && lab.traces().isEmpty)
        if isNew { _ = try Transaction.rollback(lab.container()) }
        expectNone(try lab.changes(from: before))
      }
    }
  }

  /// As after a kill: what the disk looks like at a moment is copied away, and recovered there.
  @Test(arguments: [
    (FaultPoint.rewalked, 1), (.committed, 1), (.partlyExchanged, 1), (.partlyExchanged, 2), (.exchanged, 1),
    (.carried, 1), (.undoKept, 1), (.oldRemoved, 1),
  ]) func abandonedBetweenTwoExchanges(_ point: FaultPoint, _ count: Int) throws {
    try GroupLab.with { lab in
      let before = try lab.listings()
      let frozen = lab.folder.path + "-frozen"
      defer { try? Directory("/").removeTree(ContainerPath(String(frozen.dropFirst()))) }
      let seen = Mutex(0)
      // Inode numbers differ in a copy: which roots were exchanged at that moment is noted.
      let base = try Directory(lab.folder.path)
      let paths: [ContainerPath] = ["c", "Shared/two", "Shared/one"]
      let old = try paths.map { try base.status($0)?.inode }
      let exchanged = Mutex<[Bool]>([])
      try lab.run(
        faults: FaultInjection {
          guard $0 == point else { return }
          let isNow = seen.withLock { seen in
            seen += 1
            return seen == count
          }
          guard isNow else { return }
          let now = try paths.map { try base.status($0)?.inode }
          exchanged.withLock { $0 = zip(old, now).map { $0 != $1 } }
          let copied = try Command.run("/bin/cp", ["-a", lab.folder.path, frozen])
          guard copied.succeeded else { throw SystemFailure("\(copied)") }
        })
      let sides = exchanged.withLock { $0 }
      let container = try lab.container(in: frozen)
      try Renumbering(lab, frozen, paths, sides).run(container)
      let reports = try Transaction.recover(container)
      let isNew = sides.contains(true)
      #expect(reports.map(\.outcome) == [isNew ? .new : .old], "\(sides)")
      if isNew {
        #expect(try lab.isNew(in: frozen), "\(sides)")
        _ = try Transaction.rollback(container)
      }
      expectNone(try lab.changes(from: before, in: frozen), "\(sides)")
    }
  }

  @Test func whatAnAppWritesInAGroupAtTheLastMomentIsCarriedOver() throws {
    for (point, count) in [(FaultPoint.rewalked, 1), (.partlyExchanged, 1)] {
      try GroupLab.with { lab in
        let seen = Mutex(0)
        let outcome = try lab.run(
          faults: FaultInjection {
            guard $0 == point,
              seen.withLock({
                $0 += 1; return $0
              }) == count
            else { return }
            try lab.put("Shared/one/fresh.txt", "app")
            try lab.put("c/Documents/fresh.txt", "app")
            if point == .rewalked { try lab.put("Shared/one/note.txt", "the app's own") }
          })
        #expect(try lab.isNew() && lab.text("Shared/one/fresh.txt") == "app")
        #expect(try lab.text("c/Documents/fresh.txt") == "app")
        #expect(outcome.conflicts == (point == .rewalked ? [try GroupLab.shared.appending("note.txt")] : []))
      }
    }
  }
}

extension StateDirectory {
  /// Trees that were built have other inodes in a copy.
  func noteTreesAnew() throws {
    let stages = try directory.directory(Self.stage)
    for name in try stages.names() {
      let folder = try stages.directory(ContainerPath(name: name))
      guard try folder.status("trees") != nil else { continue }
      try folder.removeFile("trees")
      try BuiltTrees.note(["tree", "tree-1", "tree-2"], in: folder)
    }
  }
}

/// Makes the records of a copied container agree with the inodes that the copy has.
private struct Renumbering {
  let frozen: String
  /// The roots, the container's first, and whether each was exchanged.
  let paths: [ContainerPath], sides: [Bool]

  init(_ lab: GroupLab, _ frozen: String, _ paths: [ContainerPath], _ sides: [Bool]) {
    (self.frozen, self.paths, self.sides) = (frozen, paths, sides)
  }

  func run(_ container: Container) throws {
    let state = try #require(try StateDirectory.existing(for: container))
    let journal = Journal(state: state.directory)
    var records = try journal.records()
    try state.noteTreesAnew()
    guard let at = records.firstIndex(where: { $0.step == .commit }) else { return }
    let folder = try state.directory.directory(
      StateDirectory.folder(StateDirectory.stage, records[at].transaction))
    let base = try Directory(frozen)
    let none = FileIdentity(device: 0, inode: 1)
    func pair(_ number: Int, _ tree: ContainerPath) throws -> (FileIdentity, FileIdentity) {
      let live = try base.status(paths[number])?.identity ?? none
      let staged = try folder.status(tree)?.identity ?? none
      return sides[number] ? (staged, live) : (live, staged)
    }
    (records[at].rootBefore, records[at].rootAfter) = try pair(0, "tree")
    records[at].groups = try records[at].groups?.enumerated().map { number, group in
      var group = group
      (group.before, group.after) = try pair(number + 1, group.tree)
      group.root = frozen + "/" + paths[number + 1].description
      return group
    }
    try state.directory.removeFile("journal")
    for record in records { try journal.append(record) }

    // The index, too, knows the old trees by their inodes.
    guard try folder.status("index") != nil else { return }
    let trees: [ContainerPath] = ["tree", "tree-1", "tree-2"]
    let opened = try (0..<3).map { number in
      try sides[number]
        ? (folder.status(trees[number]) == nil ? folder.directory(.root) : folder.directory(trees[number]))
        : base.directory(paths[number])
    }
    try folder.removeFile("index")
    let isGone = try sides.contains(true) && folder.status("tree") == nil
    let old = opened[0].showing(groups: ["group.own": opened[1], "group.shared": opened[2]])
    try folder.create("index", isGone ? [] : TreeIndex(of: old).encoded())
  }
}
