import AppContainer
import Testing

@testable import MigrationEngine

@Suite("Steps beside another tool's migrations") struct StepsBesideTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  private static let number = 20_260_101_120_000
  private let dbmate = [
    "20260101120000_users.sql":
      "-- migrate:up\nCREATE TABLE users (name);\nINSERT INTO users VALUES ('Ada');\n-- migrate:down\nDROP TABLE users;\n"
  ]
  private let settings = """
    description: The user's name
    check:
      - defaults: {key: old, equals: 1}
    steps:
      - defaults.rename: {keys: {old: new}}
      - sql:
          database: notes
          defaults: true
          up: INSERT INTO defaults (key, value) SELECT 'user', name FROM users
          down: DELETE FROM defaults WHERE key = (SELECT 'user' FROM users)
    verify:
      - defaults: {key: user, equals: Ada}
      - sql: {database: notes, query: SELECT count(*) FROM users, equals: 1}

    """

  @Test("They run after its statements, in one migration, and are reverted before its down statements")
  func thereAndBack() throws {
    try lab.files(dbmate)
    try lab.migration("20260101120000_settings.yaml", settings)
    try lab.set(["old": 1])
    let report = try lab.migrate(.dbmate)
    #expect(report.migrations.map(\.number) == [Self.number])
    #expect(report.migrations.first?.name == "users" && report.migrations.first?.summary == "The user's name")
    #expect(try lab.settings() == ["new": 1, "user": "Ada"])
    #expect(try lab.column("SELECT version FROM schema_migrations") == ["20260101120000"])
    #expect(try lab.history()?.records.map(\.number) == [Self.number])
    try lab.app(sets: "later", true)
    try lab.rollback(.dbmate, to: 0, down: true)
    #expect(try lab.settings() == ["old": 1, "later": true])
    #expect(try lab.tables() == ["schema_migrations"])
    #expect(try lab.column("SELECT version FROM schema_migrations") == [])
    #expect(try lab.history()?.records.isEmpty == true)
    // The whole transaction can be undone as well.
    _ = try lab.migrate(.dbmate)
    try lab.rollback(.dbmate)
    #expect(try lab.settings() == ["old": 1, "later": true])
    #expect(try lab.tables() == ["schema_migrations"])
  }

  @Test("A failing step leaves the database as it was")
  func oneTransaction() throws {
    try lab.files(dbmate)
    try lab.migration(
      "20260101120000_settings.yaml",
      "steps: []\nverify:\n  - sql: {database: notes, query: SELECT count(*) FROM users, equals: 2}\n")
    try lab.set(["old": 1])
    expectFailure(start: "20260101120000_settings.yaml:3:5: verify: ", code: .verifyFailed) {
      try lab.migrate(.dbmate)
    }
    #expect(try !lab.exists(Lab.newDatabase) && lab.history() == nil)
  }

  @Test("Explicit down steps are for the steps; the tool's down statements follow them")
  func explicitDown() throws {
    try lab.files(dbmate)
    let body = settings.replacing(/\n {6}down: .*/, with: "")
    try lab.migration("20260101120000_settings.yaml", body)
    let found = try MigrationValidation.run(lab.directory("migrations"), tool: .dbmate, lab.configuration)
    #expect(found.problems.map(\.code) == [.irreversible], "\(found.problems)")
    let down =
      "down:\n  - defaults.rename: {keys: {new: old}}\n"
      + "  - sql:\n      database: notes\n      defaults: true\n"
      + "      up: DELETE FROM defaults WHERE key = (SELECT 'user' FROM users)\n"
    try lab.migration("20260101120000_settings.yaml", body + down)
    #expect(try lab.problems(.dbmate) == [])
    try lab.set(["old": 1])
    _ = try lab.migrate(.dbmate)
    try lab.rollback(.dbmate, to: 0, down: true)
    #expect(try lab.settings() == ["old": 1])
    #expect(try lab.tables() == ["schema_migrations"])
  }

  @Test("Both files are in the checksum; what the tool ran counts with its steps")
  func checksums() throws {
    try Lab.with { lab in
      try lab.files(dbmate)
      try lab.migration("20260101120000_settings.yaml", settings)
      try lab.set(["old": 1])
      _ = try lab.migrate(.dbmate)
      func states() throws -> [MigrationStatus.State] { try lab.plan(.dbmate).entries.map(\.state) }
      #expect(try states() == [.applied])
      try lab.migration("20260101120000_settings.yaml", settings + "irreversible: true\n")
      #expect(try states() == [.edited])
      try lab.removeMigration("20260101120000_settings.yaml")
      #expect(try states() == [.edited])
      // As a directory it has other names, but the same steps.
      try lab.migration("20260101120000_settings/migration.yaml", settings)
      #expect(try states() == [.edited])
    }
    try lab.files(dbmate)
    try lab.migration("20260101120000_settings.yaml", settings)
    try lab.set(["old": 1])
    try lab.database(
      "CREATE TABLE schema_migrations (version); INSERT INTO schema_migrations VALUES ('20260101120000'); "
        + "CREATE TABLE users (name)")
    #expect(try lab.plan(.dbmate).entries.map(\.state) == [.applied])
    let report = try lab.migrate(.dbmate)
    #expect(report.appliedExternally == [Self.number] && report.migrations.isEmpty)
    #expect(try lab.settings() == ["old": 1])
  }

  @Test("A directory has the files that its steps name")
  func directory() throws {
    lab.configuration.databases["other"] = ["Documents/other.sqlite"]
    try lab.files(dbmate)
    try lab.migration(
      "20260101120000_other/migration.yaml",
      "irreversible: true\nsteps:\n  - sql: {database: other, up: other.sql, if-missing: create}\n")
    try lab.migration("20260101120000_other/other.sql", "CREATE TABLE o (a);\n")
    try lab.migration("20260101120000_other/README.md", "not used")
    let report = try lab.migrate(.dbmate)
    #expect(report.migrations.map(\.name) == ["users"])
    #expect(try lab.query("Documents/other.sqlite", "SELECT * FROM o").isEmpty)
    try lab.migration("20260101120000_other/README.md", "edited")
    #expect(try lab.plan(.dbmate).entries.map(\.state) == [.applied])
    try lab.migration("20260101120000_other/other.sql", "CREATE TABLE o (b);\n")
    #expect(try lab.plan(.dbmate).entries.map(\.state) == [.edited])
  }

  private static let files: [MigrationTool.Format: [String: String]] = [
    .dbmate: ["2_a.sql": "-- migrate:up\n-- migrate:down\n"], .golangMigrate: ["2_a.up.sql": ""],
    .goose: ["2_a.sql": "-- +goose Up\n"], .sqldelight: ["1.sqm": ""], .room: ["1_2.auto.yaml": ""],
  ]

  @Test(
    "What cannot be is refused with what to do",
    arguments: [
      (.dbmate, ["3_x.yaml"], "dbmate has it: add an empty one, such as 3_x.sql, or correct the number"),
      (.golangMigrate, ["003_x.yaml"], "add an empty one, such as 003_x.up.sql, or correct the number"),
      (.goose, ["3_x/migration.yaml"], "3_x/migration.yaml: steps for the version 3"),
      (.sqldelight, ["3_x.yaml"], "such as 2.sqm, or"),
      (.sqldelight, ["1_x.yaml"], "and no migration of sqldelight has it: correct the number"),
      (.room, ["1_x.yaml"], "and no migration of room has it: correct the number"),
      (.goose, ["2_x.yaml", "02_y.yaml"], "02_y.yaml has steps for the version 2, too"),
      (.room, ["2_x.yaml", "2_x/migration.yaml"], "2_x/migration.yaml has steps for the version 2, too"),
      (.room, ["2_x.auto.yaml"], "2_x.auto.yaml: room would not run this file"),
      (.goose, ["2_x.yml"], "2_x.yml: goose would not run this file"),
      (.dbmate, ["2-x.yaml"], "2-x.yaml: dbmate would not run this file"),
      (.dbmate, ["ci.yaml", "docker/migration.yaml", "2_a.d/README"], nil),
    ] as [(MigrationTool.Format, [String], String?)])
  func names(_ format: MigrationTool.Format, _ names: [String], _ message: String?) throws {
    try lab.files(Self.files[format] ?? [:])
    for name in names { try lab.migration(name, "steps: []\n") }
    let tool = MigrationTool(format, database: "notes", schemas: Samples.room + "/schemas")
    let (catalog, _, problems) = try MigrationCatalog.read(lab.directory("migrations"), tool: tool)
    let texts = problems.map(\.description)
    #expect(catalog.numbers == [2], "\(texts)")
    #expect(message.map { text in texts.contains { $0.contains(text) } } ?? texts.isEmpty, "\(texts)")
  }

  @Test("Errors in the steps have their places, and statements on the tool's database are refused")
  func errors() throws {
    try lab.files(dbmate)
    try lab.migration(
      "20260101120000_settings.yaml",
      "steps:\n  - defaults.remane: {keys: {a: b}}\n  - sql: {database: notes, up: SELECT 1, down: SELECT 1}\n"
        + "  - sql: {database: nowhere, up: SELECT 1, down: SELECT 1}\n")
    let texts = try lab.problems(.dbmate).map {
      $0.replacing("20260101120000_settings.yaml:", with: "")
    }
    #expect(texts.count == 3, "\(texts)")
    #expect(texts[0].hasPrefix("2:5: unknown operation `defaults.remane`"), "\(texts)")
    #expect(
      texts[1]
        == "3:21: statements on the database notes belong in the migration of dbmate, which runs before these steps: "
        + "move them to 20260101120000_users.sql", "\(texts)")
    #expect(texts[2].hasPrefix("4:21: drydock.yaml has no database `nowhere`"), "\(texts)")
    #expect(failure { try lab.migrate(.dbmate) }.code == .catalog)
  }

  @Test("Beside a migration of Room without a statement, which can be reverted")
  func room() throws {
    try lab.sample(Samples.room + "/notes-1.db")
    let schema = try Samples.text("\(Samples.room)/schemas/1.json")
    try lab.files([
      "1_2.sql": "-- The theme alone changes.\n", "schemas/1.json": schema,
      "schemas/2.json": schema.replacing(#""version": 1"#, with: #""version": 2"#),
      "2_theme.yaml":
        "steps:\n  - defaults.convert: {key: theme, map: {true: dark, false: light}}\n"
        + "verify:\n  - sql: {database: notes, query: SELECT count(*) FROM note, equals: before}\n",
    ])
    try lab.set(["theme": true])
    let tool = MigrationTool(.room, database: "notes", schemas: lab.directory("migrations/schemas"))
    #expect(try lab.problems(tool) == [])
    let report = try lab.migrate(tool)
    #expect(report.migrations.map(\.number) == [2] && report.notes.isEmpty)
    #expect(try lab.settings() == ["theme": "dark"])
    #expect(try lab.column("PRAGMA user_version") == ["2"])
    let hash = try Samples.schema(1).identityHash
    #expect(try lab.column("SELECT identity_hash FROM room_master_table") == [hash])
    try lab.rollback(tool, to: 1, down: true)
    #expect(try lab.settings() == ["theme": true])
    #expect(try lab.column("PRAGMA user_version") == ["1"])
    #expect(try lab.column("SELECT identity_hash FROM room_master_table") == [hash])
  }
}
