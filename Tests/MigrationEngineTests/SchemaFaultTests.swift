import ContainerTransaction
import GRDB
import Testing

@testable import MigrationEngine

/// What statements leave behind: parts of a schema that cannot be used, references to missing rows, and what goes unnamed.
@Suite struct SchemaFaultTests {
  private static let schema = """
    CREATE TABLE list (id INTEGER PRIMARY KEY, title TEXT);
    CREATE TABLE task (
      id INTEGER PRIMARY KEY AUTOINCREMENT, list INTEGER REFERENCES list(id), title TEXT NOT NULL COLLATE NOCASE,
      done INTEGER CHECK (done IN (0, 1)), UNIQUE (list, title));
    CREATE INDEX by_title ON task (title);
    CREATE TABLE log (text TEXT);
    CREATE TRIGGER noted AFTER INSERT ON log BEGIN UPDATE task SET title = title WHERE id = 0; END;
    CREATE TRIGGER kept AFTER INSERT ON task BEGIN SELECT 1; END;
    CREATE VIEW open_task AS SELECT title FROM task WHERE done = 0;
    CREATE TRIGGER instead INSTEAD OF INSERT ON open_task BEGIN INSERT INTO log VALUES (new.title); END;
    CREATE TABLE sub (id INTEGER PRIMARY KEY, task INTEGER REFERENCES task(id));
    CREATE VIRTUAL TABLE found USING fts5 (title, content='task', content_rowid='id');
    INSERT INTO list VALUES (1, 'home');
    INSERT INTO task VALUES (1, 1, 'sweep', 0), (9, 1, 'cook', 1);
    DELETE FROM task WHERE id = 9;
    """

  private func run(_ sql: String, after schema: String = schema, head: String = "") throws -> Lab.Attempt {
    let head = "-- drydock: destructive x\n" + head
    return try Lab.attempt(sql, on: "PRAGMA foreign_keys = OFF;" + schema, head: head)
  }

  private static let rebuilt = """
    CREATE TABLE new (
      id INTEGER PRIMARY KEY AUTOINCREMENT, list INTEGER REFERENCES list(id), title TEXT NOT NULL COLLATE NOCASE,
      done INTEGER CHECK (done IN (0, 1)), UNIQUE (list, title));
    INSERT INTO new SELECT * FROM task;
    """

