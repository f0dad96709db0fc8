import MigrationEngine
import Testing

/// SQL whose database is not in the container.
@Suite struct MissingDatabaseTests {
  private let lab: Lab

  init() throws { lab = try Lab() }

  private func file(_ up: String, _ down: String, _ words: String = "") -> String {
    "-- drydock: database notes\n\(words)-- migrate:up\n\(up)\n-- migrate:down\n\(down)\n"
  }

  private let create = "CREATE TABLE task (id INTEGER PRIMARY KEY);\nINSERT INTO task VALUES (1);"

  @Test func whatCreatesTablesMakesTheDatabase() throws {
    try lab.migration("0001_task.sql", file("PRAGMA foreign_keys = ON;\n" + create, "DROP TABLE task;"))
    try lab.migration(
      "0002_more.sql", file("ALTER TABLE task ADD COLUMN a;", "ALTER TABLE task DROP COLUMN a;"))
    let report = try lab.migrate()
    #expect(report.withoutDatabase.isEmpty)
    #expect(try lab.query(Lab.newDatabase, "SELECT id, a FROM task") == [["id": 1, "a": nil]])
    try lab.rollback(to: 0, down: true)
    #expect(try !lab.exists(Lab.newDatabase))
  }

  @Test func whatNeedsTablesIsSkippedAndTold() throws {
    try lab.migration(
      "0001_alter.sql", file("ALTER TABLE task ADD COLUMN a;", "ALTER TABLE task DROP COLUMN a;"))
    // The app makes the database: these tables alone would be half of it.
    try lab.migration("0002_create.sql", file(create, "DROP TABLE task;"))
    try lab.migration("0003_set.yaml", step: "defaults.set: {values: {a: 1}}")
    let report = try lab.migrate()
    #expect(report.withoutDatabase.map(\.number) == [1, 2])
    #expect(report.migrations.map(\.missingDatabases) == [["notes"], ["notes"], nil])
    #expect(try !lab.exists(Lab.newDatabase))
  }

  @Test(arguments: ["create", "skip", "fail"])
  func theFileSays(_ word: String) throws {
    try lab.migration(
      "0001_first.sql", file("INSERT INTO task VALUES (1);", "", "-- drydock: irreversible\n"))
    try lab.migration("0002_task.sql", file(create, "DROP TABLE task;", "-- drydock: if-missing \(word)\n"))
    let error = failure { try lab.migrate() }.text
    #expect(error.contains("the database notes is not in the container") == (word == "fail"), "\(error)")
    #expect(try lab.exists(Lab.newDatabase) == (word == "create"))
  }

  @Test func anUnknownWord() throws {
    try lab.migration("0001_a.sql", file(create, "DROP TABLE task;", "-- drydock: if-missing make\n"))
    let error = failure { try lab.catalog() }.text
    #expect(error == "0001_a.sql:2:1: `if-missing` is one of create, skip, fail, not `make`", "\(error)")
  }
}
