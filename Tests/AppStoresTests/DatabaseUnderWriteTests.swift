import Foundation
import GRDB
import TestSupport
import Testing

@testable import AppStores
@testable import FileSystem

/// Captures while the app moves money as fast as it can: no capture holds half a transaction.
@Suite struct DatabaseUnderWriteTests {
  /// What else runs while the app writes: a third process that checkpoints in a loop, so that the log starts anew again
  /// and again.
  enum Load: String, CaseIterable {
    case log, truncate = "TRUNCATE", restart = "RESTART", passive = "PASSIVE", journal
  }

  @Test(arguments: Load.allCases) func manyCaptures(load: Load) throws {
    let folder = try TemporaryDirectory()
    let app = try Tools.notesApp()
    let mode = load == .journal ? ["--rollback-journal"] : []
    try Command.succeed(app, ["create", folder("c"), "--tasks", "2000"] + mode)
    let root = try Directory(folder("c/Documents"))
    let top = try Directory(folder.path)
    try top.createDirectory("scratch")
    let scratch = try top.directory("scratch")
    let writer = try Command.spawn(app, ["write", folder("c")])
    try writer.waitForLine("ready")
    let hasCheckpoints = load != .log && load != .journal
    let checkpoints =
      hasCheckpoints ? try Command.spawn(app, ["checkpoint", folder("c"), "--mode", load.rawValue]) : nil
    try checkpoints?.waitForLine("ready")
    var kinds: Set<String> = []
    var disturbed = 0
    for _ in 0..<Self.captures {
      let status = try #require(try root.status("database.sqlite"))
      let unit = try #require(try root.databaseUnit("database.sqlite", status: status))
      let image = try root.capture(unit, into: scratch, as: "image", busyTimeout: 30)
      kinds.insert(image.kind)
      if case .inPlace(let pages) = image {
        let copy = try scratch.createFile("image")
        if try !pages.copy(to: copy, path: "image") { disturbed += 1 }
        try copy.close()
      }
      let queue = try DatabaseQueue(path: scratch.full("image"))
      let (sum, integrity) = try queue.read { db in
        (
          try Int.fetchOne(db, sql: "SELECT sum(balance) FROM account"),
          try String.fetchOne(db, sql: "PRAGMA integrity_check")
        )
      }
      try queue.close()
      #expect(sum == 200_000 && integrity == "ok")
      try scratch.removeDatabase("image")
    }
    for process in [writer, checkpoints].compactMap({ $0 }) {
      process.closeInput()
      let end = try process.wait()
      #expect(end.succeeded, "\(end)")
    }
    #expect(disturbed == 0)
    #expect(kinds == [load == .journal ? "copy" : "in place"])
    #expect(try Command.run(app, ["check", folder("c/Documents/database.sqlite")]).succeeded)
  }

  /// More by hand: `DATABASE_CAPTURES=500 swift test --filter DatabaseUnderWriteTests`.
  static let captures = ProcessInfo.processInfo.environment["DATABASE_CAPTURES"].flatMap { Int($0) } ?? 20

  /// Every transaction that was committed before a capture is in it.
  @Test(arguments: ["WAL", "DELETE"]) func nothingCommittedBeforeIsMissing(mode: String) throws {
    let sandbox = try DatabaseSandbox()
    try sandbox.make(mode, extra: "CREATE TABLE log(n INTEGER PRIMARY KEY);")
    let script = (1...1500).map { "INSERT INTO log VALUES (\($0)); SELECT 'row ' || \($0);" }
    try RawFiles.write(Array(script.joined(separator: "\n").utf8), to: Array(sandbox.folder("script").utf8))
    let writer = try Command.spawn(
      try Tools.system("sqlite3"),
      [
        "-batch", sandbox.path, "PRAGMA busy_timeout=60000; PRAGMA synchronous=OFF;",
        ".read \(sandbox.folder("script"))",
      ])
    try writer.waitForLine("row 1")
    var last = 0
    while writer.isRunning && last < 1500 {
      let committed =
        writer.output.split(separator: "\n").compactMap {
          $0.hasPrefix("row ") ? Int($0.dropFirst(4)) : nil
        }.max() ?? 0
      let image = try sandbox.root.capture(
        sandbox.unit(), into: sandbox.scratch, as: "image", busyTimeout: 30)
      try sandbox.store(image, as: "stored")
      try sandbox.scratch.removeDatabase("image")
      let queue = try DatabaseQueue(path: sandbox.scratch.full("stored"))
      let (count, top) = try queue.read { db in
        (
          try Int.fetchOne(db, sql: "SELECT count(*) FROM log") ?? 0,
          try Int.fetchOne(db, sql: "SELECT max(n) FROM log") ?? 0
        )
      }
      try queue.close()
      #expect(count == top && top >= committed)
      last = top
    }
    _ = try writer.wait()
  }
}
