import Foundation
import TestSupport
import Testing

/// `migrate` with a repository: a snapshot first, under the same locks.
@Suite("A snapshot before a migration")
struct MigrationBackupTests {
  private func archives(_ lab: Lab) throws -> [String] {
    lab.exists("Backups") ? try lab.names("Backups").filter { $0.contains(".tar.zst") } : []
  }

  @Test("It holds the state before, the journal names it, and only what migrates takes one")
  func taken() throws {
    try Lab.with { lab in
      try lab.create()
      // With rows that are in the log alone.
      let row = "INSERT INTO task(id, title) VALUES (77777, 'logged');"
      _ = try Command.run(
        Tools.system("sqlite3"), [lab("Notes/" + Lab.oldDatabase)],
        input: Array(".dbconfig no_ckpt_on_close on\nPRAGMA journal_mode=WAL;\(row)".utf8))
      #expect(lab.exists("Notes/\(Lab.oldDatabase)-wal"))
      try lab.succeed("snapshot", "Notes", "-o", "Before")
      for options in [["--dry-run"], ["--no-snapshot", "--to", "2"]] {
        let result = try lab.drydock(["migrate", "Notes", "-r", "Backups"] + options)
        #expect(try result.succeeded && archives(lab).isEmpty, "\(result)")
      }
      try lab.succeed("rollback", "Notes")
      let migrated = try lab.drydock("migrate", "Notes", "-r", "Backups", "--json")
      #expect(migrated.succeeded, "\(migrated)")
      let archive = try #require(try archives(lab).first)
      #expect(try archives(lab).count == 1 && migrated.output.contains(archive), "\(migrated)")
      #expect(try lab.succeed("log", "Notes", "--json").contains(archive))
      #expect(try lab.succeed("log", "Notes").contains("after the snapshot \(archive)"))
      #expect(try lab.succeed("diff", "Before", "Backups/" + archive).contains("no difference in"))
      let versions = try ["Before", "Backups/" + archive].map {
        try lab.succeed("show", $0).split(separator: "\n").first { $0.hasPrefix("schema version") }
      }
      #expect(versions[0] != nil && versions[0] == versions[1], "\(versions)")
      try lab.succeed("migrate", "Notes", "-r", "Backups")
      #expect(try archives(lab).count == 1)
      try lab.succeed("restore", "Backups/" + archive, "Again")
      let rows = try lab.run(
        Tools.system("sqlite3"), lab("Again/" + Lab.oldDatabase), "SELECT title FROM task WHERE id = 77777")
      #expect(rows == "logged\n")
    }
  }

  @Test("One for a run with --each, one for each container with --all, encrypted where recipients are named")
  func forms() throws {
    try Lab.with { lab in
      for name in ["A", "B"] { try lab.create("All/\(name)") }
      let each = try lab.drydock("migrate", "All/A", "-r", "Backups", "--each", "--to", "3")
      #expect(try each.succeeded && archives(lab).count == 1, "\(each)")
      let key = try lab.key("key")
      let all = try lab.drydock("migrate", "--all", "All", "-r", "Backups", "--recipient", key)
      #expect(all.succeeded, "\(all)")
      #expect(try archives(lab).count == 3 && archives(lab).count { $0.hasSuffix(".age") } == 2)
    }
  }

  @Test("A container in use is refused first; a failure after a commit says how to get back")
  func failures() throws {
    try Lab.with { lab in
      try lab.create()
      let holder = try Command.spawn(lab.app, ["hold", lab("Notes")])
      try holder.waitForLine("ready")
      let used = try lab.drydock("migrate", "Notes", "-r", "Backups")
      #expect(try used.exitCode == 5 && archives(lab).isEmpty, "\(used)")
      holder.closeInput()
      _ = try holder.wait()
      let before = try lab.tree()
      try lab.write(
        "Migrations/0007_fails.yaml", "steps:\n  - sql: {database: notes, up: \"SELECT * FROM nowhere\"}\n")
      let failed = try lab.drydock("migrate", "Notes", "-r", "Backups")
      let archive = try #require(try archives(lab).first)
      #expect(failed.exitCode == 1 && failed.output.contains("backed up to "), "\(failed)")
      try lab.tree().expectSame(as: before, comparing: TreeListing.copied)
      let each = try lab.drydock("migrate", "Notes", "-r", "Backups", "--each")
      let newer = try #require(try archives(lab).first { $0 != archive })
      #expect(each.exitCode == 3 && each.errors.contains("\(newer) \(lab("Notes"))` restores"), "\(each)")
    }
  }

  @Test("What cannot be backed up whole is not migrated")
  func incomplete() throws {
    try Lab.with { lab in
      try lab.create()
      try lab.shell("cd Notes/Documents; for i in $(seq 515); do mkdir d; cd d; done; echo deep > file")
      let before = try lab.tree()
      let refused = try lab.drydock("migrate", "Notes", "-r", "Backups")
      #expect(refused.exitCode != 0 && refused.errors.contains("--no-snapshot"), "\(refused)")
      try lab.tree().expectSame(as: before, comparing: TreeListing.untouched)
      try lab.succeed("migrate", "Notes", "-r", "Backups", "--no-snapshot")
    }
  }
}
