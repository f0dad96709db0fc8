import Cryptography
import Foundation
import TestSupport
import Testing

@testable import AppStores
@testable import ContainerTransaction
@testable import FileSystem
@testable import Formats

@Suite struct RollbackTests {
  @Test(arguments: [[], ["--leave-wal"], ["--rollback-journal"]]) func givesBackExactly(options: [String])
    throws
  {
    let sandbox = try Sandbox(notes: options)
    let before = try sandbox.listing()
    let outcome = try sandbox.run()
    #expect(outcome.transaction != nil && outcome.changes > 5 && outcome.conflicts.isEmpty)
    #expect(outcome.notes.isEmpty, "\(outcome.notes)")
    let after = try sandbox.listing()
    #expect(after["Documents/written.txt"] != nil && after["Documents/Inbox"] == nil)
    #expect(after["Documents/database.sqlite-wal"] == nil)
    #expect(try sandbox.text("Documents/empty.txt") == "replaced")
    #expect(try sandbox.log().map(\.state) == [.undoable])
    #expect(try sandbox.stages().isEmpty)

    let undone = try sandbox.rollback()
    #expect(undone.value.undone.first?.transaction == outcome.transaction && undone.value.discarded.isEmpty)
    expectNone(try sandbox.listing().changes(from: before))
    // The very inodes come back.
    let inodes = try sandbox.listing().changes(from: before, comparing: [.inode])
    #expect(!inodes.contains("database.sqlite") && !inodes.contains("empty.txt"), "\(inodes)")
    #expect(try sandbox.log().map(\.state) == [.undone, .undoable])

    try sandbox.rollback(redoing: true)
    let times = ["Documents", "Documents/new", "Documents/new/sub", "Library/Preferences"]
    expectNone(try sandbox.listing().changes(from: after, ignoringTimesOf: times))
    try sandbox.rollback()
    expectNone(try sandbox.listing().changes(from: before))
  }

  @Test("What a transaction changes after it has put it can be rolled back")
  func changedAfterItWasPut() throws {
    let sandbox = try Sandbox(notes: [])
    let before = try sandbox.listing()
    let bytes = try sandbox.live().contents(Sandbox.database)
    let digest = try ContentHash.of(Sandbox.database, in: sandbox.live(), isDatabase: true)
    _ = try Transaction.run(on: sandbox.container(), .restore, summary: "put and changed") { staged in
      let metadata = try #require(try staged.metadata(of: Sandbox.database))
      let size = UInt64(bytes.count)
      try staged.remove(Sandbox.database)
      // As a restore, which knows the digest.
      try staged.putFiles([Sandbox.database], [[0]], size: size) { _ in
        { _ in (metadata, digest, size, isDatabase: true, { try $0.write(bytes) }) }
      }
      try staged.writeDatabase(at: Sandbox.database) {
        try $0.execute(sql: "DELETE FROM task WHERE id = 1")
      }
    }
    let undone = try sandbox.rollback()
    #expect(undone.value.discarded.isEmpty)
    expectNone(try sandbox.listing().changes(from: before))
  }

