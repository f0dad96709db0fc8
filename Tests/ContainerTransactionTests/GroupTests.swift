import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import AppContainer
@testable import ContainerTransaction
@testable import FileSystem

/// One transaction over a container and its groups: all roots old, or all new.
@Suite struct GroupCommitTests {

  static let ways: [StateDirectory.Place] = [.beside, .inside]

  @Test(arguments: ways) func changeAndRollback(_ commit: StateDirectory.Place) throws {
    let sandbox = try GroupSandbox()
    let before = try sandbox.listings()
    let outcome = try sandbox.run(commit: commit)
    #expect(try sandbox.isNew() && outcome.conflicts.isEmpty && outcome.isFinished, "\(outcome.notes)")
    #expect(try Directory(sandbox.folder("Shared")).status("one")?.mode == 0o750)
    #expect(try sandbox.text("d/Documents/d.txt") == "d" && sandbox.traces().isEmpty)
    try sandbox.rollback(commit: commit)
    expectNone(try sandbox.changes(from: before))
    try sandbox.rollback(redoing: true, commit: commit)
    #expect(try sandbox.isNew() && sandbox.traces().isEmpty)
    #expect(try Transaction.log(sandbox.container()).map(\.kind) == [.migrate, .rollback, .redo])
  }

  @Test func aDryRunTouchesNothingAndTellsAll() throws {
    let sandbox = try GroupSandbox()
    let before = try sandbox.listings()
    let outcome = try Transaction.dryRun(on: sandbox.container(), body: GroupSandbox.change)
    expectNone(try sandbox.changes(from: before, comparing: TreeListing.untouched))
    let paths = outcome.difference.files.map(\.path.description)
    #expect(paths.contains(".groups/group.shared/note.txt") && paths.contains("Documents/a.txt"))
    #expect(!paths.contains(".groups") && !paths.contains(".groups/group.shared"), "\(paths)")
    #expect(try sandbox.traces().isEmpty)
  }

  @Test func aScriptsCopyHasTheGroups() throws {
    let sandbox = try GroupSandbox()
    let before = try sandbox.listings()
    try sandbox.run { staged in
      try staged.changeCopy { copy in
        #expect(try copy.root.contents(".groups/group.own/own.txt") == Array("own".utf8))
        try copy.root.create(".groups/group.shared/deep/made", [1])
        try copy.root.removeTree(".groups/group.shared/gone.txt")
        try copy.root.rename("Documents/keep", in: copy.root, to: ".groups/group.own/keep")
      }
    }
    #expect(
      try sandbox.text("Shared/one/deep/made") == "\u{1}" && sandbox.text("Shared/two/keep/b.txt") == "b")
    #expect(try !sandbox.exists("Shared/one/gone.txt") && !sandbox.exists("c/.groups"))
    try sandbox.rollback()
    expectNone(try sandbox.changes(from: before))
    for wrong in ["group.new", "file"] {
      #expect(throws: DrydockError.self) {
        try sandbox.run {
          try $0.changeCopy { try $0.root.createDirectory(ContainerPath(".groups/\(wrong)")) }
        }
      }
    }
    #expect(throws: DrydockError.self) {
      try sandbox.run { try $0.changeCopy { try $0.root.removeTree(".groups/group.own") } }
    }
    expectNone(try sandbox.changes(from: before))
  }

  @Test func rootsOfWhichNothingChangesStayAsTheyAre() throws {
    let sandbox = try GroupSandbox()
    let base = try Directory(sandbox.folder.path)
    let one = try base.status("Shared/one")
    try sandbox.run { try $0.write([1], to: GroupSandbox.own.appending("own.txt")) }
    #expect(try base.status("Shared/one") == one)
    // The other container sees what was written to what both share.
    try sandbox.run { try $0.write([1], to: GroupSandbox.shared.appending("note.txt")) }
    let seen = try Transaction.inspect(sandbox.container("d")) {
      try $0.read(GroupSandbox.shared.appending("note.txt"))
    }
    #expect(seen == [1])
  }

  // MARK: Stops

  private static let after: [FaultPoint] = [
    .exchanged, .placed, .merged, .undoKept, .oldRemoved, .done,
  ]

  @Test(arguments: FaultPoint.allCases.filter { ![.sealed, .reverted].contains($0) }, ways)
  func stoppedAtEveryPoint(_ point: FaultPoint, _ commit: StateDirectory.Place) throws {
    let foreign: [FaultPoint] = commit == .beside ? [.moved, .placed] : [.exchanged, .partlyExchanged]
    guard !foreign.contains(point) else { return }
    for count in [.moved, .partlyExchanged].contains(point) ? 1...2 : 1...1 {
      let sandbox = try GroupSandbox()
      let before = try sandbox.listings()
      let isNew = Self.after.contains(point)
      do {
        _ = try sandbox.run(commit: commit, faults: .at(point, count))
        #expect(isNew)
      } catch is Stop {
        #expect(!isNew)
      }
      _ = try Transaction.recover(sandbox.container())
      #expect(try sandbox.isNew() == isNew && sandbox.traces().isEmpty)
      if isNew { try sandbox.rollback() }
      expectNone(try sandbox.changes(from: before))
    }
  }

  @Test func whatAnAppWritesInAGroupAtTheLastMomentIsMerged() throws {
    for point in [FaultPoint.rewalked, .partlyExchanged] {
      let sandbox = try GroupSandbox()
      let outcome = try sandbox.run(
        faults: .at(point) {
          try sandbox.put("Shared/one/fresh.txt", "app")
          try sandbox.put("c/Documents/fresh.txt", "app")
          if point == .rewalked { try sandbox.put("Shared/one/note.txt", "the app's own") }
        })
      #expect(try sandbox.isNew() && sandbox.text("Shared/one/fresh.txt") == "app")
      #expect(try sandbox.text("c/Documents/fresh.txt") == "app")
      #expect(
        outcome.conflicts == (point == .rewalked ? [try GroupSandbox.shared.appending("note.txt")] : []))
    }
  }
}

