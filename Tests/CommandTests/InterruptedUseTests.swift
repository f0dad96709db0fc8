import Foundation
import TestSupport
import Testing

/// A commit was killed half way, and the app runs before the next command: what it wrote is not lost, and its database is
/// whole, whichever move was the last.
@Suite struct InterruptedUseTests {
  private static let database = "Documents/own.sqlite"
  private static let configuration = """
    layout: ios
    version-markers: [{defaults: dataSchemaVersion}]
    databases: {own: \(database)}

    """
  private static let migration = """
    steps:
      - defaults.set: {values: {theme: sepia}, if-exists: replace}
      - files.write: {path: Documents/made/new.txt, text: new}
      - sql: {database: own, up: "ALTER TABLE t ADD COLUMN y; UPDATE t SET y = 1 WHERE x > '';", down: "ALTER TABLE t DROP COLUMN y;"}

    """

  /// How the app's database is: its journal mode, and whether its log is left beside it at the start and by the app.
  enum Mode: String, CaseIterable, Sendable {
    case wal, walWithLog, delete

    var statement: String { self == .delete ? "PRAGMA journal_mode = DELETE;" : "PRAGMA journal_mode = WAL;" }
    /// What makes a program leave its log as one that was killed does.
    static let leavingLog = ".dbconfig no_ckpt_on_close on\n"
  }

  /// Enough of them that pages of a foreign log do not make up a whole database by chance.
  private static let rows = """
    CREATE TABLE t(x); CREATE INDEX i ON t(x);
    INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT 'row ' || i FROM n;
    INSERT INTO t VALUES ('one');
    """

  private func prepare(_ sandbox: Sandbox, _ mode: Mode) throws {
    try sandbox.create()
    try sandbox.write("Own/0001_own.yaml", Self.migration)
    try sandbox.write("drydock.yaml", Self.configuration)
    try sqlite(sandbox, "Notes/" + Self.database, mode.statement + Self.rows)
    if mode == .walWithLog {
      try sqlite(sandbox, "Notes/" + Self.database, Mode.leavingLog + "INSERT INTO t VALUES ('logged');")
      #expect(sandbox.exists("Notes/\(Self.database)-wal"))
    }
  }

  @discardableResult
  private func sqlite(_ sandbox: Sandbox, _ path: String, _ script: String) throws -> CommandResult {
    try Command.run(Tools.system("sqlite3"), ["-bail", sandbox(path)], input: Array(script.utf8))
  }

  private func rows(_ sandbox: Sandbox, _ path: String) throws -> [String] {
    let found = try sqlite(
      sandbox, path, "PRAGMA integrity_check; SELECT x FROM t WHERE x NOT LIKE 'row %' ORDER BY rowid;")
    return found.succeeded ? found.output.split(separator: "\n").map(String.init) : ["\(found)"]
  }

  /// The databases that were kept as conflicts, each with its log.
  private func kept(_ sandbox: Sandbox) throws -> [String] {
    let listed = try sandbox.run(
      "/bin/sh", "-c", "find Notes/.drydock-state/conflict -name 'own.sqlite*' 2>/dev/null || true")
    return listed.split(separator: "\n").map(String.init)
      .filter { !$0.contains("-wal") && !$0.contains("-shm") && !$0.contains("-journal") }
  }

  /// How the app writes a row: into its database, or into a new one that it puts in its place.
  enum Writing: CaseIterable, Sendable { case inside, replacing }

  private static let tried: [(Mode, Writing)] =
    TestExtent.isFull
    ? Mode.allCases.flatMap { mode in Writing.allCases.map { (mode, $0) } }
    : [(.wal, .inside), (.walWithLog, .inside), (.delete, .inside), (.walWithLog, .replacing)]