  @Test func whatTheAppWroteSinceSurvives() throws {
    let sandbox = try Sandbox(notes: [])
    let before = try sandbox.listing()
    try sandbox.run()
    #expect(try sandbox.notes("touch-settings", sandbox.root, "volume", "7").succeeded)
    try sandbox.put("Documents/new/mine.txt", "the app's")
    try sandbox.rollback()
    let file = try PropertyListFile(bytes: sandbox.live().contents(Sandbox.settings))
    #expect(file.root["volume"] == .integer(7) && file.root["added"] == nil)
    #expect(file.root["user_name"] == .string("Ada Lovelace") && file.root["theme"] == nil)
    #expect(try sandbox.text("Documents/new/mine.txt") == "the app's")
    #expect(try !sandbox.exists("Documents/new/sub") && sandbox.exists("Documents/Notes/About volume.md"))
    let changed = try sandbox.listing().differences(from: before).map { $0.split(separator: ":")[0] }
    #expect(
      Set(changed) == [
        "Documents/new", "Documents/new/mine.txt", "Documents/Notes",
        "Documents/Notes/About volume.md",
        "Library/Preferences", "Library/Preferences/com.example.notes.plist",
      ])
  }

  @Test func conflictsChangeNothingUntilTheyAreGivenUp() throws {
    let sandbox = try Sandbox(notes: [])
    let before = try sandbox.listing()
    try sandbox.run()
    #expect(try sandbox.notes("touch-settings", sandbox.root, "theme", "blue").succeeded)
    try sandbox.put("Documents/written.txt", "the app's own words")
    try sandbox.put("Documents/empty.txt", "the app's, too")
    try Command.succeed(
      try Tools.system("sqlite3"),
      ["\(sandbox.root)/Documents/database.sqlite", "UPDATE task SET title = 'app'"])
    let now = try sandbox.listing()
    let error = try #require(expectError { try sandbox.rollback() })
    #expect(error.code == .conflict)
    for part in [
      "theme", "\"green\"", "\"blue\"", "written.txt", "empty.txt", "database.sqlite",
    ] {
      #expect(error.message.contains(part), "\(part) in \(error.message)")
    }
    #expect(!error.message.contains("user_name"))
    expectNone(try sandbox.listing().changes(from: now, comparing: TreeListing.untouched))
    #expect(try sandbox.stages().isEmpty)

    let outcome = try sandbox.rollback(discardingNewer: true)
    #expect(outcome.value.discarded.count == 4)
    let file = try PropertyListFile(bytes: sandbox.live().contents(Sandbox.settings))
    #expect(file.root["theme"] == nil)
    let left = try sandbox.listing().without("Library/Preferences", "Documents/Notes")
    #expect(
      left.changes(
        from: before.without("Library/Preferences", "Documents/Notes"), ignoringTimesOf: ["Documents"])
        == "")
  }

  @Test func aConflictOfARenamedSecretShowsNone() throws {
    let sandbox = try Sandbox(files: ["Documents/a.txt": ""])
    try sandbox.live().createDirectories(Sandbox.settings.parent, mode: 0o755)
    let old = PropertyListFile(format: .binary, root: ["auth_token": .string("correct horse battery")])
    try sandbox.live().create(Sandbox.settings, old.encoded(), mode: 0o640)
    try sandbox.run {
      try $0.changeSettings { ($0["label"], $0["auth_token"]) = ($0["auth_token"], nil) }
    }
    var new = try PropertyListFile(bytes: sandbox.live().contents(Sandbox.settings))
    new.root["label"] = .string("blue")
    try sandbox.live().removeFile(Sandbox.settings)
    try sandbox.live().create(Sandbox.settings, new.encoded(), mode: 0o640)
    let error = try #require(expectError { try sandbox.rollback() })
    #expect(error.code == .conflict && error.message.contains("label") && error.message.contains("blue"))
    #expect(error.message.contains("(secret, ") && !error.message.contains("horse"), "\(error.message)")
    let discarded = try sandbox.rollback(discardingNewer: true).value.discarded
    #expect(discarded.count == 1 && discarded.first?.written.hasPrefix("(secret, ") == true)
    let restored = try PropertyListFile(bytes: sandbox.live().contents(Sandbox.settings))
    #expect(restored.root == old.root)
  }

  @Test func aDatabaseThatWasOnlyOpenedIsNoConflict() throws {
    let sandbox = try Sandbox(notes: [])
    let before = try sandbox.listing()
    try sandbox.run()
    // Opening it makes a log and its index, and closing removes them: only the directory's time tells.
    #expect(try sandbox.notes("check", "\(sandbox.root)/Documents/database.sqlite").succeeded)
    try sandbox.rollback()
    expectNone(try sandbox.listing().changes(from: before, ignoringTimesOf: ["Documents"]))
    try sandbox.rollback(redoing: true)
    #expect(try sandbox.notes("check", "\(sandbox.root)/Documents/database.sqlite").succeeded)
    try sandbox.rollback()
    expectNone(try sandbox.listing().changes(from: before, ignoringTimesOf: ["Documents"]))
  }

  @Test func severalInARowAndBack() throws {
    let sandbox = try Sandbox(files: ["a": "0"])
    var listings = [try sandbox.listing()]
    for number in 1...3 {
      try sandbox.run("step \(number)") { try $0.write(Array("\(number)".utf8), to: "a") }
      listings.append(try sandbox.listing())
    }
    for number in [2, 1, 0] {
      try sandbox.rollback()
      #expect(try sandbox.text("a") == "\(number)")
      expectNone(try sandbox.listing().changes(from: listings[number]))
    }
    expectError(.nothingToUndo) { try sandbox.rollback() }
    for number in 1...3 {
      try sandbox.rollback(redoing: true)
      #expect(try sandbox.text("a") == "\(number)")
    }
    expectError(.nothingToUndo) { try sandbox.rollback(redoing: true) }
    for number in [2, 1] {
      try sandbox.rollback()
      #expect(try sandbox.text("a") == "\(number)")
    }
    // Something new ends what can be redone.
    try sandbox.run("other") { try $0.write(Array("x".utf8), to: "a") }
    expectError(.nothingToUndo) { try sandbox.rollback(redoing: true) }
    try sandbox.rollback()
    #expect(try sandbox.text("a") == "1")
    try sandbox.rollback()
    expectNone(try sandbox.listing().changes(from: listings[0]))
  }

  @Test func aMovedDatabase() throws {
    let sandbox = try Sandbox(notes: ["--leave-wal"])
    let before = try sandbox.listing()
    let target: ContainerPath = "Library/Application Support/database.sqlite"
    try sandbox.run { try $0.move(Sandbox.database, to: target) }
    #expect(try !sandbox.exists(Sandbox.database) && !sandbox.exists("Documents/database.sqlite-wal"))
    let check = try sandbox.notes("check", "\(sandbox.root)/\(target)")
    #expect(check.succeeded && check.output.contains("200 tasks"), "\(check)")
    try sandbox.rollback()
    expectNone(try sandbox.listing().changes(from: before, ignoringTimesOf: ["Library/Application Support"]))
    #expect(try sandbox.notes("check", "\(sandbox.root)/\(Sandbox.database)").succeeded)
  }

  @Test func kindsThatChange() throws {
    let sandbox = try Sandbox(files: [
      "file": "f", "dir/one": "1", "dir/sub/two": "2", "other": "o", "dir2/x": "x",
    ])
    try sandbox.live().createLink("link", target: Array("file".utf8))
    try sandbox.live().setAttribute(ExtendedAttribute(name: "user.a", value: [1]), of: "dir")
    try sandbox.live().setModified(1_000_000_000_000_000_001, of: "dir/sub")
    try sandbox.live().setModified(1_000_000_000_000_000_002, of: "dir")
    let before = try sandbox.listing()
    try sandbox.run { staged in
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
    #expect(try sandbox.listing()["file/inner/x"]?.kind == .file && sandbox.listing()["dir"]?.kind == .file)
    #expect(try sandbox.listing()["other"]?.kind == .symbolicLink && sandbox.listing()["dir2/x"] == nil)
    try sandbox.rollback()
    expectNone(try sandbox.listing().changes(from: before))
    try sandbox.rollback(redoing: true)
    #expect(try sandbox.listing()["file/inner/x"]?.kind == .file && sandbox.listing()["dir"]?.kind == .file)
    // The app's own file in a directory that took a file's place.
    try sandbox.put("file/mine", "app")
    expectError(.conflict) { try sandbox.rollback() }
    #expect(try sandbox.text("file/mine") == "app")
    try sandbox.rollback(discardingNewer: true)
    expectNone(try sandbox.listing().changes(from: before))
  }

  @Test func metadataOfADirectoryTheAppUsedSince() throws {
    let sandbox = try Sandbox(files: ["dir/one": "1"])
    try sandbox.live().setMode(0o750, of: "dir")
    try sandbox.run { staged in
      var metadata = try #require(try staged.metadata(of: "dir"))
      metadata.mode = 0o700
      metadata.attributes = [ExtendedAttribute(name: "user.flag", value: [1])]
      try staged.setMetadata(metadata, of: "dir")
    }
    #expect(try sandbox.listing()["dir"]?.mode == 0o700)
    try sandbox.put("dir/mine", "app")
    try sandbox.rollback()
    #expect(
      try sandbox.listing()["dir"]?.mode == 0o750 && sandbox.listing()["dir"]?.attributes.isEmpty == true)
    #expect(try sandbox.text("dir/mine") == "app")
  }

  @Test func limits() throws {
    let sandbox = try Sandbox(files: ["a": "0"])
    var limits = TransactionOptions().undoLimits
    limits.count = 3
    for number in 1...6 {
      try sandbox.run("\(number)", limits: limits) { try $0.write(Array("\(number)".utf8), to: "a") }
    }
    #expect(
      try sandbox.log().map(\.state) == [
        .committed, .committed, .committed, .undoable, .undoable, .undoable,
      ])
    limits = (TransactionOptions().undoLimits.count, 1)
    try sandbox.run("7", limits: limits) { try $0.write(Array("7".utf8), to: "a") }
    #expect(try sandbox.log().last?.state == .undoable)
    #expect(try sandbox.log().filter { $0.state == .undoable }.count == 1)
    #expect(try #require(try sandbox.state()).directory("undo").names().count == 1)
  }

  @Test func whatIsWrittenThroughAnotherHardLinkIsNotAConflict() throws {
    let sandbox = try Sandbox(files: ["a": "content", "c": ""])
    try sandbox.live().link("a", in: sandbox.live(), to: "b")
    try sandbox.run { try $0.write(Array("new".utf8), to: "a") }
    for number in 1...3 {
      try sandbox.put("b", "changed through b \(number)")
      let next = try sandbox.run { try $0.write([UInt8(number)], to: "c") }
      #expect(next.recovered.isEmpty)
    }
    for _ in 1...4 { try sandbox.rollback() }
    #expect(try sandbox.text("a") == "changed through b 3" && sandbox.text("b") == sandbox.text("a"))
    #expect(try sandbox.live().status("a")?.links == 2)
  }
}

