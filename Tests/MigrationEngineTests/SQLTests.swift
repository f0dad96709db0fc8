import Testing

@Suite struct SQLTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  private static let schema = """
    CREATE TABLE list (id INTEGER PRIMARY KEY, title TEXT);
    CREATE TABLE task (id INTEGER PRIMARY KEY, list INTEGER REFERENCES list(id), title TEXT, isDone INTEGER);
    INSERT INTO list VALUES (1, 'home');
    INSERT INTO task VALUES (1, 1, 'sweep', 0), (2, 1, 'cook', 1);
    """

  private func run(
    _ sql: String, schema: String = schema, head: String = "", check: (Lab) throws -> Void = { _ in }
  ) throws -> Lab.Attempt { try Lab.attempt(sql, on: schema, head: head, check) }

  @Test func changesSchemaAndRows() throws {
    let sql = """
      ALTER TABLE task RENAME COLUMN isDone TO isCompleted;
      ALTER TABLE task ADD COLUMN notes TEXT;
      UPDATE task SET notes = 'x' WHERE id = 1;
      """
    let result = try run(sql) { (lab: Lab) throws in
      let rows = try lab.query(Lab.oldDatabase, "SELECT isCompleted, notes FROM task ORDER BY id")
      #expect(rows == [["isCompleted": 0, "notes": "x"], ["isCompleted": 1, "notes": nil]])
      #expect(try lab.history()?.version == 1)
    }
    #expect(result.error == "no error")
  }

  @Test func findsStatementEndsLikeSQLite() throws {
    let sql = """
      -- a comment; with a semicolon
      ;;
      /* another; */ ;
      INSERT INTO list VALUES (2, 'a;b -- c');; -- and after
      CREATE TRIGGER t AFTER INSERT ON list BEGIN
        UPDATE task SET title = title; DELETE FROM task WHERE id = 99;
      END;
      /* only; comments */ ; -- to; the
      INSERT INTO list VALUES (3, "x")
      """
    let result = try run(sql.replacing("\"x\"", with: "'x;'") + "\n-- end;") { (lab: Lab) throws in
      #expect(try lab.query(Lab.oldDatabase, "SELECT count(*) AS n FROM list") == [["n": 3]])
      let trigger = try lab.query(Lab.oldDatabase, "SELECT name FROM sqlite_master WHERE type = 'trigger'")
      #expect(trigger.count == 1)
    }
    #expect(result.error == "no error")
  }

  @Test func carriageReturnsAndLongScripts() throws {
    let inserts = (10..<3000).map { "INSERT INTO list VALUES (\($0), 'l\u{2028}\($0)');" }
    let sql = inserts.joined(separator: "\r\n") + "\r\nUPDATE list SET title = 'a\r\nb' WHERE id = 10;\r\n"
    let result = try run(sql) { (lab: Lab) throws in
      #expect(try lab.query(Lab.oldDatabase, "SELECT count(*) AS n FROM list") == [["n": 2991]])
      let titles = try lab.query(Lab.oldDatabase, "SELECT title FROM list WHERE id IN (10, 11) ORDER BY id")
      #expect(titles == [["title": "a\r\nb"], ["title": "l\u{2028}11"]])
    }
    #expect(result.error == "no error")
    #expect(try run("SELECT 1;\r\n\r\nSELEC 1;\r\n").error.hasPrefix("0001_sql.sql:5:1: near"))
  }

  @Test(arguments: [
    ("SELECT 1;\n\n-- why\n  ALTER TABL task;\n", "0001_sql.sql:6:3: near \"TABL\": syntax error"),
    ("UPDATE task SET title = 'x' WHERE id = 1;\nINSERT INTO absent VALUES (1);", "no such table: absent"),
    ("INSERT INTO list VALUES (1, 'again');", "0001_sql.sql:3:1: UNIQUE constraint failed: list.id"),
    ("BEGIN;", "0001_sql.sql:3:1: BEGIN, COMMIT, ROLLBACK and SAVEPOINT are not for migrations"),
    ("/* x */ COMMIT;", "0001_sql.sql:3:9: BEGIN, COMMIT, ROLLBACK and SAVEPOINT are not for migrations"),
    ("END", "BEGIN, COMMIT, ROLLBACK and SAVEPOINT are not for migrations"),
    ("SAVEPOINT a;", "BEGIN, COMMIT, ROLLBACK and SAVEPOINT are not for migrations"),
    ("ROLLBACK;", "BEGIN, COMMIT, ROLLBACK and SAVEPOINT are not for migrations"),
    ("ATTACH 'other.sqlite' AS o;", "ATTACH and DETACH are not for migrations"),
    ("VACUUM;", "VACUUM is not for migrations"), ("VACUUM INTO 'x';", "VACUUM is not for migrations"),
    ("PRAGMA journal_mode = WAL;", "the journal mode is not for migrations"),
    ("PRAGMA wal_checkpoint;", "a checkpoint is not for migrations"),
    ("SELECT load_extension('x');", "extensions are not for migrations"),
    ("DROP TABLE task;", "0001_sql.sql:3:1: the statement drops a table or a column"),
    ("ALTER TABLE task DROP COLUMN title;", "drops a table or a column"),
    ("DELETE FROM task;", "is DELETE without WHERE and destroys data"),
    ("UPDATE task SET title = 'where';", "is UPDATE without WHERE and destroys data"),
    ("WITH x AS (SELECT 1) DELETE FROM task;", "is DELETE without WHERE"),
    ("UPDATE task SET list = 9 WHERE id = 1;", "missing rows of list (1 more than before)"),
  ])
  func failuresChangeNothing(_ sql: String, _ message: String) throws {
    let result = try run(sql) { (lab: Lab) throws in
      let rows = try lab.query(Lab.oldDatabase, "SELECT title, isDone FROM task ORDER BY id")
      #expect(rows == [["title": "sweep", "isDone": 0], ["title": "cook", "isDone": 1]])
      #expect(try lab.history()?.version == 0)
    }
    #expect(result.code == .sql)
    #expect(result.error.contains(message), "\(result.error)")
  }

  @Test func destructiveWithAReason() throws {
    let head = "-- drydock: destructive lists are gone since version 3\n"
    let result = try run("DROP TABLE task;\nDELETE FROM list;", head: head) { (lab: Lab) throws in
      #expect(try lab.query(Lab.oldDatabase, "SELECT count(*) AS n FROM list") == [["n": 0]])
    }
    #expect(result.error == "no error")
    let error = try run("CREATE TEMP TABLE x (a); DROP TABLE x; DROP VIEW IF EXISTS y;").error
    #expect(error == "no error")
  }

  /// The procedure that SQLite documents for changes that ALTER TABLE cannot make.
  @Test func tableRebuildWithForeignKeys() throws {
    let sql = """
      CREATE TABLE new_list (id INTEGER PRIMARY KEY, title TEXT NOT NULL);
      INSERT INTO new_list SELECT id, title FROM list;
      DROP TABLE list;
      ALTER TABLE new_list RENAME TO list;
      """
    let result = try run(sql, head: "-- drydock: destructive rebuilt\n") { (lab: Lab) throws in
      #expect(try lab.query(Lab.oldDatabase, "SELECT count(*) AS n FROM task") == [["n": 2]])
      #expect(try lab.query(Lab.oldDatabase, "PRAGMA foreign_key_check").isEmpty)
    }
    #expect(result.error == "no error")
  }

  @Test func oldViolationsAreNoFailure() throws {
    let schema = Self.schema + "PRAGMA foreign_keys = OFF; INSERT INTO task VALUES (3, 77, 'lost', 0);"
    let result = try run("ALTER TABLE task ADD COLUMN notes TEXT;", schema: schema)
    #expect(result.error == "no error")
    #expect(result.notes.count == 1)
    #expect(result.notes.first?.hasSuffix("missing rows, as before the migration: 1") == true)
  }

  @Test func inYAMLAndInFiles() throws {
    try lab.database(Self.schema)
    try lab.baseline(0)
    try lab.migration(
      "0001_a.yaml",
      "steps:\n  - sql:\n      database: notes\n      up: |\n        SELECT 1;\n        SELEC 2;\n")
    #expect(failure { try lab.migrate() }.text.hasPrefix("0001_a.yaml:6:"))
    try lab.migration(
      "0001_a.yaml", step: "sql: {database: notes, up: UPDATE task SET title = 'y' WHERE id = 1}")
    try lab.migration("0002_b/migration.yaml", step: "sql: {database: notes, up: up.sql, down: down.sql}")
    try lab.migration("0002_b/up.sql", "\nSELEC 1;")
    try lab.migration("0002_b/down.sql", "SELECT 1;")
    expectFailure("up.sql:2:1: near \"SELEC\": syntax error (step ") { try lab.migrate() }
    try lab.migration("0002_b/up.sql", "ALTER TABLE task ADD COLUMN notes;")
    try lab.migration("0003_c/migration.yaml", step: "sql: {database: notes, file: both.sql}")
    try lab.migration(
      "0003_c/both.sql", "-- migrate:up\nALTER TABLE task ADD COLUMN more;\n-- migrate:down\nBAD;\n")
    #expect(try lab.migrate().to == 3)
    #expect(
      try lab.query(Lab.newDatabase, "SELECT title FROM task WHERE more IS NULL AND id = 1") == [
        ["title": "y"]
      ])
  }

  @Test func twoPlaces() throws {
    try lab.database(Self.schema)
    try lab.database(Lab.oldDatabase, Self.schema)
    try lab.baseline(0)
    try lab.migration("0001_a.sql", sqlFile("SELECT 1;"))
    expectFailure("the database notes exists in 2 places") { try lab.migrate() }
    try lab.migration("0002_b.yaml", step: "files.move: {from: \(Lab.oldDatabase), to: \(Lab.newDatabase)}")
    try lab.removeMigration("0001_a.sql")
    try lab.migration("0001_a.yaml", "steps: []\n")
    expectFailure("the database is in two places") { try lab.migrate() }
  }

  // The database is not in the container.
  private let create = "CREATE TABLE task (id INTEGER PRIMARY KEY);\nINSERT INTO task VALUES (1);"
  private let alter = sqlFile("ALTER TABLE task ADD COLUMN a;", down: "ALTER TABLE task DROP COLUMN a;")

  @Test func whatCreatesTablesMakesTheDatabase() throws {
    try lab.migration(
      "0001_task.sql", sqlFile("PRAGMA foreign_keys = ON;\n" + create, down: "DROP TABLE task;"))
    try lab.migration("0002_more.sql", alter)
    let report = try lab.migrate()
    #expect(report.withoutDatabase.isEmpty)
    #expect(try lab.query(Lab.newDatabase, "SELECT id, a FROM task") == [["id": 1, "a": nil]])
    try lab.rollback(to: 0, down: true)
    #expect(try !lab.exists(Lab.newDatabase))
  }

  @Test func whatNeedsTablesIsSkippedAndTold() throws {
    try lab.migration("0001_alter.sql", alter)
    // The app makes the database: these tables alone would be half of it.
    try lab.migration("0002_create.sql", sqlFile(create, down: "DROP TABLE task;"))
    try lab.migration("0003_set.yaml", step: "defaults.set: {values: {a: 1}}")
    let report = try lab.migrate()
    #expect(report.withoutDatabase.map(\.number) == [1, 2])
    #expect(report.migrations.map(\.missingDatabases) == [["notes"], ["notes"], nil])
    #expect(try !lab.exists(Lab.newDatabase))
  }

  @Test(arguments: ["create", "skip", "fail"])
  func theFileSays(_ word: String) throws {
    try lab.migration("0001_first.sql", sqlFile("INSERT INTO task VALUES (1);", "irreversible"))
    try lab.migration("0002_task.sql", sqlFile(create, down: "DROP TABLE task;", "if-missing \(word)"))
    let error = failure { try lab.migrate() }.text
    #expect(error.contains("the database notes is not in the container") == (word == "fail"), "\(error)")
    #expect(try lab.exists(Lab.newDatabase) == (word == "create"))
  }

  @Test func anUnknownWord() throws {
    try lab.migration("0001_a.sql", sqlFile(create, down: "DROP TABLE task;", "if-missing make"))
    let error = failure { try lab.catalog() }.text
    #expect(error == "0001_a.sql:2:1: `if-missing` is one of create, skip, fail, not `make`", "\(error)")
  }
}
