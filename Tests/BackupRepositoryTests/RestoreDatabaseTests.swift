import ContainerTransaction
import FileSystem
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// A database is one with its sidecars and its external data.
@Suite struct RestoreDatabaseTests {
  private func lab(rows: Int = 3) throws -> (Lab, String) {
    let lab = try Lab()
    try lab.directory(in: "data")
    try lab.sql(
      "data/db.sqlite", "PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES (1),(2),(3)")
    try lab.write("data/.db_SUPPORT/_EXTERNAL_DATA/blob", "external")
    return (lab, try lab.snapshot().path)
  }

  private func sum(_ lab: Lab) throws -> String { try lab.sql("data/db.sqlite", "SELECT sum(a) FROM t") }

  /// A log with a row in it, as a killed app leaves it: beside the main file, which is elsewhere meanwhile.
  private func leaveLog(_ lab: Lab, flagged: Bool = false) throws {
    let script = """
      import os, sqlite3, shutil
      os.makedirs("s", exist_ok=True); shutil.copy("box/data/db.sqlite", "s/db.sqlite")
      c = sqlite3.connect("s/db.sqlite"); c.execute("PRAGMA wal_autocheckpoint=0")
      c.execute("INSERT INTO t VALUES (100)"); c.commit()
      for end in ["-wal", "-shm"]: shutil.copy("s/db.sqlite" + end, "box/data/db.sqlite" + end)
      """
    try Command.succeed(Tools.system("python3"), ["-c", script], directory: lab.directory.path)
    if flagged {
      try lab.flag("data/db.sqlite-wal")
      try lab.flag("data/db.sqlite-shm")
    }
  }

  @Test(
    arguments: [false, true],
    ["", "rm data/db.sqlite", "echo garbage > data/db.sqlite", "printf '' > data/db.sqlite"])
  func staleLogGoes(_ flagged: Bool, _ damage: String) throws {
    let (lab, archive) = try lab()
    try leaveLog(lab, flagged: flagged)
    try lab.shell(damage, in: lab.root)
    for options in [RestoreOptions(), scoped("data/db.sqlite"), keeping()] {
      let copy = try Lab()
      try copy.shell("rm -rf box && cp -a '\(lab.root)' box")
      try copy.restore(archive) { $0 = options }
      #expect(!copy.exists("data/db.sqlite-wal"))
      #expect(try sum(copy) == "6\n")
    }
    try lab.restore(archive)
    #expect(try lab.restore(archive).transaction == nil)
  }

  @Test func emptyOrZeroedSidecarsOfAMissingDatabaseGo() throws {
    let (lab, archive) = try lab()
    try lab.remove("data/db.sqlite")
    try lab.write("data/db.sqlite-wal", [])
    try lab.write("data/db.sqlite-journal", [UInt8](repeating: 0, count: 512))
    #expect(try lab.restore(archive).value.removedPaths == ["data/db.sqlite-journal", "data/db.sqlite-wal"])
    #expect(try RawFiles.names(in: lab.full("data")).count == 2)
  }

  @Test func equalContentInALogIsLeftAlone() throws {
    let (lab, archive) = try lab()
    let script = """
      import sqlite3, os
      c = sqlite3.connect("box/data/db.sqlite"); c.execute("PRAGMA wal_autocheckpoint=0")
      c.execute("UPDATE t SET a = a"); c.execute("DELETE FROM t WHERE 0"); c.commit(); os._exit(0)
      """
    let result = try Command.run(Tools.system("python3"), ["-c", script], directory: lab.directory.path)
    #expect(result.succeeded && lab.exists("data/db.sqlite-wal"))
    let before = try TreeListing(lab.root)
    let outcome = try lab.restore(archive)
    // Only the directory's time moved when the log came.
    #expect(outcome.value.restored.isEmpty && outcome.changes == 1)
    let lines = try TreeListing(lab.root).differences(from: before, ignoringTimesOf: ["data"])
    #expect(lines == [] && lab.exists("data/db.sqlite-wal"))
  }

  @Test func flaggedDatabaseStaysWithItsLog() throws {
    let (lab, archive) = try lab()
    try leaveLog(lab)
    try lab.flag("data/db.sqlite")
    let before = try TreeListing(lab.root)
    let report = try lab.restore(archive).value
    #expect(report.preservedPaths.contains("data/db.sqlite") && report.removed.isEmpty)
    #expect(try TreeListing(lab.root).differences(from: before, ignoringTimesOf: ["data"]) == [])
    #expect(try sum(lab) == "106\n")
  }

