import TestSupport
import Testing

@testable import AppStores

/// Databases of every kind, in use and left by a crash.
@Suite struct DatabaseKindsTests {
  private let sandbox: DatabaseSandbox
  init() throws { sandbox = try DatabaseSandbox() }

  @Test(arguments: ["DELETE", "TRUNCATE", "PERSIST", "MEMORY", "OFF", "WAL"]) func inUse(mode: String) throws
  {
    try sandbox.make(mode)
    let idle = try sandbox.digest(sandbox.capture(as: "idle"))
    let reader = try sandbox.open("PRAGMA journal_mode=\(mode); BEGIN; SELECT count(*) FROM account")
    let before = try sandbox.listing()
    let used = try sandbox.capture(as: "used")
    #expect(used.kind == (mode == "WAL" ? "in place" : "copy"))
    #expect(try sandbox.content(used) == DatabaseCaptureTests.whole)
    #expect(try sandbox.digest(used) == idle)
    // Not even a ctime: SQLite is not used on it.
    #expect(try sandbox.listing().differences(from: before, comparing: TreeListing.untouched).isEmpty)
    try reader.finish()
  }

  @Test(arguments: ["DELETE", "PERSIST", "TRUNCATE"]) func writersInTheMiddle(mode: String) throws {
    try sandbox.make(mode)
    // RESERVED: the changes are in memory still, and readers are let in.
    let writer = try sandbox.open(
      "PRAGMA journal_mode=\(mode); BEGIN IMMEDIATE; UPDATE account SET balance = 0 WHERE id < 100")
    let before = try sandbox.listing()
    let image = try sandbox.capture()
    #expect(try image.kind == "copy" && sandbox.content(image) == DatabaseCaptureTests.whole)
    #expect(try sandbox.listing().differences(from: before).isEmpty)
    try writer.finish()
  }

  @Test func aHotJournalBesideAReader() throws {
    try sandbox.make("DELETE")
    let running = try sandbox.open(
      "PRAGMA cache_size=1; BEGIN; UPDATE account SET balance = balance + id, note = hex(zeroblob(200))")
    try running.end()
    // Another snapshot that reads it: a shared lock, and no writer.
    let other = try #require(try DatabaseLock.share(sandbox.main, in: sandbox.root))
    let image = try sandbox.capture()
    #expect(try sandbox.content(image) == DatabaseCaptureTests.whole)
    withExtendedLifetime(other) {}
  }

