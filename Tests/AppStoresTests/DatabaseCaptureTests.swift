import Foundation
import TestSupport
import Testing

@testable import AppStores

@Suite struct DatabaseCaptureTests {
  private let sandbox: DatabaseSandbox
  init() throws { sandbox = try DatabaseSandbox() }

  static let whole = DatabaseSandbox.Content(sum: 20_000, rows: 200, integrity: "ok")

  /// Captures an idle database, and checks that nobody could tell.
  private func capture(expecting kind: String, _ content: DatabaseSandbox.Content? = whole) throws {
    let before = try sandbox.listing()
    do {
      let image = try sandbox.capture()
      #expect(image.kind == kind)
      if let content { #expect(try sandbox.content(image) == content) }
    }
    let changes = try sandbox.listing().differences(from: before, comparing: TreeListing.untouched)
    #expect(changes.isEmpty, "\(changes)")
    // One file, without sidecars, and nothing else.
    let left = try sandbox.scratch.names().map { String(decoding: $0, as: UTF8.self) }.filter {
      $0 != "opened"
    }
    #expect(left == (kind == "copy" ? ["image"] : []))
  }

  @Test(arguments: ["DELETE", "WAL", "TRUNCATE", "PERSIST"]) func idle(mode: String) throws {
    try sandbox.make(mode)
    if mode == "PERSIST" { #expect(try sandbox.unit().sidecars == ["db.sqlite-journal"]) }
    // Without a log the lock would keep writers out as long as the image is read: it is copied.
    try capture(expecting: mode == "WAL" ? "in place" : "copy")
  }

  @Test(arguments: ["DELETE", "WAL"]) func anImageDoesNotBlockWriters(mode: String) throws {
    try sandbox.make(mode)
    let image = try sandbox.capture()
    let writer = try sandbox.open("UPDATE account SET balance = balance + 1 WHERE id = 1")
    writer.closeInput()
    let written = try writer.wait()
    #expect(written.succeeded && written.errors.isEmpty, "\(written)")
    withExtendedLifetime(image) {}
  }

  @Test(arguments: [false, true]) func allRowsInTheLog(withoutSharedMemory: Bool) throws {
    try sandbox.make("WAL")
    let killed = try sandbox.open("PRAGMA wal_autocheckpoint=0", "UPDATE account SET note = 'x' WHERE id = 3")
    try killed.end()
    if withoutSharedMemory { try sandbox.root.removeFile("db.sqlite-shm") }
    #expect(try (sandbox.root.status("db.sqlite-wal")?.size ?? 0) > 0)
    try capture(expecting: "in place")
  }

  @Test func theMainFileIsEmptyAndEverythingIsInTheLog() throws {
    let running = try sandbox.open(
      "PRAGMA journal_mode=WAL", "PRAGMA wal_autocheckpoint=0", "CREATE TABLE account(id, balance)",
      "INSERT INTO account VALUES (1, 7)")
    try running.end()
    try capture(expecting: "in place", .init(sum: 7, rows: 1, integrity: "ok"))
  }

  @Test func aHotJournalIsRolledBackInTheCopy() throws {
    try sandbox.make("DELETE")
    let running = try sandbox.open(
      "PRAGMA cache_size=1; BEGIN; UPDATE account SET balance = balance + id, note = hex(zeroblob(200))")
    try running.end()
    #expect(try sandbox.unit().sidecars == ["db.sqlite-journal"])
    // The main file alone is torn: that is what the journal is for.
    try capture(expecting: "copy")
  }

  @Test func aCorruptDatabaseIsCapturedRaw() throws {
    try sandbox.make("WAL")
    let running = try sandbox.open("PRAGMA wal_autocheckpoint=0", "UPDATE account SET balance = 1")
    try running.end()
    let bytes = try sandbox.root.contents(sandbox.main)
    try sandbox.root.removeFile(sandbox.main)
    try sandbox.root.create(
      sandbox.main, Array(bytes[..<16]) + Array(repeating: 0xff, count: bytes.count - 16))
    try sandbox.root.removeFile("db.sqlite-wal")
    try sandbox.root.create("db.sqlite-wal", [0x37, 0x7f, 0x06, 0x82] + Array(repeating: 1, count: 5000))
    try capture(expecting: "raw", nil)
  }

  @Test func anEncryptedDatabaseIsCapturedRaw() throws {
    var random = SeededRandom(seed: 1)
    try sandbox.root.create(sandbox.main, random.bytes(8192))
    try sandbox.root.create("db.sqlite-wal", [0x37, 0x7f, 0x06, 0x83] + random.bytes(4096))
    try capture(expecting: "raw", nil)
    // Without a log nothing says that it is a database.
    try sandbox.root.removeFile("db.sqlite-wal")
    let status = try #require(try sandbox.root.status(sandbox.main))
    #expect(try sandbox.root.databaseUnit(sandbox.main, status: status) == nil)
  }

  @Test(arguments: [
    ("DELETE", "PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE"),
    ("WAL", "PRAGMA locking_mode=EXCLUSIVE; UPDATE account SET balance = balance WHERE id = 1"),
  ]) func aPermanentLockIsAnError(mode: String, commands: String) throws {
    try sandbox.make(mode)
    let holder = try sandbox.open(commands)
    let unit = try sandbox.unit()
    let error = expectError(.inUse) {
      _ = try sandbox.root.capture(unit, into: sandbox.scratch, as: "image", busyTimeout: 0.2)
    }
    if mode == "DELETE" {
      #expect(error?.message.contains("busy timeout") == true, "\(error as Any)")
      #expect(try error?.path == sandbox.root.full(sandbox.main) && sandbox.scratch.names().isEmpty)
    }
    try holder.finish()
    if mode == "DELETE" { try capture(expecting: "copy") }
  }

  @Test(arguments: ["WAL", "DELETE"]) func theDigestDoesNotDependOnTheCapture(mode: String) throws {
    // Changes after the first commit, so that the change counter and the schema cookie are not what a new file has.
    try sandbox.make(
      mode,
      extra: """
        ALTER TABLE account ADD COLUMN more TEXT; PRAGMA user_version=77; PRAGMA application_id=99;
        DELETE FROM account WHERE id > 150; INSERT INTO account SELECT id + 1000, 5, 'new', 'm' FROM account LIMIT 50;
        CREATE TABLE gone(x); DROP TABLE gone;
        """)
    // The image is let go of at once: its lock keeps writers out.
    let first = try sandbox.digest(sandbox.capture(as: "a"))
    #expect(try sandbox.scratch.names().isEmpty == (mode == "WAL"))
    let inPlaceBytes = try sandbox.root.contents(sandbox.main)

    let reader = try sandbox.open("BEGIN; SELECT count(*) FROM account")
    let used = try sandbox.capture(as: "b")
    #expect(used.kind == (mode == "WAL" ? "in place" : "copy"))
    try sandbox.store(used, as: "stored")
    let copied = try sandbox.scratch.contents("stored")
    #expect(copied.count == inPlaceBytes.count)
    let different = zip(copied, inPlaceBytes).enumerated().filter { $1.0 != $1.1 }.map(\.offset)
    #expect(
      different.allSatisfy { (24..<28).contains($0) || (92..<100).contains($0) }, "\(different.prefix(20))")
    #expect(try sandbox.digest(used) == first)
    try reader.finish()

    // A reader that came and went changes nothing; a row does.
    #expect(try sandbox.digest(sandbox.capture(as: "c")) == first)
    try sandbox.sqlite("UPDATE account SET note = 'other' WHERE id = 5")
    #expect(try sandbox.digest(sandbox.capture(as: "d")) != first)
  }
}
