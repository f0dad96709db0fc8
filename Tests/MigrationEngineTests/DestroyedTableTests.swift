import Formats
import Testing

@testable import MigrationEngine

@Suite("What the statements of a step destroy") struct DestroyedTableTests {
  private func outcomes(_ sql: String, _ reason: DestructiveReason) -> [String: AnnouncedLoss.Tables.Outcome]
  {
    DestroyedTables(SQLScript(text: sql, file: "a", firstLine: 1)).announced(by: reason).outcomes
  }

  static let rebuild = """
    -- DROP TABLE comment;
    CREATE TABLE "New" (id INTEGER, a TEXT DEFAULT 'DROP TABLE x');
    INSERT INTO "New" SELECT o.id, a FROM main.Trip AS o JOIN [Stop] s ON s.trip = o.id;
    DROP TABLE IF EXISTS main."Trip";
    ALTER TABLE New RENAME TO trip;
    """

  @Test("A plain reason is for the only table, which renames do not hide")
  func plain() {
    let reason = DestructiveReason.text("why")
    #expect(outcomes(Self.rebuild, reason) == ["trip": .dropped(successors: ["trip"])])
    #expect(
      outcomes(
        "ALTER TABLE a RENAME TO b; CREATE TABLE a (x); INSERT INTO a SELECT x FROM b; DROP TABLE b", reason)
        == ["a": .dropped(successors: ["a"])])
    #expect(
      outcomes("CREATE TEMP TABLE t AS SELECT 1; DROP TABLE t; DELETE FROM a WHERE 0", reason) == [
        "a": .deleted
      ]
    )
    #expect(outcomes("WITH x AS (SELECT 1) DELETE FROM a WHERE id IN x", reason) == ["a": .deleted])
    #expect(outcomes("ALTER TABLE a DROP COLUMN x", reason) == ["a": .columns(["x"])])
    #expect(
      outcomes("ALTER TABLE a RENAME COLUMN X TO y; ALTER TABLE a RENAME TO b; ALTER TABLE b DROP y", reason)
        == ["a": .columns(["x"])])
    #expect(outcomes("ALTER TABLE a DROP COLUMN x; DELETE FROM a", reason) == ["a": .deleted])
    #expect(outcomes("DROP TABLE a; DELETE FROM b", reason) == [:])
  }

  @Test("Reasons by table are for these")
  func byTable() {
    #expect(
      outcomes("DROP TABLE a; DELETE FROM b", .tables(["a": "x", "c": "by a trigger"]))
        == ["a": .dropped(successors: []), "c": .deleted])
  }

  @Test(
    "A table that is not named is an error with its place",
    arguments: [
      "  - sql: {database: notes, up: DROP TABLE a; DELETE FROM B, destructive: {a: gone}}",
      "-- drydock: database notes\n-- drydock: destructive {a: gone}\n-- migrate:up\nDROP TABLE a;\nDELETE FROM B;\n",
    ])
  func unnamed(_ text: String) throws {
    try Lab.with { lab in
      let isSQL = text.hasPrefix("--")
      try lab.migration("0001_test.\(isSQL ? "sql" : "yaml")", isSQL ? text : "steps:\n\(text)\n")
      let error = #expect(throws: (any Error).self) { try lab.catalog() }
      let message = "the statement destroys data of `b`, which `destructive` does not name: add `b: \"why\"`"
      #expect(
        "\(try #require(error))".contains(
          (isSQL ? "0001_test.sql:5:1: " : "0001_test.yaml:2:15: ") + message), "\(error as Any)")
    }
  }
}
