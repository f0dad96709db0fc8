import Cryptography
@testable import MigrationEngine
import Testing

@Suite struct CatalogTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  private let step = "steps:\n  - defaults.set: {values: {a: 1}}\n"

  @Test func ordersAndReadsAllShapes() throws {
    try lab.migration("0002_b.sql", sqlFile("SELECT 1;"))
    try lab.migration("0001_a.yaml", "description: First\n" + step)
    try lab.migration("0003_c/migration.yaml", step: "sql: {database: notes, up: up.sql}")
    try lab.migration("0003_c/up.sql", "SELECT 1;")
    try lab.migration("releases.yaml", "anything: at all")
    try lab.migration(".hidden", "x")
    try lab.migration("README.md", "x")
    let catalog = try lab.catalog()
    #expect(catalog.migrations.map(\.identifier) == ["0001_a", "0002_b", "0003_c"])
    #expect(catalog.migrations.map(\.summary) == ["First", nil, nil])
    #expect(catalog.latest == 3)
    #expect(catalog.migration(4) == nil && catalog.migration(0) == nil)
  }

  private func checksum(_ lab: Lab) throws -> String { try lab.catalog().migrations[0].checksum.hex }

  @Test func checksumCoversTheFilesThatAreUsed() throws {
    try lab.migration("0001_c/migration.yaml", step: "sql: {database: notes, up: up.sql}")
    try lab.migration("0001_c/up.sql", "SELECT 1;")
    let first = try checksum(lab)
    for name in [".DS_Store", "README.md", "Thumbs.db", "up.sql~", "notes/why.txt"] {
      try lab.migration("0001_c/" + name, "x")
      #expect(try checksum(lab) == first, "\(name)")
    }
    try lab.migration("0001_c/up.sql", "SELECT 2;")
    #expect(try checksum(lab) != first)
  }

  @Test("A script may read every file, except notes and what editors leave")
  func checksumOfAScript() throws {
    try lab.migration("0001_c/migration.yaml", "irreversible: true\nsteps:\n  - script: {run: a.sh}\n")
    try lab.migration("0001_c/a.sh", "cat data/words.txt")
    let first = try checksum(lab)
    for name in ["README.md", "data/Thumbs.db", "a.sh~"] { try lab.migration("0001_c/" + name, "x") }
    #expect(try checksum(lab) == first)
    try lab.migration("0001_c/data/words.txt", "x")
    #expect(try checksum(lab) != first)
  }

  @Test("A checkout with other line ends is the same migration, and creates the same schema")
  func lineEnds() throws {
    let files = [
      "0001_a.yaml": "description: A\n" + step,
      "0002_b.sql":
        "-- drydock: database notes\n-- migrate:up\nCREATE TABLE t (\n  a\n);\n-- migrate:down\nDROP TABLE t;\n",
      "0003_c/migration.yaml":
        "steps:\n  - sql: {database: notes, up: up.sql, down: \"DROP TABLE u\"}\n"
        + "  - files.write: {path: Documents/data, file: data}\n",
      "0003_c/up.sql": "CREATE TABLE u (\n  a\n);\n", "0003_c/data": "\0\r\n",
    ]
    try lab.files(files)
    let checksums = try lab.catalog().migrations.map(\.checksum)
    for (name, text) in files where !name.hasSuffix("data") {
      try lab.migration(name, "\u{FEFF}" + text.replacing("\n", with: "\r\n"))
    }
    #expect(try lab.catalog().migrations.map(\.checksum) == checksums)
    try lab.migrate()
    let sql = try lab.query(Lab.newDatabase, "SELECT group_concat(sql) FROM sqlite_schema")
    #expect(sql[0][0] == "CREATE TABLE t (\n  a\n),CREATE TABLE u (\n  a\n)", "\(sql)")
    try lab.migration("0003_c/data", "\0\n")
    #expect(try lab.catalog().migrations[2].checksum != checksums[2], "data is no text")
  }

  @Test("A checksum that an earlier version recorded is still one of the same files")
  func earlierChecksums() throws {
    try lab.migration("0001_c/migration.yaml", "steps:\r\n  - sql: {database: notes, up: up.sql}\r\n")
    try lab.migration("0001_c/up.sql", "SELECT 1;")
    try lab.migration("0001_c/README.md", "x")
    let migration = try lab.catalog().migrations[0]
    let files = [
      ("README.md", "x"), ("migration.yaml", "steps:\r\n  - sql: {database: notes, up: up.sql}\r\n"),
      ("up.sql", "SELECT 1;"),
    ]
    func digest(_ change: (String) -> String) throws -> SHA256.Digest {
      let digest = try SHA256()
      for part in files.flatMap({ [$0.0, change($0.1)] }).map({ Array($0.utf8) }) {
        withUnsafeBytes(of: UInt64(part.count).bigEndian) { digest.update($0) }
        part.withUnsafeBytes { digest.update($0) }
      }
      return try digest.finalize()
    }
    #expect(try migration.accepts(digest { $0 }), "with all files, as they are")
    #expect(
      try migration.accepts(digest { $0.replacing("\r\n", with: "\n") }), "where the line ends were others")
    #expect(try !migration.accepts(digest { $0 + " " }))
  }

  @Test(
    "What a merge leaves in a file is refused before anything else of it is read",
    arguments: [
      ("0001_a.yaml", "steps:\n<<<<<<< HEAD\n", 2), ("0001_a.sql", "-- a\n=======\r\n", 2),
      ("0001_a.up.sql", ">>>>>>> theirs", 1), ("0001_a/migration.yaml", "steps: []\n=======\n", 2),
      ("0001_a/up.sql", "SELECT 1;\n\n<<<<<<< ours\n", 3),
    ])
  func conflicts(_ file: String, _ text: String, _ line: Int) throws {
    try lab.migration("0001_a/migration.yaml", step: "sql: {database: notes, up: up.sql}")
    if !file.hasPrefix("0001_a/") { try lab.removeMigration("0001_a") }
    try lab.migration(file, text)
    expectFailure(start: "\(file):\(line):1: a conflict marker", code: .catalog) { try lab.catalog() }
  }

  @Test("Other lines of signs are no conflict markers")
  func noConflicts() throws {
    try lab.migration("0001_a/migration.yaml", "steps:\n  - files.write: {path: x, file: a.md}\n# ========\n")
    try lab.migration("0001_a/a.md", "Welcome\n=======\n>>>>>>>>\n")
    try lab.migration("0001_a/a.md.orig", "<<<<<<< HEAD\n")
    #expect(try lab.catalog().latest == 1)
  }

  @Test("A line in a block comment or a text is no directive")
  func directivesInText() throws {
    try lab.migration(
      "0001_a.sql",
      """
      /* as in
      -- drydock: database other
      */
      -- drydock: database notes
      -- migrate:up
      CREATE TABLE t (a); /*
      -- migrate:down
      */
      INSERT INTO t VALUES ('
      -- migrate:down
      '); -- it's /* no comment
      -- migrate:down
      DROP TABLE t;
      """)
    try lab.migrate()
    #expect(try lab.column("SELECT a FROM t") == ["\n-- migrate:down\n"])
  }

  @Test(
    "A directive of SQL, a key and a value of YAML have their places",
    arguments: [
      ("-- drydock: database notes\nSELECT 1;", "0001_a.sql:1:1: the file has no section `-- migrate:up`"),
      ("-- drydock: database notes\n-- migrate:upp\n", "unknown section `upp`; did you mean `up`?"),
      ("-- drydock: databas notes\n", "0001_a.sql:1:1: unknown word `databas`; did you mean `database`?"),
      ("-- drydock: database n\n-- drydock: database m\n", "0001_a.sql:2:1: `database` is given twice"),
      ("-- drydock: database n\nDROP TABLE t;\n-- migrate:up\nSELECT 1;", "the file has statements before"),
      (
        "-- drydock: database n\r\n-- migrate:up\r\n-- only; this\r\n", "0001_a.sql:2:1: no statement follows"
      ),
      ("-- drydock: database n\n-- migrate:up\n-- migrate:up\n", "0001_a.sql:3:1: a second section `up`"),
      (
        "-- drydock: database n\n-- migrate:up\nSELECT 1;\n-- drydock: database m\nSELECT 2;\n",
        "0001_a.sql:4:1: the file has no section `-- migrate:up`"
      ),
      ("", "0001_a.yaml:1:1: the migration is empty"),
      ("description: x\n", "0001_a.yaml:1:1: a migration needs the key `steps`"),
      ("steps: 12\n", "0001_a.yaml:1:8: `steps` is a list"),
      ("steps:\n  - defaults.rename:\n    keys: {a: b}\n", "a step of `steps` has one operation"),
      ("steps: []\nverify:\n  - sq: {}\n", "0001_a.yaml:3:5: unknown check `sq`; did you mean `sql`?"),
      ("steps: []\nverify:\n  - defaults: {key: a}\n", "0001_a.yaml:3:15: defaults needs one of `equals`"),
      (
        "steps: []\nverify:\n  - sql: {database: n, query: SELECT 1, equals: true}\n",
        "0001_a.yaml:3:49: SQLite has no Bool: write 1"
      ),
      (
        "steps: []\ncheck:\n  - sql: {database: n, query: SELECT 1, equals: before}\n",
        "0001_a.yaml:3:49: `check` runs before the migration"
      ),
      ("steps: []\nsteps: []\n", "0001_a.yaml:1:1: duplicate key `steps`"),
      ("steps: []\nverify:\n  - vault: {service: s, equals: x}\n", "a migration holds no secret"),
      ("steps: []\nverify:\n  - vault: {service: s}\n", "vault needs one of"),
      ("steps: []\nverify:\n  - vault: {exists: true}\n", "does not say which items"),
      ("steps: []\nverify:\n  - valt: {service: s}\n", "unknown check `valt`; did you mean `vault`?"),
    ])
  func places(_ text: String, _ message: String) throws {
    try lab.migration(text.hasPrefix("--") ? "0001_a.sql" : "0001_a.yaml", text)
    expectFailure(message, code: .catalog) { try lab.catalog() }
  }

  @Test(arguments: [
    (["0001_a.yaml", "0003_c.yaml"], "number 2 is missing before 0003_c"),
    (["0002_a.yaml"], "number 1 is missing before 0002_a"),
    (["0001_a.yaml", "0001_b.yaml"], "two migrations have the number 1: 0001_a and 0001_b"),
    (["0001_a.yaml", "1_b.yaml"], "two migrations have the number 1"),
    (["0001_a.yaml", "0001_a/migration.yaml"], "two migrations have the number 1: 0001_a and 0001_a"),
    (["0001_a.yml"], "0001_a.yml: not a migration's name; a migration is named 0001_name.yaml"),
    (["a.yaml"], "not a migration's name"), (["0000_a.yaml"], "not a migration's name"),
    (["0001_.yaml"], "not a migration's name"), (["0001 a.yaml"], "not a migration's name"),
    (["notes.txt"], "not a migration's name"),
    (["0001_a/up.sql"], "0001_a: the directory has no migration.yaml"),
  ])
  func namesAndNumbers(_ files: [String], _ message: String) throws {
    for file in files { try lab.migration(file, step) }
    expectFailure(message, code: .catalog) { try lab.catalog() }
  }

  @Test func noSuchDirectory() {
    #expect(failure { try MigrationCatalog.load("/nonexistent/migrations") }.code == .catalog)
  }

  @Test(
    "A mistake in a step has its place",
    arguments: [
      ("shell: {}", "0001_test.yaml:2:5: unknown operation `shell`; known here: coredata.add-attribute"),
      ("defaults.rename: {if-missing: fail}", "0001_test.yaml:2:22: defaults.rename needs the key `keys`"),
      ("defaults.rename: {keys: {a: true}}", "0001_test.yaml:2:33: the new name of `a` is a text"),
      ("defaults.rename: {keys: {a: x, b: x}}", "0001_test.yaml:2:39: two settings become `x`"),
      ("defaults.set: {values: {a: null}}", "0001_test.yaml:2:32: a setting cannot be null"),
      ("defaults.delete: {keys: a}", "0001_test.yaml:2:22: defaults.delete destroys data: say why"),
      ("files.create-directory: {path: 'a/*'}", "0001_test.yaml:2:36: `path` is one path, not a pattern"),
      ("files.write: {path: 'a?', text: x}", "0001_test.yaml:2:25: `path` is one path, not a pattern"),
      ("files.copy: {from: a, to: 'b*'}", "`to` is one path, not a pattern; write `b\\*`"),
      ("defaults.set: {file: '*.plist', values: {a: 1}}", "`file` is one path, not a pattern"),
      ("files.patch: {path: 'a[*', patch: [{op: remove, path: /a}]}", "the pattern is malformed"),
      (
        "files.delete: {paths: a, destructive: x}",
        "unknown key `paths` in files.delete; did you mean `path`?"
      ),
      ("defaults.delete: {prefix: '', destructive: x}", "0001_test.yaml:2:31: an empty prefix"),
      ("defaults.convert: {key: a}", "0001_test.yaml:2:23: defaults.convert needs `type` or `map`"),
      ("defaults.convert: {key: a, type: number}", "`type` of defaults.convert is one of string, integer"),
      ("files.move: {from: x, to: x/y}", "0001_test.yaml:2:31: one of `from` and `to` is inside the other"),
      (
        "files.delete: {path: [/etc/*], destructive: x}", "0001_test.yaml:2:27: `path`: a pattern is relative"
      ),
      ("sql: {database: n, up: up.sql}", "0001_test.yaml:2:28: `up.sql` is another file"),
      ("sql: {database: n, up: ''}", "0001_test.yaml:2:10: `sql` has no statement to run"),
      ("files.unarchive: {}", "2:22: files.unarchive needs `path` (files), `key` (a setting) or `column`"),
      ("files.unarchive: {path: a, key: b}", "name either `path` or `key`, not both"),
      ("files.unarchive: {path: a, suite: b}", "`suite` cannot be combined with `path`"),
      ("files.unarchive: {key: a, extension: b}", "`extension` cannot be combined with `key`"),
      ("files.unarchive: {column: a, database: b, table: c, to: d}", "`to` cannot be combined with `column`"),
      ("files.unarchive: {column: a}", "needs the key `database`"),
      ("files.unarchive: {path: '*.a', to: b}", "say `extension` instead"),
      ("files.unarchive: {path: a, extension: b/c}", "is what follows the dot"),
      ("files.unarchive: {path: a, to: b, extension: c}", "not both"),
      ("files.unarchive: {key: a, as: plist, store: data}", "`store` is for JSON"),
      ("files.unarchive: {path: a, as: plist, dates: iso8601}", "`dates` is for JSON"),
      (
        "files.unarchive: {path: a, dates: iso}",
        "`dates` of files.unarchive is one of iso8601, iso8601-seconds"
      ),
      (
        "files.unarchive: {path: a, classes: {A: {renam: {}}}}",
        "unknown key `renam` in the class A; did you mean `rename`?"
      ),
      ("files.unarchive: {path: a, classes: {A: {rename: {a: 1}}}}", "the new name of `a` is a text"),
      ("files.unarchive: {path: a, dictionary-keys: pair}", "did you mean `pairs`?"),
    ])
  func placesInSteps(_ step: String, _ message: String) throws {
    try lab.migration("0001_test.yaml", step: step)
    expectFailure(message, start: "0001_test.yaml:2:", code: .catalog) { try lab.catalog() }
  }

  @Test func oneFileForSeveralDatabases() throws {
    lab.configuration.databases["log"] = ["Documents/log.sqlite"]
    try lab.database("CREATE TABLE a (x)")
    try lab.database("Documents/log.sqlite", "CREATE TABLE b (x)")
    try lab.migration(
      "0001_both.sql",
      """
      -- drydock: description Both get a y
      -- drydock: database notes
      -- migrate:up
      ALTER TABLE a ADD COLUMN y;
      -- migrate:down
      ALTER TABLE a DROP COLUMN y;
      -- drydock: database log
      -- migrate:up
      ALTER TABLE b ADD COLUMN y;
      UPDATE b SET nonsense = 1;
      """)
    try lab.baseline(0)
    #expect(try lab.catalog().migrations[0].summary == "Both get a y")
    expectFailure("0001_both.sql:10:1: no such column: nonsense") { try lab.migrate() }
    #expect(try lab.query(Lab.newDatabase, "SELECT name FROM pragma_table_info('a')").count == 1)
  }

  @Test func pairsOfFiles() throws {
    try lab.database("CREATE TABLE a (x)")
    try lab.migration(
      "0001_y.up.sql",
      "-- drydock: database notes\n-- drydock: description A y\nALTER TABLE a ADD COLUMN y;\n")
    let alone = try lab.catalog().migrations[0].checksum
    try lab.migration("0001_y.down.sql", "ALTER TABLE a DROP COLUMN y;\n")
    let migration = try lab.catalog().migrations[0]
    #expect(migration.identifier == "0001_y" && migration.summary == "A y")
    #expect(migration.checksum != alone, "the way down belongs to the migration")
    try lab.baseline(0)
    try lab.migrate()
    #expect(try lab.query(Lab.newDatabase, "SELECT name FROM pragma_table_info('a')").count == 2)
  }

  @Test(
    arguments: [
      (nil, "SELECT 1;", "0001_a.down.sql: the file has no `.up.sql`: add 0001_a.up.sql"),
      ("SELECT 1;", nil, "0001_a.up.sql:1:1: the file does not say which database"),
      ("-- drydock: database n\n", nil, "0001_a.up.sql:1:1: the database n has no statement"),
      ("-- drydock: database n\n-- migrate:up\nSELECT 1;", nil, "0001_a.up.sql:2:1: a file `.up.sql` or"),
      (
        "-- drydock: database n\nSELECT 1;", "-- drydock: database m\nSELECT 1;",
        "0001_a.down.sql:2:1: the file `.up.sql` has no statement for the database `m`"
      ),
    ] as [(String?, String?, String)])
  func placesInPairs(_ up: String?, _ down: String?, _ message: String) throws {
    if let up { try lab.migration("0001_a.up.sql", up) }
    if let down { try lab.migration("0001_a.down.sql", down) }
    let problems = try lab.problemsOfReading()
    #expect(problems.contains { $0.contains(message) }, "\(problems)")
  }

  @Test("Migrations with mistakes are known by their numbers, and the others are read")
  func incomplete() throws {
    try lab.files(["0001_a.yaml": "steps:\n  - defaults.sett: {}\n", "0002_b.sql": "SELECT 1;"])
    try lab.files(["0005_c.yaml": step, "notes.txt": ""])
    let (catalog, incomplete, problems) = try MigrationCatalog.read(lab.directory("migrations"))
    #expect(catalog.numbers == [5] && incomplete.map(\.number) == [1, 2] && problems.count == 4)
    #expect(problems.last?.description.contains("numbers 3 to 4 are missing before 0005_c") == true)
  }
}
