import Foundation
import TestSupport
import Testing

/// An app in another PID namespace than `drydock`, so that nobody sees it, waits for its database while that is replaced.
@Suite(.serialized) struct HiddenAppTests {
  static let path = "Notes/Documents/notes.sqlite"

  private func prepare(_ sandbox: Sandbox, isLogged: Bool) throws {
    try sandbox.write(
      "drydock.yaml",
      "app: com.example.hidden\nlayout: generic\nmigrations: Own\ndatabases: {notes: Documents/notes.sqlite}\n"
        + "version-markers: [{pragma: notes}]\n"
    )
    try sandbox.write(
      "Own/0001_change.sql",
      """
      -- drydock: database notes
      -- migrate:up
      ALTER TABLE note ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
      CREATE TABLE tag(id INTEGER PRIMARY KEY, name TEXT);
      INSERT INTO tag(name) SELECT substr(text, 1, 200) FROM note;
      UPDATE note SET text = text || 'x' WHERE id > 0;
      """)
    let script = """
      import sqlite3, sys, os
      os.makedirs(os.path.dirname(sys.argv[1]))
      database = sqlite3.connect(sys.argv[1], isolation_level=None)
      if sys.argv[2] == "true": database.execute("PRAGMA journal_mode=WAL")
      database.execute("CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT NOT NULL)")
      database.execute("BEGIN")
      for id in range(300): database.execute("INSERT INTO note VALUES (?, ?)", (id, "y" * 500))
      database.execute("COMMIT")
      database.close()
      """
    try sandbox.run(Tools.system("python3"), "-c", script, sandbox(Self.path), String(isLogged))
  }

  /// Runs `drydock` where it sees no process but its own.
  private func hidden(_ sandbox: Sandbox, _ arguments: [String], killedAt step: String?) throws
    -> CommandResult
  {
    let unshare = getuid() == 0 ? ["-pf", "--mount-proc"] : ["-rpf", "--mount-proc"]
    // The first process of a namespace is not killed by itself.
    return try Command.run(
      Tools.system("unshare"),
      unshare + ["/bin/sh", "-c", "cd \"$0\" && \"$@\"; exit $?", sandbox.directory.path, sandbox.program]
        + arguments,
      environment: sandbox.environment.merging(["DRYDOCK_KILL_AT": step]) { $1 })
  }

  /// What `PRAGMA integrity_check` says, and the rows that the app wrote.
  private func state(_ sandbox: Sandbox, _ path: String = Self.path) throws -> (check: String, rows: [Int]) {
    let script = """
      import sqlite3, sys
      database = sqlite3.connect(sys.argv[1])
      print(database.execute("PRAGMA integrity_check").fetchall()[0][0])
      for row in database.execute("SELECT id FROM note WHERE id >= 100000"): print(row[0])
      """
    let lines = try sandbox.run(Tools.system("python3"), "-c", script, sandbox(path)).split(separator: "\n")
    return (String(lines[0]), lines.dropFirst().compactMap { Int($0) })
  }

  static let steps = ["committed", "marked", "found-unused", "exchanged", "placed", "undo-kept"]

  @Test(arguments: ["exchange", "in-place"])
  func `It gets an error, or its rows are there, wherever drydock is killed`(_ strategy: String) throws {
    let app = try WritingApp()
    let other = strategy == "exchange" ? "placed" : "exchanged"
    for isLogged in [false, true] {
      for step in Self.steps where step != other {
        try Sandbox.with(commit: strategy) { sandbox in
          try prepare(sandbox, isLogged: isLogged)
          let name = "\(strategy)-\(isLogged)-\(step)"
          try app.open(name, .early, sandbox(Self.path))
          let result = try hidden(sandbox, ["migrate", "Notes"], killedAt: step)
          try #require(result.exitCode == 137 || result.exitCode == 5, "\(name): \(result)")
          let report = try app.wait(name)
          try sandbox.succeed("recover Notes")
          let now = try state(sandbox)
          #expect(
            now.check == "ok" && Set(report.rows).isSubset(of: now.rows), "\(name): \(now) \(report.lines)")
          #expect(report.rows.count == 6 || report.errors.count == 1, "\(name): \(report.lines)")
        }
      }
    }
  }

  /// Every rename takes a tenth of a second, so that the app opens the database in the middle of the commit.
  private static let slowly = Tools.tracing("renameat2,fsync", "delay_enter=100000")

  /// The app starts while a recovery moves what a killed command had not.
  @Test("Under slow system calls an app that starts during a recovery loses nothing")
  func slowRecovery() throws {
    let app = try WritingApp()
    for (number, step) in ["committed", "moved:1", "moved:2", "placed"].enumerated() {
      for delay in TestExtent.isFull ? [0.0, 100, 250, 400] : [0.0, 250] {
        try Sandbox.with(commit: "in-place") { sandbox in
          try prepare(sandbox, isLogged: number % 2 == 0)
          let killed = try sandbox.drydock("migrate Notes", environment: ["DRYDOCK_KILL_AT": step])
          let name = "recovery-\(step)-\(delay)"
          try #require(killed.signal == SIGKILL, "\(name): \(killed)")
          try app.start(name, .rows, sandbox(Self.path), delay: delay)
          let slow = try sandbox.execute(
            Tools.system("strace"), Self.slowly + [sandbox.program, "recover", "Notes"])
          let report = try app.wait(name)
          #expect([0, 5, 6].contains(slow.exitCode), "\(name): \(slow)")
          let last = try sandbox.drydock("recover Notes")
          #expect([0, 6].contains(last.exitCode), "\(name): \(last)")
          let now = try state(sandbox)
          #expect(now.check == "ok", "\(name): \(now)")
          // What is not live was kept, and said so.
          if Set(report.rows).isSubset(of: now.rows) { return }
          #expect(slow.exitCode == 6 || last.exitCode == 6, "\(name): \(report.lines) \(slow) \(last)")
          let kept = try sandbox.run("/bin/sh", "-c", "find Notes/.drydock-state/conflict -name notes.sqlite")
            .split(separator: "\n").map(String.init)
          let found = try kept.flatMap { try state(sandbox, $0).rows }
          #expect(Set(report.rows).isSubset(of: found), "\(name): \(report.lines), kept \(found)")
        }
      }
    }
  }
}
