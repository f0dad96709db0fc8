import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import AppContainer

@Suite struct DatabaseCaptureTests {
  static let whole = DatabaseLab.Content(sum: 20_000, rows: 200, integrity: "ok")

  /// Captures an idle database, and checks that nobody could tell.
  private func capture(_ lab: DatabaseLab, expecting manner: String, _ content: DatabaseLab.Content? = whole)
    throws
  {
    let before = try lab.listing()
    do {
      let image = try lab.root.capture(lab.unit(), into: lab.scratch, as: "image", busyTimeout: 1)
      #expect(image.manner == manner)
      if let content { #expect(try lab.content(image) == content) }
    }
    let changes = try lab.listing().differences(from: before, comparing: TreeListing.untouched)
    #expect(changes.isEmpty, "\(changes)")
    // One file, without sidecars, and nothing else.
    let left = try lab.scratch.names().map { String(decoding: $0, as: UTF8.self) }.filter { $0 != "opened" }
    #expect(left == (manner == "copy" ? ["image"] : []))
  }

  @Test(arguments: ["DELETE", "WAL", "TRUNCATE"]) func idle(mode: String) throws {
    try DatabaseLab.with { lab in
      try lab.make(mode)
      // Without a log the lock would keep writers out as long as the image is read: it is copied.
      try capture(lab, expecting: mode == "WAL" ? "in place" : "copy")
    }
  }

  @Test(arguments: ["DELETE", "WAL"]) func anImageKeepsNoWriterOut(mode: String) throws {
    try DatabaseLab.with { lab in
      try lab.make(mode)
      let image = try lab.root.capture(lab.unit(), into: lab.scratch, as: "image", busyTimeout: 1)
      let writer = try lab.open("UPDATE account SET balance = balance + 1 WHERE id = 1")
      writer.closeInput()
      let written = try writer.wait()
      #expect(written.succeeded && written.errors.isEmpty, "\(written)")
      withExtendedLifetime(image) {}
    }
  }

  @Test func idleWithAJournalThatIsKeptAndEmpty() throws {
    try DatabaseLab.with { lab in
      try lab.make("PERSIST")
      #expect(try lab.unit().sidecars == ["db.sqlite-journal"])
      try capture(lab, expecting: "copy")
    }
  }

  @Test(arguments: [false, true]) func allRowsInTheLog(withoutSharedMemory: Bool) throws {
    try DatabaseLab.with { lab in
      try lab.make("WAL")
      let killed = try lab.open("PRAGMA wal_autocheckpoint=0", "UPDATE account SET note = 'x' WHERE id = 3")
      killed.kill()
      _ = try killed.wait()
      if withoutSharedMemory { try lab.root.removeFile("db.sqlite-shm") }
      #expect(try (lab.root.status("db.sqlite-wal")?.size ?? 0) > 0)
      try capture(lab, expecting: "in place")
    }
  }

  @Test func theMainFileIsEmptyAndEverythingIsInTheLog() throws {
    try DatabaseLab.with { lab in
      let running = try lab.open(
        "PRAGMA journal_mode=WAL", "PRAGMA wal_autocheckpoint=0", "CREATE TABLE account(id, balance)",
        "INSERT INTO account VALUES (1, 7)")
      running.kill()
      _ = try running.wait()
      try capture(lab, expecting: "in place", .init(sum: 7, rows: 1, integrity: "ok"))
    }
  }

  @Test func aHotJournalIsRolledBackInTheCopy() throws {
    try DatabaseLab.with { lab in
      try lab.make("DELETE")
      let running = try lab.open(
        "PRAGMA cache_size=1; BEGIN; UPDATE account SET balance = balance + id, note = hex(zeroblob(200))")
      running.kill()
      _ = try running.wait()
      #expect(try lab.unit().sidecars == ["db.sqlite-journal"])
      // The main file alone is torn: that is what the journal is for.
      try capture(lab, expecting: "copy")
    }
  }

  @Test func aDamagedDatabaseIsTakenAsItIs() throws {
    try DatabaseLab.with { lab in
      try lab.make("WAL")
      let running = try lab.open("PRAGMA wal_autocheckpoint=0", "UPDATE account SET balance = 1")
      running.kill()
      _ = try running.wait()
      let bytes = try lab.root.contents(lab.main)
      try lab.root.removeFile(lab.main)
      try lab.root.create(lab.main, Array(bytes[..<16]) + Array(repeating: 0xff, count: bytes.count - 16))
      try lab.root.removeFile("db.sqlite-wal")
      try lab.root.create("db.sqlite-wal", [0x37, 0x7f, 0x06, 0x82] + Array(repeating: 1, count: 5000))
      try capture(lab, expecting: "raw", nil)
    }
  }

  @Test func anEncryptedDatabaseIsTakenAsItIs() throws {
    try DatabaseLab.with { lab in
      var random = SeededRandom(seed: 1)
      try lab.root.create(lab.main, random.bytes(8192))
      try lab.root.create("db.sqlite-wal", [0x37, 0x7f, 0x06, 0x83] + random.bytes(4096))
      try capture(lab, expecting: "raw", nil)
      // Without a log nothing says that it is a database.
      try lab.root.removeFile("db.sqlite-wal")
      let status = try #require(try lab.root.status(lab.main))
      #expect(try lab.root.databaseUnit(lab.main, status: status) == nil)
    }
  }

  @Test func aDatabaseThatStaysLockedIsAnError() throws {
    try DatabaseLab.with { lab in
      try lab.make("DELETE")
      for commands in ["PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE"] {
        let holder = try lab.open(commands)
        let unit = try lab.unit()
        #expect {
          _ = try lab.root.capture(unit, into: lab.scratch, as: "image", busyTimeout: 0.2)
        } throws: { error in
          guard let error = error as? DrydockError else { return false }
          return error.code == .inUse && error.message.contains("busy timeout")
            && error.path == lab.root.full(lab.main)
        }
        #expect(try lab.scratch.names().isEmpty)
        holder.closeInput()
        _ = try holder.wait()
      }
      try capture(lab, expecting: "copy")
    }
  }

