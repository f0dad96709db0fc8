import AppContainer
import Testing

@testable import MigrationEngine

/// What another tool's record says, against what its database has.
@Suite struct ReplayedSchemaTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  private static let record = "CREATE TABLE schema_migrations (version uint64,dirty bool);"
  private let golang = [
    "1_users.up.sql": "CREATE TABLE users (id integer);\n",
    "2_notes.up.sql":
      "BEGIN;\nCREATE TABLE notes (id integer, title text);\nCREATE INDEX by_title ON notes (title);\nCOMMIT;\n",
    "3_rows.up.sql": "INSERT INTO notes VALUES (1, 'a');\n",
  ]

  private func problem(_ lab: Lab, _ tool: MigrationTool) throws -> String {
    try lab.plan(tool).problems.map { "\($0.code) \($0.message)" }.joined(separator: "\n")
  }

  @Test func aMissingTableIsNamedAndNothingIsRecorded() throws {
    try lab.files(golang)
    try lab.database(
      "\(Self.record) INSERT INTO schema_migrations VALUES (2, 0); CREATE TABLE users (id integer, more)")
    let found = try problem(lab, .golangMigrate)
    #expect(
      found == """
        unconfirmedVersion golang-migrate's table schema_migrations in the database notes is at version 2, and the database \
        lacks what its migrations make:
          index by_title (0002_notes)
          table notes (0002_notes)
          if they were not applied: set the version to 1, from which they run
          if the database is as it should be: set the version to 2
        """)
    let error = failure { try lab.migrate(.golangMigrate) }
    #expect(error.code == .unconfirmedVersion && error.code?.exitCode == 4, "\(error)")
    #expect(try lab.history() == nil)
    #expect(try lab.tables() == ["schema_migrations", "users"])
    // It did not run.
    try lab.baseline(1, lab.catalog(.golangMigrate))
    #expect(try lab.migrate(.golangMigrate).migrations.map(\.number) == [2, 3])
    #expect(try lab.column("SELECT title FROM notes") == ["a"])
  }

  @Test func baselineTakesItAsItIs() throws {
    try lab.files(golang)
    try lab.database(
      "\(Self.record) INSERT INTO schema_migrations VALUES (3, 0); CREATE TABLE users (id integer); CREATE TABLE Notes (ID)"
    )
    #expect(try problem(lab, .golangMigrate).contains("  table notes: column title (0002_notes)\n"))
    #expect(
      try lab.baseline(3, lab.catalog(.golangMigrate)) == [
        "the database lacks what its migrations make: index by_title (0002_notes), table notes: column title (0002_notes)"
      ])
    #expect(try problem(lab, .golangMigrate) == "" && lab.plan(.golangMigrate).pending.isEmpty)
  }

  @Test("What a tool runs beside Drydock's history is compared, too")
  func later() throws {
    try lab.files(golang)
    try lab.migrate(.golangMigrate, to: 1)
    try lab.change("UPDATE schema_migrations SET version = 2")
    #expect(try problem(lab, .golangMigrate).contains("table notes (0002_notes)"))
    #expect(failure { try lab.migrate(.golangMigrate) }.code == .unconfirmedVersion)
    #expect(try lab.history()?.version == 1)
    try lab.change("CREATE TABLE notes (id integer, title text); CREATE INDEX BY_TITLE ON notes (id)")
    #expect(try lab.migrate(.golangMigrate).appliedExternally == [2])
  }

  @Test(
    "Each tool's record",
    arguments: [
      (
        .dbmate, ["1_a.sql": "-- migrate:up\nCREATE TABLE a (x, y);\n-- migrate:down\n"],
        "CREATE TABLE schema_migrations (version); INSERT INTO schema_migrations VALUES ('1'); CREATE TABLE a (x)",
        "table a: column y (0001_a)"
      ),
      (
        .goose,
        [
          "1_a.sql": "-- +goose Up\nCREATE VIEW v AS SELECT 1;\n",
          "3_b.sql": "-- +goose Up\nCREATE TABLE b (x);\n",
        ],
        """
        CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY, version_id, is_applied);
        INSERT INTO goose_db_version VALUES (1, 0, 1), (2, 1, 1)
        """, "view v (0001_a)"
      ),
      (
        .sqldelight, ["1.sqm": "CREATE TABLE b (x);\nALTER TABLE a ADD COLUMN y;\n"],
        "CREATE TABLE a (x); PRAGMA user_version = 2", "table b (0002_1.sqm)"
      ),
    ] as [(MigrationTool, [String: String], String, String)])
  func records(
    _ tool: MigrationTool, _ files: [String: String], _ sql: String, _ missing: String
  ) throws {
    try lab.files(files)
    try lab.database(sql)
    let found = try problem(lab, tool)
    #expect(found.contains("\n  \(missing)\n"), "\(found)")
    #expect(found.split(separator: "\n").count == 4, "\(found)")
  }

  /// Databases that have what is known to be there.
  @Test(
    arguments: [
      // More than the migrations make, in other case, with a table that was replaced.
      (
        [
          "1_a.sql": "CREATE TABLE A (X, y);",
          "2_b.sql": "CREATE TABLE n (x); DROP TABLE a; ALTER TABLE n RENAME TO a;",
        ],
        "CREATE TABLE a (x, z); CREATE TABLE other (x)", "('1'), ('2')", ""
      ),
      // The first migrations were removed from the directory.
      (
        [
          "5_a.sql":
            "ALTER TABLE old ADD COLUMN z; CREATE TABLE IF NOT EXISTS old (z, q); CREATE TABLE b (x);"
        ],
        "CREATE TABLE old (x, z); CREATE TABLE b (x)", "('1'), ('5')",
        "5_a.sql:2:1: no such table: old (and 1 more)"
      ),
      // One in the middle was removed.
      (
        ["1_a.sql": "CREATE TABLE a (x);", "3_b.sql": "CREATE TABLE b (x);"], "CREATE TABLE b (x)",
        "('1'), ('2'), ('3')", ""
      ),
      // Functions, collations and modules of the app, another file, rows.
      (
        [
          "1_a.sql": """
          CREATE TABLE a (x COLLATE LOCALIZED, y AS (app(x)));
          INSERT INTO a VALUES (app(1));
          CREATE VIRTUAL TABLE v USING app(x);
          ATTACH 'x' AS y; CREATE TABLE y.t (x);
          CREATE VIRTUAL TABLE f USING fts5(x);
          """
        ], "CREATE TABLE a (x, y); CREATE VIRTUAL TABLE f USING fts4(x)", "('1')",
        "1_a.sql:4:1: no such module: app (and 1 more)"
      ),
      // A view that cannot be used keeps a table from its name.
      (
        [
          "1_a.sql": "CREATE VIEW v AS SELECT * FROM app;",
          "2_b.sql": "CREATE TABLE b (x); CREATE TABLE n (x); DROP TABLE b; ALTER TABLE n RENAME TO b;",
        ], "CREATE TABLE b (x); CREATE VIEW v AS SELECT 1", "('1'), ('2')",
        "2_b.sql:2:55: error in view v: no such table: main.app"
      ),
    ])
  func noFalseAlarm(_ files: [String: String], _ sql: String, _ versions: String, _ note: String) throws {
    try lab.files(files.mapValues { "-- migrate:up transaction:false\n\($0)\n-- migrate:down\n" })
    try lab.database(
      "CREATE TABLE schema_migrations (version); INSERT INTO schema_migrations VALUES \(versions); \(sql)")
    #expect(try problem(lab, .dbmate) == "")
    let notes = try lab.plan(.dbmate).notes.map {
      $0.replacing(lab.directory("migrations") + "/", with: "")
    }
    #expect(
      notes == (note.isEmpty ? [] : ["the database was compared with its migrations only in part: \(note)"])
    )
    #expect(try lab.migrate(.dbmate).appliedExternally.isEmpty == false)
  }

  @Test("SQLDelight's sources say what the app creates")
  func sources() throws {
    let migrations = Samples.sqlDelight + "/migrations"
    func found(_ file: String, _ version: Int, _ sql: String) throws -> [String] {
      try Lab.with { lab in
        try lab.sample("\(Samples.sqlDelight)/sources/\(file)")
        try lab.change("PRAGMA user_version = \(version); \(sql)")
        let catalog = try lab.catalog(.sqlDelight, in: migrations)
        return try lab.look { try MigrationStatus(catalog, of: $0) }.problems
          .flatMap { $0.message.split(separator: "\n").map(String.init) }.filter {
            $0.contains(" author") || $0.contains(" book")
          }
      }
    }
    #expect(try found("2.db", 2, "") == [])
    #expect(try found("1.db", 2, "") == ["  index book_title", "  table book: column done"])
    #expect(
      try found("2.db", 2, "CREATE TABLE other (x); DROP TABLE book") == [
        "  index book_title", "  table book",
      ])
    let lacking = try found("2.db", 3, "CREATE TABLE author (id, name); ALTER TABLE book ADD authorId")
    #expect(lacking == ["  trigger book_gone"])
  }
}
