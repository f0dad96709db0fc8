@testable import MigrationEngine
import Testing

/// What `validate` finds without a container.
@Suite struct ValidationTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  @Test(
    "An error in a key or a step does not hide those of the other steps, and one in a directive not the SQL's"
  )
  func everythingOfAFile() throws {
    try lab.migration(
      "0001_a.yaml",
      """
      descripton: a
      steps:
        - defaults.sett: {}
        - sql: {database: nots, up: SELEC 1, down: SELECT 1}
        - 7
      chek: []
      down:
        - files.delete: {pth: x}
      """)
    try lab.migration(
      "0002_b.sql",
      "-- drydock: database notes\n-- drydock: descripton b\n-- drydock: nonsense\n-- migrate:up\nSELEC 1;\n"
        + "-- migrate:donw\nSELECT 1;\n-- migrate:up\nSELECT 1;\n")
    try lab.migration("0003_c.up.sql", "-- drydock: databse notes\nSELECT 1;\n")
    try lab.migration("0003_c.down.sql", "-- drydock: description c\n-- drydock: nonsense\nSELECT 1;\n")
    // Of a schema that was changed by a statement that is not known, nothing is said.
    try lab.migration("0004_d.sql", sqlFile("ALTER TABLE x ADD COLUMN y;", "irreversible"))
    let found = try lab.problems()
    #expect(
      found.map { String($0.prefix { $0 != " " }) } == [
        "0001_a.yaml:1:1:", "0001_a.yaml:3:5:", "0001_a.yaml:4:1:", "0001_a.yaml:4:21:", "0001_a.yaml:5:5:",
        "0001_a.yaml:6:1:", "0001_a.yaml:8:20:", "0002_b.sql:2:1:", "0002_b.sql:3:1:", "0002_b.sql:5:1:",
        "0002_b.sql:6:1:", "0002_b.sql:8:1:", "0003_c.down.sql:2:1:", "0003_c.up.sql:1:1:",
      ], "\(found.joined(separator: "\n"))")
  }

  @Test("A file that is not YAML does not hide the errors of the others")
  func syntax() throws {
    try lab.migration("0001_a.yaml", step: "{")
    try lab.migration("0002_b.yaml", step: "defaults.sett: {}")
    try lab.migration("0003_c.yaml", "")
    let found = try lab.problems()
    #expect(found.count == 3 && found[0].contains("not valid YAML"), "\(found)")
  }

  /// Statements, and what is told of each migration in turn; nothing of a schema that only the app knows.
  @Test(
    arguments: [
      (["ALTER TABLE task ADD COLUMN x;"], [nil]),
      (["UPDATE task SET x = 1 WHERE y = 2;", "ALTER TABLE t RENAME COLUMN a TO b;"], [nil, nil]),
      (["CREATE TABLE t (a, b);", "UPDATE t SET c = 1 WHERE a = 2;"], [nil, "2:4:1: no such column: c"]),
      (["CREATE TABLE t (a);", "CREATE TABLE t (a);"], [nil, "2:4:1: table t already exists"]),
      (["CREATE TABLE IF NOT EXISTS t (a);", "UPDATE t SET c = 1 WHERE a = 2;"], [nil, nil]),
      (["CREATE TABLE t (a);\nINSERT INTO u SELECT * FROM t;", "SELECT c FROM t;"], [nil, nil]),
      (["CREATE TABLE t (a;"], ["1:4:15: near \";\": syntax error"]),
      (["SELECT 'a;b' /* ; */, 1; -- ;\nSELECT 'never ends;"], ["1:5:1: unrecognized token: \"'never ends;"]),
      (["CREATE TABLE t (a"], ["1:4:1: incomplete input"]),
      (
        ["CREATE TABLE t (a);\nCREATE TRIGGER x AFTER INSERT ON t BEGIN UPDATE t SET a = 1; SELEC 1; END;"],
        ["1:5:1: near \"SELEC\": syntax error"]
      ),
      (
        [
          "CREATE TABLE t (a);\nCREATE TRIGGER x AFTER INSERT ON t BEGIN UPDATE t SET a = 1; SELECT 1; END;\nSELEC 1;"
        ], ["1:6:1: near \"SELEC\": syntax error"]
      ),
      (["BEGIN;\nATTACH 'x' AS y;\nVACUUM;\nPRAGMA journal_mode = WAL;"], ["1:4:1: BEGIN, COMMIT"]),
      (["ATTACH 'x' AS y;"], ["1:4:1: ATTACH and DETACH"]), (["VACUUM;"], ["1:4:1: VACUUM is not"]),
      (["CREATE TABLE t (a);\nDROP TABLE t;"], ["1:5:1: the statement drops a table"]),
      (["ALTER TABLE unknown DROP COLUMN a;"], ["1:4:1: the statement drops a table or a column"]),
      (["DELETE FROM u WHERE 1;"], ["1:4:1: the statement is DELETE with a WHERE that names no column"]),
      (
        ["DELETE FROM u WHERE (1 = 1) AND TRUE RETURNING a;"], ["1:4:1: the statement is DELETE with a WHERE"]
      ),
      (["UPDATE u SET a = 1 WHERE NOT 0;"], ["1:4:1: the statement is UPDATE with a WHERE"]),
      (["WITH x AS (SELECT 1 WHERE 2) DELETE FROM u WHERE 1;"], ["1:4:1: the statement is DELETE with a"]),
      (["DELETE FROM u WHERE 1 = a; DELETE FROM u WHERE \"a\" = 1;"], [nil]),
      (["CREATE TABLE t (a);\nINSERT INTO t VALUES (1) ON CONFLICT DO UPDATE SET a = 1 WHERE 1;"], [nil]),
    ] as [([String], [String?])])
  func statements(_ ups: [String], _ expected: [String?]) throws {
    for (index, up) in ups.enumerated() {
      try lab.migration("000\(index + 1)_m.sql", sqlFile(up, "irreversible"))
    }
    let found = try lab.problems()
    for (index, text) in expected.enumerated() {
      let own = found.filter { $0.hasPrefix("000\(index + 1)_m.sql") }
      guard let text else {
        #expect(own == [])
        continue
      }
      let place = text.replacing(/^(\d):/, with: { "000\($0.1)_m.sql:" })
      // The offending word may be told inside the statement, whose place is that of its first word.
      let start = place.replacing(":4:15:", with: ":4:1:")
      #expect(own.first?.hasPrefix(start) == true, "\(own)")
    }
  }

  @Test func theWayBackStartsWhereTheWayHereEnds() throws {
    try lab.migration(
      "0001_a.sql",
      sqlFile(
        "CREATE TABLE t (a);\n", down: "SELECT a FROM t;\nDROP TABLE t;\nSELECT b FROM (SELECT 1 AS a);",
        "description DROP needs no reason on the way back"))
    try lab.migration(
      "0002_b.yaml", steps: ["sql: {database: notes, up: ALTER TABLE t RENAME COLUMN a TO c}"],
      [
        "down": ["sql: {database: notes, up: ALTER TABLE t RENAME COLUMN x TO a}"],
        "verify": [
          "sql: {database: notes, query: SELECT count(c) FROM t, equals: 0}",
          "sql: {database: notes, query: SELECT count(a) FROM t, equals: 0}",
        ],
      ])
    let found = try lab.problems()
    #expect(found.count == 3, "\(found)")
    #expect(found[0].hasPrefix("0001_a.sql:9:1: no such column: b"), "\(found)")
    #expect(found[1].hasPrefix("0002_b.yaml:4:1: no such column: \"x\""), "\(found)")
    #expect(found[2].hasPrefix("0002_b.yaml:7:5: no such column: a"), "\(found)")
  }

  @Test func released() throws {
    let step = "steps:\n  - defaults.set: {values: {a: 1}}\n"
    for name in ["0001_a", "0002_b"] { try lab.migration(name + ".yaml", step) }
    var releases = try Releases.read(lab.directory("migrations"))
    #expect(releases.releases.isEmpty)
    let first = try releases.add("1.0", try lab.catalog())
    #expect(first.version == 2 && first.migrations.map(\.number) == [1, 2])
    try lab.migration("0003_c.yaml", step)
    #expect(try lab.problems() == [])
    let second = try releases.add("1.1", try lab.catalog())
    #expect(second.version == 3 && second.migrations.map(\.number) == [3])
    #expect(try Releases.read(lab.directory("migrations")).releases.map(\.name) == ["1.0", "1.1"])
    #expect(failure { try releases.add("1.0", try lab.catalog()) }.code == .usage)
    #expect(failure { try releases.add("a\"b", try lab.catalog()) }.code == .usage)
    // After the newest release everything may still change.
    try lab.migration("0004_d.yaml", step)
    #expect(try lab.problems() == [])

    try lab.migration("0001_a.yaml", step + "# edited\n")
    try lab.removeMigration("0003_c.yaml")
    try lab.removeMigration("0004_d.yaml")
    let found = try lab.problems()
    #expect(found.count == 2, "\(found)")
    #expect(found[0].contains("0001_a.yaml: migration 0001_a was modified since its release with 1.0"))
    #expect(
      found[1].contains(
        "releases.yaml:11:7: migration 0003_c was released with 1.1, and its files are missing"))
  }

  @Test("What was released and modified since is not run, and reported as `validate` reports it")
  func releasedAndRun() throws {
    let step = "steps:\n  - defaults.set: {values: {a: 1}}\n"
    for name in ["0001_a", "0002_b"] { try lab.migration(name + ".yaml", step) }
    try lab.release()
    try lab.baseline(0)
    try lab.migrate(to: 1)
    for name in ["0001_a", "0002_b"] { try lab.migration(name + ".yaml", step + "verify: []\n") }
    #expect(try lab.plan().problems.map(\.code) == [.edited, .released], "each is reported once")
    try lab.migration("0001_a.yaml", step)
    let found = try lab.plan().problems.map(\.description)
    #expect(found == [lab.directory("migrations") + "/" + (try lab.problems()[0])], "\(found)")
    expectFailure(start: "0002_b.yaml: migration 0002_b was modified since", code: .released) {
      try lab.migrate()
    }
    // Back by steps it goes all the same.
    #expect(try lab.rollback(to: 0, down: true).to == 0)
  }

  @Test("A release that cannot be, as after a merge, is an error")
  func impossibleReleases() throws {
    try lab.migration("0001_a.yaml", "steps: []\n")
    try lab.release("1.0")
    let path = lab.directory("migrations/releases.yaml")
    let text = String(decoding: try Samples.bytes(path), as: UTF8.self)
    // A release without a new migration has the version of the one before.
    try lab.release("1.1")
    #expect(try lab.problems() == [])
    try lab.migration("releases.yaml", text + "- {release: \"1.1\", version: 2, migrations: []}\n")
    #expect(
      try lab.problems() == [
        "releases.yaml:7:3: the release 1.1 has version 2, and the migrations end with 1: restore the missing ones, "
          + "or correct the version"
      ])
    try lab.baseline(0)
    #expect(try lab.plan().problems.map(\.code) == [.released])
    let entries = text.drop { $0 != "-" }
    try lab.migration("releases.yaml", text + entries)
    let found = try lab.problems()
    #expect(found.count == 2 && found.allSatisfy { $0.hasPrefix("releases.yaml:") }, "\(found)")
    #expect(found.first?.contains(": the release 1.0 is there twice,") == true, "\(found)")
    #expect(found.last?.contains(": migration 1 is there twice,") == true, "\(found)")
  }

  @Test(
    "After a step that cannot replace the database its columns are known, and after others not",
    arguments: [
      ("files.create-directory: {path: x}", true), ("files.write: {path: Documents/a.txt, text: a}", true),
      ("files.write: {path: Documents/database.sqlite, text: a, if-exists: replace}", false),
      ("files.copy: {from: a, to: b}", true), ("files.copy: {from: a, to: Documents}", false),
      (
        "files.move: {from: Documents/database.sqlite, to: Library/Application Support/database.sqlite}", true
      ),
      ("files.move: {from: Documents, to: Library/Application Support}", true),
      ("files.move: {from: Documents/database.sqlite, to: other}", false),
      ("files.delete: {path: 'Documents/*.txt', destructive: x}", true),
      ("files.delete: {path: 'Documents/*', destructive: x}", false),
      ("files.delete: {path: Documents, destructive: x}", false),
      ("files.patch: {path: a.json, patch: [{op: remove, path: /a}]}", true),
      ("files.set-backup-exclusion: {path: a, excluded: true}", true), ("script: {program: 'true'}", false),
    ])
  func stepsBeforeStatements(_ step: String, _ isKnown: Bool) throws {
    try lab.migration("0001_a.sql", sqlFile("CREATE TABLE t (a);", "irreversible"))
    try lab.migration(
      "0002_b.yaml",
      "irreversible: true\nsteps:\n  - \(step)\n  - sql: {database: notes, up: UPDATE t SET b = 1 WHERE a = 2}\n"
    )
    let found = try lab.problems()
    #expect(found.isEmpty != isKnown && found.allSatisfy { $0.contains("no such column: b") }, "\(found)")
  }

  @Test func insertedBelowARelease() throws {
    for name in ["0001_a", "0002_b"] { try lab.migration(name + ".yaml", "steps: []\n") }
    try lab.migration(
      "releases.yaml",
      """
      - release: "1.0"
        version: 2
        migrations:
          - {number: 1, name: a, checksum: "\(try lab.catalog().migrations[0].checksum.hex)"}
      """)
    expectOne(try lab.problems(), "migration 0002_b was inserted below the released version 2")
    try lab.migration("releases.yaml", "- {release: 1.0, version: 2, migrations: []}\n")
    #expect(try lab.problems().first?.hasPrefix("releases.yaml:1:13: `release` is a text") == true)
  }
}