  @Test func exclusiveLockingModeWithALog() throws {
    try DatabaseLab.with { lab in
      try lab.make("WAL")
      let holder = try lab.open(
        "PRAGMA locking_mode=EXCLUSIVE; UPDATE account SET balance = balance WHERE id = 1")
      let unit = try lab.unit()
      #expect { _ = try lab.root.capture(unit, into: lab.scratch, as: "image", busyTimeout: 0.2) } throws: {
        ($0 as? DrydockError)?.code == .inUse
      }
      holder.closeInput()
      _ = try holder.wait()
    }
  }

  @Test func openInRollbackModeAndIdle() throws {
    try DatabaseLab.with { lab in
      try lab.make("DELETE")
      let holder = try lab.open("SELECT count(*) FROM account")
      try capture(lab, expecting: "copy")
      holder.closeInput()
      #expect(try holder.wait().succeeded)
    }
  }

  @Test func aWriterInTheMiddleOfATransactionInRollbackMode() throws {
    try DatabaseLab.with { lab in
      try lab.make("DELETE")
      // RESERVED: the changes are in memory still, and readers are let in.
      let holder = try lab.open("BEGIN IMMEDIATE; UPDATE account SET balance = 0 WHERE id < 100")
      let before = try lab.listing()
      let image = try lab.root.capture(lab.unit(), into: lab.scratch, as: "image", busyTimeout: 1)
      #expect(image.manner == "copy")
      #expect(try lab.content(image) == Self.whole)
      #expect(try lab.listing().differences(from: before).isEmpty)
      holder.closeInput()
      _ = try holder.wait()
    }
  }

  // MARK: The way of capture makes no difference

  @Test(arguments: ["WAL", "DELETE"]) func theDigestIsTheSameHoweverItIsCaptured(mode: String) throws {
    try DatabaseLab.with { lab in
      // Changes after the first commit, so that the change counter and the schema cookie are not what a new file has.
      try lab.make(
        mode,
        extra: """
          ALTER TABLE account ADD COLUMN more TEXT; PRAGMA user_version=77; PRAGMA application_id=99;
          DELETE FROM account WHERE id > 150; INSERT INTO account SELECT id + 1000, 5, 'new', 'm' FROM account LIMIT 50;
          CREATE TABLE gone(x); DROP TABLE gone;
          """)
      // The image is let go of at once: its lock keeps writers out.
      let first = try lab.digest(lab.root.capture(lab.unit(), into: lab.scratch, as: "a", busyTimeout: 1))
      #expect(try lab.scratch.names().isEmpty == (mode == "WAL"))
      let inPlaceBytes = try lab.root.contents(lab.main)

      let reader = try lab.open("BEGIN; SELECT count(*) FROM account")
      let used = try lab.root.capture(lab.unit(), into: lab.scratch, as: "b", busyTimeout: 1)
      #expect(used.manner == (mode == "WAL" ? "in place" : "copy"))
      try lab.store(used, as: "stored")
      let copied = try lab.scratch.contents("stored")
      #expect(copied.count == inPlaceBytes.count)
      let different = zip(copied, inPlaceBytes).enumerated().filter { $1.0 != $1.1 }.map(\.offset)
      #expect(
        different.allSatisfy { (24..<28).contains($0) || (92..<100).contains($0) }, "\(different.prefix(20))")
      #expect(try lab.digest(used) == first)
      reader.closeInput()
      _ = try reader.wait()

      // A reader that came and went changes nothing; a row does.
      #expect(try lab.digest(lab.root.capture(lab.unit(), into: lab.scratch, as: "c")) == first)
      try lab.sqlite("UPDATE account SET note = 'other' WHERE id = 5")
      #expect(try lab.digest(lab.root.capture(lab.unit(), into: lab.scratch, as: "d")) != first)
    }
  }

  @Test func theDigestOfALogReplayedIsTheSame() throws {
    try DatabaseLab.with { lab in
      try lab.make("WAL")
      let killed = try lab.open(
        "PRAGMA wal_autocheckpoint=0", "UPDATE account SET note = 'x' WHERE id < 20", "CREATE TABLE more(x)")
      let used = try lab.root.capture(lab.unit(), into: lab.scratch, as: "used", busyTimeout: 1)
      killed.kill()
      _ = try killed.wait()
      let replayed = try lab.root.capture(lab.unit(), into: lab.scratch, as: "replayed", busyTimeout: 1)
      #expect(used.manner == "in place" && replayed.manner == "in place")
      #expect(try lab.digest(used) == lab.digest(replayed))
      // SQLite itself puts the log into the main file.
      try lab.sqlite("PRAGMA wal_checkpoint(TRUNCATE)")
      let idle = try lab.root.capture(lab.unit(), into: lab.scratch, as: "idle", busyTimeout: 1)
      #expect(idle.manner == "in place")
      #expect(try lab.digest(idle) == lab.digest(used))
    }
  }
}
