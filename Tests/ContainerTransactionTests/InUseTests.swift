import Foundation
import TestSupport
import Testing

@testable import AppStores
@testable import ContainerTransaction
@testable import FileSystem

@Suite struct InUseTests {
  private func refused(_ sandbox: Sandbox, by running: RunningCommand, _ path: String, _ use: String)
    throws
  {
    let before = try sandbox.listing()
    let error = try #require(expectError { try sandbox.run() })
    #expect(error.code == .inUse)
    for part in ["process \(running.process)", path, use, "and run it again"] {
      #expect(error.message.contains(part), "\(part) in \(error.message)")
    }
    expectNone(try sandbox.listing().changes(from: before, comparing: TreeListing.untouched))
    // A refusal leaves nothing behind.
    #expect(try sandbox.state() == nil)
    try running.finish()
    #expect(try sandbox.run().transaction != nil)
  }

  @Test func theAppHasItsDatabaseOpen() throws {
    let sandbox = try Sandbox(notes: [])
    let app = try Command.spawn(try Tools.notesApp(), ["hold", sandbox.root])
    try app.waitForLine("ready")
    try refused(sandbox, by: app, "Documents/database.sqlite", "NotesApp")
  }

  @Test func anIdleConnectionInRollbackModeHoldsNoLock() throws {
    let sandbox = try Sandbox(notes: ["--rollback-journal"])
    let app = try Command.spawn(try Tools.notesApp(), ["hold", sandbox.root])
    try app.waitForLine("ready")
    #expect(try DatabaseLock.acquire(Sandbox.database, in: sandbox.live()) != nil)
    try refused(sandbox, by: app, "Documents/database.sqlite", "open")
  }

  @Test(arguments: [
    ("echo ready; cat", "/Documents", "Documents", "working directory"),
    ("echo ready; exec cat", "", "the container's directory", "working directory"),
    ("exec 5<b; cd /; echo ready; cat", "/Documents", "Documents/b", "open"),
  ])
  func aShellHasIt(script: String, directory: String, path: String, use: String) throws {
    let sandbox = try Sandbox(files: ["Documents/a": "a", "Documents/b": "b"])
    let shell = try Command.spawn("/bin/sh", ["-c", script], directory: sandbox.root + directory)
    try shell.waitForLine("ready")
    try refused(sandbox, by: shell, path, use)
  }

  @Test func aFileIsMappedAndClosed() throws {
    let sandbox = try Sandbox(files: ["Documents/mapped": String(repeating: "m", count: 5000)])
    try whileMapping(sandbox.root + "/Documents/mapped") {
      let error = try #require(expectError { try sandbox.run() })
      #expect(error.code == .inUse)
      #expect(error.message.contains("Documents/mapped mapped into memory"), "\(error)")
    }
    #expect(try sandbox.run().transaction != nil)
  }

  #if os(Linux)
    @Test(arguments: [false, true])
    func newAndOldKernelsNameWhatIsMapped(readsText: Bool) throws {
      let sandbox = try Sandbox(files: ["Documents/a": "a", "Documents/b": "b"])
      let files = try ["Documents/a", "Documents/b"].map { path in
        (try #require(FollowedStatus.identity(sandbox.root + "/" + path)), try ContainerPath(path))
      }
      let search = OpenFileSearch(inodes: Dictionary(uniqueKeysWithValues: files), own: [])
      var (found, unclear): (Set<FileIdentity>, Bool) = ([], false)
      func look(at process: String) -> LinkVisit {
        search.searchMappings(
          of: process, readsText: readsText, { found.insert($0) }, unclear: &unclear)
      }
      try whileMapping(sandbox.root + "/Documents/b") { #expect(look(at: "/proc/self") == .complete) }
      #expect(found == [files[1].0] && !unclear)
      // A process that has ended, which has no memory, like a thread of the kernel; and one that does not exist.
      let ended = try Command.spawn("/bin/true", [])
      while ProcessTable.kind(of: ended.process) == .program { usleep(1000) }
      #expect(look(at: "/proc/\(ended.process)") == .gone && look(at: "/proc/4194305") == .gone)
      _ = try ended.wait()
    }
  #endif

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
  /// `directories` of its sandbox, or the `last` thread of a process whose first one has ended.
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
  func aThreadHasItByItself(how: String, path: String, use: String) throws {
    let sandbox = try Sandbox(files: ["Documents/a": "a"])
    let program = try Command.spawn(
      Tools.system("python3"), ["-c", Self.thread, how, sandbox.root + "/" + path])
    try program.waitForLine("ready")
    try refused(sandbox, by: program, path, use)
  }

  @Test func aDatabaseIsLockedByWhomNobodySees() throws {
    let sandbox = try Sandbox(notes: [])
    // The lock alone, as of a process that may not be looked into.
    let lock = try #require(try DatabaseLock.acquire(Sandbox.database, in: sandbox.live()) as DatabaseLock?)
    let error = expectError(.inUse) { try sandbox.run() }
    #expect(error?.message.contains("Documents/database.sqlite") == true)
    withExtendedLifetime(lock) {}
  }

  // MARK: The container's lock

  @Test func anotherCommandHoldsTheLock() throws {
    let sandbox = try Sandbox(files: ["a": "a"])
    let holder = try Command.spawn(
      try Tools.system("flock"), ["-x", sandbox.root, "/bin/sh", "-c", "echo ready; exec cat"])
    try holder.waitForLine("ready")
    for action in [
      { _ = try sandbox.run() }, { _ = try Transaction.dryRun(on: sandbox.container()) { _ in } },
      { _ = try Transaction.inspect(sandbox.container()) { _ in } },
    ] {
      let error = try #require(expectError { try action() })
      #expect(error.code == .locked && error.message.contains("wait for it"))
      #expect(error.message.contains("process \(holder.process) (flock)"), "\(error.message)")
    }
    #expect(try sandbox.state() == nil)

    // Waiting for it.
    var options = TransactionOptions()
    options.lockTimeout = 60
    let release = Thread {
      Thread.sleep(forTimeInterval: 0.3)
      holder.closeInput()
    }
    release.start()
    let outcome = try Transaction.run(on: sandbox.container(), .migrate, summary: "waits", options: options) {
      try $0.write([1], to: "b")
    }
    #expect(outcome.transaction != nil)
    _ = try holder.wait()
  }

  @Test func readersShareTheLockAndKeepWritersOut() throws {
    let sandbox = try Sandbox(files: ["a": "a"])
    let lock = try ContainerLock(sandbox.container(), exclusive: false, timeout: 0)
    _ = try Transaction.dryRun(on: sandbox.container()) { _ in }
    expectError(.locked, "this process itself") { try sandbox.run() }
    withExtendedLifetime(lock) {}
  }

  /// The lock is on the inode: while a transaction finishes, the new root is locked as the old one was.
  @Test(arguments: CommitFaultTests.ofExchange) func isLockedAtEveryPoint(point: FaultPoint) throws {
    let sandbox = try Sandbox(files: ["a": "a"])
    nonisolated(unsafe) var reached = false
    let faults = Seams {
      guard $0 == point else { return }
      reached = true
      expectError(.locked) { _ = try ContainerLock(sandbox.container(), exclusive: false, timeout: 0) }
    }
    try sandbox.run(faults: faults) { try $0.write([1], to: "b") }
    #expect(reached)
    _ = try ContainerLock(sandbox.container(), exclusive: true, timeout: 0)
  }
}
