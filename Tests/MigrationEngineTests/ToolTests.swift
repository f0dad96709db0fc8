import AppContainer
@testable import MigrationEngine
import Testing

/// Folders and databases as other tools make them. The tools themselves are not at hand here: names, sections and tables
/// are written by what their sources say (the guide "Other tools' databases").
@Suite struct ToolTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  private func versions() throws -> [String] {
    try lab.column("SELECT version FROM schema_migrations ORDER BY 1")
  }
  private let dbmate = [
    "20260101120000_create_users.sql":
      "-- migrate:up\nCREATE TABLE users (id integer);\n\n-- migrate:down\nDROP TABLE users;\n",
    "20260102120000_more.sql": "-- migrate:up\nALTER TABLE users ADD COLUMN name;\n-- migrate:down\n\n",
    "schema.sql": "CREATE TABLE nonsense",
  ]

  @Test func dbmateFromNothing() throws {
    try lab.files(dbmate)
    #expect(try lab.plan(.dbmate).detected.version == 0)
    let report = try lab.migrate(.dbmate)
    #expect(report.migrations.map(\.name) == ["create_users", "more"])
    #expect(try lab.tables() == ["schema_migrations", "users"])
    #expect(try versions() == ["20260101120000", "20260102120000"])
    #expect(
      try lab.column("SELECT sql FROM sqlite_schema WHERE name = 'schema_migrations'")
        == [#"CREATE TABLE "schema_migrations" (version varchar(128) primary key)"#])
    let plan = try lab.plan(.dbmate)
    #expect(plan.entries.map(\.state) == [.applied, .applied] && plan.problems.isEmpty)
    #expect(plan.detected.source.description == "dbmate's table schema_migrations in the database notes")
    #expect(try lab.migrate(.dbmate).changedAnything == false)
  }

  @Test func dbmateGoesOnWhereItWas() throws {
    try lab.files(dbmate)
    // The first row's file is gone long since, which dbmate does not mind.
    try lab.database(
      """
      CREATE TABLE IF NOT EXISTS "schema_migrations" (version varchar(128) primary key);
      CREATE TABLE users (id integer);
      INSERT INTO schema_migrations (version) VALUES ('20250101120000'), ('20260101120000');
      """)
    #expect(try lab.plan(.dbmate).entries.map(\.state) == [.applied, .pending])
    let report = try lab.migrate(.dbmate)
    #expect(report.from == 20_260_101_120_000 && report.migrations.map(\.name) == ["more"])
    #expect(report.appliedExternally == [20_260_101_120_000])
    #expect(try versions() == ["20250101120000", "20260101120000", "20260102120000"])
    #expect(try lab.history()?.records.map(\.origin) == [.app, .applied])
    // What Drydock ran must not change; what dbmate ran nobody can compare.
    try lab.files(dbmate.mapValues { $0 + "-- edited\n" })
    #expect(try lab.plan(.dbmate).entries.map(\.state) == [.applied, .edited])
    // A lower number that was never applied is not skipped.
    try lab.files(dbmate)
    try lab.migration("20260101130000_late.sql", "-- migrate:up\n-- migrate:down\n")
    #expect(try lab.plan(.dbmate).problems.map(\.code) == [.outOfOrder])
  }

  @Test func aFailureLeavesTheRecord() throws {
    try lab.files(dbmate)
    try lab.migrate(.dbmate, to: 20_260_101_120_000)
    try lab.migration("20260103120000_bad.sql", "-- migrate:up\n\nSELECT nonsense;\n-- migrate:down\n")
    expectFailure(start: "20260103120000_bad.sql:3:1: no such column", code: .sql) {
      try lab.migrate(.dbmate)
    }
    #expect(try versions() == ["20260101120000"])
    expectFailure("migration 20260102120001 does not exist") {
      try lab.migrate(.dbmate, to: 20_260_102_120_001)
    }
  }

  @Test func withoutATransaction() throws {
    let body = "BEGIN;\nCREATE TABLE t (a);\nCOMMIT;\nVACUUM;\nDELETE FROM t;\n"
    try lab.migration("1_a.sql", "-- migrate:up\n\(body)-- migrate:down\n")
    expectFailure("1_a.sql:2:1: BEGIN, COMMIT") { try lab.migrate(.dbmate) }
    #expect(try lab.problems(.dbmate).first?.hasPrefix("1_a.sql:2:1: BEGIN, COMMIT") == true)
    try lab.migration("1_a.sql", "-- migrate:up transaction:false\n\(body)-- migrate:down\n")
    #expect(try lab.problems(.dbmate) == [])
    try lab.migrate(.dbmate)
    #expect(try lab.tables() == ["schema_migrations", "t"])
    try lab.migration("2_b.sql", "-- migrate:up transaction:false\nBEGIN;\nDROP TABLE t;\n-- migrate:down\n")
    expectFailure("leave a transaction open") { try lab.migrate(.dbmate) }
    try lab.migration("2_b.sql", "-- migrate:up transaction:false\nATTACH 'x' AS y;\n-- migrate:down\n")
    expectFailure("2_b.sql:2:1: ATTACH") { try lab.migrate(.dbmate) }
    #expect(try lab.tables() == ["schema_migrations", "t"])
  }

  private let golang = [
    "000001_users.up.sql": "CREATE TABLE users (id integer);\n",
    "000001_users.down.sql": "DROP TABLE users;\n",
    "000002_tx.up.sql": "BEGIN;\nALTER TABLE users ADD COLUMN name;\nCOMMIT;\n", "000003_empty.up.sql": "",
    "README.md": "x",
  ]

  @Test func golangMigrate() throws {
    try lab.files(golang)
    try lab.migrate(.golangMigrate, to: 1)
    #expect(try lab.column("SELECT version || ' ' || dirty FROM schema_migrations") == ["1 0"])
    #expect(try lab.column("SELECT name FROM sqlite_schema WHERE type = 'index'") == ["version_unique"])
    try lab.migrate(.golangMigrate)
    #expect(try lab.column("SELECT version || ' ' || dirty FROM schema_migrations") == ["3 0"])
    #expect(try lab.column("SELECT name FROM pragma_table_info('users')") == ["id", "name"])
  }

  @Test("A transaction of its own may begin after other statements")
  func golangMigrateWithItsOwnTransaction() throws {
    let sql = "PRAGMA foreign_keys = off;\nBEGIN;\nCREATE TABLE t (a);\nCOMMIT;\nPRAGMA foreign_keys = on;\n"
    try lab.files([
      "1_a.up.sql": sql, "1_a.down.sql": sql.replacing("CREATE TABLE t (a)", with: "DROP TABLE t"),
    ])
    #expect(try lab.problems(.golangMigrate) == [])
    try lab.migrate(.golangMigrate)
    #expect(try lab.tables() == ["schema_migrations", "t"])
  }

  @Test("dbmate runs the text with the line ends of the file")
  func dbmateWithCRLF() throws {
    let text = "-- migrate:up\nCREATE TABLE t (\n  a\n);\n-- migrate:down\nDROP TABLE t;\n"
    try lab.migration("1_a.sql", text.replacing("\n", with: "\r\n"))
    try lab.migrate(.dbmate)
    #expect(
      try lab.column("SELECT sql FROM sqlite_schema WHERE name = 't'") == ["CREATE TABLE t (\r\n  a\r\n)"])
    try lab.migration("1_a.sql", text)
    #expect(try lab.plan(.dbmate).problems.isEmpty)
  }

  @Test("What a merge left is refused, and not recorded as applied where there is no database")
  func conflicts() throws {
    for format in MigrationTool.Format.allCases where format != .room {
      let name = [.golangMigrate: "1_a.up.sql", .sqldelight: "1.sqm"][format] ?? "1_a.sql"
      try lab.files([name: "-- migrate:up\n-- +goose Up\n<<<<<<< HEAD\nSELECT 1;\n-- migrate:down\n"])
      expectFailure(start: "\(name):3:1: a conflict marker", code: .catalog) {
        try lab.migrate(MigrationTool(format))
      }
      try lab.removeMigration(name)
    }
  }

  @Test(
    "Foreign keys are as in the tool: rows without a parent stay, with a note, and rows that go with theirs are named",
    arguments: [
      ("\n", "3", "references to missing rows of p (2 more than before), since foreign keys are off"),
      (" transaction:false\nPRAGMA foreign_keys = ON;\n", "1", "`c` has 2 rows less"),
    ])
  func foreignKeys(_ pragma: String, _ left: String, _ note: String) throws {
    let schema = """
      CREATE TABLE p (id INTEGER PRIMARY KEY); INSERT INTO p VALUES (1), (2);
      CREATE TABLE c (p REFERENCES p ON DELETE CASCADE); INSERT INTO c VALUES (1), (1), (2);
      """
    try lab.files([
      "1_a.sql": "-- migrate:up\n\(schema)\n-- migrate:down\n",
      "2_b.sql": "-- migrate:up\(pragma)DELETE FROM p WHERE id = 1;\n-- migrate:down\n",
    ])
    let notes = try lab.migrate(.dbmate).migrations.flatMap(\.notes)
    #expect(try lab.column("SELECT count(*) FROM c") == [left])
    #expect(notes.contains { $0.contains(note) }, "\(notes)")
  }

  @Test func golangMigrateDirty() throws {
    try lab.files(golang)
    try lab.database(
      """
      CREATE TABLE schema_migrations (version uint64,dirty bool);
      CREATE UNIQUE INDEX version_unique ON schema_migrations (version);
      INSERT INTO schema_migrations (version, dirty) VALUES (2, true);
      CREATE TABLE users (id integer);
      """)
    expectFailure("failed in the middle of migration 2", code: .unknownVersion) {
      try lab.plan(.golangMigrate)
    }
    try lab.baseline(1, lab.catalog(.golangMigrate))
    #expect(try lab.column("SELECT version || ' ' || dirty FROM schema_migrations") == ["1 0"])
    #expect(try lab.plan(.golangMigrate).pending.map(\.number) == [2, 3])
    try lab.baseline(0, lab.catalog(.golangMigrate))
    #expect(try lab.column("SELECT count(*) FROM schema_migrations") == ["0"])
    #expect(try lab.plan(.golangMigrate).detected.version == 0)
  }

  /// The tool has one number for all, the history a record of each.
  @Test func golangMigrateLateNumbers() throws {
    try lab.files([
      "1_a.up.sql": "CREATE TABLE a (x);", "2_b.up.sql": "CREATE TABLE b (x);",
      "20_c.up.sql": "CREATE TABLE c (x);",
    ])
    try lab.migrate(.golangMigrate)
    try lab.files(["5_late.up.sql": "CREATE TABLE late (x);", "21_d.up.sql": "CREATE TABLE d (x);"])
    let plan = try lab.plan(.golangMigrate)
    #expect(plan.entries.map(\.state) == [.applied, .applied, .outOfOrder, .applied, .pending])
    #expect(plan.problems.map(\.code) == [.outOfOrder] && plan.appliedExternally.isEmpty)
    expectFailure("out of order", code: .outOfOrder) { try lab.migrate(.golangMigrate) }
    #expect(try lab.tables() == ["a", "b", "c", "schema_migrations"])

    let late = try lab.migrate(.golangMigrate, to: 5, allowingOutOfOrder: true)
    #expect(late.migrations.map(\.number) == [5] && late.from == 20 && late.to == 20)
    #expect(try lab.column("SELECT version FROM schema_migrations") == ["20"])
    #expect(try lab.history()?.records.map(\.number) == [1, 2, 5, 20])
    #expect(try lab.migrate(.golangMigrate).migrations.map(\.number) == [21])
    #expect(try lab.tables() == ["a", "b", "c", "d", "late", "schema_migrations"])
    // What the tool takes back, the history knows no better.
    try lab.change("UPDATE schema_migrations SET version = 2")
    #expect(try lab.plan(.golangMigrate).pending.map(\.number) == [5, 20, 21])
  }

  /// Of a migration that was applied, a file for the way down changes nothing.
  @Test func aDownFileAddedLater() throws {
    try lab.files(["1_a.up.sql": "CREATE TABLE a (x);"])
    try lab.migrate(.golangMigrate)
    try lab.files(["1_a.down.sql": "DROP TABLE a;"])
    let plan = try lab.plan(.golangMigrate)
    #expect(plan.entries.map(\.state) == [.applied] && plan.problems.isEmpty)
    expectOne(plan.notes, "0001_a")
    #expect(try lab.migrate(.golangMigrate).notes == plan.notes)
    try lab.files(["1_a.up.sql": "CREATE TABLE a (y);"])
    #expect(try lab.plan(.golangMigrate).entries.map(\.state) == [.edited])
  }

  /// SQLite takes an empty file for a database with nothing in it.
  @Test(arguments: MigrationTool.Format.allCases.filter { $0 != .room })
  func anEmptyFile(_ format: MigrationTool.Format) throws {
    let files: [MigrationTool.Format: (String, String)] = [
      .dbmate: ("1_a.sql", "-- migrate:up\nCREATE TABLE a (x);\n-- migrate:down\n"),
      .golangMigrate: ("1_a.up.sql", "CREATE TABLE a (x);\n"),
      .goose: ("1_a.sql", "-- +goose Up\nCREATE TABLE a (x);\n"),
      .sqldelight: ("1.sqm", "ALTER TABLE a ADD COLUMN y;\n"),
    ]
    let (name, text) = try #require(files[format])
    try lab.files([name: text])
    try lab.write(Lab.newDatabase, "")
    let plan = try lab.plan(MigrationTool(format))
    #expect(plan.detected.version == 0 && plan.detected.source == .newContainer)
    let report = try lab.migrate(MigrationTool(format))
    if format == .sqldelight {
      // The app makes it: a number would keep it from that.
      #expect(report.migrations[0].notes.contains { $0.contains("does not exist: skipped") })
      #expect(try lab.column("PRAGMA user_version") == ["0"])
    } else {
      #expect(try lab.tables().contains("a"))
      #expect(try lab.plan(MigrationTool(format)).entries.map(\.state) == [.applied])
    }
  }

  private let goose = [
    "00001_users.sql": """
    -- +goose Up
    -- +goose StatementBegin
    CREATE TABLE users (id integer, n integer);
    -- +goose StatementEnd

    -- +goose Down
    DROP TABLE users;
    """,
    "00002_trigger.sql": """
    -- +goose NO TRANSACTION
    -- +goose up
    -- +goose StatementBegin
    CREATE TRIGGER t AFTER INSERT ON users BEGIN
      UPDATE users SET n = 1;
      UPDATE users SET n = n + 1;
    END;
    -- +goose StatementEnd
    VACUUM;
    """,
  ]

  private func gooseRows() throws -> [String] {
    try lab.column("SELECT version_id || ' ' || is_applied FROM goose_db_version ORDER BY id")
  }
  @Test func gooseFromNothing() throws {
    try lab.files(goose)
    try lab.migrate(.goose)
    #expect(try gooseRows() == ["0 1", "1 1", "2 1"])
    #expect(try lab.column("SELECT count(*) FROM goose_db_version WHERE tstamp IS NOT NULL") == ["3"])
    #expect(try lab.column("SELECT name FROM sqlite_schema WHERE type = 'trigger'") == ["t"])
    #expect(try lab.migrate(.goose).changedAnything == false)
  }

  /// The rows that an older goose wrote for: up, up, down.
  @Test func gooseWithRowsOfTheWayBack() throws {
    try lab.files(goose)
    try lab.database(
      """
      CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY AUTOINCREMENT, version_id INTEGER NOT NULL,
        is_applied INTEGER NOT NULL, tstamp TIMESTAMP DEFAULT (datetime('now')));
      INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, 1), (1, 1), (2, 1), (2, 0);
      CREATE TABLE users (id integer, n integer);
      """)
    let plan = try lab.plan(.goose)
    #expect(plan.detected.version == 1 && plan.entries.map(\.state) == [.applied, .pending])
    try lab.migrate(.goose)
    #expect(try gooseRows() == ["0 1", "1 1", "2 1"])
    #expect(try lab.plan(.goose).detected.version == 2)
  }

  @Test func whatTheToolTookBack() throws {
    try lab.files(goose)
    try lab.migrate(.goose)
    try lab.change("DELETE FROM goose_db_version WHERE version_id = 2; DROP TRIGGER t")
    #expect(try lab.history()?.version == 2)
    #expect(try lab.plan(.goose).entries.map(\.state) == [.applied, .pending])
    try lab.migrate(.goose)
    #expect(try lab.history()?.records.map(\.number) == [1, 2])
  }

  @Test func sqldelight() throws {
    try lab.files([
      "1.sqm": "ALTER TABLE player ADD COLUMN draft_year INTEGER;\n",
      "2.sqm": "ALTER TABLE player ADD COLUMN draft_order INTEGER;\n", "Player.sq": "CREATE TABLE player",
    ])
    // Without a database there is nothing to do: the app makes it with the newest schema.
    let skipped = try lab.migrate(.sqldelight)
    #expect(skipped.migrations.flatMap(\.notes).allSatisfy { $0.contains("does not exist: skipped") })
    #expect(try lab.exists(Lab.newDatabase) == false)

    try lab.database("CREATE TABLE player (id); PRAGMA user_version = 1")
    let plan = try lab.plan(.sqldelight)
    #expect(plan.detected.version == 1 && plan.pending.map(\.number) == [2, 3])
    #expect(plan.detected.source.description == "the user_version of the database notes")
    #expect(try lab.migrate(.sqldelight, to: 2).migrations.map(\.name) == ["1.sqm"])
    #expect(try lab.column("PRAGMA user_version") == ["2"])
    try lab.migrate(.sqldelight)
    #expect(try lab.column("PRAGMA user_version") == ["3"])
    #expect(
      try lab.column("SELECT name FROM pragma_table_info('player')") == ["id", "draft_year", "draft_order"])
    try lab.baseline(0, lab.catalog(.sqldelight))
    #expect(try lab.column("PRAGMA user_version") == ["1"], "the first version of a schema is 1")
    try lab.change("PRAGMA user_version = 0")
    try lab.baseline(1, lab.catalog(.sqldelight))
    #expect(try lab.column("PRAGMA user_version") == ["1"])
    #expect(try lab.plan(.sqldelight).pending.map(\.number) == [2, 3])
    expectFailure("the migrations go from 1 to 3") { try lab.baseline(4, lab.catalog(.sqldelight)) }

    try lab.change("PRAGMA user_version = 4")
    #expect(try lab.plan(.sqldelight).problems.map(\.code) == [.newer])
  }

  @Test(arguments: MigrationTool.Format.allCases)
  func aDatabaseWithoutARecord(_ format: MigrationTool.Format) throws {
    try lab.database("CREATE TABLE a (x)")
    expectFailure("set the version", code: .unknownVersion) { try lab.plan(MigrationTool(format)) }
  }

  @Test(
    arguments: [
      (.dbmate, "CREATE TABLE schema_migrations (version)", "(NULL), (x'00'), ('x'), (1.5), (7)", 7),
      (.golangMigrate, "CREATE TABLE schema_migrations (version, dirty)", "('x', 'y')", 0),
      (.golangMigrate, "CREATE TABLE schema_migrations (version, dirty)", "(x'00', NULL)", 0),
      (
        .goose, "CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY, version_id, is_applied)",
        "(1, NULL, 1), (2, x'00', 1), (3, 7, 'no'), (4, 8, 1)", 8
      ),
    ] as [(MigrationTool.Format, String, String, Int)])
  func oddRows(_ format: MigrationTool.Format, _ table: String, _ rows: String, _ version: Int) throws {
    let name = format == .goose ? "goose_db_version" : "schema_migrations"
    try lab.database("\(table); INSERT INTO \(name) VALUES \(rows)")
    #expect(try lab.plan(MigrationTool(format)).detected.version == version)
    try lab.change("DROP TABLE \(name); CREATE TABLE \(name) (other)")
    #expect(failure { try lab.plan(MigrationTool(format)) }.code == .unknownVersion)
  }

  @Test func validatesThem() throws {
    try lab.files(goose)
    try lab.files([
      "00003_bad.sql": "-- +goose Up\nSELEC 1;\nDELETE FROM users;\n-- +goose Down\nDROP TABL x;\n"
    ])
    let found = try lab.problems(.goose)
    #expect(found.count == 2, "\(found)")
    #expect(found.first?.hasPrefix("00003_bad.sql:2:1: near \"SELEC\": syntax error") == true, "\(found)")
    #expect(found.last?.hasPrefix("00003_bad.sql:5:1: near \"TABL\": syntax error") == true, "\(found)")
  }

  @Test func configured() throws {
    func configuration(_ migrations: String) throws -> ContainerConfiguration {
      try lab.configuration("databases: {notes: [a.db]}\nmigrations: \(migrations)\n")
    }
    let found = try configuration("{path: db/migrations, format: golang-migrate, database: notes}")
    #expect(found.migrationTool == .golangMigrate)
    #expect(found.migrations?.hasSuffix("/db/migrations") == true)
    #expect(try configuration("Migrations").migrationTool == nil)
    for (text, message) in [
      ("{path: x, format: gooose, database: notes}", "did you mean `goose`?"),
      ("{path: x, format: goose, database: nots}", "did you mean `notes`?"),
      ("{path: x, database: notes}", "needs the key `format`"),
      ("{format: goose, database: notes}", "needs the key `path`"),
      ("{path: x, format: goose}", "needs the key `database`"),
    ] {
      expectFailure(message) { try configuration(text) }
    }
  }
}
