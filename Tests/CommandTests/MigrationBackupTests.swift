import Foundation
import TestSupport
import Testing

/// `migrate` with a repository: a snapshot first, under the same locks.
@Suite struct MigrationBackupTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox() }

  private func archives() throws -> [String] {
    sandbox.exists("Backups") ? try sandbox.names("Backups").filter { $0.contains(".tar.zst") } : []
  }

  @Test func `It holds the state before, the journal names it, and only what migrates takes one`() throws {
    try sandbox.create()
    // With rows that are in the log alone.
    let row = "INSERT INTO task(id, title) VALUES (77777, 'logged');"
    _ = try Command.run(
      Tools.system("sqlite3"), [sandbox("Notes/" + Sandbox.oldDatabase)],
      input: Array(".dbconfig no_ckpt_on_close on\nPRAGMA journal_mode=WAL;\(row)".utf8))
    #expect(sandbox.exists("Notes/\(Sandbox.oldDatabase)-wal"))
    try sandbox.succeed("snapshot Notes -o Before")
    for options in [["--dry-run"], ["--no-snapshot", "--to", "2"]] {
      let result = try sandbox.drydock(["migrate", "Notes", "-r", "Backups"] + options).expect()
      #expect(try archives().isEmpty, "\(result)")
    }
    try sandbox.succeed("rollback Notes")
    let migrated = try sandbox.drydock("migrate Notes -r Backups --json").expect()
    let archive = try #require(try archives().first)
    #expect(try archives().count == 1 && migrated.output.contains(archive), "\(migrated)")
    try sandbox.drydock("log Notes --json").expect(output: archive)
    try sandbox.drydock("log Notes").expect(output: "after the snapshot \(archive)")
    try sandbox.drydock("diff", "Before", "Backups/" + archive).expect(output: "no difference in")
    let versions = try ["Before", "Backups/" + archive].map {
      try sandbox.succeed("show", $0).split(separator: "\n").first { $0.hasPrefix("schema version") }
    }
    #expect(versions[0] != nil && versions[0] == versions[1], "\(versions)")
    try sandbox.succeed("migrate Notes -r Backups")
    #expect(try archives().count == 1)
    try sandbox.succeed("restore", "Backups/" + archive, "Again")
    let rows = try sandbox.sqlite("Again/" + Sandbox.oldDatabase, "SELECT title FROM task WHERE id = 77777")
    #expect(rows == "logged\n")
  }

  @Test func `One for a run with --each, one for each container with --all; encrypted on request`() throws {
    for name in ["A", "B"] { try sandbox.create("All/\(name)") }
    let each = try sandbox.drydock("migrate All/A -r Backups --each --to 3").expect()
    #expect(try archives().count == 1, "\(each)")
    let key = try sandbox.key("key")
    try sandbox.succeed("migrate", "--all", "All", "-r", "Backups", "--recipient", key)
    #expect(try archives().count == 3 && archives().count { $0.hasSuffix(".age") } == 2)
  }

  @Test func `A container in use is refused first; a failure after a commit says how to get back`() throws {
    try sandbox.create()
    let holder = try sandbox.hold()
    let used = try sandbox.drydock("migrate Notes -r Backups").expect(exit: 5)
    #expect(try archives().isEmpty, "\(used)")
    try holder.finish()
    let before = try sandbox.tree()
    try sandbox.write(
      "Migrations/0007_fails.yaml", "steps:\n  - sql: {database: notes, up: \"SELECT * FROM nowhere\"}\n")
    let failed = try sandbox.drydock("migrate Notes -r Backups")
    let archive = try #require(try archives().first)
    #expect(failed.exitCode == 1 && failed.output.contains("backed up to "), "\(failed)")
    #expect(failed.errors.contains("drydock restore "), "\(failed)")
    try sandbox.tree().expectSame(as: before, comparing: TreeListing.copied)
    let each = try sandbox.drydock("migrate Notes -r Backups --each")
    let newer = try #require(try archives().first { $0 != archive })
    #expect(each.exitCode == 3 && each.errors.contains("\(newer) \(sandbox("Notes"))` restores"), "\(each)")
  }

  @Test func `What cannot be backed up whole is not migrated`() throws {
    try sandbox.create()
    try sandbox.shell("cd Notes/Documents; for i in $(seq 515); do mkdir d; cd d; done; echo deep > file")
    let before = try sandbox.tree()
    let refused = try sandbox.drydock("migrate Notes -r Backups")
    #expect(refused.exitCode != 0 && refused.errors.contains("--no-snapshot"), "\(refused)")
    try sandbox.tree().expectSame(as: before, comparing: TreeListing.untouched)
    try sandbox.succeed("migrate Notes -r Backups --no-snapshot")
  }
}
