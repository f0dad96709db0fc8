import Foundation
import TestSupport
import Testing

@Suite("Two commands at once")
struct ConcurrentCommandTests {
  private let sandbox: Sandbox

  init() throws { sandbox = try Sandbox() }

  /// Somebody who holds the container's lock, as another drydock command would, until `closeInput()`.
  private func holder(_ sandbox: Sandbox, of path: String = "Notes", exclusive: Bool) throws -> RunningCommand
  {
    let script = """
      import fcntl, os, sys
      fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.\(exclusive ? "LOCK_EX" : "LOCK_SH"))
      print("locked", flush=True)
      sys.stdin.read()
      """
    let holder = try Command.spawn(Tools.system("python3"), ["-c", script, sandbox(path)])
    try holder.waitForLine("locked")
    return holder
  }

  static let writers: [[String]] = [
    ["migrate", "Notes"], ["restore", "{A}", "Notes"], ["rollback", "Notes"],
    ["baseline", "Notes", "--to", "2"],
  ]
  static let readers: [[String]] = [
    ["snapshot", "Notes", "-r", "Backups"], ["migrate", "Notes", "--dry-run"], ["inspect", "Notes"],
    ["status", "Notes"],
    ["restore", "{A}", "Notes", "--dry-run"],
  ]

  /// A container with an archive, something to migrate, to restore and to roll back.
  private func prepare(_ sandbox: Sandbox) throws -> String {
    try sandbox.create()
    try sandbox.succeed("migrate", "Notes", "--to", "1")
    let archive = try sandbox.snapshot()
    try sandbox.remove("Notes/Documents/private.txt")
    return archive
  }

  @Test(
    "Who changes a container is refused while another works on it, and told who that is", arguments: writers)
  func writer(_ command: [String]) throws {
    let archive = try prepare(sandbox)
    let arguments = command.map { $0 == "{A}" ? archive : $0 }
    for exclusive in [true, false] {
      let other = try holder(sandbox, exclusive: exclusive)
      let before = try sandbox.tree()
      try sandbox.drydock(arguments).expectError(
        exit: 5, ["Notes", "locked by process \(other.process)", "python", "--lock-timeout"])
      try sandbox.tree().expectSame(as: before, comparing: TreeListing.untouched)
      try other.finish()
    }
    try sandbox.succeed(arguments)
  }

  @Test(
    "Who only reads is refused while another changes it, and works beside another reader", arguments: readers)
  func reader(_ command: [String]) throws {
    let archive = try prepare(sandbox)
    let arguments = command.map { $0 == "{A}" ? archive : $0 }
    let writer = try holder(sandbox, exclusive: true)
    try sandbox.drydock(arguments).expectError(exit: 5, ["Notes", "locked by process \(writer.process)"])
    try writer.finish()

    let reader = try holder(sandbox, exclusive: false)
    let before = try sandbox.tree()
    try sandbox.succeed(arguments)
    try sandbox.tree().expectSame(as: before, comparing: TreeListing.untouched)
    reader.closeInput()
  }

  @Test("A repository that somebody removes from takes no archives meanwhile, and can be read")
  func removal() throws {
    let archive = try prepare(sandbox)
    let remover = try holder(sandbox, of: "Backups", exclusive: true)
    try sandbox.drydock("snapshot", "Notes", "-r", "Backups").expectError(
      exit: 5, ["Backups", "locked by process \(remover.process)", "--lock-timeout"])
    for reader in [["list"], ["verify"], ["show", "latest"], ["restore", "latest", "Notes"]] {
      try sandbox.succeed(reader + ["-r", "Backups"])
    }
    let waiting = try sandbox.start(["snapshot", "Notes", "-r", "Backups", "--lock-timeout", "60"])
    remover.kill()
    _ = try remover.wait()
    try waiting.wait().expect()
    #expect(
      try sandbox.names("Backups").count == 2
        && sandbox.exists("Backups/" + (archive as NSString).lastPathComponent))
  }

  @Test("With --lock-timeout it waits, and goes on once the other is done", arguments: ["flag", "variable"])
  func waits(_ way: String) throws {
    _ = try prepare(sandbox)
    let other = try holder(sandbox, exclusive: true)
    let waiting =
      try way == "flag"
      ? sandbox.start(["migrate", "Notes", "--lock-timeout", "60"])
      : sandbox.start(["migrate", "Notes"], environment: ["DRYDOCK_LOCK_TIMEOUT": "60"])
    // It cannot be seen from outside that somebody waits; what would end wrongly ends well within this time.
    usleep(500_000)
    #expect(waiting.isRunning)
    try other.finish()
    try waiting.wait().expect()
    #expect(sandbox.exists("Notes/" + Sandbox.newDatabase))
  }

  @Test("A wait ends when its time is over")
  func waitsNotForEver() throws {
    _ = try prepare(sandbox)
    let other = try holder(sandbox, exclusive: true)
    try sandbox.drydock("migrate", "Notes", "--lock-timeout", "0.2").expectError(
      exit: 5, ["locked by process \(other.process)"])
  }

  @Test("Of many migrations at the same moment, the work is done once, and nobody fails otherwise")
  func race() throws {
    try sandbox.create()
    for _ in 0..<4 {
      let running = try (0..<4).map { _ in try sandbox.start(["migrate", "Notes"]) }
      let results = try running.map { try $0.wait() }
      let codes = results.map(\.exitCode)
      #expect(codes.allSatisfy { $0 == 0 || $0 == 5 }, "\(results)")
      #expect(results.filter { $0.output.contains("transaction ") }.count == 1, "\(results)")
      try sandbox.succeed("rollback", "Notes")
    }
    let waiting = try (0..<3).map { _ in try sandbox.start(["migrate", "Notes", "--lock-timeout", "60"]) }
    let results = try waiting.map { try $0.wait() }
    #expect(results.map(\.exitCode) == [0, 0, 0], "\(results)")
    #expect(results.filter { $0.output.contains("transaction ") }.count == 1, "\(results)")
  }

  @Test("Snapshots beside each other, a dry run, and a writing app")
  func snapshots() throws {
    try sandbox.create(version: 2, photos: 8)
    let app = try Command.spawn(sandbox.app, ["write", sandbox("Notes")])
    try app.waitForLine("ready")
    let running = try [
      ["snapshot", "Notes", "-r", "Backups"], ["snapshot", "Notes", "-r", "Backups"],
      ["migrate", "Notes", "--dry-run"], ["inspect", "Notes"],
    ].map { try sandbox.start($0) }
    for result in try running.map({ try $0.wait() }) { #expect(result.succeeded, "\(result)") }
    #expect(app.isRunning)
    app.closeInput()
    #expect(try app.wait().succeeded)
    #expect(try sandbox.names("Backups").count == 2)
    try sandbox.succeed("verify", "-r", "Backups", "--data")
  }
}
