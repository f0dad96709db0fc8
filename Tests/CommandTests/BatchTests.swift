import Foundation
import TestSupport
import Testing

@Suite("Batches")
struct BatchTests {
  /// Three customers' containers and something else in `Customers`.
  private func with(_ body: (Sandbox) throws -> Void) throws {
    try Sandbox.with { sandbox in
      try FileManager.default.createDirectory(
        atPath: sandbox("Customers"), withIntermediateDirectories: false)
      for name in ["anna", "ben", "carl"] { try sandbox.create("Customers/" + name) }
      try sandbox.write("Customers/README", "notes\n")
      try body(sandbox)
    }
  }

  private func lines(_ result: CommandResult) throws -> [[String: Any]] {
    try result.output.split(separator: "\n").map {
      try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any], "\(result)")
    }
  }

  private func states(_ result: CommandResult) throws -> [String] {
    try lines(result).dropLast().map {
      "\($0["container"] ?? "") \($0["state"] ?? "") \($0["exit_code"] ?? "")"
    }
  }

  private func version(_ sandbox: Sandbox, _ name: String) throws -> Int? {
    let result = try sandbox.drydock("status", "Customers/" + name, "--json")
    return try JSONTests.document(result)["version"] as? Int
  }

  /// Somebody who holds a container's lock until `closeInput()`.
  private func holder(_ sandbox: Sandbox, of path: String) throws -> RunningCommand {
    let script =
      "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX); "
      + "print('locked', flush=True); sys.stdin.read()"
    let holder = try Command.spawn(Tools.system("python3"), ["-c", script, sandbox(path)])
    try holder.waitForLine("locked")
    return holder
  }

  @Test("A locked and a damaged container keep the others from nothing; the next run does what was left")
  func failures() throws {
    try with { sandbox in
      try sandbox.create("Customers/dora")
      try sandbox.write("Customers/ben/" + Sandbox.settings, "bplist00 and no more")
      let (damaged, held) = (try sandbox.tree("Customers/ben"), try holder(sandbox, of: "Customers/carl"))
      let result = try sandbox.drydock("migrate", "--all", "Customers", "--jobs", "3", "--json")
      #expect(result.exitCode == 3, "\(result)")
      #expect(try states(result) == ["anna changed 0", "ben failed 1", "carl failed 5", "dora changed 0"])
      let report = try lines(result)
      let last = try #require(report.last)
      #expect(last["exit_code"] as? Int == 3 && last["passed_over"] as? [String] == ["README"])
      #expect(
        last["summary"] as? [String: Int]
          == ["containers": 4, "changed": 2, "pending": 0, "unchanged": 0, "failed": 2, "skipped": 0])
      // What is printed for one container is in each line; an error too, and for people on standard error.
      let anna = try #require(report[0]["result"] as? [String: Any])
      #expect(
        (anna["report"] as? [String: Any])?["to"] as? Int == Sandbox.latest && anna["transaction"] is String)
      let error = try #require(report[2]["error"] as? [String: Any])
      #expect(error["code"] as? String == "locked" && error["exit_code"] as? Int == 5)
      #expect(result.errors.contains("locked by process \(held.process)"), "\(result)")
      #expect(report.flatMap(JSONTests.oddKeys).isEmpty)
      try sandbox.tree("Customers/ben").expectSame(as: damaged, comparing: TreeListing.untouched)

      held.closeInput()
      _ = try held.wait()
      let again = try sandbox.drydock("migrate", "--all", "Customers", "--json")
      #expect(again.exitCode == 3, "\(again)")
      #expect(
        try states(again) == ["anna unchanged 0", "ben failed 1", "carl changed 0", "dora unchanged 0"])
    }
  }

  @Test("One exit code for many: what they share, that changes are pending, or that not all is done")
  func exitCodes() throws {
    try with { sandbox in
      let pending = ["status", "--all", "Customers", "--exit-code"]
      #expect(try sandbox.drydock(pending).exitCode == 2)
      #expect(try sandbox.drydock("migrate", "--all", "Customers", "--to", "9").exitCode == 64)
      try sandbox.succeed("migrate", "Customers/ben")
      #expect(try sandbox.drydock(pending).exitCode == 2, "done and pending")
      let dry = ["migrate", "--all", "Customers", "--dry-run", "--exit-code", "--json"]
      let before = try sandbox.tree("Customers/anna")
      let result = try sandbox.drydock(dry)
      #expect(result.exitCode == 2)
      #expect(try states(result) == ["anna pending 2", "ben unchanged 0", "carl pending 2"])
      try sandbox.tree("Customers/anna").expectSame(as: before, comparing: TreeListing.untouched)
      try sandbox.succeed("migrate", "--all", "Customers")
      #expect(try sandbox.drydock(pending).exitCode == 0)
      #expect(try sandbox.drydock(dry).exitCode == 0)
      // Without the key none of them can be migrated.
      try sandbox.succeed("rollback", "Customers/anna")
      for name in ["ben", "carl"] { try FileManager.default.removeItem(atPath: sandbox("Customers/" + name)) }
      #expect(
        try sandbox.drydock(["migrate", "--all", "Customers"], environment: ["DRYDOCK_DEVICE_KEY": nil])
          .exitCode
          == 4)
    }
  }

  @Test("Killed in the middle, the next run recovers and finishes")
  func killed() throws {
    try with { sandbox in
      let killed = try sandbox.drydock(
        ["migrate", "--all", "Customers", "--jobs", "1"], environment: ["DRYDOCK_KILL_AT": "exchanged:2"])
      #expect(killed.exitCode != 0, "\(killed)")
      let result = try sandbox.drydock("migrate", "--all", "Customers", "--json")
      #expect(
        result.exitCode == 0 && result.errors.contains("was interrupted; its change is now complete"),
        "\(result)"
      )
      #expect(try states(result) == ["anna unchanged 0", "ben unchanged 0", "carl changed 0"])
    }
  }

  @Test("Of two runs at once each container is migrated by one")
  func together() throws {
    try with { sandbox in
      let arguments = ["migrate", "--all", "Customers", "--jobs", "2", "--lock-timeout", "60", "--json"]
      let runs = try [sandbox.start(arguments), sandbox.start(arguments)]
      for run in runs { run.closeInput() }
      let results = try runs.map { try $0.wait() }
      let states = try results.map(states)
      for (index, name) in ["anna", "ben", "carl"].enumerated() {
        #expect(
          Set(states.map { $0[index] }) == ["\(name) changed 0", "\(name) unchanged 0"], "\(results)")
        let log = try JSONTests.document(sandbox.drydock("log", "Customers/" + name, "--json"))
        let committed = try #require(log["transactions"] as? [[String: Any]]).filter {
          $0["state"] as? String == "undoable"
        }
        #expect(committed.count == 1)
      }
    }
  }

  @Test("All are rolled back to what they were; not where the last change is another one")
  func rollback() throws {
    try with { sandbox in
      let names = ["anna", "ben", "carl"]
      let before = try names.map { try sandbox.tree("Customers/" + $0) }
      try sandbox.succeed("migrate", "--all", "Customers", "--to", "4")
      let result = try sandbox.drydock("rollback", "--all", "Customers", "--jobs", "2", "--json")
      #expect(try states(result) == ["anna changed 0", "ben changed 0", "carl changed 0"])
      for (name, before) in zip(names, before) {
        try sandbox.tree("Customers/" + name).expectSame(as: before)
      }
      let redone = try sandbox.drydock("rollback", "--all", "Customers", "--redo")
      #expect(redone.succeeded, "\(redone)")
      #expect(try version(sandbox, "carl") == 4)

      // A run that failed in one of them: there, the last transaction is an older one.
      try sandbox.write("Customers/ben/Documents/in-use.txt", "x")
      try sandbox.succeed("migrate", "Customers/anna", "--to", "5")
      try sandbox.succeed("migrate", "Customers/carl", "--to", "5")
      let mixed = try sandbox.drydock("rollback", "--all", "Customers")
      #expect(
        mixed.exitCode == 4 && mixed.errors.contains("2 containers such as anna (migrate: ran 0005"),
        "\(mixed)")
      #expect(try version(sandbox, "ben") == 4)
      #expect(try version(sandbox, "carl") == 5)
      // Who is not that far has nothing to go back; who is further, nothing to migrate.
      let back = ["rollback", "--all", "Customers", "--to", "4", "--json"]
      let dry = try sandbox.drydock(back + ["--dry-run"])
      #expect(try states(dry) == ["anna pending 0", "ben unchanged 0", "carl pending 0"], "\(dry)")
      #expect(try states(sandbox.drydock(back)) == ["anna changed 0", "ben unchanged 0", "carl changed 0"])
      let past = try sandbox.drydock("migrate", "--all", "Customers", "--to", "3", "--each", "--json")
      #expect(try states(past) == ["anna unchanged 0", "ben unchanged 0", "carl unchanged 0"], "\(past)")
      let each = try sandbox.drydock("migrate", "--all", "Customers", "--each", "--json")
      #expect(try states(each) == ["anna changed 0", "ben changed 0", "carl changed 0"], "\(each)")
    }
  }

  @Test("What was moved into vaults is looked for in the repository once, and told for all")
  func exposed() throws {
    try with { sandbox in
      let archive = try sandbox.succeed("snapshot", "Customers/ben", "-r", "Backups").trimmingCharacters(
        in: .newlines)
      let result = try sandbox.drydock(
        "migrate", "--all", "Customers", "-r", "Backups", "--no-snapshot", "--json")
      #expect(result.succeeded, "\(result)")
      let exposed = try #require(try lines(result).last?["exposed"] as? [[String: Any]])
      #expect(
        exposed.compactMap { $0["archive"] as? String }.map(sandbox.directory.callAsFunction) == [archive])
      #expect(result.errors.contains("still hold what was moved into the vault: 1 archive"), "\(result)")
    }
  }
}
