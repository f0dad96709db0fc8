import Foundation
import TestSupport
import Testing

@Suite("Two commands at once") struct ConcurrentCommandTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox() }

  /// A container with an archive, something to migrate, to restore and to roll back.
  private func prepare() throws -> String {
    try sandbox.create()
    try sandbox.succeed("migrate Notes --to 1")
    let archive = try sandbox.snapshot()
    try sandbox.remove("Notes/Documents/private.txt")
    return archive
  }

  @Test func `Who changes a container is refused while another works on it, and told who that is`() throws {
    let archive = try prepare()
    // Each has something to do after the one before it.
    let commands = [
      ["baseline", "Notes", "--to", "2"], ["rollback", "Notes"], ["restore", archive, "Notes"],
      ["migrate", "Notes"],
    ]
    for shared in [false, true] {
      let other = try sandbox.lock("Notes", shared: shared)
      let before = try sandbox.tree()
      for command in commands {
        try sandbox.drydock(command).expectError(
          exit: 5, ["Notes", "locked by process \(other.process)", "python", "--lock-timeout"])
        try sandbox.tree().expectSame(as: before, comparing: TreeListing.untouched)
      }
      try other.finish()
    }
    for command in commands { try sandbox.succeed(command) }
  }

  @Test func `With --lock-timeout it waits until the other is done, and not longer than that`() throws {
    _ = try prepare()
    let other = try sandbox.lock("Notes")
    try sandbox.drydock("migrate Notes --lock-timeout 0.2").expectError(
      exit: 5, ["locked by process \(other.process)"])
    let waiting = try sandbox.start(["migrate", "Notes"], environment: ["DRYDOCK_LOCK_TIMEOUT": "60"])
    // It cannot be seen from outside that somebody waits; what would end wrongly ends well within this time.
    usleep(500_000)
    #expect(waiting.isRunning)
    try other.finish()
    try waiting.wait().expect()
    #expect(sandbox.exists("Notes/" + Sandbox.newDatabase))
  }

  @Test func `Of many migrations at once one does the work, and nobody fails otherwise`() throws {
    try sandbox.create()
    for _ in 0..<4 {
      let running = try (0..<4).map { _ in try sandbox.start(["migrate", "Notes"]) }
      let results = try running.map { try $0.wait() }
      let codes = results.map(\.exitCode)
      #expect(codes.allSatisfy { $0 == 0 || $0 == 5 }, "\(results)")
      #expect(results.filter { $0.output.contains("transaction ") }.count == 1, "\(results)")
      try sandbox.succeed("rollback Notes")
    }
    let waiting = try (0..<3).map { _ in try sandbox.start(["migrate", "Notes", "--lock-timeout", "60"]) }
    let results = try waiting.map { try $0.wait() }
    #expect(results.map(\.exitCode) == [0, 0, 0], "\(results)")
    #expect(results.filter { $0.output.contains("transaction ") }.count == 1, "\(results)")
  }
}