  @Test func scopeTakesExternalDataAlong() throws {
    let (lab, archive) = try lab()
    try lab.sql("data/db.sqlite", "DELETE FROM t")
    try lab.write("data/.db_SUPPORT/_EXTERNAL_DATA/blob", "damaged")
    try lab.write("data/.db_SUPPORT/_EXTERNAL_DATA/extra", "new")
    try lab.write("data/beside", "new")
    let report = try lab.restore(archive) { $0.scope = ["data/db.sqlite"] }.value
    #expect(try sum(lab) == "6\n" && lab.read("data/.db_SUPPORT/_EXTERNAL_DATA/blob") == "external")
    #expect(report.removedPaths == ["data/.db_SUPPORT/_EXTERNAL_DATA/extra"] && lab.exists("data/beside"))
  }

  @Test func databaseThatTheArchiveLacksGoesWithItsLog() throws {
    let (lab, _) = try lab()
    try lab.remove("data")
    let archive = try lab.snapshot().path
    try lab.directory(in: "data")
    try lab.sql("data/db.sqlite", "PRAGMA journal_mode=WAL; CREATE TABLE t(a)")
    try leaveLog(lab)
    let damaged = try TreeListing(lab.root)
    try lab.restore(archive)
    #expect(try RawFiles.names(in: Array(lab.root.utf8)).isEmpty)
    _ = try Transaction.rollback(lab.container())
    #expect(try TreeListing(lab.root).differences(from: damaged) == [])
  }

  @Test(arguments: [
    "dd if=/dev/urandom of=data/db.sqlite bs=4096 count=1 seek=1 conv=notrunc 2>/dev/null",
    "dd if=/dev/urandom of=data/db.sqlite bs=16 count=200 seek=1 conv=notrunc 2>/dev/null",
    "truncate -s 4096 data/db.sqlite", "truncate -s 100 data/db.sqlite", "rm -r data",
    "mv data/db.sqlite data/other; ln -s other data/db.sqlite", "rm data/db.sqlite; mkdir data/db.sqlite",
  ])
  func damagedDatabaseComesBack(_ damage: String) throws {
    for hasLog in [false, true] {
      let (lab, archive) = try lab()
      if hasLog { try leaveLog(lab) }
      try lab.shell(damage, in: lab.root)
      let damaged = try TreeListing(lab.root)
      let dry = try lab.dryRun(archive).value
      let report = try lab.restore(archive).value
      #expect(dry.restored == report.restored && dry.removed == report.removed)
      #expect(try lab.restore(archive).transaction == nil)
      #expect(try RawFiles.names(in: lab.full("data")).count == 2)
      // SQLite would change the directory's time.
      try lab.shell("rm -rf copy; cp -a box/data copy")
      #expect(try lab.sql("../copy/db.sqlite", "SELECT sum(a) FROM t") == "6\n")
      _ = try Transaction.rollback(lab.container())
      #expect(try TreeListing(lab.root).differences(from: damaged) == [], "\(damage)")
    }
  }

  @Test func rawDatabaseComesBackByteForByte() throws {
    let lab = try Lab()
    let bad = Array("SQLite format 3\0".utf8) + SeededRandom.noise(4080)
    try lab.write("bad", bad)
    try lab.write("bad-wal", [0x37, 0x7f, 0x06, 0x82] + SeededRandom.noise(100))
    let archive = try lab.snapshot().path
    let before = try TreeListing(lab.root)
    #expect(try lab.restore(archive).transaction == nil)
    let damages = [
      "echo x >> bad", "echo x >> bad-wal", "rm bad", "rm bad-wal", "rm bad bad-wal", "echo x > bad-shm",
      "chmod 600 bad", "chmod 600 bad-wal", "echo x > bad-shm; rm bad-wal",
    ]
    for damage in damages {
      try lab.shell(damage, in: lab.root)
      try lab.restore(archive)
      #expect(try TreeListing(lab.root).differences(from: before) == [], "\(damage)")
      #expect(try lab.restore(archive).transaction == nil, "\(damage)")
    }
    try lab.restore(archive, to: lab.directory("new"))
    #expect(try TreeListing(lab.directory("new")).differences(from: before) == [])
  }

  private func scoped(_ path: ContainerPath) -> RestoreOptions {
    var options = RestoreOptions()
    options.scope = [path]
    return options
  }

  private func keeping() -> RestoreOptions {
    var options = RestoreOptions()
    options.keepExtra = true
    return options
  }
}