  @Test(
    "A part of the schema that statements break is an error",
    arguments: [
      // The rebuild that renames the old table away.
      (
        "ALTER TABLE task RENAME TO old; CREATE TABLE task (id INTEGER PRIMARY KEY, list, title, done); "
          + "INSERT INTO task SELECT * FROM old; DROP TABLE old;",
        [
          "view `open_task`", "foreign key of `sub`", "trigger `noted` (INSERT on `log`)",
          "no such table: main.old",
        ]
      ),
      ("DROP TABLE list;", ["foreign key of `task`: no such table: list"]),
      ("DROP TABLE task;", ["view `open_task`: no such table: main.task", "virtual table `found`"]),
      ("ALTER TABLE task RENAME TO item;", ["virtual table `found`: no such table: main.task"]),
      (
        "DROP TRIGGER instead; ALTER TABLE task RENAME COLUMN title TO text;",
        ["virtual table `found`: no such column: T.title"]
      ),
      (
        "DROP TABLE log; CREATE TABLE log (line TEXT, text TEXT); DROP VIEW open_task; "
          + "CREATE VIEW open_task AS SELECT id FROM task; CREATE TRIGGER i INSTEAD OF INSERT ON open_task "
          + "BEGIN INSERT INTO log VALUES (new.id); END;",
        ["trigger `i` (INSERT on `open_task`)", "has 2 columns but 1 values"]
      ),
      ("CREATE TABLE p (a); CREATE TABLE c (x REFERENCES p(a));", ["foreign key mismatch"]),
      ("CREATE VIEW typo AS SELECT tittle FROM task;", ["view `typo`: no such column: tittle"]),
    ])
  func broken(_ sql: String, _ expected: [String]) throws {
    let result = try run(sql)
    for part in expected { #expect(result.error.contains(part), "\(result.error)") }
    #expect(result.error.contains("0001_sql.sql:4:1: after these statements"), "\(result.error)")
  }

  @Test(
    "A fault is found beside what only the app has, and beside an older fault",
    arguments: [
      ("CREATE VIEW v AS SELECT app(name) AS n FROM p", "view `v`: no such column: name"),
      (
        "CREATE TRIGGER t AFTER INSERT ON audit BEGIN UPDATE p SET name = app(new.w); END",
        "trigger `t` (INSERT on `audit`)"
      ),
      (
        "CREATE TRIGGER s AFTER INSERT ON audit BEGIN SELECT app(1); END; "
          + "CREATE TRIGGER t AFTER INSERT ON audit BEGIN UPDATE p SET name = 'x'; END",
        "trigger `t` (INSERT on `audit`)"
      ),
      (
        "CREATE TRIGGER s AFTER INSERT ON audit BEGIN DELETE FROM absent; END; "
          + "CREATE TRIGGER t AFTER INSERT ON audit BEGIN UPDATE p SET name = 'x'; END",
        "trigger `t` (INSERT on `audit`)"
      ),
    ])
  func besideOthers(_ objects: String, _ expected: String) throws {
    let schema = "CREATE TABLE p (id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE audit (w); \(objects);"
    let sql = """
      CREATE TABLE b AS SELECT * FROM p; DROP TABLE p; CREATE TABLE p (id INTEGER PRIMARY KEY, label TEXT);
      INSERT INTO p SELECT * FROM b; DROP TABLE b;
      """
    let result = try run(sql, after: schema)
    #expect(result.error.contains(expected), "\(result.error) \(result.notes)")
  }

  /// The columns of ON CONFLICT are those of a unique index, which goes with its table.
  @Test(arguments: [
    ("CREATE TABLE t (a)", nil),
    ("DROP INDEX by_key", "trigger `counted` (INSERT on `log`): ON CONFLICT clause"),
    ("DROP TABLE count; CREATE TABLE count (key TEXT, n); CREATE UNIQUE INDEX by_key ON count (key)", nil),
    ("DROP TABLE count; CREATE TABLE count (key TEXT, n)", "view `one`: no such index: by_key"),
  ])
  func indexesOfTriggersAndViews(_ sql: String, _ message: String?) throws {
    let schema = """
      CREATE TABLE log (text); CREATE TABLE count (key, n); CREATE UNIQUE INDEX by_key ON count (key);
      CREATE TRIGGER counted AFTER INSERT ON log BEGIN
        INSERT INTO count VALUES (new.text, 1) ON CONFLICT (key) DO UPDATE SET n = n + 1;
      END;
      CREATE VIEW one AS SELECT n FROM count INDEXED BY by_key WHERE key = 1;
      """
    let result = try run(sql, after: schema)
    let isExpected = message.map(result.error.contains) ?? (result.error == "no error" && result.notes == [])
    #expect(isExpected, "\(result.error) \(result.notes)")
  }

  @Test("A virtual table that the statements damage is an error")
  func damagedVirtualTables() throws {
    for (schema, sql) in [
      (
        "CREATE VIRTUAL TABLE f USING fts5 (a); INSERT INTO f VALUES ('x')", "DELETE FROM f_data WHERE id > 0"
      ),
      (
        "CREATE VIRTUAL TABLE r USING rtree (id, a, b); INSERT INTO r VALUES (1, 2, 3)",
        "DELETE FROM r_node WHERE nodeno = 1"
      ),
    ] {
      #expect(try run(sql, after: schema + ";").error.contains("virtual table"))
    }
    #expect(try run("PRAGMA writable_schema = ON").error.contains("`writable_schema` is not for migrations"))
    #expect(
      try run("DROP TRIGGER instead; DROP VIEW open_task; CREATE VIEW open_task AS SELECT id FROM task").error
        == "no error")
  }

  @Test("A full-text index takes its columns from another table: what uses it is tried with the new ones")
  func renamedContent() throws {
    let schema = """
      CREATE TABLE doc (id INTEGER PRIMARY KEY, body TEXT); CREATE VIRTUAL TABLE f USING fts4 (content='doc');
      CREATE VIEW found AS SELECT body FROM f;
      """
    let sql = "PRAGMA legacy_alter_table = ON; ALTER TABLE doc RENAME COLUMN body TO text;"
    #expect(try run(sql, after: schema).error.contains("view `found`"))
  }

  /// Another program can have written any value there, and SQLite accepts it.
  @Test func oddRowsOfTheSchema() throws {
    let schema = """
      CREATE TABLE odd (id TEXT PRIMARY KEY); PRAGMA writable_schema = ON;
      UPDATE sqlite_schema SET type = NULL, tbl_name = x'ff' WHERE name = 'sqlite_autoindex_odd_1';
      PRAGMA writable_schema = OFF;
      """
    let result = try run("CREATE INDEX i ON odd (id);", after: schema)
    #expect(result.error == "no error", "\(result.error)")
  }

