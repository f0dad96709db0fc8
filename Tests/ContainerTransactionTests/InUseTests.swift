import Foundation
import TestSupport
import Testing

@testable import AppContainer
@testable import ContainerTransaction

@Suite struct InUseTests {
  private func refused(_ ship: Ship, by running: RunningCommand, _ path: String, _ manner: String) throws {
    let before = try ship.listing()
    let error = try #require(ship.failure { try ship.run() })
    #expect(error.code == .inUse)
    for part in ["process \(running.process)", path, manner, "and run it again"] {
      #expect(error.message.contains(part), "\(part) in \(error.message)")
    }
    expectNone(try ship.listing().changes(from: before, comparing: TreeListing.untouched))
    // A refusal leaves nothing behind.
    #expect(try ship.state() == nil)
    running.closeInput()
    _ = try running.wait()
    #expect(try ship.run().transaction != nil)
  }

  @Test func theAppHasItsDatabaseOpen() throws {
    try Ship.withNotes { ship in
      let app = try Command.spawn(try Tools.notesApp(), ["hold", ship.root])
      try app.waitForLine("ready")
      try refused(ship, by: app, "Documents/database.sqlite", "NotesApp")
    }
  }

  @Test func anIdleConnectionInRollbackModeHoldsNoLock() throws {
    try Ship.withNotes("--rollback-journal") { ship in
      let app = try Command.spawn(try Tools.notesApp(), ["hold", ship.root])
      try app.waitForLine("ready")
      #expect(try DatabaseLock.acquire(Ship.database, in: ship.live()) != nil)
      try refused(ship, by: app, "Documents/database.sqlite", "open")
    }
  }

  @Test func aShellStandsInIt() throws {
    try Ship.withFiles(["Documents/a": "a"]) { ship in
      let shell = try Command.spawn(
        "/bin/sh", ["-c", "echo ready; cat"], directory: ship.root + "/Documents")
      try shell.waitForLine("ready")
      try refused(ship, by: shell, "Documents", "working directory")
    }
  }

  @Test func aShellStandsInItsRoot() throws {
    try Ship.withFiles(["Documents/a": "a"]) { ship in
      let shell = try Command.spawn("/bin/sh", ["-c", "echo ready; exec cat"], directory: ship.root)
      try shell.waitForLine("ready")
      try refused(ship, by: shell, "the container's directory", "working directory")
    }
  }

  @Test func aFileIsOpen() throws {
    try Ship.withFiles(["Documents/a": "a", "Documents/b": "b"]) { ship in
      let shell = try Command.spawn(
        "/bin/sh", ["-c", "exec 5<\"$0\"; echo ready; cat", ship.root + "/Documents/b"])
      try shell.waitForLine("ready")
      try refused(ship, by: shell, "Documents/b", "open")
    }
  }

  @Test func aFileIsMappedAndClosed() throws {
    try Ship.withFiles(["Documents/mapped": String(repeating: "m", count: 5000)]) { ship in
      try whileMapping(ship.root + "/Documents/mapped") {
        let error = try #require(ship.failure { try ship.run() })
        #expect(error.code == .inUse)
        #expect(error.message.contains("Documents/mapped mapped into memory"), "\(error)")
      }
      #expect(try ship.run().transaction != nil)
    }
  }

  private func whileMapping(_ path: String, _ body: () throws -> Void) throws {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    let address = mmap(nil, 4096, PROT_READ, MAP_SHARED, descriptor, 0)
    close(descriptor)
    guard address != MAP_FAILED else { throw SystemFailure(call: "mmap", path: Array(path.utf8)) }
    defer { munmap(address, 4096) }
    try body()
  }

  // MARK: Threads with tables of their own

