import TestSupport
import Testing

@testable import AppContainer

/// Databases of every kind, in use and left by a crash.
@Suite struct DatabaseKindsTests {
  @Test(arguments: ["DELETE", "TRUNCATE", "PERSIST", "MEMORY", "OFF", "WAL"]) func inUse(mode: String) throws
  {
    try DatabaseLab.with { lab in
      try lab.make(mode)
      let idle = try lab.digest(lab.root.capture(lab.unit(), into: lab.scratch, as: "idle"))
      let reader = try lab.open("PRAGMA journal_mode=\(mode); BEGIN; SELECT count(*) FROM account")
      let before = try lab.listing()
      let used = try lab.root.capture(lab.unit(), into: lab.scratch, as: "used", busyTimeout: 1)
      #expect(used.manner == (mode == "WAL" ? "in place" : "copy"))
      #expect(try lab.content(used) == DatabaseCaptureTests.whole)
      #expect(try lab.digest(used) == idle)
      // Not even a ctime: SQLite is not used on it.
      #expect(try lab.listing().differences(from: before, comparing: TreeListing.untouched).isEmpty)
      reader.closeInput()
      _ = try reader.wait()
    }
  }

  @Test(arguments: ["DELETE", "PERSIST", "TRUNCATE"]) func writersInTheMiddle(mode: String) throws {
    try DatabaseLab.with { lab in
      try lab.make(mode)
      let writer = try lab.open(
        "PRAGMA journal_mode=\(mode); BEGIN IMMEDIATE; UPDATE account SET balance = 0 WHERE id < 100")
      let image = try lab.root.capture(lab.unit(), into: lab.scratch, as: "image", busyTimeout: 1)
      #expect(try lab.content(image) == DatabaseCaptureTests.whole)
      writer.closeInput()
      _ = try writer.wait()
    }
  }

  @Test func aHotJournalBesideAReader() throws {
    try DatabaseLab.with { lab in
      try lab.make("DELETE")
      let running = try lab.open(
        "PRAGMA cache_size=1; BEGIN; UPDATE account SET balance = balance + id, note = hex(zeroblob(200))")
      running.kill()
      _ = try running.wait()
      // Another snapshot that reads it: a shared lock, and no writer.
      let other = try #require(try DatabaseLock.share(lab.main, in: lab.root))
      let image = try lab.root.capture(lab.unit(), into: lab.scratch, as: "image", busyTimeout: 1)
      #expect(try lab.content(image) == DatabaseCaptureTests.whole)
      withExtendedLifetime(other) {}
    }
  }

  @Test func aLogInUseWhoseSharedMemoryACrashLeft() throws {
    try DatabaseLab.with { lab in
      try lab.make("WAL")
      try lab.leaveLog("UPDATE account SET note = 'x' WHERE id < 20")
      let before = try lab.listing()
      let other = try #require(try DatabaseLock.share(lab.main, in: lab.root))
      let image = try lab.root.capture(lab.unit(), into: lab.scratch, as: "image", busyTimeout: 1)
      #expect(try lab.content(image) == DatabaseCaptureTests.whole && lab.digest(image) == lab.oracle())
      withExtendedLifetime(other) {}
      #expect(try lab.listing().differences(from: before, comparing: TreeListing.untouched).isEmpty)
    }
  }

  @Test func anAppThatWritesDuringACaptureOfAnIdleOneIsNoticed() throws {
    try DatabaseLab.with { lab in
      try lab.make("WAL")
      guard case .inPlace(let pages) = try lab.root.capture(lab.unit(), into: lab.scratch, as: "image") else {
        throw SystemFailure("not in place")
      }
      #expect(try pages.isUnchanged())
      // Its own pages come before the checkpoint, the rest after it.
      let app = try lab.open("UPDATE account SET note = 'new'", "PRAGMA wal_checkpoint(PASSIVE)")
      #expect(try !pages.isUnchanged())
      #expect(
        try lab.root.capture(lab.unit(), into: lab.scratch, as: "image", requiresStable: true).manner == "in place"
      )
      app.closeInput()
      _ = try app.wait()
      // Beside the first one, which holds its lock still.
      let copied = try lab.root.capture(lab.unit(), into: lab.scratch, as: "image", requiresStable: true)
      #expect(try copied.manner == "copy" && lab.content(copied) == DatabaseCaptureTests.whole)
      withExtendedLifetime(pages) {}
    }
  }

  /// Nothing is read that a writer's later commits could change, and nothing is waited for.
  @Test func aCaptureOutlivesCommitsAndCheckpoints() throws {
    try DatabaseLab.with { lab in
      try lab.make("WAL")
      let app = try lab.open("UPDATE account SET note = 'a'")
      guard case .inPlace(let pages) = try lab.root.capture(lab.unit(), into: lab.scratch, as: "image") else {
        throw SystemFailure("not in place")
      }
      let digest = try ContentDigest.of(pages).hex
      for mode in ["PASSIVE", "RESTART", "TRUNCATE"] {
        let written = try lab.sqlite(
          "UPDATE account SET note = note || 'b', balance = 7", "PRAGMA wal_checkpoint(\(mode))")
        #expect(written.succeeded, "\(written)")
      }
      #expect(try ContentDigest.of(pages).hex == digest && pages.isUnchanged())
      app.closeInput()
      _ = try app.wait()
    }
  }

  @Test func anEmptyFileIsAFile() throws {
    try DatabaseLab.with { lab in
      try lab.root.create(lab.main, [])
      let status = try #require(try lab.root.status(lab.main))
      #expect(try lab.root.databaseUnit(lab.main, status: status) == nil)
    }
  }

  @Test func namesDoNotMatterAndFilesMayBeLongerThanTheirPages() throws {
    try DatabaseLab.with { lab in
      try lab.make("WAL")
      let whole = try lab.digest(lab.root.capture(lab.unit(), into: lab.scratch, as: "image"))
      // As an app does that lets its file grow in chunks.
      let bytes = try lab.root.contents(lab.main)
      try lab.root.create("blob", bytes + [UInt8](repeating: 0, count: 1 << 16))
      let status = try #require(try lab.root.status("blob"))
      let unit = try #require(try lab.root.databaseUnit("blob", status: status))
      let image = try lab.root.capture(unit, into: lab.scratch, as: "image")
      #expect(try lab.digest(image) == whole)
    }
  }

  /// What the header and page 1 give away.
  @Test(arguments: [16, 19, 21, 31, 38, 44, 59, 100, 103], ["WAL", "DELETE"])
  func damageOfTheFirstPage(offset: Int, mode: String) throws {
    try DatabaseLab.with { lab in
      try lab.make(mode)
      var bytes = try lab.root.contents(lab.main)
      bytes[offset] = offset == 31 ? 0xf0 : 0xee
      try lab.root.removeFile(lab.main)
      try lab.root.create(lab.main, bytes)
      let before = try lab.listing()
      let image = try lab.root.capture(lab.unit(), into: lab.scratch, as: "image")
      #expect(image.manner == "raw")
      #expect(try lab.scratch.names().isEmpty)
      #expect(try lab.listing().differences(from: before, comparing: TreeListing.untouched).isEmpty)
    }
  }

  @Test func aDatabaseThatWasCut() throws {
    try DatabaseLab.with { lab in
      try lab.make("WAL")
      let bytes = try lab.root.contents(lab.main)
      try lab.root.removeFile(lab.main)
      try lab.root.create(lab.main, Array(bytes[..<(bytes.count / 2 / 4096 * 4096)]))
      #expect(try lab.root.capture(lab.unit(), into: lab.scratch, as: "image").manner == "raw")
    }
  }
}
