import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import AppContainer
@testable import ContainerTransaction
@testable import FileSystem

/// Groups that others have a part in: containers that share one, programs that have one open, roots that cannot be.
@Suite struct GroupSharingTests {
  struct Stop: Error {}

  @Test(arguments: GroupCommitTests.ways)
  func nobodyBuildsOnHalfOfAnothersChange(_ commit: CommitPreference) throws {
    try GroupLab.with { lab in
      let point: FaultPoint = commit == .exchange ? .exchanged : .placed
      _ = try lab.run(commit: commit, faults: FaultInjection { if $0 == point { throw Stop() } })
      #expect(try !lab.traces().isEmpty)
      let write = lab.failure { try lab.run("d") { try $0.write([1], to: "Documents/d.txt") } }
      let look = lab.failure { _ = try Transaction.inspect(lab.container("d")) { _ in } }
      for error in [write, look] {
        #expect(error?.code == .interrupted && error?.path == lab.folder("Shared/one"))
        #expect(error?.message.contains("drydock recover") == true)
        #expect(error?.message.contains(lab.folder("c")) == true)
      }
      // Its own container says the same to who only looks, and ends it before it writes.
      #expect(lab.failure { _ = try Transaction.inspect(lab.container()) { _ in } }?.code == .interrupted)
      try Transaction.recover(lab.container())
      #expect(try lab.traces().isEmpty && lab.isNew())
      try lab.run("d") { try $0.write([1], to: GroupLab.shared.appending("by d")) }
      #expect(try lab.text("Shared/one/by d") == "\u{1}")
    }
  }

  @Test func aContainerThatIsGoneIsNotForgotten() throws {
    try GroupLab.with { lab in
      _ = try lab.run(faults: FaultInjection { if $0 == .exchanged { throw Stop() } })
      let base = try Directory(lab.folder.path)
      for name in try base.names() where name.starts(with: ".drydock-".utf8) {
        try base.removeTree(ContainerPath(name: name))
      }
      let error = lab.failure { try lab.run("d") { try $0.write([1], to: "x") } }
      #expect(error?.code == .interrupted)
      #expect(try lab.traces().contains { error?.message.contains("/Shared/\($0)/group") == true })
    }
  }

  @Test func oneAtATime() throws {
    try GroupLab.with { lab in
      try lab.run { _ in
        let error = lab.failure { try lab.run("d") { try $0.write([1], to: "x") } }
        #expect(error?.code == .locked && error?.path == lab.folder("Shared/one"))
      }
      try lab.run("d") { try $0.write([1], to: "x") }
      // Those who read do not keep each other out.
      let first = try ContainerLock(lab.container(), exclusive: false, timeout: 0)
      try withExtendedLifetime(first) {
        _ = try ContainerLock(lab.container("d"), exclusive: false, timeout: 0)
      }
    }
  }

  @Test func aGroupInUse() throws {
    try GroupLab.with { lab in
      let file = try Directory(lab.folder("Shared/one")).open("note.txt", .readOnly)
      defer { try? file.close() }
      let error = lab.failure { try lab.run { _ in throw Stop() } }
      #expect(error?.code == .inUse)
      #expect(
        error?.message.contains(".groups/group.shared/note.txt open") == true, "\(error?.message ?? "")")
    }
  }

  // MARK: Paths

  @Test func pathsThatLeadNowhere() throws {
    try GroupLab.with { lab in
      let before = try lab.listings()
      var configuration = try lab.container().configuration
      configuration.groups["group.absent"] = "../Shared/absent"
      let container = try Container(at: lab.folder("c"), configuration: configuration)
      #expect(container.missingGroups.map(\.id) == ["group.absent"])
      for (path, word) in [
        (".groups/group.absent/x", "/Shared/absent, where no directory is"),
        (".groups/group.shred/x", "did you mean `group.shared`?"), (".groups/x", "no group is named x"),
      ] {
        let error = lab.failure {
          _ = try Transaction.run(on: container, .migrate, summary: "t") {
            try $0.write([1], to: ContainerPath(path))
          }
        }
        #expect(error?.code == .missing && error?.message.contains(word) == true, "\(error?.message ?? "")")
      }
      let none = lab.failure {
        _ = try Transaction.run(on: Container(at: lab.folder("c")), .migrate, summary: "t") {
          try $0.write([1], to: ".groups/group.shared/x")
        }
      }
      #expect(none?.message.contains("drydock.yaml names none") == true)
      for path in [ContainerPath.groups, GroupLab.shared] {
        #expect(throws: DrydockError.self) { try lab.run { try $0.remove(path) } }
        #expect(throws: DrydockError.self) { try lab.run { try $0.move(path, to: "Documents/moved") } }
      }
      for name in [".drydock-state", ".drydock-state/x"] {
        let error = lab.failure {
          try lab.run { try $0.write([1], to: ContainerPath("\(GroupLab.shared)/\(name)")) }
        }
        #expect(error?.code == .exists)
      }
      expectNone(try lab.changes(from: before))
    }
  }

  @Test func rootsThatOverlap() throws {
    try GroupLab.with { lab in
      let base = try Directory(lab.folder.path)
      try base.createLink("link", target: Array("Shared/one".utf8))
      try base.createLink("into", target: Array("c/Documents".utf8))
      let wrong: [[String: String]] = [
        ["g": "."], ["g": "Documents"], ["g": ".."], ["g": "../into"],
        ["a": "../Shared/one", "b": "../link"],
        ["a": "../Shared", "b": "../Shared/one"], ["a": "../Shared/one/note.txt"],
      ]
      for groups in wrong {
        var configuration = Configuration()
        configuration.groups = groups
        let error = #expect(throws: DrydockError.self) {
          try Container(at: lab.folder("c"), configuration: configuration)
        }
        #expect(error?.code == .badConfiguration, "\(groups)")
      }
      try lab.put("c/.groups/own", "x")
      let error = #expect(throws: DrydockError.self) { try lab.container() }
      #expect(error?.message.contains("`.groups` of its own") == true)
      // Without groups it is a directory like any other.
      #expect(try Container(at: lab.folder("c")).open().contents(".groups/own") == [UInt8(ascii: "x")])
    }
  }

  @Test func aGroupOnAnotherFileSystem() throws {
    try GroupLab.with { lab in
      let other = "/dev/shm/drydock-group-\(ProcessInfo.processInfo.processIdentifier)"
      let shm = try Directory("/dev/shm")
      let name = try ContainerPath(String(other.dropFirst("/dev/shm/".count)))
      try shm.createDirectory(name)
      defer { try? shm.removeTree(name) }
      try shm.create(name.appending("f"), [1])
      var configuration = Configuration()
      configuration.groups = ["g": other]
      let container = try Container(at: lab.folder("c"), configuration: configuration)
      let before = try lab.listings()
      for commit in GroupCommitTests.ways {
        var options = TransactionOptions()
        options.commit = commit
        let error = lab.failure {
          _ = try Transaction.run(on: container, .migrate, summary: "t", options: options) {
            try $0.write([2], to: ".groups/g/f")
          }
        }
        #expect(error?.code == .notWritable && error?.message.contains("another file system") == true)
        // What leaves it alone may run, and read it.
        _ = try Transaction.run(on: container, .migrate, summary: "t", options: options) {
          try $0.write($0.read(".groups/g/f"), to: "Documents/a.txt")
        }
        _ = try Transaction.rollback(container, options: options)
      }
      expectNone(try lab.changes(from: before))
    }
  }
}
