import Foundation
import TestSupport
import Testing

@testable import DrydockCommand

@Suite("Batches") struct BatchTests {
  private let sandbox: Sandbox

  /// Three customers' containers and something else in `Customers`.
  init() throws {
    sandbox = try Sandbox(creating: "Customers/anna")
    try sandbox.shell("cd Customers; cp -a anna ben; cp -a anna carl; echo notes > README")
  }

  private func states(_ result: CommandResult) throws -> [String] {
    try JSONNode.lines(result.output).dropLast().map {
      "\($0["container"]) \($0["state"]) \($0["exit_code"])"
    }
  }

  private func version(_ name: String) throws -> Int? {
    try sandbox.document("status", "Customers/" + name)["version"].number
  }

  @Test func `A locked and a damaged container keep the others from nothing`() throws {
    try sandbox.create("Customers/dora")
    try sandbox.write("Customers/ben/" + Sandbox.settings, "bplist00 and no more")
    let (damaged, held) = (try sandbox.tree("Customers/ben"), try sandbox.lock("Customers/carl"))
    let result = try sandbox.drydock("migrate --all Customers --jobs 3 --json").expect(exit: 3)
    #expect(try states(result) == ["anna changed 0", "ben failed 1", "carl failed 5", "dora changed 0"])
    let report = try JSONNode.lines(result.output)
    let last = try #require(report.last)
    #expect(last["exit_code"].number == 3 && last["passed_over"].texts == ["README"])
    #expect(
      last["summary"].canonical
        == #"[{"changed":2,"containers":4,"failed":2,"pending":0,"skipped":0,"unchanged":0}]"#)
    // What is printed for one container is in each line; an error too, and for people on standard error.
    let anna = report[0]["result"]
    #expect(anna["report"]["to"].number == Sandbox.latest && anna["transaction"].text != nil)
    let error = report[2]["error"]
    #expect(error["code"].text == "locked" && error["exit_code"].number == 5)
    #expect(result.errors.contains("locked by process \(held.process)"), "\(result)")
    #expect(report.flatMap(\.oddKeys).isEmpty)
    try sandbox.tree("Customers/ben").expectSame(as: damaged, comparing: TreeListing.untouched)

    try held.finish()
    let again = try sandbox.drydock("migrate --all Customers --json").expect(exit: 3)
    #expect(try states(again) == ["anna unchanged 0", "ben failed 1", "carl changed 0", "dora unchanged 0"])
  }

  @Test func `What is pending or fails in all is the exit code; a dry run changes nothing`() throws {
    try sandbox.drydock("migrate --all Customers --to 9").expect(exit: 64)
    try sandbox.succeed("migrate Customers/ben")
    let names = ["anna", "ben", "carl"]
    let before = try names.map { try sandbox.tree("Customers/" + $0) }
    let result = try sandbox.drydock("migrate --all Customers --dry-run --exit-code --json").expect(exit: 2)
    #expect(try states(result) == ["anna pending 2", "ben unchanged 0", "carl pending 2"])
    for (name, before) in zip(names, before) {
      try sandbox.tree("Customers/" + name).expectSame(as: before, comparing: TreeListing.untouched)
    }
    // Without the key none of them can be migrated.
    try sandbox.shell("rm -r Customers/ben")
    try sandbox.with(key: nil).drydock("migrate --all Customers").expect(exit: 4)
  }

  @Test func `Killed in the middle, the next run recovers and finishes`() throws {
    let killed = try sandbox.drydock(
      "migrate --all Customers --jobs 1", environment: ["DRYDOCK_KILL_AT": "exchanged:2"])
    #expect(killed.exitCode != 0, "\(killed)")
    let result = try sandbox.drydock("migrate --all Customers --json").expect(
      errors: "was interrupted; its change is now complete")
    #expect(try states(result) == ["anna unchanged 0", "ben unchanged 0", "carl changed 0"])
  }