  @Test(
    "What goes with a table that is made again is named",
    arguments: [
      (
        "CREATE TABLE other (a); UPDATE sqlite_sequence SET seq = 1 WHERE name = 'task';",
        ["table task: the counter of AUTOINCREMENT goes from 9 back to 1"]
      ),
      (
        "DROP TABLE task; ALTER TABLE new RENAME TO task; CREATE TRIGGER kept AFTER INSERT ON task BEGIN SELECT 1; END;",
        ["index by_title of `task`", "table task: the counter of AUTOINCREMENT goes from 9 back to 1"]
      ),
      (
        "UPDATE sqlite_sequence SET seq = 9 WHERE name = 'new'; DROP TABLE task; ALTER TABLE new RENAME TO task; "
          + "CREATE INDEX by_title ON task (title);", ["trigger kept of `task`"]
      ),
      (
        "DROP TRIGGER kept; DROP INDEX by_title; DROP TABLE new; DROP TABLE task; "
          + "CREATE TABLE task (id INTEGER PRIMARY KEY, list, title TEXT, done INTEGER);",
        [
          "table task: column title: NOT NULL", "table task: foreign key (list)",
          "table task: UNIQUE (list, title)", "table task: AUTOINCREMENT", "table task: CHECK",
          "table task: COLLATE", "table task: the counter of AUTOINCREMENT goes from 9 back to 0",
        ]
      ),
    ])
  func dropped(_ sql: String, _ expected: [String]) throws {
    let result = try run("PRAGMA legacy_alter_table = ON;" + Self.rebuilt + sql)
    #expect(result.error == "no error")
    let prefix = "dropped without being named: "
    let lost = result.notes.compactMap { note in
      note.range(of: prefix).map { String(note[$0.upperBound...].prefix { $0 != ";" }) }
    }
    #expect(lost == expected)
  }

  @Test(
    "What was wrong before is a note, and what only the app has is no fault",
    arguments: [
      ("", "ALTER TABLE task ADD COLUMN note;", []),
      (
        "CREATE VIEW bad AS SELECT absent FROM task;", "CREATE INDEX i ON log (text);",
        ["cannot be used, as before the migration: view `bad`: no such column: absent"]
      ),
      (
        "CREATE TABLE bad (x REFERENCES gone); CREATE TABLE bad2 (x REFERENCES log(text)); INSERT INTO bad2 VALUES (1);",
        "UPDATE task SET done = 1 WHERE id = 1;",
        [
          "cannot be used, as before the migration: foreign key of `bad2`: foreign key mismatch - "
            + #""bad2" referencing "log""#,
          "cannot be used, as before the migration: foreign key of `bad`: no such table: gone",
        ]
      ),
      (
        "", "CREATE TRIGGER app AFTER UPDATE ON log BEGIN SELECT app_function(new.text); END;",
        ["cannot be checked: trigger `app` (UPDATE on `log`): no such function: app_function"]
      ),
      (
        "CREATE TRIGGER app AFTER UPDATE ON log BEGIN SELECT app_function(new.text); END;",
        "ALTER TABLE sub ADD x;", []
      ),
    ] as [(String, String, [String])])
  func old(_ more: String, _ sql: String, _ expected: [String]) throws {
    let result = try run(sql, after: Self.schema + more)
    #expect(result.error == "no error")
    #expect(result.notes.map { String($0.split(separator: ": sql: ", maxSplits: 1).last ?? "") } == expected)
  }

  private static let orphans = """
    CREATE TABLE p (id INTEGER PRIMARY KEY); INSERT INTO p VALUES (1), (2);
    CREATE TABLE a (id INTEGER PRIMARY KEY, p REFERENCES p); INSERT INTO a VALUES (1, 7), (2, 1);
    CREATE TABLE b (id INTEGER PRIMARY KEY, p REFERENCES p); INSERT INTO b VALUES (1, 1), (2, 2);
    CREATE TABLE w (id TEXT PRIMARY KEY, p REFERENCES p(id)) WITHOUT ROWID; INSERT INTO w VALUES ('x', 7), ('y', 1);
    CREATE TABLE odd (x REFERENCES a(p));
    """