/// A rollback undoes what a transaction did to a vault, item by item.
@Suite struct VaultRollbackTests {
  private let sandbox: VaultSandbox

  init() throws { sandbox = try VaultSandbox() }

  @Test func untouchedSinceTheVeryFileComesBackWithoutAKey() throws {
    let before = try sandbox.sealed()
    try sandbox.change { $0.put(VaultSandbox.item("a", "new")) }
    try sandbox.rollback(nil)
    #expect(try sandbox.sealed() == before)
    try sandbox.rollback(nil, redoing: true)
    #expect(try sandbox.values() == ["a = new", "b = b"])
  }

  @Test func whatTheAppWroteSinceStays() throws {
    try sandbox.change { vault in
      vault.put(VaultSandbox.item("a", "changed"))
      vault.remove(VaultSandbox.id("b"))
      vault.put(VaultSandbox.item("added", "x"))
    }
    try sandbox.appChanges { $0.put(VaultSandbox.item("app", "own")) }
    let outcome = try sandbox.rollback(sandbox.keys)
    #expect(outcome.value.discarded.isEmpty)
    #expect(try sandbox.values() == ["a = a", "app = own", "b = b"])
    try sandbox.rollback(sandbox.keys, redoing: true)
    #expect(try sandbox.values() == ["a = changed", "added = x", "app = own"])
  }

