import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import AppContainer
@testable import ContainerTransaction
@testable import FileSystem

/// Places where an exchange cannot work, and disks that are full. These mount file systems, which needs root.
@Suite(.serialized) struct ImpossibleTests {
  private func mount(_ arguments: String..., body: () throws -> Void) throws {
    let mounted = try asRoot("mount", arguments)
    #expect(mounted.succeeded, "\(mounted)")
    defer { _ = try? asRoot("umount", [arguments.last ?? ""]) }
    try body()
  }

  /// Only root may mount: another user needs `sudo` without a password, as on build machines.
  private func asRoot(_ command: String, _ arguments: [String]) throws -> CommandResult {
    if geteuid() == 0 { return try Command.run(command, arguments) }
    return try Command.run("sudo", ["-n", command] + arguments)
  }

  /// Changes the container, which cannot be exchanged, and takes it back.
  private func inPlace(_ ship: Ship, _ words: String) throws {
    let before = try ship.listing()
    let outcome = try ship.run()
    guard case .inPlace(let reason) = outcome.way else { throw SystemFailure("\(outcome)") }
    #expect(reason.contains(words) && outcome.notes.contains { $0.contains(reason) }, "\(outcome.notes)")
    #expect(try ship.text("Documents/empty.txt") == "replaced" && ship.stages().isEmpty)
    try ship.rollback()
    expectNone(try ship.listing().changes(from: before))
    #expect(try ship.state() == nil)
    ship.expect(.notWritable) { try ship.run(commit: .exchange) }
  }

