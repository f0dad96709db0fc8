import Foundation
import TestSupport
import Testing

@Suite("What must hold, from the first command to the last")
struct StoryTests {
  @Test(
    "Migrate; the app writes another setting and a new file; rollback: both survive, the rest is as before",
    arguments: [[], ["--leave-wal"], ["--rollback-journal"]] as [[String]])
  func rollbackKeepsWhatIsNewer(_ options: [String]) throws {
    try Lab.with { lab in
      if let option = options.first { try lab.create("Notes", version: 0, option) } else { try lab.create() }
      let before = try lab.tree()
      let settings = try lab.settings()
      try lab.succeed("migrate", "Notes")
      #expect(lab.exists("Notes/" + Lab.newDatabase) && !lab.exists("Notes/" + Lab.oldDatabase))
      try lab.run(lab.app, "touch-settings", lab("Notes"), "lastSearch", "dock")
      try lab.succeed("rollback", "Notes")

      let wanted = (settings + ["lastSearch = dock"]).sorted()
      let got = try lab.settings().sorted()
      #expect(got == wanted)
      let note = "Documents/Notes/About lastSearch.md"
      #expect(try lab.read("Notes/" + note) == Array("lastSearch became dock\n".utf8))
      let after = try lab.tree().without(note, Lab.settings)
      // The app's own writes moved the times of the directories that it wrote in.
      let difference = after.differences(
        from: before.without(Lab.settings), ignoringTimesOf: ["Documents/Notes", "Library/Preferences"])
      #expect(difference == [])
      let check = try lab.run(lab.app, "check", lab("Notes/" + Lab.oldDatabase))
      #expect(check.contains("integrity ok") && check.contains("5 tasks"))
    }
  }

  @Test(
    "Without newer writes a rollback gives back every byte and time, and a redo takes it forward again",
    arguments: [[], ["--leave-wal"], ["--rollback-journal"]] as [[String]])
  func rollbackAndRedo(_ options: [String]) throws {
    try Lab.with { lab in
      if let option = options.first { try lab.create("Notes", version: 0, option) } else { try lab.create() }
      let before = try lab.tree()
      try lab.succeed("migrate", "Notes")
      let migrated = try lab.tree()
      for _ in 0..<2 {
        try lab.succeed("rollback", "Notes")
        try lab.tree().expectSame(as: before)
        try lab.succeed("rollback", "Notes", "--redo")
        try lab.tree().expectSame(as: migrated)
      }
      #expect(try lab.succeed("migrate", "Notes").hasPrefix("nothing to do"))
    }
  }