/// Groups that others have a part in: containers that share one, programs that have one open, roots that cannot be.
@Suite struct GroupSharingTests {
  private let sandbox: GroupSandbox

  init() throws { sandbox = try GroupSandbox() }

  @Test(arguments: GroupCommitTests.ways)
  func nobodyBuildsOnHalfOfAnothersChange(_ commit: StateDirectory.Place) throws {
    let point: FaultPoint = commit == .beside ? .exchanged : .placed
    _ = try sandbox.run(commit: commit, faults: Seams { if $0 == point { throw Stop() } })
    #expect(try !sandbox.traces().isEmpty)
    let write = expectError { try sandbox.run("d") { try $0.write([1], to: "Documents/d.txt") } }
    let look = expectError { _ = try Transaction.inspect(sandbox.container("d")) { _ in } }
    for error in [write, look] {
      #expect(error?.code == .interrupted && error?.path == sandbox.folder("Shared/one"))
      #expect(error?.message.contains("recover the container") == true)
      #expect(error?.message.contains(sandbox.folder("c")) == true)
    }
    // Its own container says the same to who only looks, and ends it before it writes.
    #expect(expectError { _ = try Transaction.inspect(sandbox.container()) { _ in } }?.code == .interrupted)
    try Transaction.recover(sandbox.container())
    #expect(try sandbox.traces().isEmpty && sandbox.isNew())
    try sandbox.run("d") { try $0.write([1], to: GroupSandbox.shared.appending("by d")) }
    #expect(try sandbox.text("Shared/one/by d") == "\u{1}")
  }

  /// The lock is taken once more after the recovery: it may have exchanged what was locked.
  @Test(arguments: GroupCommitTests.ways)
  func aTransactionRecoversFirst(_ commit: StateDirectory.Place) throws {
    let point: FaultPoint = commit == .beside ? .exchanged : .placed
    _ = try sandbox.run(commit: commit, faults: Seams { if $0 == point { throw Stop() } })
    let outcome = try sandbox.run(commit: commit) { staged in
      expectError(.locked) { try sandbox.run("d") { try $0.write([1], to: "x") } }
      try staged.write([1], to: GroupSandbox.shared.appending("later"))
    }
    #expect(outcome.recovered.map(\.outcome) == [.new] && outcome.isFinished, "\(outcome.notes)")
    #expect(try sandbox.isNew() && sandbox.text("Shared/one/later") == "\u{1}" && sandbox.traces().isEmpty)
  }

  @Test func aContainerThatIsGoneIsNotForgotten() throws {
    _ = try sandbox.run(faults: Seams { if $0 == .exchanged { throw Stop() } })
    let base = try Directory(sandbox.folder.path)
    for name in try base.names() where name.starts(with: ".drydock-".utf8) {
      try base.removeTree(ContainerPath(name: name))
    }
    let error = expectError(.interrupted) { try sandbox.run("d") { try $0.write([1], to: "x") } }
    #expect(try sandbox.traces().contains { error?.message.contains("/Shared/\($0)/group") == true })
  }

  @Test func oneAtATime() throws {
    try sandbox.run { _ in
      let error = expectError { try sandbox.run("d") { try $0.write([1], to: "x") } }
      #expect(error?.code == .locked && error?.path == sandbox.folder("Shared/one"))
    }
    try sandbox.run("d") { try $0.write([1], to: "x") }
    // Those who read do not keep each other out.
    let first = try ContainerLock(sandbox.container(), exclusive: false, timeout: 0)
    try withExtendedLifetime(first) {
      _ = try ContainerLock(sandbox.container("d"), exclusive: false, timeout: 0)
    }
  }

