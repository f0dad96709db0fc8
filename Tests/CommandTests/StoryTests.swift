import Foundation
import TestSupport
import Testing

@Suite("What must hold, from the first command to the last") struct StoryTests {
  private let sandbox: Sandbox

  init() throws { sandbox = try Sandbox(creating: "Notes", version: 0, "--leave-wal") }

  @Test func `What an app writes after a migration survives its rollback; the rest is as before`() throws {
    let before = try sandbox.tree()
    let settings = try sandbox.settings()
    try sandbox.succeed("migrate Notes")
    #expect(sandbox.exists("Notes/" + Sandbox.newDatabase) && !sandbox.exists("Notes/" + Sandbox.oldDatabase))
    try sandbox.run(sandbox.app, "touch-settings", sandbox("Notes"), "lastSearch", "dock")
    try sandbox.succeed("rollback Notes")

    let wanted = (settings + ["lastSearch = dock"]).sorted()
    let got = try sandbox.settings().sorted()
    #expect(got == wanted)
    let note = "Documents/Notes/About lastSearch.md"
    #expect(try sandbox.read("Notes/" + note) == Array("lastSearch became dock\n".utf8))
    let after = try sandbox.tree().without(note, Sandbox.settings)
    // The app's own writes moved the times of the directories that it wrote in.
    let difference = after.differences(
      from: before.without(Sandbox.settings), ignoringTimesOf: ["Documents/Notes", "Library/Preferences"])
    #expect(difference == [])
    let check = try sandbox.run(sandbox.app, "check", sandbox("Notes/" + Sandbox.oldDatabase))
    #expect(check.contains("integrity ok") && check.contains("5 tasks"))
  }

  /// `RollbackTests` has each kind of log.
  @Test func `A rollback gives back every byte and time, and a redo takes it forward again`() throws {
    let before = try sandbox.tree()
    try sandbox.succeed("migrate Notes")
    let migrated = try sandbox.tree()
    for _ in 0..<2 {
      try sandbox.succeed("rollback Notes")
      try sandbox.tree().expectSame(as: before)
      try sandbox.succeed("rollback Notes --redo")
      try sandbox.tree().expectSame(as: migrated)
    }
    #expect(try sandbox.succeed("migrate Notes").hasPrefix("nothing to do"))
  }

  private static let readers = [
    ["migrate", "Notes", "--dry-run"], ["restore", "{A}", "Notes", "--dry-run"],
    ["snapshot", "Notes", "-r", "Backups"], ["inspect", "Notes"], ["status", "Notes"],
  ]

  @Test(arguments: [true, false])
  func `A dry run and a snapshot leave not even a change time`(inUse: Bool) throws {
    let archive = try sandbox.snapshot()
    try sandbox.write("Notes/Documents/new.txt", "new\n")
    let app = inUse ? try sandbox.hold() : nil
    let sidecars = inUse ? ["-wal", "-shm"].map { Sandbox.oldDatabase + $0 } : []
    let (before, names) = (try sandbox.tree(), try sandbox.names())
    for reader in Self.readers {
      try sandbox.succeed(reader.map { $0 == "{A}" ? archive : $0 })
      let after = try sandbox.tree()
      after.without(sidecars).expectSame(
        as: before.without(sidecars), comparing: TreeListing.untouched, "\(reader)")
      // Beside the app's own connection SQLite, run as root, gives the sidecars the owner that they have.
      after.expectSame(as: before, comparing: TreeListing.untouched.subtracting([.changed]), "\(reader)")
      #expect(try sandbox.names() == names && sandbox.names("tmp") == [], "\(reader)")
    }
    #expect(app?.isRunning ?? true)
  }
}
