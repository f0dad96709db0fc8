import Foundation
import TestSupport
import Testing

/// A database that neither its size nor its name shows to be one, but `drydock.yaml`.
@Suite("Databases that drydock.yaml names")
struct NamedDatabaseTests {
  private static let path = "Documents/store.json"

  private func prepare(_ lab: Lab, isNamed: Bool) throws {
    try lab.write(
      "drydock.yaml",
      "app: com.example.odd\nlayout: generic\nmigrations: Own\nversion-markers: [{defaults: v}]\n"
        + (isNamed ? "databases: {store: \(Self.path)}\n" : ""))
    try lab.write(
      "Own/0001_sql.yaml",
      "steps: [sql: {database: store, up: \"INSERT INTO t VALUES ('new')\", down: \"DELETE FROM t WHERE x = 'new'\"}]\n"
    )
    try lab.shell("mkdir -p Notes/Documents")
    try lab.run(
      Tools.system("sqlite3"), lab("Notes/" + Self.path), "CREATE TABLE t(x); INSERT INTO t VALUES ('old')")
    // As some tools do that sign what they write; SQLite does not mind.
    try lab.shell("printf 'appended' >> Notes/\(Self.path)")
  }

  private func rows(_ lab: Lab, _ path: String) throws -> String {
    try lab.run(Tools.system("sqlite3"), lab(path), "SELECT x FROM t")
  }

  @Test("It is captured, migrated, locked and restored as a database")
  func named() throws {
    try Lab.with { lab in
      try prepare(lab, isNamed: true)
      try lab.succeed("baseline", "Notes", "--to", "0")
      let shown = try lab.succeed("inspect", "Notes", "--json")
      #expect(shown.contains("\"tables\" : 1"), "\(shown)")
      try lab.succeed("snapshot", "Notes", "-o", "A")
      #expect(try lab.succeed("show", "A", "--json").contains("\"kind\" : \"database\""))
      // Somebody holds SQLite's lock, and nothing else of it is seen.
      let script = """
        import sqlite3, sys
        database = sqlite3.connect(sys.argv[1], isolation_level=None)
        database.execute("BEGIN EXCLUSIVE")
        print("ready", flush=True)
        sys.stdin.read()
        """
      let app = try Command.spawn(Tools.system("python3"), ["-c", script, lab("Notes/" + Self.path)])
      try app.waitForLine("ready")
      let refused = try lab.drydock("migrate", "Notes")
      #expect(refused.exitCode == 5, "\(refused)")
      app.closeInput()
      _ = try app.wait()
      try lab.succeed("migrate", "Notes")
      #expect(try rows(lab, "Notes/" + Self.path) == "old\nnew\n")
      try lab.succeed("rollback", "Notes")
      #expect(try rows(lab, "Notes/" + Self.path) == "old\n")
      try lab.succeed("restore", "A", "Again")
      #expect(try rows(lab, "Again/" + Self.path) == "old\n")
    }
  }

  @Test("Without its name it is a file")
  func unnamed() throws {
    try Lab.with { lab in
      try prepare(lab, isNamed: false)
      try lab.succeed("snapshot", "Notes", "-o", "A")
      let shown = try lab.succeed("show", "A", "--json")
      #expect(shown.contains(Self.path) && !shown.contains("\"kind\" : \"database\""), "\(shown)")
    }
  }
}