  @Test func aLogInUseWhoseSharedMemoryACrashLeft() throws {
    try sandbox.make("WAL")
    try sandbox.leaveLog("UPDATE account SET note = 'x' WHERE id < 20")
    let before = try sandbox.listing()
    let other = try #require(try DatabaseLock.share(sandbox.main, in: sandbox.root))
    let image = try sandbox.capture()
    #expect(
      try sandbox.content(image) == DatabaseCaptureTests.whole && sandbox.digest(image) == sandbox.oracle())
    withExtendedLifetime(other) {}
    #expect(try sandbox.listing().differences(from: before, comparing: TreeListing.untouched).isEmpty)
  }

  @Test func anAppThatWritesDuringACaptureOfAnIdleOneIsNoticed() throws {
    try sandbox.make("WAL")
    guard case .inPlace(let pages) = try sandbox.capture() else { throw SystemFailure("not in place") }
    #expect(try pages.isUnchanged())
    // Its own pages come before the checkpoint, the rest after it.
    let app = try sandbox.open("UPDATE account SET note = 'new'", "PRAGMA wal_checkpoint(PASSIVE)")
    #expect(try !pages.isUnchanged())
    #expect(try sandbox.capture(requiresStable: true).kind == "in place")
    try app.finish()
    // Beside the first one, which holds its lock still.
    let copied = try sandbox.capture(requiresStable: true)
    #expect(try copied.kind == "copy" && sandbox.content(copied) == DatabaseCaptureTests.whole)
    withExtendedLifetime(pages) {}
  }

  /// Nothing is read that a writer's later commits could change, and nothing is waited for.
  @Test func aCaptureOutlivesCommitsAndCheckpoints() throws {
    try sandbox.make("WAL")
    let app = try sandbox.open("UPDATE account SET note = 'a'")
    guard case .inPlace(let pages) = try sandbox.capture() else { throw SystemFailure("not in place") }
    let digest = try ContentHash.of(pages).hex
    for mode in ["PASSIVE", "RESTART", "TRUNCATE"] {
      let written = try sandbox.sqlite(
        "UPDATE account SET note = note || 'b', balance = 7", "PRAGMA wal_checkpoint(\(mode))")
      #expect(written.succeeded, "\(written)")
    }
    #expect(try ContentHash.of(pages).hex == digest && pages.isUnchanged())
    try app.finish()
  }

  @Test func anEmptyFileIsAFile() throws {
    try sandbox.root.create(sandbox.main, [])
    let status = try #require(try sandbox.root.status(sandbox.main))
    #expect(try sandbox.root.databaseUnit(sandbox.main, status: status) == nil)
  }

  @Test func namesDoNotMatterAndFilesMayBeLongerThanTheirPages() throws {
    try sandbox.make("WAL")
    let whole = try sandbox.digest(sandbox.capture())
    // As an app does that lets its file grow in chunks.
    let bytes = try sandbox.root.contents(sandbox.main)
    try sandbox.root.create("blob", bytes + [UInt8](repeating: 0, count: 1 << 16))
    let status = try #require(try sandbox.root.status("blob"))
    let unit = try #require(try sandbox.root.databaseUnit("blob", status: status))
    let image = try sandbox.root.capture(unit, into: sandbox.scratch, as: "image")
    #expect(try sandbox.digest(image) == whole)
  }

  /// What the header and page 1 give away.
  @Test(arguments: [16, 19, 21, 31, 38, 44, 59, 100, 103], ["WAL", "DELETE"])
  func damageOfTheFirstPage(offset: Int, mode: String) throws {
    try sandbox.make(mode)
    var bytes = try sandbox.root.contents(sandbox.main)
    bytes[offset] = offset == 31 ? 0xf0 : 0xee
    try sandbox.root.removeFile(sandbox.main)
    try sandbox.root.create(sandbox.main, bytes)
    let before = try sandbox.listing()
    let image = try sandbox.capture()
    #expect(image.kind == "raw")
    #expect(try sandbox.scratch.names().isEmpty)
    #expect(try sandbox.listing().differences(from: before, comparing: TreeListing.untouched).isEmpty)
  }

  /// By half of its pages, and by a part of the last one, also where the header's number of pages is not valid.
  @Test(arguments: [(0, false), (1000, false), (1000, true)]) func aDatabaseThatWasCut(
    bytes lost: Int, isOld: Bool
  ) throws {
    try sandbox.make("WAL")
    var bytes = try sandbox.root.contents(sandbox.main)
    bytes.removeLast(lost > 0 ? lost : (bytes.count + 4096) / 8192 * 4096)
    // The change counter that the number is valid for.
    if isOld { bytes[95] ^= 1 }
    try sandbox.root.removeFile(sandbox.main)
    try sandbox.root.create(sandbox.main, bytes)
    #expect(try sandbox.capture().kind == "raw")
  }

  /// Zeros are what SQLite writes itself, in chunks.
  @Test(arguments: ["WAL", "DELETE"]) func whatIsBehindTheLastPageIsCounted(mode: String) throws {
    try sandbox.make(mode)
    let whole = try sandbox.root.contents(sandbox.main)
    for (added, count) in [([UInt8](repeating: 0, count: 70_000), 0), ([0, 1], 70_002)]
      as [([UInt8], UInt64)]
    {
      try RawFiles.write(sandbox.root.contents(sandbox.main) + added, to: Array(sandbox.path.utf8))
      let image = try sandbox.capture()
      #expect(try image.bytesBehind == count)
      try sandbox.store(image, as: "stored")
      #expect(try sandbox.scratch.contents("stored") == whole)
      try sandbox.scratch.removeDatabase("image")
    }
  }
}
