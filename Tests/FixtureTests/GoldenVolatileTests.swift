import AppContainer
import ContainerDiff
import ContainerTransaction
import DrydockErrors
import DrydockTesting
import Formats
import Foundation
import TestSupport
import Testing

@Suite struct GoldenVolatileTests {
  private let folder: TemporaryDirectory
  init() throws { folder = try TemporaryDirectory() }

  private func volatile(
    settings: Set<String> = [], columns: [String] = [], files: PatternList = [], patterns: [String] = []
  ) -> VolatileValues {
    var volatile = VolatileValues()
    (volatile.settings, volatile.files, volatile.patterns) = (settings, files, patterns)
    volatile.columns = Set(columns)
    return volatile
  }

  /// Both databases give the same golden, which a stock SQLite takes; gives its SQL.
  private func same(_ one: String, _ two: String, _ volatile: VolatileValues) throws -> String {
    try TemporaryDirectory.with { folder in
      let a = try GoldenContainer(folder, "a", volatile: volatile)
      let b = try GoldenContainer(folder, "b", volatile: volatile)
      try a.sql(one)
      try b.sql(two)
      try a.write()
      let found = try b.findings()
      #expect(found.isEmpty, "\(found)")
      try b.write("other")
      let texts = (try a.text("db.sqlite.sql"), try b.text("db.sqlite.sql", of: "other"))
      #expect(texts.0 == texts.1)
      let read = try Command.run(
        Tools.system("sqlite3"), ["-bail", folder("read.db"), ".read \(folder("golden"))/db.sqlite.sql"])
      #expect(read.succeeded && read.errors.isEmpty, "\(read)")
      return texts.0
    }
  }