  @Test func theContainerIsAMountPoint() throws {
    try TemporaryDirectory.with { folder in
      let ship = Ship(folder: folder)
      try Directory(folder.path).createDirectory("c")
      try mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", folder("c")) {
        try ship.put("Documents/empty.txt", "x")
        try inPlace(ship, "mounted at the container's root")
      }
      // A directory of the same file system, mounted on itself.
      try ship.put("Documents/empty.txt", "x")
      try mount("--bind", folder("c"), folder("c")) {
        try inPlace(ship, "mounted at the container's root")
        try ship.run("the last in place")
      }
      // What is kept in the container stays with it when it is exchanged, and both logs are one.
      let exchanged = try ship.run("by exchange") { try $0.write([1], to: "later") }
      #expect(exchanged.way == .exchange)
      #expect(try ship.log().map(\.summary).suffix(2) == ["the last in place", "by exchange"])
      // Mounted again: what an exchange has kept beside it is behind another mount, and comes back all the same.
      try mount("--bind", folder("c"), folder("c")) {
        try ship.rollback()
        #expect(try !ship.exists("later") && ship.text("Documents/empty.txt") == "replaced")
      }
      try ship.rollback()
      #expect(try ship.text("Documents/empty.txt") == "x")
    }
  }

  @Test func anotherFileSystemIsInsideIt() throws {
    try Ship.withFiles(["Documents/empty.txt": "x", "Library/mounted/below": "y"]) { ship in
      try mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", ship.root + "/Library/mounted") {
        try ship.put("Library/mounted/inside", "z")
        try inPlace(ship, "mounted inside the container, at Library/mounted")
        // What is on it cannot be changed in the same step.
        let before = try ship.listing()
        for body in [
          { try $0.write([1], to: "Library/mounted/inside") },
          { try $0.write([1], to: "Library/mounted/new") }, { try $0.remove("Library/mounted") },
        ] as [(StagedContainer) throws -> Void] {
          let refused = (try? ship.run { try body($0) }) == nil
          #expect(refused)
          expectNone(try ship.listing().changes(from: before))
          #expect(try ship.stages().isEmpty)
        }
      }
      try mount("--bind", ship.root + "/Documents", ship.root + "/Library/mounted") {
        try inPlace(ship, "mounted inside the container")
      }
      #expect(try ship.run().way == .exchange)
      #expect(try ship.text("Library/mounted/below") == "y")
    }
  }

  @Test func theParentIsReadOnly() throws {
    try Ship.withFiles(["Documents/empty.txt": "x"]) { ship in
      try mount("--bind", ship.folder.path, ship.folder.path) {
        let remounted = try asRoot("mount", ["-o", "remount,bind,ro", ship.folder.path])
        #expect(remounted.succeeded, "\(remounted)")
        let before = try TreeListing(ship.folder.path)
        ship.expect(.notWritable) { try ship.run() }
        expectNone(try TreeListing(ship.folder.path).changes(from: before))
        // Looking needs no writable directory.
        let outcome = try Transaction.dryRun(on: ship.container(), body: Ship.change)
        #expect(!outcome.difference.isEmpty)
      }
    }
  }

  @Test func mountedAtTheLastMoment() throws {
    try Ship.withFiles(["Documents/empty.txt": "x"]) { ship in
      let before = try ship.listing()
      let root = ship.root
      let faults = FaultInjection { point in
        guard point == .committed else { return }
        let mounted = try Command.run(
          "mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", root + "/Documents"])
        guard mounted.succeeded else { throw SystemFailure("\(mounted)") }
      }
      // Whatever becomes of it, what is mounted is not emptied.
      _ = try? ship.run(faults: faults)
      defer { _ = try? asRoot("umount", [root + "/Documents"]) }
      _ = try? Transaction.recover(ship.container())
      let mounts = try String(contentsOfFile: "/proc/self/mountinfo", encoding: .utf8)
      let place = mounts.split(separator: "\n").first { $0.contains(ship.folder.path) }
      let path = try #require(place).split(separator: " ")[4]
      #expect(try asRoot("umount", [String(path)]).succeeded)
      _ = try Transaction.recover(ship.container())
      #expect(try ship.stages().isEmpty)
      if try ship.log().first?.state == .undoable { try ship.rollback() }
      expectNone(try ship.listing().changes(from: before))
    }
  }

  // MARK: Full disks

  /// With less and less space: a commit in place is done, or has changed nothing.
  @Test func noSpaceInPlace() throws {
    for room in [0, 8, 16, 24, 32, 40, 48, 60, 80] {
      try TemporaryDirectory.with { folder in
        try mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", folder.path) {
          let ship = Ship(folder: folder)
          try Directory(folder.path).createDirectory("c")
          try ship.put("Documents/empty.txt", "x")
          let before = try ship.listing()
          let free = Int(try ship.live().freeSpace() ?? 0) - room * 1024
          try Directory(folder.path).create("filler", [UInt8](repeating: 0, count: max(free, 0)))
          do {
            try ship.run(commit: .inPlace)
            #expect(try ship.text("Documents/new/sub/deep.txt") == "deep", "\(room)")
          } catch {
            expectNone(try ship.listing().changes(from: before), "\(room)")
          }
          try Directory(folder.path).removeFile("filler")
          _ = try Transaction.recover(ship.container())
          #expect(try ship.stages().isEmpty, "\(room)")
          if try !ship.exists("Documents/new") { try ship.run(commit: .inPlace) }
          try ship.rollback(commit: .inPlace)
          expectNone(try ship.listing().changes(from: before), "\(room)")
        }
      }
    }
  }

  @Test func noSpace() throws {
    try TemporaryDirectory.with { folder in
      try mount("-t", "tmpfs", "-o", "size=4m", "tmpfs", folder.path) {
        let ship = Ship(folder: folder)
        try Directory(folder.path).createDirectory("c")
        try ship.put("Documents/empty.txt", "x")
        let made = try Command.run(
          try Tools.system("sqlite3"),
          ["\(ship.root)/db", "CREATE TABLE t(x); INSERT INTO t VALUES (zeroblob(1000000))"])
        #expect(made.succeeded)
        let before = try ship.listing()
        let big = [UInt8](repeating: 1, count: 5 << 20)
        let bodies: [(StagedContainer) throws -> Void] = [
          { try $0.write(big, to: "big") },
          { staged in try staged.putFile(at: "big", metadata: nil, size: 0) { try $0.write(big) } },
          { staged in
            try staged.writeDatabase(at: "db") {
              try $0.execute(sql: "INSERT INTO t VALUES (zeroblob(4000000))")
            }
          },
          { staged in for number in 0..<6 { try staged.copy("db", to: ContainerPath("copy-\(number)")) } },
        ]
        for (number, body) in bodies.enumerated() {
          do {
            try ship.run("\(number)", body)
            Issue.record("there was room for \(number)")
          } catch let error as DrydockError {
            #expect(error.code == .noSpace && error.message.contains("free"), "\(number): \(error)")
          }
          expectNone(try ship.listing().changes(from: before, comparing: TreeListing.untouched))
          #expect(try ship.stages().isEmpty)
          #expect(try ship.log().allSatisfy { $0.state == .discarded })
        }
        let outcome = try ship.run { try $0.write([1], to: "small") }
        #expect(outcome.transaction != nil)
      }
    }
  }
}