  @Test(
    "A new reference to a missing row is an error, whatever was wrong before",
    arguments: [
      ("UPDATE a SET p = 1 WHERE id = 1; UPDATE b SET p = 8 WHERE id = 1;", true),
      ("UPDATE w SET p = 1 WHERE id = 'x'; UPDATE w SET p = 8 WHERE id = 'y';", true),
      ("CREATE TABLE n (p \u{FEFF}REFERENCES p); INSERT INTO n VALUES (8);", true),
      ("UPDATE b SET p = 8 WHERE id = 1;", true), ("DELETE FROM p WHERE id = 2;", true),
      ("UPDATE a SET p = 9 WHERE id = 1; UPDATE w SET p = 9 WHERE id = 'x';", false),
      ("ALTER TABLE a RENAME TO c; ALTER TABLE w RENAME TO v; ALTER TABLE p RENAME TO q;", false),
      (
        "CREATE TABLE n (id INTEGER PRIMARY KEY, p REFERENCES p); INSERT INTO n SELECT * FROM a; DROP TABLE a;",
        false
      ),
    ])
  func references(_ sql: String, _ isError: Bool) throws {
    let result = try run(sql, after: Self.orphans)
    #expect(result.error.contains("(1 more than before)") == isError, "\(result.error)")
    if !isError { #expect(result.error == "no error") }
  }

  /// What makes something in a database wrong, or unknown to Drydock, and what is noted.
  private static let oldFaults: [(sql: String, note: String)] = [
    (
      "PRAGMA ignore_check_constraints = ON; INSERT INTO part VALUES (1, 5, 'x');",
      "CHECK constraint failed in part"
    ),
    (
      """
      INSERT INTO part VALUES (1, 1, NULL); PRAGMA writable_schema = ON;
      UPDATE sqlite_schema SET sql = replace(sql, 'name TEXT', 'name TEXT NOT NULL') WHERE name = 'part';
      """, "NULL value in part.name"
    ),
    ("CREATE INDEX i ON part (name COLLATE LOCALIZED);", "no such collation sequence: LOCALIZED"),
    ("CREATE INDEX i ON part (app(name));", "no such function: app"),
    (
      "CREATE TABLE made (a, b AS (app(a)) STORED, CHECK (app(a) IS NOT 7)); INSERT INTO made VALUES (1);",
      "no such function: app"
    ),
    (
      """
      CREATE VIRTUAL TABLE f USING fts5 (a); PRAGMA writable_schema = ON;
      UPDATE sqlite_schema SET sql = 'CREATE VIRTUAL TABLE f USING fts5 (a, tokenize=''app'')' WHERE name = 'f';
      """, ""
    ),
    (
      """
      CREATE VIRTUAL TABLE f USING fts5 (a); PRAGMA writable_schema = ON;
      UPDATE sqlite_schema SET sql = 'CREATE VIRTUAL TABLE f USING app (a)' WHERE name = 'f';
      """, ""
    ),
  ]

  private func withOldFault(_ index: Int, _ body: (Lab) throws -> Void) throws {
    try Lab.with { lab in
      try lab.database(
        Lab.oldDatabase,
        "CREATE TABLE part (id INTEGER PRIMARY KEY, size INTEGER CHECK (size < 3), name TEXT); CREATE TABLE log (text);"
      )
      try lab.change(Lab.oldDatabase) { db in
        db.add(collation: DatabaseCollation("LOCALIZED") { $0.compare($1) })
        db.add(function: DatabaseFunction("app", argumentCount: 1, pure: true) { $0[0] })
        try db.execute(sql: Self.oldFaults[index].sql)
      }
      try lab.baseline(0)
      try body(lab)
    }
  }

  @Test(
    "What was wrong in a database before, or is unknown here, stops no step", arguments: oldFaults.indices)
  func oldFaultsStopNothing(_ index: Int) throws {
    try withOldFault(index) { lab in
      let (sql, note) = Self.oldFaults[index]
      try lab.migration("0001_a.sql", sqlFile("ALTER TABLE log ADD COLUMN b;"))
      try lab.migration("0002_b.yaml", step: "files.move: {from: \(Lab.oldDatabase), to: \(Lab.newDatabase)}")
      let outcome = try Transaction.run(
        on: try lab.container, .migrate, summary: "test", options: lab.options
      ) { stage in
        try Migrator.run(MigrationStatus(lab.catalog(), of: stage), on: stage, stamp: lab.stamp)
      }
      #expect(outcome.value.migrations.count == 2, "\(sql)")
      #expect(note.isEmpty || outcome.notes.contains { $0.contains(note) }, "\(sql): \(outcome.notes)")
    }
  }

  @Test("A new fault is an error, also of the kind that was there before", arguments: [0, 1])
  func newFaultsStop(_ index: Int) throws {
    try withOldFault(index) { lab in
      try lab.migration(
        "0001_a.sql",
        "-- drydock: database notes\n-- migrate:up\nPRAGMA ignore_check_constraints = ON;\n"
          + "INSERT INTO part VALUES (2, \(index == 0 ? "6, 'y'" : "6, 'z'"));\n")
      expectFailure("CHECK constraint failed in part", code: .checkFailed) { try lab.migrate() }
    }
  }

  @Test("A settings file that was damaged before moves, and is changed in no other way")
  func damagedSettings() throws {
    for (step, isRight) in [
      ("files.set-backup-exclusion: {path: \(Lab.settings), excluded: true}", true),
      ("files.move: {from: \(Lab.settings), to: Library/Preferences/other.plist}", true),
      ("files.write: {path: \(Lab.settings), text: worse, if-exists: replace}", false),
    ] {
      try Lab.with { lab in
        try lab.write(Lab.settings, "damaged")
        try lab.baseline(0)
        try lab.migration("0001_a.yaml", "irreversible: true\nsteps:\n  - \(step)\n")
        let error = failure { try lab.migrate() }.text
        #expect((error == "no error") == isRight, "\(step): \(error)")
      }
    }
  }

  @Test func onlyTheTriggerIsMadeAgain() throws {
    try Lab.with { lab in
      try lab.database(
        Lab.oldDatabase,
        """
        CREATE TABLE log (text); INSERT INTO log VALUES ('x');
        CREATE TRIGGER noted AFTER UPDATE ON log BEGIN SELECT 1; END; PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET sql = sql || '; DELETE FROM log' WHERE name = 'noted'; PRAGMA writable_schema = OFF;
        """)
      try lab.baseline(0)
      try lab.migration(
        "0001_a.sql", sqlFile("UPDATE log SET text = 'y' WHERE text = 'x'", "without-triggers {noted: why}"))
      try lab.migrate()
      #expect(try lab.column("SELECT text FROM log", in: Lab.oldDatabase) == ["y"])
    }
  }

  @Test("A trigger that calls what only the app has is set aside for a step, and is as it was afterwards")
  func setAside() throws {
    let trigger = "CREATE TRIGGER  Noted AFTER UPDATE ON log /* of the app */ BEGIN SELECT app(new.text); END"
    let schema = "CREATE TABLE log (text TEXT); INSERT INTO log VALUES ('x'); \(trigger);"
    let update = "UPDATE log SET text = 'y' WHERE text = 'x';"
    #expect(try run(update, after: schema).error.contains("no such function: app"))
    let absent = try run(update, after: schema, head: "-- drydock: without-triggers {other: why}\n")
    #expect(absent.error.contains("the trigger `other` does not exist"), "\(absent.error)")
    for isFile in [true, false] {
      try Lab.with { lab in
        try lab.database(Lab.oldDatabase, schema)
        let stored = try lab.query(Lab.oldDatabase, "SELECT sql FROM sqlite_schema WHERE type = 'trigger'")
        try lab.baseline(0)
        let reason = "{noted: it calls the app}"
        if isFile {
          try lab.migration("0001_a.sql", sqlFile(update, "without-triggers \(reason)"))
        } else {
          try lab.migration(
            "0001_a.yaml",
            step: "sql: {database: notes, up: \"\(update)\", down: SELECT 1, without-triggers: \(reason)}")
        }
        #expect(failure { try lab.migrate() }.text == "no error")
        #expect(try lab.query(Lab.oldDatabase, "SELECT text FROM log") == [["text": "y"]])
        #expect(
          try lab.query(Lab.oldDatabase, "SELECT sql FROM sqlite_schema WHERE type = 'trigger'") == stored)
      }
    }
  }

  @Test("Validation finds both without a container")
  func validation() throws {
    try Lab.with { lab in
      let head =
        "-- drydock: database notes\n-- drydock: irreversible\n-- drydock: destructive x\n-- migrate:up\n"
      try lab.migration("0001_a.sql", "\(head)\(Self.schema)")
      try lab.migration(
        "0002_b.sql",
        "\(head)PRAGMA legacy_alter_table = ON;\(Self.rebuilt)DROP TABLE task; ALTER TABLE new RENAME TO task;"
      )
      try lab.migration("0003_c.sql", "\(head)ALTER TABLE task RENAME TO item;")
      let found = try MigrationValidation.run(lab.directory("migrations"), lab.configuration)
      #expect(found.problems.count == 1, "\(found.problems)")
      #expect(found.problems.first?.message.contains("0003_c.sql:5:1: after these statements") == true)
      let notes = found.notes.map { note in note.message.split(separator: ";")[0] }
      #expect(
        notes == [
          "dropped without being named: index by_title of `task`",
          "dropped without being named: trigger kept of `task`",
        ])
    }
  }
}
