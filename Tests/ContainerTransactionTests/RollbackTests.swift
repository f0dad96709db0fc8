import Foundation
import TestSupport
import Testing

@testable import AppContainer
@testable import ContainerTransaction
@testable import FileSystem
@testable import Formats

@Suite struct RollbackTests {
  @Test(arguments: [[], ["--leave-wal"], ["--rollback-journal"]]) func givesBackExactly(options: [String])
    throws
  {
    try TemporaryDirectory.with { folder in
      let made = try Command.run(try Tools.notesApp(), ["create", folder("c")] + options)
      #expect(made.succeeded)
      let ship = Ship(folder: folder)
      let before = try ship.listing()
      let outcome = try ship.run()
      #expect(outcome.transaction != nil && outcome.changes > 5 && outcome.conflicts.isEmpty)
      #expect(outcome.notes.isEmpty, "\(outcome.notes)")
      let after = try ship.listing()
      #expect(after["Documents/written.txt"] != nil && after["Documents/Inbox"] == nil)
      #expect(after["Documents/database.sqlite-wal"] == nil)
      #expect(try ship.text("Documents/empty.txt") == "replaced")
      #expect(try ship.log().map(\.state) == [.undoable])
      #expect(try ship.stages().isEmpty)

      let undone = try ship.rollback()
      #expect(undone.value.undone.first?.transaction == outcome.transaction && undone.value.discarded.isEmpty)
      expectNone(try ship.listing().changes(from: before))
      // The very inodes come back.
      let inodes = try ship.listing().changes(from: before, comparing: [.inode])
      #expect(!inodes.contains("database.sqlite") && !inodes.contains("empty.txt"), "\(inodes)")
      #expect(try ship.log().map(\.state) == [.undone, .undoable])

      try ship.rollback(redoing: true)
      let times = ["Documents", "Documents/new", "Documents/new/sub", "Library/Preferences"]
      expectNone(try ship.listing().changes(from: after, ignoringTimesOf: times))
      try ship.rollback()
      expectNone(try ship.listing().changes(from: before))
    }
  }

  @Test("What a transaction changes after it has put it can be rolled back")
  func changedAfterItWasPut() throws {
    try Ship.withNotes { ship in
      let before = try ship.listing()
      let bytes = try ship.live().contents(Ship.database)
      let digest = try ContentDigest.of(Ship.database, in: ship.live(), isDatabase: true)
      _ = try Transaction.run(on: ship.container(), .restore, summary: "put and changed") { staged in
        let metadata = try staged.metadata(of: Ship.database)
        try staged.remove(Ship.database)
        try staged.putFile(
          at: Ship.database, metadata: metadata, digest: digest, size: UInt64(bytes.count)
        ) { try $0.write(bytes) }
        try staged.writeDatabase(at: Ship.database) { try $0.execute(sql: "DELETE FROM task WHERE id = 1") }
      }
      let undone = try ship.rollback()
      #expect(undone.value.discarded.isEmpty)
      expectNone(try ship.listing().changes(from: before))
    }
  }