  @Test(
    "A snapshot while the app writes: stock tools open it, and no transaction is torn",
    .timeLimit(.minutes(5)))
  func snapshotWhileWriting() throws {
    try Lab.with { lab in
      try lab.create(version: 4)
      let app = try Command.spawn(lab.app, ["write", lab("Notes")])
      try app.waitForLine("ready")
      for round in 0..<5 {
        let archive = try lab.snapshot()
        #expect(app.isRunning, "round \(round)")
        let folder = "Opened-\(round)"
        try lab.run(Tools.system("mkdir"), lab(folder))
        if round.isMultiple(of: 2) {
          try lab.run(Tools.system("bsdtar"), "-xf", archive, "-C", lab(folder))
        } else {
          try lab.run(Tools.system("tar"), "--zstd", "-xf", archive, "-C", lab(folder))
        }
        let database = lab("\(folder)/container/" + Lab.newDatabase)
        let check = try lab.run(lab.app, "check", database)
        #expect(
          check.contains("integrity ok, foreign keys ok, 5 tasks, all accounts together 200000"),
          "round \(round)")
        #expect(!lab.exists("\(folder)/container/\(Lab.newDatabase)-wal"))
        try lab.run(Tools.system("zstd"), "-q", "-t", archive)
        try lab.succeed("verify", archive, "--data")
      }
      app.closeInput()
      let ended = try app.wait()
      #expect(ended.succeeded, "the app noticed nothing: \(ended)")
    }
  }

  @Test(
    "Snapshot, then restore into an empty place: equal trees but for what is excluded",
    arguments: ["absent", "empty"])
  func roundTrip(_ place: String) throws {
    try Lab.with { lab in
      try lab.create(version: 4, photos: 3)
      let source = try lab.tree()
      let archive = try lab.snapshot()
      try lab.tree().expectSame(as: source, comparing: TreeListing.untouched)
      if place == "empty" { try lab.run(Tools.system("mkdir"), lab("Again")) }
      try lab.succeed("restore", archive, "Again")
      let excluded = [
        ".com.apple.mobile_container_manager.metadata.plist", "Library/Application Support/Downloads",
        "Library/Caches", "SystemData", "tmp",
      ]
      #expect(excluded.allSatisfy { source[$0] != nil })
      try lab.tree("Again").expectSame(as: source.without(excluded))
      // And again from there: the same snapshot id, for the same content.
      let again = try lab.succeed(
        "snapshot", "Again", "-r", "Backups", "--container", "6A1F0C52-3D7E-4B8A-9C11-0E5D2F7A4B90")
      #expect(try JSONTests.document(lab.drydock("show", archive, "--json"))["snapshot"] as? String != nil)
      #expect(again.contains("6A1F0C52"))
    }
  }

  @Test("A damaged container comes back, and what is excluded is spared")
  func damageAndRestore() throws {
    try Lab.with { lab in
      try lab.create(version: 4, photos: 2)
      let archive = try lab.snapshot()
      let good = try lab.tree()
      try lab.remove("Notes/Documents/Photos")
      try lab.write("Notes/" + Lab.settings, "not a property list")
      try lab.write(
        "Notes/" + Lab.newDatabase, bytes: try lab.read("Notes/" + Lab.newDatabase).dropLast(5000))
      try lab.write("Notes/Documents/stranger.txt", "a stranger\n")
      try lab.write("Notes/Library/Caches/fresh.bin", "fresh\n")
      let damaged = try lab.tree()
      let dry = try lab.succeed("restore", archive, "Notes", "--dry-run")
      #expect(dry.contains("- Documents/stranger.txt"))
      try lab.tree().expectSame(as: damaged, comparing: TreeListing.untouched)

      try lab.succeed("restore", archive, "Notes")
      let restored = try lab.tree()
      #expect(restored.without("Library/Caches").differences(from: good.without("Library/Caches")) == [])
      #expect(try lab.read("Notes/Library/Caches/fresh.bin") == Array("fresh\n".utf8))
      try lab.succeed("rollback", "Notes")
      try lab.tree().expectSame(as: damaged)
    }
  }

  @Test(
    "A dry run and a snapshot leave not even a change time",
    arguments: [
      ["migrate", "Notes", "--dry-run"], ["restore", "{A}", "Notes", "--dry-run"],
      ["snapshot", "Notes", "-r", "Backups"], ["inspect", "Notes"], ["status", "Notes"],
    ], [true, false])
  func onlyLooks(_ command: [String], inUse: Bool) throws {
    try Lab.with { lab in
      try lab.create("Notes", version: 0, "--leave-wal")
      let archive = try lab.snapshot()
      try lab.write("Notes/Documents/new.txt", "new\n")
      let app = inUse ? try Command.spawn(lab.app, ["hold", lab("Notes")]) : nil
      try app?.waitForLine("ready")
      let before = try lab.tree()
      let names = try lab.names()
      let result = try lab.drydock(command.map { $0 == "{A}" ? archive : $0 })
      #expect(result.succeeded, "\(result)")
      let after = try lab.tree()
      let sidecars = inUse ? ["-wal", "-shm"].map { Lab.oldDatabase + $0 } : []
      after.without(sidecars).expectSame(as: before.without(sidecars), comparing: TreeListing.untouched)
      // Beside the app's own connection SQLite, run as root, gives the sidecars the owner that they have.
      after.expectSame(as: before, comparing: TreeListing.untouched.subtracting([.changed]))
      #expect(try lab.names() == names)
      #expect(try lab.names("tmp") == [])
      #expect(app?.isRunning ?? true)
    }
  }
}
