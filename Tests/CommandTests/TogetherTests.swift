import Foundation
import TestSupport
import Testing

@Suite("Two commands at once")
struct TogetherTests {
  /// Somebody who holds the container's lock, as another drydock command would, until `closeInput()`.
  private func holder(_ lab: Lab, of path: String = "Notes", exclusive: Bool) throws -> RunningCommand {
    let script = """
      import fcntl, os, sys
      fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.\(exclusive ? "LOCK_EX" : "LOCK_SH"))
      print("locked", flush=True)
      sys.stdin.read()
      """
    let holder = try Command.spawn(Tools.system("python3"), ["-c", script, lab(path)])
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
  private func prepare(_ lab: Lab) throws -> String {
    try lab.create()
    try lab.succeed("migrate", "Notes", "--to", "1")
    let archive = try lab.snapshot()
    try lab.remove("Notes/Documents/private.txt")
    return archive
  }

  @Test(
    "Who changes a container is refused while another works on it, and told who that is", arguments: writers)
  func writer(_ command: [String]) throws {
    try Lab.with { lab in
      let archive = try prepare(lab)
      let arguments = command.map { $0 == "{A}" ? archive : $0 }
      for exclusive in [true, false] {
        let other = try holder(lab, exclusive: exclusive)
        let before = try lab.tree()
        let result = try lab.drydock(arguments)
        lab.expect(
          result, refusedWith: 5,
          ["Notes", "locked by process \(other.process)", "python", "--lock-timeout"], #_sourceLocation)
        try lab.tree().expectSame(as: before, comparing: TreeListing.untouched)
        other.closeInput()
        _ = try other.wait()
      }
      let result = try lab.drydock(arguments)
      #expect(result.succeeded, "\(result)")
    }
  }

  @Test(
    "Who only reads is refused while another changes it, and works beside another reader", arguments: readers)
  func reader(_ command: [String]) throws {
    try Lab.with { lab in
      let archive = try prepare(lab)
      let arguments = command.map { $0 == "{A}" ? archive : $0 }
      let writer = try holder(lab, exclusive: true)
      let refused = try lab.drydock(arguments)
      lab.expect(refused, refusedWith: 5, ["Notes", "locked by process \(writer.process)"], #_sourceLocation)
      writer.closeInput()
      _ = try writer.wait()

      let reader = try holder(lab, exclusive: false)
      let before = try lab.tree()
      let result = try lab.drydock(arguments)
      #expect(result.succeeded, "\(result)")
      try lab.tree().expectSame(as: before, comparing: TreeListing.untouched)
      reader.closeInput()
    }
  }

  @Test("A repository that somebody removes from takes no archives meanwhile, and can be read")
  func removal() throws {
    try Lab.with { lab in
      let archive = try prepare(lab)
      let remover = try holder(lab, of: "Backups", exclusive: true)
      let refused = try lab.drydock("snapshot", "Notes", "-r", "Backups")
      lab.expect(
        refused, refusedWith: 5, ["Backups", "locked by process \(remover.process)", "--lock-timeout"],
        #_sourceLocation)
      for reader in [["list"], ["verify"], ["show", "latest"], ["restore", "latest", "Notes"]] {
        let result = try lab.drydock(reader + ["-r", "Backups"])
        #expect(result.succeeded, "\(result)")
      }
      let waiting = try lab.start(["snapshot", "Notes", "-r", "Backups", "--lock-timeout", "60"])
      remover.kill()
      _ = try remover.wait()
      let result = try waiting.wait()
      #expect(result.succeeded, "a killed remover holds nothing: \(result)")
      #expect(
        try lab.names("Backups").count == 2
          && lab.exists("Backups/" + (archive as NSString).lastPathComponent))
    }
  }

  @Test("With --lock-timeout it waits, and goes on once the other is done", arguments: ["flag", "variable"])
  func waits(_ way: String) throws {
    try Lab.with { lab in
      _ = try prepare(lab)
      let other = try holder(lab, exclusive: true)
      let waiting =
        try way == "flag"
        ? lab.start(["migrate", "Notes", "--lock-timeout", "60"])
        : lab.start(["migrate", "Notes"], environment: ["DRYDOCK_LOCK_TIMEOUT": "60"])
      // It cannot be seen from outside that somebody waits; what would end wrongly ends well within this time.
      usleep(500_000)
      #expect(waiting.isRunning)
      other.closeInput()
      _ = try other.wait()
      let result = try waiting.wait()
      #expect(result.succeeded, "\(result)")
      #expect(lab.exists("Notes/" + Lab.newDatabase))
    }
  }

  @Test("A wait ends when its time is over")
  func waitsNotForEver() throws {
    try Lab.with { lab in
      _ = try prepare(lab)
      let other = try holder(lab, exclusive: true)
      let result = try lab.drydock("migrate", "Notes", "--lock-timeout", "0.2")
      lab.expect(result, refusedWith: 5, ["locked by process \(other.process)"], #_sourceLocation)
    }
  }

  @Test("Of many migrations at the same moment, the work is done once, and nobody fails otherwise")
  func race() throws {
    try Lab.with { lab in
      try lab.create()
      for _ in 0..<4 {
        let running = try (0..<4).map { _ in try lab.start(["migrate", "Notes"]) }
        let results = try running.map { try $0.wait() }
        let codes = results.map(\.exitCode)
        #expect(codes.allSatisfy { $0 == 0 || $0 == 5 }, "\(results)")
        #expect(results.filter { $0.output.contains("transaction ") }.count == 1, "\(results)")
        try lab.succeed("rollback", "Notes")
      }
      let waiting = try (0..<3).map { _ in try lab.start(["migrate", "Notes", "--lock-timeout", "60"]) }
      let results = try waiting.map { try $0.wait() }
      #expect(results.map(\.exitCode) == [0, 0, 0], "\(results)")
      #expect(results.filter { $0.output.contains("transaction ") }.count == 1, "\(results)")
    }
  }

  @Test("Snapshots beside each other, a dry run, and a writing app")
  func snapshots() throws {
    try Lab.with { lab in
      try lab.create(version: 2, photos: 8)
      let app = try Command.spawn(lab.app, ["write", lab("Notes")])
      try app.waitForLine("ready")
      let running = try [
        ["snapshot", "Notes", "-r", "Backups"], ["snapshot", "Notes", "-r", "Backups"],
        ["migrate", "Notes", "--dry-run"], ["inspect", "Notes"],
      ].map { try lab.start($0) }
      for result in try running.map({ try $0.wait() }) { #expect(result.succeeded, "\(result)") }
      #expect(app.isRunning)
      app.closeInput()
      #expect(try app.wait().succeeded)
      #expect(try lab.names("Backups").count == 2)
      try lab.succeed("verify", "-r", "Backups", "--data")
    }
  }
}