  @Test func whatTheAppWroteSinceSurvives() throws {
    try Ship.withNotes { ship in
      let before = try ship.listing()
      try ship.run()
      #expect(try ship.notes("touch-settings", ship.root, "volume", "7").succeeded)
      try ship.put("Documents/new/mine.txt", "the app's")
      try ship.rollback()
      let file = try PropertyListFile(bytes: ship.live().contents(Ship.settings))
      #expect(file.root["volume"] == .integer(7) && file.root["added"] == nil)
      #expect(file.root["user_name"] == .string("Ada Lovelace") && file.root["theme"] == nil)
      #expect(try ship.text("Documents/new/mine.txt") == "the app's")
      #expect(try !ship.exists("Documents/new/sub") && ship.exists("Documents/Notes/About volume.md"))
      let changed = try ship.listing().differences(from: before).map { $0.split(separator: ":")[0] }
      #expect(
        Set(changed) == [
          "Documents/new", "Documents/new/mine.txt", "Documents/Notes",
          "Documents/Notes/About volume.md",
          "Library/Preferences", "Library/Preferences/com.example.notes.plist",
        ])
    }
  }

  @Test func conflictsChangeNothingUntilTheyAreGivenUp() throws {
    try Ship.withNotes { ship in
      let before = try ship.listing()
      try ship.run()
      #expect(try ship.notes("touch-settings", ship.root, "theme", "blue").succeeded)
      try ship.put("Documents/written.txt", "the app's own words")
      try ship.put("Documents/empty.txt", "the app's, too")
      let sql = try Command.run(
        try Tools.system("sqlite3"),
        ["\(ship.root)/Documents/database.sqlite", "UPDATE task SET title = 'app'"])
      #expect(sql.succeeded)
      let now = try ship.listing()
      let error = try #require(ship.failure { try ship.rollback() })
      #expect(error.code == .conflict)
      for part in [
        "theme", "\"green\"", "\"blue\"", "written.txt", "empty.txt", "database.sqlite", "--discard-newer",
      ] {
        #expect(error.message.contains(part), "\(part) in \(error.message)")
      }
      #expect(!error.message.contains("user_name"))
      expectNone(try ship.listing().changes(from: now, comparing: TreeListing.untouched))
      #expect(try ship.stages().isEmpty)

      let outcome = try ship.rollback(discardingNewer: true)
      #expect(outcome.value.discarded.count == 4)
      let file = try PropertyListFile(bytes: ship.live().contents(Ship.settings))
      #expect(file.root["theme"] == nil)
      let left = try ship.listing().without("Library/Preferences", "Documents/Notes")
      #expect(
        left.changes(
          from: before.without("Library/Preferences", "Documents/Notes"), ignoringTimesOf: ["Documents"])
          == "")
    }
  }

  @Test func aDatabaseThatWasOnlyOpenedIsNoConflict() throws {
    try Ship.withNotes { ship in
      let before = try ship.listing()
      try ship.run()
      // Opening it makes a log and its index, and closing removes them: only the directory's time tells.
      #expect(try ship.notes("check", "\(ship.root)/Documents/database.sqlite").succeeded)
      try ship.rollback()
      expectNone(try ship.listing().changes(from: before, ignoringTimesOf: ["Documents"]))
      try ship.rollback(redoing: true)
      #expect(try ship.notes("check", "\(ship.root)/Documents/database.sqlite").succeeded)
      try ship.rollback()
      expectNone(try ship.listing().changes(from: before, ignoringTimesOf: ["Documents"]))
    }
  }

  @Test func severalInARowAndBack() throws {
    try Ship.withFiles(["a": "0"]) { ship in
      var listings = [try ship.listing()]
      for number in 1...3 {
        try ship.run("step \(number)") { try $0.write(Array("\(number)".utf8), to: "a") }
        listings.append(try ship.listing())
      }
      for number in [2, 1, 0] {
        try ship.rollback()
        #expect(try ship.text("a") == "\(number)")
        expectNone(try ship.listing().changes(from: listings[number]))
      }
      ship.expect(.nothingToUndo) { try ship.rollback() }
      for number in 1...3 {
        try ship.rollback(redoing: true)
        #expect(try ship.text("a") == "\(number)")
      }
      ship.expect(.nothingToUndo) { try ship.rollback(redoing: true) }
      for number in [2, 1] {
        try ship.rollback()
        #expect(try ship.text("a") == "\(number)")
      }
      // Something new ends what can be redone.
      try ship.run("other") { try $0.write(Array("x".utf8), to: "a") }
      ship.expect(.nothingToUndo) { try ship.rollback(redoing: true) }
      try ship.rollback()
      #expect(try ship.text("a") == "1")
      try ship.rollback()
      expectNone(try ship.listing().changes(from: listings[0]))
    }
  }

  @Test func aMovedDatabase() throws {
    try Ship.withNotes("--leave-wal") { ship in
      let before = try ship.listing()
      let target: ContainerPath = "Library/Application Support/database.sqlite"
      try ship.run { try $0.move(Ship.database, to: target) }
      #expect(try !ship.exists(Ship.database) && !ship.exists("Documents/database.sqlite-wal"))
      let check = try ship.notes("check", "\(ship.root)/\(target)")
      #expect(check.succeeded && check.output.contains("200 tasks"), "\(check)")
      try ship.rollback()
      expectNone(try ship.listing().changes(from: before, ignoringTimesOf: ["Library/Application Support"]))
      #expect(try ship.notes("check", "\(ship.root)/\(Ship.database)").succeeded)
    }
  }

  @Test func kindsThatChange() throws {
    try Ship.withFiles(["file": "f", "dir/one": "1", "dir/sub/two": "2", "other": "o", "dir2/x": "x"]) {
      ship in
      try ship.live().createLink("link", target: Array("file".utf8))
      try ship.live().setAttribute(ExtendedAttribute(name: "user.a", value: [1]), of: "dir")
      try ship.live().setModified(1_000_000_000_000_000_001, of: "dir/sub")
      try ship.live().setModified(1_000_000_000_000_000_002, of: "dir")
      let before = try ship.listing()
      try ship.run { staged in
        try staged.remove("file")
        try staged.createDirectory("file/inner")
        try staged.write([1], to: "file/inner/x")
        try staged.remove("dir")
        try staged.write([2], to: "dir")
        try staged.remove("link")
        try staged.write([3], to: "link")
        try staged.remove("other")
        try staged.putLink(at: "other", target: Array("dir".utf8), metadata: nil)
        try staged.remove("dir2")
        try staged.createDirectory("dir2")
        try staged.write([4], to: "dir2/y")
      }
      #expect(try ship.listing()["file/inner/x"]?.kind == .file && ship.listing()["dir"]?.kind == .file)
      #expect(try ship.listing()["other"]?.kind == .symbolicLink && ship.listing()["dir2/x"] == nil)
      try ship.rollback()
      expectNone(try ship.listing().changes(from: before))
      try ship.rollback(redoing: true)
      #expect(try ship.listing()["file/inner/x"]?.kind == .file && ship.listing()["dir"]?.kind == .file)
      // The app's own file in a directory that took a file's place.
      try ship.put("file/mine", "app")
      ship.expect(.conflict) { try ship.rollback() }
      #expect(try ship.text("file/mine") == "app")
      try ship.rollback(discardingNewer: true)
      expectNone(try ship.listing().changes(from: before))
    }
  }

  @Test func metadataOfADirectoryTheAppUsedSince() throws {
    try Ship.withFiles(["dir/one": "1"]) { ship in
      try ship.live().setMode(0o750, of: "dir")
      try ship.run { staged in
        var metadata = try #require(try staged.metadata(of: "dir"))
        metadata.mode = 0o700
        metadata.attributes = [ExtendedAttribute(name: "user.flag", value: [1])]
        try staged.setMetadata(metadata, of: "dir")
      }
      #expect(try ship.listing()["dir"]?.mode == 0o700)
      try ship.put("dir/mine", "app")
      try ship.rollback()
      #expect(try ship.listing()["dir"]?.mode == 0o750 && ship.listing()["dir"]?.attributes.isEmpty == true)
      #expect(try ship.text("dir/mine") == "app")
    }
  }

  @Test func limits() throws {
    try Ship.withFiles(["a": "0"]) { ship in
      var limits = UndoLimits()
      limits.count = 3
      for number in 1...6 {
        try ship.run("\(number)", limits: limits) { try $0.write(Array("\(number)".utf8), to: "a") }
      }
      #expect(
        try ship.log().map(\.state) == [.committed, .committed, .committed, .undoable, .undoable, .undoable])
      limits = UndoLimits()
      limits.bytes = 1
      try ship.run("7", limits: limits) { try $0.write(Array("7".utf8), to: "a") }
      #expect(try ship.log().last?.state == .undoable)
      #expect(try ship.log().filter { $0.state == .undoable }.count == 1)
      #expect(try #require(try ship.state()).directory("undo").names().count == 1)
    }
  }

  @Test func anUndoChangedThroughAHardLinkIsRefused() throws {
    try Ship.withFiles(["a": "content"]) { ship in
      try ship.live().link("a", in: ship.live(), to: "b")
      let before = try ship.listing()
      try ship.run { try $0.write(Array("new".utf8), to: "a") }
      #expect(try ship.text("b") == "content")
      try ship.put("b", "changed through b")
      ship.expect(.conflict) { try ship.rollback() }
      #expect(try ship.text("a") == "new")
      // And untouched, the link comes back.
      try ship.put("b", "content")
      try ship.live().setModified(try #require(before["b"]).modified, of: "b")
      try ship.rollback()
      expectNone(try ship.listing().changes(from: before))
    }
  }
}
