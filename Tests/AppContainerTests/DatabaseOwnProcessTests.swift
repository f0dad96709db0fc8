import GRDB
import TestSupport
import Testing

@testable import AppContainer

/// An app that uses the library in its own process, with its database open.
@Suite struct DatabaseOwnProcessTests {
  /// The sqlite3 program, as anybody else who wants to write.
  private func otherWrites(_ lab: DatabaseLab) throws -> Bool {
    try lab.sqlite("UPDATE account SET note = 'other' WHERE id = 9").succeeded
  }

  @Test(arguments: ["WAL", "DELETE"]) func keepsItsLocks(mode: String) throws {
    try DatabaseLab.with { lab in
      try lab.make(mode)
      let queue = try DatabaseQueue(path: lab.path)
      try queue.inDatabase { db in
        try db.execute(sql: "BEGIN IMMEDIATE; UPDATE account SET balance = balance - 1 WHERE id = 1")
        #expect(try !otherWrites(lab))
        // Detection, a scan, the capture, its digest: none closes a descriptor that the app's locks are on.
        try ContainerScan(lab.root, rules: ExclusionRules(Container(at: lab.root.path))).visit { _ in }
        let image = try lab.root.capture(lab.unit(), into: lab.scratch, as: "image", busyTimeout: 5)
        #expect(image.manner == "copy")
        #expect(try lab.content(image) == DatabaseCaptureTests.whole)
        #expect(try !otherWrites(lab))
        try db.execute(sql: "UPDATE account SET balance = balance + 1 WHERE id = 2; COMMIT")
        #expect(try otherWrites(lab))
      }
      try queue.close()
      #expect(try lab.sqlite("PRAGMA integrity_check").output.contains("ok"))
    }
  }

  /// A reader's lock keeps the log from being started anew.
  @Test func keepsItsReadLockOfTheLog() throws {
    try DatabaseLab.with { lab in
      try lab.make("WAL")
      // Something in the log, so that the reader's lock is one that matters.
      let other = try lab.open("UPDATE account SET note = 'a' WHERE id = 1")
      let queue = try DatabaseQueue(path: lab.path)
      let log = { try lab.root.status("db.sqlite-wal")?.size ?? 0 }
      try queue.inDatabase { db in
        try db.execute(sql: "BEGIN")
        _ = try Int.fetchOne(db, sql: "SELECT count(*) FROM account")
        _ = try lab.root.capture(lab.unit(), into: lab.scratch, as: "image", busyTimeout: 5)
        try lab.scratch.removeDatabase("image")
        try lab.sqlite("PRAGMA wal_checkpoint(TRUNCATE)")
        #expect(try log() > 0)
        try db.execute(sql: "COMMIT")
        try lab.sqlite("PRAGMA wal_checkpoint(TRUNCATE)")
        #expect(try log() == 0)
      }
      try queue.close()
      other.closeInput()
      _ = try other.wait()
    }
  }

  @Test func anAppThatOpensItDuringACaptureKeepsItsLocks() throws {
    try DatabaseLab.with { lab in
      try lab.make("WAL")
      var image: DatabaseImage? = try lab.root.capture(lab.unit(), into: lab.scratch, as: "image")
      #expect(image?.manner == "in place")
      let queue = try DatabaseQueue(path: lab.path)
      try queue.inDatabase { db in
        try db.execute(sql: "BEGIN; UPDATE account SET note = 'a' WHERE id = 1")
        image = nil
        // With the lock on the main file gone, its last user but this one would remove the log.
        #expect(try !lab.sqlite("PRAGMA journal_mode=DELETE").output.contains("delete"))
        try db.execute(sql: "COMMIT")
      }
      try queue.close()
    }
  }

  @Test func drydocksOwnDescriptorsDoNotCount() throws {
    try DatabaseLab.with { lab in
      try lab.make("WAL")
      try lab.leaveLog("UPDATE account SET note = 'x' WHERE id < 20")
      let before = try lab.listing()
      let first = try lab.root.capture(lab.unit(), into: lab.scratch, as: "first")
      let second = try lab.root.capture(lab.unit(), into: lab.scratch, as: "second")
      #expect(first.manner == "in place" && second.manner == "in place")
      #expect(try lab.digest(first) == lab.digest(second))
      #expect(try lab.listing().differences(from: before, comparing: TreeListing.untouched).isEmpty)
    }
  }
}