  @Test func bothChangedTheSameItem() throws {
    try sandbox.change { $0.put(VaultSandbox.item("a", "by drydock")) }
    try sandbox.appChanges { $0.put(VaultSandbox.item("a", "by the app")) }
    let before = try sandbox.sealed()
    let error = expectError(.conflict) { try sandbox.rollback(sandbox.keys) }
    let message = error?.message ?? ""
    #expect(
      message.contains("\n  s/a in Library/Vault/vault.age\n    before       (secret, 1 character, #"),
      "\(message)")
    #expect(message.contains("\n    transaction  (secret, 10 characters, #"), "\(message)")
    #expect(message.contains("\n    app          (secret, "), "\(message)")
    #expect(!message.contains("by drydock") && !message.contains("by the app"))
    #expect(try sandbox.sealed() == before)
    let outcome = try sandbox.rollback(sandbox.keys, discardingNewer: true)
    #expect(outcome.value.discarded.map(\.key) == ["s/a"])
    #expect(try sandbox.values() == ["a = a", "b = b"])
  }

  @Test func bothChangedItTheSameWay() throws {
    try sandbox.change { $0.put(VaultSandbox.item("a", "x")) }
    try sandbox.appChanges { vault in
      vault.put(VaultSandbox.item("a", "a"))
      vault.put(VaultSandbox.item("c", "c"))
    }
    try sandbox.rollback(sandbox.keys)
    #expect(try sandbox.values() == ["a = a", "b = b", "c = c"])
  }

  @Test func aRenamedItemThatTheAppChangedIsAConflict() throws {
    try sandbox.change { vault in
      vault.remove(VaultSandbox.id("a"))
      vault.put(VaultSandbox.item("renamed", "a"))
    }
    try sandbox.appChanges { $0.put(VaultSandbox.item("renamed", "newer")) }
    expectError(.conflict) { try sandbox.rollback(sandbox.keys) }
  }

  @Test func withoutTheKeyItSaysWhatToDo() throws {
    try sandbox.change { $0.put(VaultSandbox.item("a", "x")) }
    try sandbox.appChanges { $0.put(VaultSandbox.item("c", "c")) }
    let before = try sandbox.sealed()
    expectError(.vaultLocked) { try sandbox.rollback(nil) }
    let stranger = try DeviceKeys(.generate())
    expectError(.vaultLocked) { try sandbox.rollback(stranger) }
    #expect(try sandbox.sealed() == before)
    // Discarding newer changes discards the file.
    try sandbox.rollback(nil, discardingNewer: true)
    #expect(try sandbox.values() == ["a = a", "b = b"])
  }

  @Test func aVaultThatTheTransactionMadeGoes() throws {
    let sandbox = try VaultSandbox(items: [])
    try sandbox.change { $0.put(VaultSandbox.item("a", "1")) }
    try sandbox.rollback(nil)
    #expect(try !sandbox.base.exists(VaultSandbox.path))
    try sandbox.rollback(nil, redoing: true)
    // Sealed anew by the app, with the same items, it goes as well.
    try sandbox.appChanges { $0.put(VaultSandbox.item("a", "1")) }
    try sandbox.rollback(sandbox.keys)
    #expect(try !sandbox.base.exists(VaultSandbox.path))
    try sandbox.rollback(sandbox.keys, redoing: true)
    try sandbox.appChanges { $0.put(VaultSandbox.item("app", "own")) }
    try sandbox.rollback(sandbox.keys)
    #expect(try sandbox.values() == ["app = own"])
  }

  @Test func aVaultThatTheTransactionRemovedComesBack() throws {
    try sandbox.base.run { try $0.remove(VaultSandbox.path) }
    try sandbox.rollback(nil)
    #expect(try sandbox.values() == ["a = a", "b = b"])
    try sandbox.rollback(nil, redoing: true)
    // The app has begun a new one: its items stay, and the old ones come back.
    var new = try Vault(new: sandbox.keys)
    new.put(VaultSandbox.item("app", "own"))
    try sandbox.write(new.sealed())
    try sandbox.rollback(sandbox.keys)
    #expect(try sandbox.values() == ["a = a", "app = own", "b = b"])
    #expect(try sandbox.vault().device == new.device)
  }

  @Test func whatTheAppRemovedAltogetherIsAConflictOrStaysRemoved() throws {
    try sandbox.change { $0.put(VaultSandbox.item("a", "x")) }
    try sandbox.base.live().removeFile(VaultSandbox.path)
    expectError(.conflict) { try sandbox.rollback(sandbox.keys) }
    try sandbox.rollback(sandbox.keys, discardingNewer: true)
    #expect(try sandbox.values() == ["a = a"])
  }

  @Test func otherKeysGoBackWithTheTransactionThatBroughtThem() throws {
    let later = try DeviceKeys(.generate())
    let both = DeviceKeys(later.present, earlier: sandbox.keys.identities)
    let options = TransactionOptions(keys: both)
    _ = try Transaction.run(on: sandbox.base.container(), .vault, summary: "rekey", options: options) {
      var vault = try #require(try $0.vault())
      try vault.rekey(to: later.recipients)
      try $0.setVault(vault)
    }
    var newer = try Vault(opening: sandbox.sealed(), with: later, path: "v")
    newer.put(VaultSandbox.item("app", "own"))
    try sandbox.write(newer.sealed())
    // The old file needs the old key, the present one the new key.
    expectError(.vaultLocked) { try sandbox.rollback(later) }
    expectError(.vaultLocked) { try sandbox.rollback(sandbox.keys) }
    try sandbox.rollback(both)
    #expect(try sandbox.vault().recipients == sandbox.keys.recipients)
    #expect(try sandbox.values() == ["a = a", "app = own", "b = b"])
  }

  @Test func aDamagedVaultIsComparedAsAFile() throws {
    try sandbox.change { $0.put(VaultSandbox.item("a", "x")) }
    try sandbox.write(Array("damaged".utf8))
    expectError(.conflict) { try sandbox.rollback(sandbox.keys) }
    try sandbox.rollback(sandbox.keys, discardingNewer: true)
    #expect(try sandbox.values() == ["a = a", "b = b"])
  }

  @Test func undosHoldNothingInTheClear() throws {
    let sandbox = try VaultSandbox(items: [])
    let canary = "made-up-canary-4711"
    try sandbox.change { $0.put(VaultSandbox.item("a", canary)) }
    try sandbox.change { $0.put(VaultSandbox.item("a", canary + "2")) }
    try sandbox.rollback(sandbox.keys)
    let found = try Command.run(
      Tools.system("grep"),
      ["-r", "-l", "-e", canary, "-e", "bWFkZS11cC1jYW5hcn", sandbox.base.folder.path])
    #expect(found.exitCode == 1, "\(found)")
  }
}
