import Foundation
import GRDB
import TestSupport
import Testing

@testable import AppContainer

/// Captures while the app moves money as fast as it can: no capture holds half a transaction.
@Suite struct DatabaseUnderWriteTests {
  @Test(arguments: [false, true]) func manyCaptures(rollbackJournal: Bool) throws {
    try TemporaryDirectory.with { folder in
      let app = try Tools.notesApp()
      let made = try Command.run(
        app, ["create", folder("c"), "--tasks", "2000"] + (rollbackJournal ? ["--rollback-journal"] : []))
      #expect(made.succeeded, "\(made)")
      let root = try Directory(folder("c/Documents"))
      let top = try Directory(folder.path)
      try top.createDirectory("scratch")
      let scratch = try top.directory("scratch")
      let writer = try Command.spawn(app, ["write", folder("c")])
      try writer.waitForLine("ready")
      var manners: Set<String> = []
      for number in 0..<25 {
        let status = try #require(try root.status("database.sqlite"))
        let unit = try #require(try root.databaseUnit("database.sqlite", status: status))
        let name = try ContainerPath("image-\(number)")
        let image = try root.capture(unit, into: scratch, as: name, busyTimeout: 30)
        manners.insert(image.manner)
        if case .inPlace(let lock) = image {
          // As a snapshot does: copied under the lock.
          let copy = try scratch.createFile(name)
          try lock.file.copyContents(to: copy, path: scratch.full(name))
          try copy.close()
        }
        #expect(try root.status("database.sqlite")?.type == .file)
        let queue = try DatabaseQueue(path: scratch.full(name))
        let (sum, integrity) = try queue.read { db in
          (
            try Int.fetchOne(db, sql: "SELECT sum(balance) FROM account"),
            try String.fetchOne(db, sql: "PRAGMA integrity_check")
          )
        }
        try queue.close()
        #expect(sum == 200_000 && integrity == "ok")
        try scratch.removeDatabase(name)
      }
      writer.closeInput()
      let end = try writer.wait()
      #expect(end.succeeded, "\(end)")
      #expect(rollbackJournal || manners == ["copy"])
      #expect(try Command.run(app, ["check", folder("c/Documents/database.sqlite")]).succeeded)
    }
  }

  /// Every transaction that was committed before a capture is in it.
  @Test(arguments: ["WAL", "DELETE"]) func nothingCommittedBeforeIsMissing(mode: String) throws {
    try DatabaseLab.with { lab in
      try lab.make(mode, extra: "CREATE TABLE log(n INTEGER PRIMARY KEY);")
      let script = (1...1500).map { "INSERT INTO log VALUES (\($0)); SELECT 'row ' || \($0);" }
      try RawFiles.write(Array(script.joined(separator: "\n").utf8), to: Array(lab.folder("script").utf8))
      let writer = try Command.spawn(
        try Tools.system("sqlite3"),
        [
          "-batch", lab.path, "PRAGMA busy_timeout=60000; PRAGMA synchronous=OFF;",
          ".read \(lab.folder("script"))",
        ])
      try writer.waitForLine("row 1")
      var last = 0
      while writer.isRunning && last < 1500 {
        let committed =
          writer.output.split(separator: "\n").compactMap {
            $0.hasPrefix("row ") ? Int($0.dropFirst(4)) : nil
          }.max() ?? 0
        let image = try lab.root.capture(lab.unit(), into: lab.scratch, as: "image", busyTimeout: 30)
        if case .inPlace(let lock) = image {
          let copy = try lab.scratch.createFile("image")
          try lock.file.copyContents(to: copy, path: "image")
          try copy.close()
        }
        let queue = try DatabaseQueue(path: lab.scratch.full("image"))
        let (count, top) = try queue.read { db in
          (
            try Int.fetchOne(db, sql: "SELECT count(*) FROM log") ?? 0,
            try Int.fetchOne(db, sql: "SELECT max(n) FROM log") ?? 0
          )
        }
        try queue.close()
        try lab.scratch.removeDatabase("image")
        #expect(count == top && top >= committed)
        last = top
      }
      _ = try writer.wait()
    }
  }
}
