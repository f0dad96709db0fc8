import AppContainer
import AppFrameworks
@testable import MigrationEngine
import Testing

/// Which files other tools look at, and what their names say.
@Suite struct ToolFileTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  @Test(
    arguments: [
      (.dbmate, "20151129054053_test_migration.sql", "20151129054053", 20_151_129_054_053, "test_migration"),
      (.dbmate, "001.sql", "001", 1, ""), (.dbmate, "2 create users.sql", "2", 2, "create users"),
      (.dbmate, "schema.sql", nil, 0, ""), (.dbmate, "1_a.sql.bak", nil, 0, ""),
      (.golangMigrate, "1_initialize_schema.up.sql", "1", 1, "initialize_schema"),
      (.golangMigrate, "000002_a.b.down.sql", "000002", 2, "a.b"), (.golangMigrate, "3_.up.sql", "3", 3, ""),
      (.golangMigrate, "3_a.sql", nil, 0, ""), (.golangMigrate, "3.up.sql", nil, 0, ""),
      (.golangMigrate, "1_a.upp.sql", nil, 0, ""),
      (.goose, "00001_create_users.sql", "00001", 1, "create_users"),
      (.goose, "20230201093158_add.go", "20230201093158", 20_230_201_093_158, "add"),
      (.goose, "00002_a_test.go", nil, 0, ""), (.goose, "helpers.go", nil, 0, ""),
      (.goose, "3.sql", nil, 0, ""),
      (.sqldelight, "1.sqm", "1", 2, "1.sqm"), (.sqldelight, "001.sqm", "001", 2, "001.sqm"),
      (.sqldelight, "1-23-87.sqm", "12387", 12388, "1-23-87.sqm"),
      (.sqldelight, "v4_names.sqm", "4", 5, "v4_names.sqm"), (.sqldelight, "none.sqm", nil, 0, ""),
      (.sqldelight, "Player.sq", nil, 0, ""), (.sqldelight, "1.db", nil, 0, ""),
    ] as [(MigrationTool.Format, String, String?, Int, String)])
  func names(
    _ format: MigrationTool.Format, _ file: String, _ version: String?, _ number: Int, _ name: String
  ) throws {
    let found = try ToolFile(file, format)
    #expect(found?.version == version)
    if let found { #expect(found.number == number && found.name == name, "\(found)") }
  }

  @Test(
    arguments: [
      (.dbmate, "0_a.sql"), (.dbmate, "99999999999999999999_a.sql"),
      (.golangMigrate, "9223372036854775807_a.up.sql"),
      (.goose, "00000_a.sql"), (.sqldelight, "0.sqm"), (.sqldelight, "9223372036854775807.sqm"),
    ] as [(MigrationTool.Format, String)])
  func numbersThatAreNone(_ format: MigrationTool.Format, _ file: String) {
    expectFailure("cannot be a version") { try ToolFile(file, format) as Any }
  }

  private static let trigger = "CREATE TRIGGER x AFTER INSERT ON t BEGIN\n  UPDATE t SET a = 1;\nEND;\n"

  @Test func whatGooseTakes() throws {
    let text = """
      -- a comment; with a semicolon

      -- +goose Up
      SELECT 1; SELECT 2; -- why
      INSERT INTO t VALUES (
        ';', 2
      );
      -- +goose StatementBegin
      \(Self.trigger)-- +goose StatementEnd
      -- +goose Down
      -- +goose statementbegin
      DROP TRIGGER x;
      -- +goose statementend
      """
    try lab.files(["1_a.sql": text, "README.md": "", "notes.sql": "SELECT 1;"])
    #expect(try lab.problemsOfReading(.goose) == [])
    try lab.files(["2_a.sql": text.replacing("';', 2", with: "'a;\n', 2")])
    #expect(try lab.problemsOfReading(.goose).first?.contains("2_a.sql:5:1: goose ends a statement") == true)
  }

  @Test func anEmptyDirectoryIsAWarning() throws {
    #expect(
      try lab.catalog(.dbmate).warnings == [
        "\(lab.directory("migrations")): the directory has no migration"
      ])
    #expect(try lab.catalog().warnings.count == 1)
    try lab.files(["1_a.sql": "\(Self.up)-- migrate:down\n"])
    #expect(try lab.catalog(.dbmate).warnings == [])
  }

  @Test(
    arguments: [
      (
        "import kotlin.Boolean;\nimport kotlin.collections.List\nCREATE TABLE t (a INTEGER AS Boolean NOT NULL);",
        "CREATE TABLE t (a INTEGER            NOT NULL);"
      ),
      (
        "ALTER TABLE t ADD COLUMN b TEXT AS @Ann(x = 1) kotlin.Map<String, List<Int?>>? DEFAULT 'AS Int';",
        "ALTER TABLE t ADD COLUMN b TEXT                                                DEFAULT 'AS Int';"
      ),
      (
        "CREATE TABLE t (a INTEGER, b GENERATED ALWAYS AS (a + 1), c CHECK (CAST(a AS Int) > 1));",
        "CREATE TABLE t (a INTEGER, b GENERATED ALWAYS AS (a + 1), c CHECK (CAST(a AS Int) > 1));"
      ),
      ("CREATE TABLE t AS SELECT a AS b FROM u;", "CREATE TABLE t AS SELECT a AS b FROM u;"),
      ("CREATE VIEW v AS SELECT a AS b FROM u;", "CREATE VIEW v AS SELECT a AS b FROM u;"),
    ])
  func whatSQLDelightStrips(_ text: String, _ expected: String) {
    let stripped = SQLDelightText.stripped(Array(text.utf8))
    #expect(stripped.count == text.utf8.count)
    let lines = String(decoding: stripped, as: UTF8.self).split(separator: "\n").filter {
      !$0.allSatisfy { $0 == " " }
    }
    #expect(lines.joined(separator: "\n") == expected)
  }

  private static let up = "-- migrate:up\n", goose = "-- +goose Up\n"

  @Test(
    arguments: [
      (.dbmate, ["1_a.sql": "SELECT 1;"], "1_a.sql:1:1: dbmate wants `-- migrate:up` first"),
      (.dbmate, ["1_a.sql": up], "1_a.sql:1:1: dbmate wants `-- migrate:down`, too"),
      (.dbmate, ["1_a.sql": "SELECT 1;\n\(up)-- migrate:down\n"], "only comments with `--` may be before"),
      (.dbmate, ["1_a.sql": "/* why */\n\(up)-- migrate:down\n"], "1_a.sql:1:1: only comments with `--`"),
      (.dbmate, ["1_a.sql": "\(up)-- migrate:down transaction:false x:y\n"], "dbmate takes one option"),
      (.goose, ["1_a.sql": "\(goose)SELECT 1\n"], "1_a.sql:2:1: goose wants a semicolon at the end"),
      (
        .goose, ["1_a.sql": "\(goose)SELECT 1\n-- +goose Down\nSELECT 2;\n"],
        "1_a.sql:2:1: goose wants a semicolon at the end"
      ),
      (.goose, ["1_a.sql": "\(goose)\(trigger)"], "1_a.sql:2:1: goose ends a statement at each line"),
      (
        .goose, ["1_a.sql": "\(goose)-- +goose StatementBegin\nSELECT 1;\n"],
        "1_a.sql:2:1: `-- +goose StatementEnd` is missing"
      ),
      (.goose, ["1_a.sql": "\(goose)-- +goose StatementEnd\n"], "`-- +goose StatementEnd` comes after"),
      (.goose, ["1_a.sql": "-- +goose StatementBegin\n\(goose)"], "`-- +goose StatementBegin` comes after"),
      (.goose, ["1_a.sql": "\(goose)-- +goose Upp\n"], "1_a.sql:2:1: goose knows no annotation `upp`"),
      (.goose, ["1_a.sql": "\(goose)  -- +goose Down\n"], "1_a.sql:2:1: goose refuses white space before"),
      (.golangMigrate, ["1_a.up.sql": "", "2_b.sql": "SELECT 1;"], "the name fits dbmate or goose"),
      (.goose, ["schema.sql": "SELECT 1;"], "schema.sql: goose would not run this file"),
      (.sqldelight, ["1.sqm": "SELECT 1;", "names.sqm": "SELECT 1;"], "names.sqm: sqldelight would not run"),
      (.dbmate, ["1_a.sql": "\(up)-- migrate:down\n\(up)"], "a second `-- migrate:up`: dbmate fails"),
      (
        .dbmate, ["9_a.sql": "\(up)-- migrate:down\n", "10_b.sql": "\(up)-- migrate:down\n"],
        "dbmate runs 10 before 9"
      ),
      (
        .dbmate, ["1_a.sql": "\(up)-- migrate:down\n", "01_b.sql": "\(up)-- migrate:down\n"],
        "01_b.sql has the same number"
      ),
      (.golangMigrate, ["1_a.up.sql": "", "1_b.up.sql": ""], "1_b.up.sql: 1_a.up.sql has the same number"),
      (.goose, ["1_a.sql": "SELECT 1;\n"], "1_a.sql:1:1: goose wants a line `-- +goose Up`"),
      (.goose, ["1_a.sql": "SELECT 1;\n\(goose)"], "1_a.sql:1:1: the file has statements before"),
      (.goose, ["1_a.sql": "\(goose)\(goose)"], "1_a.sql:2:1: a second `-- +goose Up`"),
      (.goose, ["1_a.sql": "-- +goose Down\n"], "1_a.sql:1:1: `-- +goose Down` comes once, after"),
      (.goose, ["1_a.sql": "-- +goose ENVSUB ON\n\(goose)"], "goose puts variables of the environment"),
      (.goose, ["1_a.go": "package x"], "1_a.go: a migration in Go: only goose itself can run it"),
    ] as [(MigrationTool.Format, [String: String], String)])
  func problems(_ format: MigrationTool.Format, _ files: [String: String], _ message: String) throws {
    try lab.files(files)
    let problems = try lab.problemsOfReading(MigrationTool(format))
    #expect(problems.count == 1 && problems[0].contains(message), "\(problems)")
  }
}