  @Test func `Of two runs at once each container is migrated by one`() throws {
    let arguments = ["migrate", "--all", "Customers", "--jobs", "2", "--lock-timeout", "60", "--json"]
    let results = try [sandbox.start(arguments), sandbox.start(arguments)].map { try $0.finish() }
    let states = try results.map(states)
    for (index, name) in ["anna", "ben", "carl"].enumerated() {
      #expect(Set(states.map { $0[index] }) == ["\(name) changed 0", "\(name) unchanged 0"], "\(results)")
      let log = try sandbox.document("log", "Customers/" + name)["transactions"].list
      #expect(log.filter { $0["state"].text == "undoable" }.count == 1)
    }
  }

  @Test func `All are rolled back to what they were; not where the last change is another one`() throws {
    let names = ["anna", "ben", "carl"]
    let before = try names.map { try sandbox.tree("Customers/" + $0) }
    try sandbox.succeed("migrate --all Customers --to 4")
    let result = try sandbox.drydock("rollback --all Customers --jobs 2 --json")
    #expect(try states(result) == ["anna changed 0", "ben changed 0", "carl changed 0"])
    for (name, before) in zip(names, before) {
      try sandbox.tree("Customers/" + name).expectSame(as: before)
    }
    try sandbox.succeed("rollback --all Customers --redo")
    #expect(try version("carl") == 4)

    // A run that failed in one of them: there, the last transaction is an older one.
    try sandbox.write("Customers/ben/Documents/in-use.txt", "x")
    try sandbox.succeed("migrate Customers/anna --to 5")
    try sandbox.succeed("migrate Customers/carl --to 5")
    try sandbox.drydock("rollback --all Customers").expect(
      exit: 4, errors: "2 containers such as anna (migrate: ran 0005")
    #expect(try version("ben") == 4)
    #expect(try version("carl") == 5)
    // A container below that version has nothing to roll back; one above it has nothing to migrate.
    let back = ["rollback", "--all", "Customers", "--to", "4", "--json"]
    let dry = try sandbox.drydock(back + ["--dry-run"])
    #expect(try states(dry) == ["anna pending 0", "ben unchanged 0", "carl pending 0"], "\(dry)")
    #expect(try states(sandbox.drydock(back)) == ["anna changed 0", "ben unchanged 0", "carl changed 0"])
    let past = try sandbox.drydock("migrate --all Customers --to 3 --each --json")
    #expect(try states(past) == ["anna unchanged 0", "ben unchanged 0", "carl unchanged 0"], "\(past)")
    let each = try sandbox.drydock("migrate --all Customers --each --json")
    #expect(try states(each) == ["anna changed 0", "ben changed 0", "carl changed 0"], "\(each)")
  }

  @Test func `What was moved into vaults is looked for in the repository once, and told for all`() throws {
    let archive = try sandbox.succeed("snapshot Customers/ben -r Backups").trimmingCharacters(in: .newlines)
    let result = try sandbox.drydock("migrate --all Customers -r Backups --no-snapshot --json").expect()
    let exposed = try #require(try JSONNode.lines(result.output).last)["exposed"]
    #expect(exposed.list.compactMap { $0["archive"].text }.map(sandbox.directory.callAsFunction) == [archive])
    #expect(result.errors.contains("still hold what was moved into the vault: 1 archive"), "\(result)")
  }

  @Test static func `One exit code for many`() {
    for (codes, one) in [
      ([], 0), ([0, 0], 0), ([4, 4], 4), ([2, 2], 2), ([0, 2], 2), ([2, 0, 2], 2), ([5, 4], 5), ([0, 4], 3),
      ([4, 2], 3), ([6, 0], 3), ([0, 4, 5], 3), ([64], 64),
    ] as [([Int32], Int32)] { #expect(BatchSummary.exitCode(of: codes) == one, "\(codes)") }
  }
}
