import Foundation
import TestSupport
import Testing

@testable import AppContainer
@testable import ContainerTransaction

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

  private func impossible(_ ship: Ship, _ words: String) throws {
    let before = try TreeListing(ship.folder.path)
    let error = try #require(ship.failure { try ship.run() })
    #expect(error.code == .exchangeImpossible && error.message.contains(words), "\(error)")
    expectNone(try TreeListing(ship.folder.path).changes(from: before, ignoringTimesOf: [""]))
    #expect(try ship.state() == nil)
  }

  @Test func theContainerIsAMountPoint() throws {
    try TemporaryDirectory.with { folder in
      let ship = Ship(folder: folder)
      try Directory(folder.path).createDirectory("c")
      try mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", folder("c")) {
        try ship.put("Documents/empty.txt", "x")
        try impossible(ship, "mounted at the container's root")
      }
      // A directory of the same file system, mounted on itself.
      try ship.put("Documents/empty.txt", "x")
      try mount("--bind", folder("c"), folder("c")) {
        try impossible(ship, "mounted at the container's root")
      }
      #expect(try ship.run().transaction != nil)
    }
  }

  @Test func anotherFileSystemIsInsideIt() throws {
    try Ship.withFiles(["Documents/empty.txt": "x", "Library/mounted/below": "y"]) { ship in
      try mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", ship.root + "/Library/mounted") {
        try ship.put("Library/mounted/inside", "z")
        try impossible(ship, "mounted inside the container")
      }
      try mount("--bind", ship.root + "/Documents", ship.root + "/Library/mounted") {
        try impossible(ship, "mounted inside the container")
      }
      #expect(try ship.run().transaction != nil)
      #expect(try ship.text("Library/mounted/below") == "y")
    }
  }

  @Test func theParentIsReadOnly() throws {
    try Ship.withFiles(["Documents/empty.txt": "x"]) { ship in
      try mount("--bind", ship.folder.path, ship.folder.path) {
        let remounted = try asRoot("mount", ["-o", "remount,bind,ro", ship.folder.path])
        #expect(remounted.succeeded, "\(remounted)")
        try impossible(ship, "cannot be written")
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
          } catch let error as TransactionError {
            #expect(error.code == .noSpace && error.message.contains("free"), "\(number): \(error)")
          } catch let error as ContainerError {
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
