import Foundation
import TestSupport
import Testing

/// A database that neither its size nor its name shows to be one, but `drydock.yaml`.
@Suite("Databases that drydock.yaml names")
struct NamedDatabaseTests {
  private static let path = "Documents/store.json"

  private func prepare(_ sandbox: Sandbox) throws {
    try sandbox.write(
      "drydock.yaml",
      "app: com.example.odd\nlayout: generic\nmigrations: Own\nversion-markers: [{defaults: v}]\n"
        + "databases: {store: \(Self.path)}\n")
    try sandbox.write(
      "Own/0001_sql.yaml",
      "steps: [sql: {database: store, up: \"INSERT INTO t VALUES ('new')\", down: \"DELETE FROM t WHERE x = 'new'\"}]\n"
    )
    try sandbox.shell("mkdir -p Notes/Documents")
    try sandbox.sqlite("Notes/" + Self.path, "CREATE TABLE t(x); INSERT INTO t VALUES ('old')")
    // As some tools do that sign what they write; SQLite does not mind.
    try sandbox.shell("printf 'appended' >> Notes/\(Self.path)")
  }

  private func rows(_ sandbox: Sandbox, _ path: String) throws -> String {
    try sandbox.sqlite(path, "SELECT x FROM t")
  }

  @Test("It is captured, migrated, locked and restored as a database")
  func named() throws {
    try Sandbox.with { sandbox in
      try prepare(sandbox)
      try sandbox.succeed("baseline Notes --to 0")
      let shown = try sandbox.succeed("inspect Notes --json")
      #expect(shown.contains("\"tables\" : 1"), "\(shown)")
      try sandbox.succeed("snapshot Notes -o A")
      try sandbox.drydock("show A --json").expect(output: "\"kind\" : \"database\"")
      // Somebody holds SQLite's lock, and nothing else of it is seen.
      let script = """
        import sqlite3, sys
        database = sqlite3.connect(sys.argv[1], isolation_level=None)
        database.execute("BEGIN EXCLUSIVE")
        print("ready", flush=True)
        sys.stdin.read()
        """
      let app = try Command.spawn(Tools.system("python3"), ["-c", script, sandbox("Notes/" + Self.path)])
      try app.waitForLine("ready")
      try sandbox.drydock("migrate Notes").expect(exit: 5)
      try app.finish()
      try sandbox.succeed("migrate Notes")
      #expect(try rows(sandbox, "Notes/" + Self.path) == "old\nnew\n")
      try sandbox.succeed("rollback Notes")
      #expect(try rows(sandbox, "Notes/" + Self.path) == "old\n")
      try sandbox.succeed("restore A Again")
      #expect(try rows(sandbox, "Again/" + Self.path) == "old\n")
    }
  }
}
