import Foundation
import GRDB
import TestSupport
import Testing

@testable import AppStores
@testable import FileSystem

/// A directory with one database and a scratch directory beside it.
struct DatabaseSandbox {
  let folder: TemporaryDirectory
  let root: Directory
  let scratch: Directory
  let main: ContainerPath = "db.sqlite"
  var path: String { folder("live/db.sqlite") }

  init() throws {
    folder = try TemporaryDirectory()
    let top = try Directory(folder.path)
    for name in ["live", "scratch"] as [ContainerPath] { try top.createDirectory(name) }
    (root, scratch) = (try top.directory("live"), try top.directory("scratch"))
  }

  /// Runs the real `sqlite3` to its end.
  @discardableResult
  func sqlite(_ commands: String...) throws -> CommandResult {
    try Command.run(try Tools.system("sqlite3"), ["-batch", path] + commands)
  }

  /// Runs the real `sqlite3`, which waits after the commands with all that it has open.
  func open(_ commands: String...) throws -> RunningCommand {
    let running = try Command.spawn(
      try Tools.system("sqlite3"),
      ["-batch", path] + commands + [".shell echo ready", ".shell cat >/dev/null"])
    try running.waitForLine("ready")
    return running
  }

  /// Accounts that together hold 20,000, in the journal mode given.
  func make(_ mode: String, extra: String = "") throws {
    let made = try sqlite(
      """
      PRAGMA journal_mode=\(mode); CREATE TABLE account(id INTEGER PRIMARY KEY, balance INTEGER, note TEXT);
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
      INSERT INTO account SELECT i, 100, hex(zeroblob(100)) FROM n; CREATE INDEX balances ON account(balance);
      \(extra)
      """)
    #expect(made.succeeded, "\(made)")
  }

  func unit() throws -> DatabaseUnit {
    let status = try #require(try root.status(main))
    return try #require(try root.databaseUnit(main, status: status))
  }

  /// Captures the database into the scratch directory.
  func capture(as name: ContainerPath = "image", requiresStable: Bool = false) throws -> DatabaseImage {
    try root.capture(unit(), into: scratch, as: name, busyTimeout: 1, requiresStable: requiresStable)
  }

  func listing() throws -> TreeListing { try TreeListing(folder("live")) }

  /// What a captured image holds.
  struct Content: Equatable {
    var sum: Int, rows: Int, integrity: String
  }

  /// Puts an image into a new file of the scratch directory.
  func store(_ image: DatabaseImage, as copy: ContainerPath) throws {
    try scratch.removeDatabase(copy)
    switch image {
    case .inPlace(let pages):
      let file = try scratch.createFile(copy)
      defer { try? file.close() }
      let isWhole = try pages.copy(to: file, path: scratch.full(copy))
      guard isWhole else { throw SystemFailure("the image changed") }
    case .copy(let name, _): try scratch.copyContents(of: name, to: copy, in: scratch)
    case .raw(let reason): throw SystemFailure("raw: \(reason)")
    }
  }

  /// Opens a copy of an image with SQLite and looks.
  func content(_ image: DatabaseImage) throws -> Content {
    let copy: ContainerPath = "opened"
    try store(image, as: copy)
    let queue = try DatabaseQueue(path: scratch.full(copy))
    defer { try? queue.close() }
    return try queue.read { db in
      Content(
        sum: try Int.fetchOne(db, sql: "SELECT total(balance) FROM account") ?? 0,
        rows: try Int.fetchOne(db, sql: "SELECT count(*) FROM account") ?? 0,
        integrity: try String.fetchAll(db, sql: "PRAGMA integrity_check").joined())
    }
  }

  func digest(_ image: DatabaseImage) throws -> String {
    switch image {
    case .inPlace(let pages): try ContentHash.of(pages).hex
    case .copy(let name, _): try ContentHash.of(DatabasePages(ofCopy: name, in: scratch)).hex
    case .raw: "raw"
    }
  }

  /// Commits that are in the log alone, left by an app that was killed.
  func leaveLog(_ commands: String...) throws {
    let killed = try open("PRAGMA wal_autocheckpoint=0", commands.joined(separator: ";"))
    try killed.end()
  }
}

extension DatabaseImage {
  var bytesBehind: UInt64 {
    get throws {
      switch self {
      case .inPlace(let pages): try pages.bytesBehind()
      case .copy(_, let count): count
      case .raw: 0
      }
    }
  }

  var kind: String {
    switch self {
    case .inPlace: "in place"
    case .copy: "copy"
    case .raw: "raw"
    }
  }
}