  /// A thread opens a file, or works in a directory, that the process as a whole does not have: `descriptors` and
  /// `directories` of its own, or the `last` thread of a process whose first one has ended.
  private static let thread = """
    import ctypes, os, platform, sys, threading
    libc = ctypes.CDLL(None)
    how, path = sys.argv[1:]
    def work():
      if how == "descriptors": assert libc.unshare(0x400) == 0
      if how == "directories": assert libc.unshare(0x200) == 0
      if how == "directories": os.chdir(path)
      else: descriptor = os.open(path, os.O_RDONLY)
      if how == "mapping":
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
        libc.mmap(None, 4096, 1, 1, descriptor, 0)
        os.close(descriptor)
      main = f"/proc/{os.getpid()}/task/{os.getpid()}/stat"
      while how in ["last", "mapping"] and open(main).read().rsplit(")", 1)[1].split()[0] != "Z": pass
      print("ready", flush=True)
      sys.stdin.read()
    threading.Thread(target=work).start()
    # The call for the end of one thread.
    if how in ["last", "mapping"]: libc.syscall(60 if platform.machine() == "x86_64" else 93, 0)
    """

  @Test(arguments: [
    ("descriptors", "Documents/a", "open"), ("directories", "Documents", "working directory"),
    ("last", "Documents/a", "open"), ("mapping", "Documents/a", "mapped into memory"),
  ])
  func aThreadHasItByItself(how: String, path: String, manner: String) throws {
    try Ship.withFiles(["Documents/a": "a"]) { ship in
      let program = try Command.spawn(
        Tools.system("python3"), ["-c", Self.thread, how, ship.root + "/" + path])
      try program.waitForLine("ready")
      try refused(ship, by: program, path, manner)
    }
  }

  @Test func aDatabaseIsLockedByWhomNobodySees() throws {
    try Ship.withNotes { ship in
      // The lock alone, as of a process that may not be looked into.
      let lock = try #require(try DatabaseLock.acquire(Ship.database, in: ship.live()) as DatabaseLock?)
      let error = ship.failure { try ship.run() }
      #expect(error?.code == .inUse && error?.message.contains("Documents/database.sqlite") == true)
      withExtendedLifetime(lock) {}
    }
  }

  // MARK: The container's lock

  @Test func anotherCommandHoldsTheLock() throws {
    try Ship.withFiles(["a": "a"]) { ship in
      let holder = try Command.spawn(
        try Tools.system("flock"), ["-x", ship.root, "/bin/sh", "-c", "echo ready; exec cat"])
      try holder.waitForLine("ready")
      for action in [
        { _ = try ship.run() }, { _ = try Transaction.dryRun(on: ship.container()) { _ in } },
        { _ = try Transaction.inspect(ship.container()) { _ in } },
      ] {
        let error = try #require(ship.failure(action))
        #expect(error.code == .locked && error.message.contains("--lock-timeout"))
        #expect(error.message.contains("process \(holder.process) (flock)"), "\(error.message)")
      }
      #expect(try ship.state() == nil)

      // Waiting for it.
      var options = TransactionOptions()
      options.lockTimeout = 60
      let release = Thread {
        Thread.sleep(forTimeInterval: 0.3)
        holder.closeInput()
      }
      release.start()
      let outcome = try Transaction.run(on: ship.container(), .migrate, summary: "waits", options: options) {
        try $0.write([1], to: "b")
      }
      #expect(outcome.transaction != nil)
      _ = try holder.wait()
    }
  }

  @Test func readersShareTheLockAndKeepWritersOut() throws {
    try Ship.withFiles(["a": "a"]) { ship in
      let lock = try ContainerLock(ship.container(), exclusive: false, timeout: 0)
      _ = try Transaction.dryRun(on: ship.container()) { _ in }
      let error = ship.failure { try ship.run() }
      #expect(error?.code == .locked && error?.message.contains("this process itself") == true)
      withExtendedLifetime(lock) {}
    }
  }

  /// The lock is on the inode: while a transaction finishes, the new root is locked as the old one was.
  @Test(arguments: CommitFaultTests.ofExchange) func isLockedAtEveryPoint(point: FaultPoint) throws {
    try Ship.withFiles(["a": "a"]) { ship in
      let own = ship
      nonisolated(unsafe) var reached = false
      let faults = FaultInjection {
        guard $0 == point else { return }
        reached = true
        let error = own.failure { _ = try ContainerLock(own.container(), exclusive: false, timeout: 0) }
        #expect(error?.code == .locked)
      }
      try ship.run(faults: faults) { try $0.write([1], to: "b") }
      #expect(reached)
      _ = try ContainerLock(ship.container(), exclusive: true, timeout: 0)
    }
  }
}
