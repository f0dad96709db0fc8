import GRDB
import TestSupport
import Testing

@testable import AppContainer
@testable import AppStores

/// An app that uses the library in its own process, with its database open.
@Suite struct DatabaseOwnProcessTests {
  private let sandbox: DatabaseSandbox
  init() throws { sandbox = try DatabaseSandbox() }

  /// The sqlite3 program, as anybody else who wants to write.
  private func otherWrites(_ sandbox: DatabaseSandbox) throws -> Bool {
    try sandbox.sqlite("UPDATE account SET note = 'other' WHERE id = 9").succeeded
  }

  @Test(arguments: ["WAL", "DELETE"]) func keepsItsLocks(mode: String) throws {
    try sandbox.make(mode)
    let queue = try DatabaseQueue(path: sandbox.path)
    try queue.inDatabase { db in
      try db.execute(sql: "BEGIN IMMEDIATE; UPDATE account SET balance = balance - 1 WHERE id = 1")
      #expect(try !otherWrites(sandbox))
      // Detection, a scan, the capture, its digest: none closes a descriptor that the app's locks are on.
      var scan = try ContainerScan(sandbox.root, rules: ExclusionRules(Container(at: sandbox.root.path)))
      while try scan.nextEntry() != nil {}
      let image = try sandbox.root.capture(sandbox.unit(), into: sandbox.scratch, as: "image", busyTimeout: 5)
      #expect(image.kind == "copy")
      #expect(try sandbox.content(image) == DatabaseCaptureTests.whole)
      #expect(try !otherWrites(sandbox))
      try db.execute(sql: "UPDATE account SET balance = balance + 1 WHERE id = 2; COMMIT")
      #expect(try otherWrites(sandbox))
    }
    try queue.close()
    #expect(try sandbox.sqlite("PRAGMA integrity_check").output.contains("ok"))
  }

  /// A reader's lock keeps the log from being started anew.
  @Test func keepsItsReadLockOfTheLog() throws {
    try sandbox.make("WAL")
    // Something in the log, so that the reader's lock is one that matters.
    let other = try sandbox.open("UPDATE account SET note = 'a' WHERE id = 1")
    let queue = try DatabaseQueue(path: sandbox.path)
    let log = { try sandbox.root.status("db.sqlite-wal")?.size ?? 0 }
    try queue.inDatabase { db in
      try db.execute(sql: "BEGIN")
      _ = try Int.fetchOne(db, sql: "SELECT count(*) FROM account")
      _ = try sandbox.root.capture(sandbox.unit(), into: sandbox.scratch, as: "image", busyTimeout: 5)
      try sandbox.scratch.removeDatabase("image")
      try sandbox.sqlite("PRAGMA wal_checkpoint(TRUNCATE)")
      #expect(try log() > 0)
      try db.execute(sql: "COMMIT")
      try sandbox.sqlite("PRAGMA wal_checkpoint(TRUNCATE)")
      #expect(try log() == 0)
    }
    try queue.close()
    try other.finish()
  }

  @Test func anAppThatOpensItDuringACaptureKeepsItsLocks() throws {
    try sandbox.make("WAL")
    var image: DatabaseImage? = try sandbox.capture()
    #expect(image?.kind == "in place")
    let queue = try DatabaseQueue(path: sandbox.path)
    try queue.inDatabase { db in
      try db.execute(sql: "BEGIN; UPDATE account SET note = 'a' WHERE id = 1")
      image = nil
      // With the lock on the main file gone, its last user but this one would remove the log.
      #expect(try !sandbox.sqlite("PRAGMA journal_mode=DELETE").output.contains("delete"))
      try db.execute(sql: "COMMIT")
    }
    try queue.close()
  }

  @Test func drydocksOwnDescriptorsDoNotCount() throws {
    try sandbox.make("WAL")
    try sandbox.leaveLog("UPDATE account SET note = 'x' WHERE id < 20")
    let before = try sandbox.listing()
    let first = try sandbox.capture(as: "first")
    let second = try sandbox.capture(as: "second")
    #expect(first.kind == "in place" && second.kind == "in place")
    #expect(try sandbox.digest(first) == sandbox.digest(second))
    #expect(try sandbox.listing().differences(from: before, comparing: TreeListing.untouched).isEmpty)
  }
}