  @Test func typedWordsStandForSettingsAtAnyDepth() throws {
    let volatile = volatile(settings: ["at", "id", "seed", "log", "map", "raw"], patterns: [#"run-\d+"#])
    func values(_ run: Int) -> PropertyListDictionary {
      [
        "at": .date(Date(timeIntervalSinceReferenceDate: Double(run))), "id": .string("id \(run)"),
        "seed": .integer(Int64(run)), "log": .array(Array(repeating: 1, count: run)),
        "map": .dictionary(["k\(run)": .real(1)]), "raw": .data([UInt8(run)]),
        "inner": .dictionary(["id": .string("x\(run)"), "kept": "stays"]),
        "text": .string("in run-\(run), run-\(run + 1)"), "key.run-\(run)": true, "key.run-\(run + 1)": false,
      ]
    }
    var made = try GoldenContainer(folder, volatile: volatile)
    try made.set(values(3))
    try made.write()
    let text = """
      Library/Preferences/com.example.g.plist:
        at: !date 2001-01-01T00:00:00Z
        id: "(volatile)"
        inner: {id: "(volatile)", kept: "stays"}
        "key.(volatile)": false
        "key.(volatile) 2": true
        log: []
        map: {}
        raw: !data ""
        seed: 0
        text: "in (volatile), (volatile)"

      """
    #expect(try made.text("defaults.yaml") == text)
    try made.set(values(5))
    #expect(try made.findings().isEmpty)
    // Another type, or none, is no other value.
    var wrong = values(5)
    (wrong["at"], wrong["seed"]) = ("now", nil)
    try made.set(wrong)
    let findings = try made.findings()
    #expect(findings.map(\.message).sorted() == ["the setting has another type", "the setting is absent"])
    // What is declared to be volatile later does not matter in goldens that are there already.
    try made.set(values(3))
    try FileManager.default.removeItem(atPath: folder("golden"))
    made.volatile = VolatileValues()
    try made.write()
    try made.set(values(5))
    #expect(try made.findings().count == 12)
    made.volatile = volatile
    #expect(try made.findings().isEmpty)
  }

  @Test func constraintsHold() throws {
    let schema = """
      CREATE TABLE s(id INTEGER PRIMARY KEY, u TEXT UNIQUE, n REAL, b BLOB NOT NULL CHECK (length(b) = 2)) STRICT;
      CREATE TABLE w(k BLOB PRIMARY KEY, v TEXT) WITHOUT ROWID;
      CREATE TABLE e(a TEXT, g TEXT AS (lower(a)), v TEXT); CREATE UNIQUE INDEX eg ON e(g);
      CREATE UNIQUE INDEX ex ON e(a || v);
      CREATE TABLE p(list TEXT COLLATE NOCASE, at INT, v TEXT, UNIQUE (list, at));
      """
    let columns = ["s.u", "S.B", "s.n", "w.k", "e.a", "p.LIST"]
    let text = try same(
      schema + """
        INSERT INTO s VALUES (1, 'zz', 0.5, x'0102'), (2, 'yy', NULL, x'0103'), (3, NULL, 2, x'0103');
        INSERT INTO w VALUES (x'ff', 'one'), (x'01', 'two');
        INSERT INTO e(a, v) VALUES ('Q', 'one'), ('R', 'two'); INSERT INTO p VALUES ('b', 1, 'x'), ('b', 2, 'y'), ('a', 1, 'z');
        """,
      schema + """
        INSERT INTO s VALUES (1, 'aa', 7, x'9902'), (2, 'bb', NULL, x'0103'), (3, NULL, 9, x'7703');
        INSERT INTO w VALUES (x'00', 'two'), (x'77', 'one');
        INSERT INTO e(a, v) VALUES ('T', 'one'), ('S', 'two'); INSERT INTO p VALUES ('k', 1, 'x'), ('k', 2, 'y'), ('m', 1, 'z');
        """, volatile(columns: columns))
    let lines = text.split(separator: "\n").map(String.init)
    #expect(lines.first == "PRAGMA ignore_check_constraints = ON;")
    for line in [
      #"INSERT INTO "s" ("id", "u", "n", "b") VALUES (1, '(volatile 1)', 0.0, X'');"#,
      #"INSERT INTO "s" ("id", "u", "n", "b") VALUES (2, '(volatile 2)', NULL, X'');"#,
      #"INSERT INTO "s" ("id", "u", "n", "b") VALUES (3, NULL, 0.0, X'');"#,
      #"INSERT INTO "w" ("k", "v") VALUES (X'01', 'one');"#,
      #"INSERT INTO "p" ("rowid", "list", "at", "v") VALUES (1, '(volatile 1)', 1, 'x');"#,
    ] {
      #expect(
        lines.contains(line) || lines.contains(line.replacing("\"rowid\"", with: "rowid")), "\(line)\n\(text)"
      )
    }
  }

  @Test func referencesLeadToTheSameRows() throws {
    let schema = """
      CREATE TABLE note(id INTEGER PRIMARY KEY AUTOINCREMENT, list TEXT REFERENCES list, up INT REFERENCES note(id), t TEXT);
      CREATE TABLE list(uuid TEXT PRIMARY KEY, name TEXT);
      CREATE TABLE link(list TEXT REFERENCES list(uuid), tag TEXT, PRIMARY KEY (list, tag)) WITHOUT ROWID;
      CREATE TABLE event(what TEXT);
      """
    let columns = ["note.id", "note.list", "note.up", "list.uuid", "link.list", "event.rowid"]
    let text = try same(
      schema + """
        INSERT INTO list VALUES ('c', 'Work'), ('a', 'Home'); INSERT INTO link VALUES ('c', 'x'), ('a', 'x');
        INSERT INTO note VALUES (5, 'c', NULL, 'top'), (9, 'a', 5, 'below'), (7, NULL, 9, 'last');
        INSERT INTO event(rowid, what) VALUES (50, 'one'), (40, 'two');
        """,
      schema + """
        INSERT INTO list VALUES ('d', 'Home'), ('e', 'Work'); INSERT INTO link VALUES ('e', 'x'), ('d', 'x');
        INSERT INTO note VALUES (1, 'd', 2, 'below'), (2, 'e', NULL, 'top'), (3, NULL, 1, 'last');
        INSERT INTO event(rowid, what) VALUES (1, 'two'), (2, 'one');
        """, volatile(columns: columns))
    for line in [
      #"INSERT INTO "list" ("uuid", "name") VALUES ('(volatile 1)', 'Home');"#,
      #"INSERT INTO "note" ("id", "list", "up", "t") VALUES (2, '(volatile 1)', 3, 'below');"#,
      #"INSERT INTO "note" ("id", "list", "up", "t") VALUES (3, '(volatile 2)', NULL, 'top');"#,
      #"INSERT INTO "note" ("id", "list", "up", "t") VALUES (1, NULL, 2, 'last');"#,
      #"INSERT INTO "sqlite_sequence" ("name", "seq") VALUES ('note', 3);"#,
      #"INSERT INTO "event" ("what") VALUES ('one');"#,
    ] { #expect(text.contains(line + "\n"), "\(line)\n\(text)") }
    // A row that leads elsewhere is no volatile value.
    let made = try GoldenContainer(folder, volatile: volatile(columns: columns))
    try made.sql(
      schema
        + "INSERT INTO list VALUES ('a', 'Home'), ('b', 'Work'); INSERT INTO note VALUES (1, 'a', NULL, 't')"
    )
    try made.write()
    try made.sql("UPDATE note SET list = 'b'")
    let findings = try made.findings()
    #expect(findings.map(\.place) == ["Documents/db.sqlite: note, id 1: list"], "\(findings)")
  }

  @Test func rowsThatAreAlikeAreDistinguishedByWhatRefersToThem() throws {
    let schema = """
      CREATE TABLE item(uuid TEXT PRIMARY KEY, title TEXT);
      CREATE TABLE photo(id INTEGER PRIMARY KEY, item TEXT REFERENCES item(uuid));
      """
    let text = try same(
      schema
        + "INSERT INTO item VALUES ('a', 'Same'), ('b', 'Same'); INSERT INTO photo VALUES (1, 'a'), (2, 'b'), (3, 'b');",
      schema
        + "INSERT INTO item VALUES ('y', 'Same'), ('x', 'Same'); INSERT INTO photo VALUES (1, 'y'), (2, 'x'), (3, 'x');",
      volatile(columns: ["item.uuid", "photo.item"]))
    #expect(
      text.contains("VALUES (1, '(volatile 1)');") && text.contains("VALUES (3, '(volatile 2)');"), "\(text)")
  }

  @Test func patternsInTextsAndOtherEncodings() throws {
    let schema = """
      PRAGMA encoding = 'UTF-16le'; CREATE TABLE t(k TEXT PRIMARY KEY, v TEXT); CREATE VIRTUAL TABLE f USING fts5(body);
      """
    let text = try same(
      schema
        + "INSERT INTO t VALUES ('id-9', '€ id-9 id-1'), ('id-1', 'none'); INSERT INTO f VALUES ('has id-1');",
      schema
        + "INSERT INTO t VALUES ('id-3', '€ id-3 id-7'), ('id-7', 'none'); INSERT INTO f VALUES ('has id-7');",
      volatile(patterns: [#"id-\d+"#]))
    for line in [
      "('(volatile 1)', 'none');", "('(volatile 2)', '€ (volatile) (volatile)');", "(1, 'has (volatile)');",
    ] { #expect(text.contains(line), "\(text)") }
  }

  @Test func volatileFilesAndDirectoriesCountByTheirPath() throws {
    let volatile = volatile(files: ["*.log", "/tmp/", "Documents/*.sqlite", "com.example.g.plist"])
    let made = try GoldenContainer(folder, volatile: volatile)
    try made.set(["a": 1])
    try made.sql("CREATE TABLE t(a)")
    try made.directory.create("Documents/a.log", [1], mode: 0o600)
    try made.directory.create("tmp/one", [1])
    try made.write()
    let list = try made.text("files.txt")
    #expect(list.contains("file      -    - volatile Documents/a.log\n"), "\(list)")
    #expect(list.contains("directory -    - volatile tmp\n") && !list.contains("tmp/one"), "\(list)")
    #expect(!FileManager.default.fileExists(atPath: folder("golden/db.sqlite.sql")))
    try made.set(["a": 2])
    try made.sql("DROP TABLE t")
    try made.directory.replace("Documents/a.log", with: [2, 3], mode: 0o644)
    try made.directory.create("tmp/two", [1])
    #expect(try made.findings().isEmpty)
    try made.directory.removeFile("Documents/a.log")
    try made.directory.create("Documents/b.txt", [])
    let findings = try made.findings()
    #expect(findings.compactMap(\.place) == ["Documents/a.log", "Documents/b.txt"], "\(findings)")
  }

  @Test func aDifferenceLeavesOutWhatIsVolatileInTheGoldensFixture() throws {
    var made = try GoldenContainer(folder)
    try made.set(["at": 1, "name": "Ann"])
    try made.sql(
      "CREATE TABLE t(id TEXT PRIMARY KEY, v TEXT); INSERT INTO t VALUES ('x', 'one'), ('y', 'two')")
    try made.directory.create("tmp/log", [1], mode: 0o644)
    let document: ContainerPath = "Documents/state.json"
    try made.directory.create(document, Array(#"{"at":1,"theme":"light"}"#.utf8), mode: 0o644)
    try RawFiles.createDirectories(folder("f/container"))
    try RawFiles.createDirectories(folder("f/expected"))
    let text = "version: 1\nvolatile: {settings: at, columns: t.id, files: /tmp/log}\n"
    try text.write(toFile: folder("f/fixture.yaml"), atomically: true, encoding: .utf8)
    let volatile = try Fixture.load(folder("f")).volatile
    made.volatile = volatile
    try made.write("f/expected/1")
    func difference() throws -> ContainerDifference {
      let golden = try Golden(folder("f/expected/1"))
      #expect(try golden.volatile() == volatile)
      let side = try NormalizedSide(golden, volatile)
      return try Transaction.inspect(made.container) {
        let comparison = try Comparison(
          of: side, with: NormalizedSide(ContentSide(live: $0, isWhole: true), volatile))
        #expect(comparison.notCompared.isEmpty)
        return comparison.difference
      }
    }
    try made.set(["at": 7, "name": "Ann"])
    try made.sql("UPDATE t SET id = 'a' || id")
    try made.directory.replace("tmp/log", with: [2], mode: 0o600)
    try made.directory.createDirectories("Library/Application Support")
    try made.directory.setMode(0o755, of: "Library/Application Support")
    try made.directory.createDirectories("Library/Application Support/.drydock")
    #expect(try difference().isEmpty)
    try made.set(["at": 7, "name": "Bob"])
    try made.sql("UPDATE t SET v = 'three' WHERE v = 'two'")
    try made.directory.replace(document, with: Array(#"{"theme":"dark","at":7}"#.utf8), mode: 0o644)
    let found = try difference()
    #expect(found.files.map { $0.document?.fields.map(\.name) } == [["theme"]], "\(found.files)")
    #expect(found.settings.map(\.key) == ["name"] && found.databases.first?.tables.first?.changed == 1)
  }

  @Test func aPatternThatIsNoneIsAnErrorWithItsLine() throws {
    try RawFiles.createDirectories(folder("f/container"))
    let text = "version: 1\nvolatile:\n  patterns: [\"(\"]\nexpect: {files: [a]}\n"
    try text.write(toFile: folder("f/fixture.yaml"), atomically: true, encoding: .utf8)
    let error = #expect(throws: DrydockError.self) { try Fixture.load(folder("f")) }
    #expect(
      error?.message.contains("fixture.yaml:3:13: `(` in `patterns`") == true,
      "\(String(describing: error))")
  }
}
