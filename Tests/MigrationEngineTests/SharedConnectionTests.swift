import AppStores
import ContainerTransaction
import FileSystem
import GRDB
import Testing

@testable import MigrationEngine

/// Consecutive `sql` steps use one connection. Each must find what it would find with one of its own.
@Suite struct SharedConnectionTests {
  private let lab: Lab

  init() throws {
    lab = try Lab()
    try lab.database(
      Lab.oldDatabase,
      "CREATE TABLE t (id INTEGER PRIMARY KEY, a); CREATE TABLE log (n); INSERT INTO t VALUES (7, 'A')")
    try lab.baseline(0)
  }

  /// Runs each script as a migration.
  private func migrate(_ scripts: [String]) throws {
    for (index, script) in scripts.enumerated() {
      try lab.migration("000\(index + 1)_s.sql", sqlFile(script, "irreversible"))
    }
    try lab.migrate()
  }

  /// What the last script writes into `log`.
  @Test(arguments: [
    (["PRAGMA case_sensitive_like = ON"], "INSERT INTO log SELECT 'A' LIKE 'a'", "1"),
    (["CREATE TEMP VIEW t AS SELECT 1 AS id, 'B' AS a"], "INSERT INTO log SELECT a FROM t", "A"),
    (["CREATE TABLE temp.t (a)"], "INSERT INTO log SELECT a FROM t", "A"),
    (["INSERT INTO t VALUES (8, 'b')"], "INSERT INTO log SELECT changes()", "0"),
    (["UPDATE t SET a = 1 WHERE id = 7"], "INSERT INTO log SELECT total_changes()", "0"),
    (["INSERT INTO t VALUES (9, 'b')"], "INSERT INTO log VALUES (\"last_insert_rowid\"())", "0"),
    (
      [
        "CREATE TRIGGER counts AFTER UPDATE ON t BEGIN INSERT INTO log SELECT total_changes(); END",
        "INSERT INTO t VALUES (8, 'b')",
      ], "UPDATE t SET a = 'c' WHERE id = 7", "0"
    ),
    (
      ["CREATE TABLE u (a, n DEFAULT (last_insert_rowid()))", "INSERT INTO t VALUES (8, 'b')"],
      "INSERT INTO u (a) VALUES (1); INSERT INTO log SELECT n FROM u", "0"
    ),
    (
      ["PRAGMA user_version = 5", "SELECT 1"], "INSERT INTO log SELECT user_version FROM pragma_user_version",
      "5"
    ),
    (["PRAGMA recursive_triggers = ON"], "INSERT INTO log SELECT * FROM pragma_recursive_triggers", "0"),
  ])
  func nothingIsLeft(_ before: [String], _ last: String, _ logged: String) throws {
    try migrate(before + [last])
    #expect(try lab.column("SELECT n FROM log", in: Lab.oldDatabase) == [logged])
  }

  @Test func aTemporaryTableIsGone() throws {
    let error = failure { try migrate(["CREATE TEMPORARY TABLE x (a)", "INSERT INTO log SELECT a FROM x"]) }
    #expect(error.text.contains("0002_s.sql:4:1: no such table: x"))
  }

  /// The second step looks at what the first has left, and not at the database before it.
  @Test(arguments: [
    (
      "CREATE TABLE child (t REFERENCES t(id)); INSERT INTO child VALUES (7)", "DELETE FROM t WHERE id = 7",
      "references to missing rows of t (1 more than before)"
    ),
    (
      "CREATE TABLE x (a); CREATE VIEW names AS SELECT a FROM x",
      "DROP VIEW names; CREATE VIEW names AS SELECT b FROM x", "view `names`: no such column: b"
    ),
    ("INSERT INTO t VALUES (8, 'b')", "INSERT INTO t VALUES (8, 'c')", "UNIQUE constraint failed: t.id"),
  ])
  func isChecked(_ first: String, _ second: String, _ message: String) throws {
    let before = try lab.tree()
    let error = failure { try migrate(["INSERT INTO log VALUES (1)", first, second]) }
    #expect(error.text.contains(message), "\(error.text)")
    try lab.expectUntouched(since: before)
  }

  @Test func anOldFaultIsNoted() throws {
    try lab.change(
      "PRAGMA foreign_keys = OFF; CREATE TABLE child (t REFERENCES t(id)); INSERT INTO child VALUES (1)",
      in: Lab.oldDatabase)
    try lab.migration("0001_s.sql", sqlFile("CREATE TABLE u (a)", "irreversible"))
    try lab.migration("0002_s.sql", sqlFile("INSERT INTO u VALUES (1)", "irreversible"))
    let notes = try lab.migrate().migrations.map(\.notes)
    #expect(notes.map(\.count) == [1, 1])
    #expect(
      notes.joined().allSatisfy { $0.contains("references to missing rows, as before the migration: 1") })
  }

  /// Between them, other steps and checks see the database as it is then, with the mode of its journal.
  @Test func otherStepsSeeIt() throws {
    let copy: ContainerPath = "Documents/copy.sqlite"
    let other: ContainerPath = "Documents/other.sqlite"
    try lab.change("PRAGMA journal_mode = WAL", in: Lab.oldDatabase)
    lab.configuration.databases["other"] = [other]
    try lab.migration(
      "0001_s.yaml",
      """
      irreversible: true
      steps:
        - sql: {database: notes, up: CREATE TABLE u (n)}
        - sql: {database: notes, up: INSERT INTO u VALUES (1)}
        - files.copy: {from: \(Lab.oldDatabase), to: \(copy)}
        - sql: {database: notes, up: INSERT INTO u VALUES (2)}
        - sql: {database: other, if-missing: create, up: CREATE TABLE v (n)}
        - sql: {database: notes, up: INSERT INTO u VALUES (3)}
        - sql: {database: other, up: INSERT INTO v VALUES (4)}
        - files.move: {from: \(Lab.oldDatabase), to: \(Lab.newDatabase)}
        - sql: {database: notes, up: INSERT INTO u VALUES (5)}
      verify:
        - sql: {database: notes, query: SELECT count(*) FROM u, equals: 4}
      """)
    try lab.migrate()
    #expect(try lab.column("SELECT n FROM u", in: copy) == ["1"])
    #expect(try lab.column("SELECT n FROM u") == ["1", "2", "3", "5"])
    #expect(try lab.column("SELECT n FROM v", in: other) == ["4"])
    for path in [copy, Lab.newDatabase] { #expect(Array(try lab.bytes(path)[18..<20]) == [2, 2]) }
  }

  @Test func oneConnectionIsOpened() throws {
    let stage = try DiscardedStage(on: lab.container, options: lab.options)
    let connection = StagedConnection()
    for sql in [
      "CREATE TEMP TABLE kept (n)", "INSERT INTO kept VALUES (1)", "INSERT INTO log SELECT n FROM kept",
    ] {
      try stage.writeDatabase(at: Lab.oldDatabase, keepsJournal: false, on: connection) {
        try $0.execute(sql: sql)
        connection.left = sql
      }
    }
    #expect(connection.left != nil)
    #expect(throws: (any Error).self) { try stage.tableCount(of: Lab.oldDatabase) }
    try stage.close(connection)
    #expect(connection.left == nil)
    #expect(try stage.tableCount(of: Lab.oldDatabase) == 2)
    #expect(throws: (any Error).self) {
      try stage.writeDatabase(at: Lab.oldDatabase, keepsJournal: false, on: connection) {
        try $0.execute(sql: "INSERT INTO missing VALUES (1)")
      }
    }
    #expect(try stage.tableCount(of: Lab.oldDatabase) == 2)
  }
}
