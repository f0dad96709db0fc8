import TestSupport
import Testing

@testable import AppStores
@testable import FileSystem

/// Main file and log read as one: always what SQLite makes of them.
@Suite struct DatabaseLogTests {
  private let sandbox: DatabaseSandbox
  init() throws { sandbox = try DatabaseSandbox() }

  /// Captures, and compares with what SQLite makes of a copy of the files; gives the kind.
  @discardableResult
  private func compare() throws -> String {
    let before = try sandbox.listing()
    let image = try sandbox.capture()
    let oracle = try sandbox.oracle()
    try sandbox.store(image, as: "stored")
    let kind = image.kind
    #expect(try sandbox.digest(image) == oracle)
    #expect(try sandbox.listing().differences(from: before, comparing: TreeListing.untouched).isEmpty)
    // Stock SQLite opens what is stored, and in the same mode.
    let stored = sandbox.scratch.full("stored")
    let opened = try Command.run(
      try Tools.system("sqlite3"), [stored, "PRAGMA integrity_check; PRAGMA journal_mode;"])
    #expect(opened.output == "ok\nwal\n", "\(opened)")
    try sandbox.scratch.removeDatabase("image")
    return kind
  }

  @Test(arguments: [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536], [0, 2]) func pageSizes(
    size: Int, vacuum: Int
  ) throws {
    try sandbox.sqlite(
      ".filectrl reserve_bytes \(vacuum * 16)", "PRAGMA page_size=\(size); CREATE TABLE t(x)")
    try sandbox.root.removeFile(sandbox.main)
    let made = try sandbox.sqlite(
      ".filectrl reserve_bytes \(vacuum * 16)",
      "PRAGMA page_size=\(size); PRAGMA auto_vacuum=\(vacuum); PRAGMA journal_mode=WAL; CREATE TABLE t(x);")
    #expect(made.succeeded)
    try sandbox.sqlite("INSERT INTO t VALUES (zeroblob(100000)), (1)")
    try sandbox.leaveLog(
      "CREATE TABLE account(x)", "INSERT INTO account VALUES (zeroblob(300000))",
      "DELETE FROM t WHERE x = 1",
      vacuum == 2 ? "DELETE FROM t; PRAGMA incremental_vacuum" : "SELECT 1")
    let bytes = try sandbox.root.contents(sandbox.main, limit: 1 << 24)
    #expect(
      Int(bytes[16]) << 8 | Int(bytes[17]) == (size == 65536 ? 1 : size) && Int(bytes[20]) == vacuum * 16)
    #expect(try compare() == "in place")
  }

  @Test func aRestartedLogHasOldFrames() throws {
    try sandbox.make("WAL")
    let killed = try sandbox.open(
      "UPDATE account SET note = hex(zeroblob(300))", "PRAGMA wal_checkpoint(RESTART)",
      "UPDATE account SET balance = balance + 1 WHERE id = 1",
      "UPDATE account SET balance = balance - 1 WHERE id = 2")
    // In use, then idle.
    #expect(try compare() == "in place")
    try killed.end()
    #expect(try compare() == "in place")
    try sandbox.root.removeFile("db.sqlite-shm")
    #expect(try compare() == "in place")
  }

  enum Damage: CaseIterable {
    case cutInFrame, cutInHeader, empty, zeros, header, headerChecksum, firstFrame, middle, last, otherSalt,
      appended
  }

  @Test(arguments: Damage.allCases) func damagedLogs(_ damage: Damage) throws {
    try sandbox.make("WAL")
    try sandbox.leaveLog(
      "UPDATE account SET note = hex(zeroblob(300))", "UPDATE account SET balance = 1 WHERE id < 20",
      "CREATE TABLE more(x)")
    let log: ContainerPath = "db.sqlite-wal"
    var bytes = try sandbox.root.contents(log)
    switch damage {
    case .cutInFrame: bytes.removeLast(5000)
    case .cutInHeader: bytes = Array(bytes[..<31])
    case .empty: bytes = []
    case .zeros: bytes = [UInt8](repeating: 0, count: bytes.count)
    case .header: bytes[9] ^= 0xff
    case .headerChecksum: bytes[26] ^= 1
    case .firstFrame: bytes[32 + 24 + 1000] ^= 1
    case .middle: bytes[bytes.count / 2] ^= 1
    case .last: bytes[bytes.count - 1] ^= 1
    case .otherSalt: bytes[32 + (24 + 4096) * 2 + 8] ^= 1
    case .appended: bytes += bytes[(bytes.count - 4120)...]
    }
    try sandbox.root.removeFile(log)
    try sandbox.root.create(log, bytes)
    #expect(try compare() == "in place")
  }

  @Test func aLogWithBigEndianChecksums() throws {
    try sandbox.make("WAL")
    try sandbox.leaveLog("UPDATE account SET note = hex(zeroblob(300))", "CREATE TABLE more(x)")
    let log: ContainerPath = "db.sqlite-wal"
    let bytes = try sandbox.root.contents(log)
    try sandbox.root.removeFile(log)
    try sandbox.root.create(log, Self.withBigEndianChecksums(bytes, pageSize: 4096))
    let whole = try sandbox.oracle()
    #expect(try compare() == "in place")
    try sandbox.root.removeFile(log)
    #expect(try sandbox.oracle() != whole)
  }

  @Test func aLogOfAnotherPageSizeIsLeftToSQLite() throws {
    try sandbox.make("WAL")
    try sandbox.leaveLog("UPDATE account SET balance = 2")
    let stray = try sandbox.root.contents("db.sqlite-wal")
    try sandbox.root.removeDatabase(sandbox.main)
    try sandbox.sqlite("PRAGMA page_size=1024; PRAGMA journal_mode=WAL; CREATE TABLE account(id, balance)")
    try sandbox.root.create("db.sqlite-wal", stray)
    let image = try sandbox.capture()
    #expect(image.kind != "in place" || image.kind == "raw")
  }

  /// The format's other byte order, which SQLite writes on other machines.
  static func withBigEndianChecksums(_ log: [UInt8], pageSize: Int) -> [UInt8] {
    var bytes = log
    var (first, second): (UInt32, UInt32) = (0, 0)
    func word(_ offset: Int) -> UInt32 { bytes[offset..<(offset + 4)].reduce(0) { $0 << 8 | UInt32($1) } }
    func add(_ range: Range<Int>) {
      for offset in stride(from: range.lowerBound, to: range.upperBound, by: 8) {
        first = first &+ word(offset) &+ second
        second = second &+ word(offset + 4) &+ first
      }
    }
    func put(_ value: UInt32, _ offset: Int) {
      for index in 0..<4 {
        bytes[offset + index] = UInt8(truncatingIfNeeded: value >> UInt32(24 - index * 8))
      }
    }
    bytes[3] = 0x83
    add(0..<24)
    put(first, 24)
    put(second, 28)
    for frame in stride(from: 32, to: bytes.count, by: 24 + pageSize) {
      add(frame..<(frame + 8))
      add((frame + 24)..<(frame + 24 + pageSize))
      put(first, frame + 16)
      put(second, frame + 20)
    }
    return bytes
  }
}

extension DatabaseSandbox {
  /// The digest of what SQLite makes of a copy of the files.
  func oracle() throws -> String {
    let copy = "oracle.sqlite"
    for suffix in ["", "-wal", "-journal"] {
      let (source, target) = (main.withSuffix(suffix), try ContainerPath(copy + suffix))
      try scratch.removeFile(target, missingIsFine: true)
      if try root.status(source) != nil { try root.copyContents(of: source, to: target, in: scratch) }
    }
    try Command.succeed(
      try Tools.system("sqlite3"), [scratch.full(ContainerPath(copy)), "PRAGMA wal_checkpoint(TRUNCATE)"])
    return try ContentHash.of(ContainerPath(copy), in: scratch, isDatabase: true).hex
  }
}