  /// - Returns: whether the app was told that it is written.
  private func write(_ sandbox: Sandbox, _ mode: Mode, _ writing: Writing) throws -> Bool {
    let insert = "INSERT INTO t(x) VALUES ('told');"
    let start = (mode == .delete ? "" : Mode.leavingLog) + mode.statement
    guard writing == .replacing else {
      return try sqlite(
        sandbox, "Notes/" + Self.database, start + "CREATE TABLE IF NOT EXISTS t(x);" + insert
      ).succeeded
    }
    let new = "Notes/Documents/new.sqlite"
    guard
      try sqlite(sandbox, "Notes/" + Self.database, "SELECT 1 FROM t; VACUUM INTO '\(sandbox(new))';")
        .succeeded,
      try sqlite(sandbox, new, insert).succeeded
    else {
      try sandbox.shell("rm -f \(new)")
      return false
    }
    // Its log first, as it holds nothing by now.
    try sandbox.shell(
      "rm -f Notes/\(Self.database)-wal Notes/\(Self.database)-shm && mv \(new) Notes/\(Self.database)")
    return true
  }

  @Test("In place, killed at each move: the row is in the database, or in one that is kept", arguments: tried)
  func everyMove(_ mode: Mode, _ writing: Writing) throws {
    try Sandbox.with(commit: "in-place") { sandbox in
      try prepare(sandbox, mode)
      try sandbox.run(Tools.system("mv"), sandbox("Notes"), sandbox("Template"))
      var (told, back, moves) = (0, 0, 0)
      // The first move that is not made any more ends it.
      for step in ["committed", "placed"] + (1...40).map({ "moved:\($0)" }) {
        for name in ["Notes"] where sandbox.exists(name) { try sandbox.remove(name) }
        try sandbox.copy("Template", to: "Notes")
        let killed = try sandbox.drydock("migrate Notes -m Own", environment: ["DRYDOCK_KILL_AT": step])
        if killed.succeeded { break }
        moves += step.hasPrefix("moved:") ? 1 : 0
        #expect(killed.signal == SIGKILL, "\(step): \(killed)")
        let isTold = try write(sandbox, mode, writing)
        let recovered = try sandbox.drydock("recover Notes")
        #expect([0, 6].contains(recovered.exitCode), "\(step): \(recovered)")
        let conflicts = try kept(sandbox)
        let live = try rows(sandbox, "Notes/" + Self.database)
        let wanted = mode == .walWithLog ? ["ok", "one", "logged"] : ["ok", "one"]
        #expect(Array(live.prefix(wanted.count)) == wanted, "\(mode), \(step): \(live) \(recovered)")
        back += recovered.output.contains("the container is unchanged") ? 1 : 0
        guard isTold else { continue }
        told += 1
        if live.contains("told") { continue }
        let found = try conflicts.map { try rows(sandbox, $0) }
        #expect(found.contains { $0.first == "ok" && $0.contains("told") }, "\(mode), \(step): \(found)")
        #expect(recovered.exitCode == 6 && recovered.output.contains(Self.database), "\(step): \(recovered)")
      }
      #expect(told > 2 && back > 0 && moves > 3, "\(told) of \(moves), \(back) taken back")
    }
  }

  @Test(arguments: ["in-place", "exchange"])
  func `While the app runs, nothing is ended, and only what is whole is read`(_ way: String) throws {
    try Sandbox.with(commit: way) { sandbox in
      try prepare(sandbox, .wal)
      let step = way == "in-place" ? "committed" : "exchanged"
      try sandbox.kill("migrate Notes -m Own", at: step)
      let app = try sandbox.hold()
      let before = try sandbox.tree()
      try sandbox.drydock("recover Notes").expectError(exit: 5, ["interrupted", "in use", "drydock recover"])
      try sandbox.drydock("rollback Notes").expect(exit: 5, errors: "when the app is closed")
      for command in ["snapshot Notes -r Backups", "inspect Notes"] {
        let read = try sandbox.drydock(command)
        #expect(read.exitCode == (way == "in-place" ? 5 : 0), "\(read)")
        #expect(read.errors.contains("when the app is closed"), "\(read)")
      }
      try sandbox.tree().expectSame(as: before, comparing: TreeListing.untouched)
      try app.finish()
      #expect(try sandbox.drydock("recover Notes").output.contains("its change is now complete"))
      #expect(try rows(sandbox, "Notes/" + Self.database) == ["ok", "one"])
    }
  }
}
