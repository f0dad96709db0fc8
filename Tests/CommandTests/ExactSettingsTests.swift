import Formats
import Foundation
import TestSupport
import Testing

/// Settings and databases that only look alike, through the program.
@Suite(.timeLimit(.minutes(2))) struct ExactSettingsTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox(creating: "Notes") }

  private static let composed = "caf\u{E9}", decomposed = "cafe\u{301}"

  private func change(_ name: String, _ body: (inout PropertyListFile) -> Void) throws {
    let path = "\(name)/\(Sandbox.settings)"
    var file = try PropertyListFile(bytes: sandbox.read(path))
    body(&file)
    try sandbox.write(path, bytes: file.encoded())
  }

  @Test func `diff and verify --container find text that differs in its spelling alone`() throws {
    try change("Notes") { $0.root["place"] = .string(Self.composed) }
    let archive = try sandbox.snapshot()
    try sandbox.drydock("verify", archive, "--container", "Notes").expect()
    try sandbox.copy("Notes", to: "Other")
    try change("Other") { $0.root["place"] = .string(Self.decomposed) }
    try sandbox.drydock("diff Notes Other --exit-code").expect(exit: 2, output: "~ place")
    let verified = try sandbox.drydock("verify", archive, "--container", "Other")
    #expect(verified.exitCode != 0, "\(verified)")
  }

  @Test(arguments: ["binary", "xml"])
  func `A migration keeps both spellings of a key, and changes the one it names`(_ format: String) throws {
    try change("Notes") { file in
      file.format = format == "xml" ? .xml : .binary
      file.root[Self.composed] = "one"
      file.root[Self.decomposed] = "two"
      file.root["zero"] = .real(-0.0)
    }
    try sandbox.remove("Migrations")
    try sandbox.write(
      "Migrations/0001_spelled.yaml",
      """
      description: One of two keys
      steps:
        - defaults.rename:
            keys: {"cafe\\u0301": bar}
        - defaults.set:
            values: {other: 1}
      """)
    try sandbox.succeed("migrate Notes")
    let root = try PropertyListFile(bytes: sandbox.read("Notes/" + Sandbox.settings)).root
    #expect(root[Self.composed] == "one" && root[Self.decomposed] == nil && root["bar"] == "two")
    #expect(root["zero"] == .real(-0.0))
    try sandbox.succeed("rollback Notes")
    let back = try PropertyListFile(bytes: sandbox.read("Notes/" + Sandbox.settings)).root
    #expect(back[Self.composed] == "one" && back[Self.decomposed] == "two" && back["bar"] == nil)
  }

  @Test func `A database of an odd size is captured as a database`() throws {
    let path = "Notes/Documents/odd.db"
    try sandbox.sqlite(path, "CREATE TABLE t(a); INSERT INTO t VALUES (1), (2), (3)")
    let whole = try sandbox.read(path)
    try sandbox.write(path, bytes: whole + [1, 2, 3])
    #expect(try sandbox.drydock("inspect Notes").output.contains("Documents/odd.db"))
    let archive = try sandbox.snapshot()
    try sandbox.drydock("show", archive, "--json").expect(output: "odd.db")
    try sandbox.succeed("restore", archive, "Again")
    #expect(try sandbox.read("Again/Documents/odd.db").count == whole.count)
    let rows = try sandbox.sqlite("Again/Documents/odd.db", "SELECT sum(a) FROM t")
    #expect(rows == "6\n")
  }

  /// A database that neither its size nor its name shows to be one, but `drydock.yaml`.
  private static let named = "Documents/store.json"

  private func prepareNamed(_ sandbox: Sandbox) throws {
    try sandbox.write(
      "drydock.yaml",
      "app: com.example.odd\nlayout: generic\nmigrations: Own\nversion-markers: [{defaults: v}]\n"
        + "databases: {store: \(Self.named)}\n")
    try sandbox.write(
      "Own/0001_sql.yaml",
      "steps: [sql: {database: store, up: \"INSERT INTO t VALUES ('new')\", down: \"DELETE FROM t WHERE x = 'new'\"}]\n"
    )
    try sandbox.shell("mkdir -p Notes/Documents")
    try sandbox.sqlite("Notes/" + Self.named, "CREATE TABLE t(x); INSERT INTO t VALUES ('old')")
    // As some tools do that sign what they write; SQLite does not mind.
    try sandbox.shell("printf 'appended' >> Notes/\(Self.named)")
  }

  private func rows(_ sandbox: Sandbox, _ path: String) throws -> String {
    try sandbox.sqlite(path, "SELECT x FROM t")
  }

  @Test func `It is captured, migrated, locked and restored as a database`() throws {
    try Sandbox.with { sandbox in
      try prepareNamed(sandbox)
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
      let app = try Command.spawn(Tools.system("python3"), ["-c", script, sandbox("Notes/" + Self.named)])
      try app.waitForLine("ready")
      try sandbox.drydock("migrate Notes").expect(exit: 5)
      try app.finish()
      try sandbox.succeed("migrate Notes")
      #expect(try rows(sandbox, "Notes/" + Self.named) == "old\nnew\n")
      try sandbox.succeed("rollback Notes")
      #expect(try rows(sandbox, "Notes/" + Self.named) == "old\n")
      try sandbox.succeed("restore A Again")
      #expect(try rows(sandbox, "Again/" + Self.named) == "old\n")
    }
  }
}