  @Test func aGroupInUse() throws {
    let file = try Directory(sandbox.folder("Shared/one")).open("note.txt", .readOnly)
    defer { try? file.close() }
    let error = expectError(.inUse) { try sandbox.run { _ in throw Stop() } }
    #expect(error?.message.contains(".groups/group.shared/note.txt open") == true, "\(error?.message ?? "")")
  }

  // MARK: Paths

  @Test func pathsThatLeadNowhere() throws {
    let before = try sandbox.listings()
    var configuration = try sandbox.container().configuration
    configuration.groups["group.absent"] = "../Shared/absent"
    let container = try Container(at: sandbox.folder("c"), configuration: configuration)
    #expect(container.missingGroups.map(\.id) == ["group.absent"])
    for (path, word) in [
      (".groups/group.absent/x", "/Shared/absent, does not exist"),
      (".groups/group.shred/x", "did you mean `group.shared`?"), (".groups/x", "unknown group x"),
    ] {
      let error = expectError {
        _ = try Transaction.run(on: container, .migrate, summary: "t") {
          try $0.write([1], to: ContainerPath(path))
        }
      }
      #expect(error?.code == .missing && error?.message.contains(word) == true, "\(error?.message ?? "")")
    }
    let none = expectError {
      _ = try Transaction.run(on: Container(at: sandbox.folder("c")), .migrate, summary: "t") {
        try $0.write([1], to: ".groups/group.shared/x")
      }
    }
    #expect(none?.message.contains("drydock.yaml names none") == true)
    for path in [ContainerPath.groups, GroupSandbox.shared] {
      #expect(throws: DrydockError.self) { try sandbox.run { try $0.remove(path) } }
      #expect(throws: DrydockError.self) { try sandbox.run { try $0.move(path, to: "Documents/moved") } }
    }
    for name in [".drydock-state", ".drydock-state/x"] {
      expectError(.exists) {
        try sandbox.run { try $0.write([1], to: ContainerPath("\(GroupSandbox.shared)/\(name)")) }
      }
    }
    expectNone(try sandbox.changes(from: before))
  }

  @Test func rootsThatOverlap() throws {
    let base = try Directory(sandbox.folder.path)
    try base.createLink("link", target: Array("Shared/one".utf8))
    try base.createLink("into", target: Array("c/Documents".utf8))
    let wrong: [[String: String]] = [
      ["g": "."], ["g": "Documents"], ["g": ".."], ["g": "../into"],
      ["a": "../Shared/one", "b": "../link"],
      ["a": "../Shared", "b": "../Shared/one"], ["a": "../Shared/one/note.txt"],
    ]
    for groups in wrong {
      var configuration = ContainerConfiguration()
      configuration.groups = groups
      let error = #expect(throws: DrydockError.self) {
        try Container(at: sandbox.folder("c"), configuration: configuration)
      }
      #expect(error?.code == .badConfiguration, "\(groups)")
    }
    try sandbox.put("c/.groups/own", "x")
    expectError(nil, "has a `.groups` directory") { try sandbox.container() }
    // Without groups it is a directory like any other.
    #expect(try Container(at: sandbox.folder("c")).open().contents(".groups/own") == [UInt8(ascii: "x")])
  }

  @Test func aGroupOnAnotherFileSystem() throws {
    let other = "/dev/shm/drydock-group-\(ProcessInfo.processInfo.processIdentifier)"
    let shm = try Directory("/dev/shm")
    let name = try ContainerPath(String(other.dropFirst("/dev/shm/".count)))
    try shm.createDirectory(name)
    defer { try? shm.removeTree(name) }
    try shm.create(name.appending("f"), [1])
    var configuration = ContainerConfiguration()
    configuration.groups = ["g": other]
    let container = try Container(at: sandbox.folder("c"), configuration: configuration)
    let before = try sandbox.listings()
    for commit in GroupCommitTests.ways {
      let options = TransactionOptions(commit: commit)
      expectError(.notWritable, "another file system") {
        _ = try Transaction.run(on: container, .migrate, summary: "t", options: options) {
          try $0.write([2], to: ".groups/g/f")
        }
      }
      // What leaves it alone may run, and read it.
      _ = try Transaction.run(on: container, .migrate, summary: "t", options: options) {
        try $0.write($0.read(".groups/g/f"), to: "Documents/a.txt")
      }
      _ = try Transaction.rollback(container, options: options)
    }
    expectNone(try sandbox.changes(from: before))
  }
}
