import AppContainer
import DrydockTesting
import Foundation
import GRDB
import Testing

@Suite("Tables of a captured fixture are cut, and references hold") struct CaptureRowTests {
  private let sandbox: CaptureSandbox
  init() throws { sandbox = try CaptureSandbox() }

  /// Makes a database, captures it, and gives what is in the fixture's.
  private func captured(_ sql: String, rows: Int) throws -> (CaptureReport, Container) {
    try sandbox.database(sql)
    sandbox.options.rows = rows
    let report = try sandbox.capture()
    let built = try sandbox.built()
    #expect(try sandbox.rows("PRAGMA foreign_key_check", in: built) == [])
    #expect(report.tables.allSatisfy { $0.kept <= rows })
    return (report, built)
  }

  private func count(_ report: CaptureReport, _ table: String) -> [Int] {
    report.tables.first { $0.table == table }.map { [$0.kept, $0.of] } ?? []
  }

  @Test("Two tables refer to one: no more than the limit of any, and all that is referred to")
  func parents() throws {
    let sql = """
      CREATE TABLE project (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE task (id INTEGER PRIMARY KEY, project INTEGER REFERENCES project);
      CREATE TABLE memo (id INTEGER PRIMARY KEY, project INTEGER NOT NULL REFERENCES project (id), task INTEGER REFERENCES task);
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) INSERT INTO project SELECT i, 'p' || i FROM n;
      INSERT INTO task SELECT id, 301 - id FROM project; INSERT INTO memo SELECT id, id % 100 + 1, id FROM task;
      """
    let (report, _) = try captured(sql, rows: 7)
    #expect(count(report, "project") == [7, 300])
    #expect(count(report, "task") == [7, 300])
    #expect(count(report, "memo").first ?? 0 > 0)
  }

  @Test("Rows that refer to themselves, to each other, by several columns, in tables without rowids")
  func cycles() throws {
    let sql = """
      PRAGMA foreign_keys = OFF; CREATE TABLE folder (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES folder);
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50)
        INSERT INTO folder SELECT i, CASE WHEN i % 5 = 1 THEN NULL ELSE i - 1 END FROM n;
      CREATE TABLE a (id INTEGER PRIMARY KEY, b INTEGER REFERENCES b); CREATE TABLE b (id INTEGER PRIMARY KEY, a INTEGER REFERENCES a);
      INSERT INTO a SELECT id, id % 50 + 1 FROM folder WHERE id < 50; INSERT INTO b SELECT id, id FROM folder;
      UPDATE a SET b = id; INSERT INTO a VALUES (50, 50);
      CREATE TABLE town (country TEXT, name TEXT COLLATE NOCASE, PRIMARY KEY (country, name)) WITHOUT ROWID;
      INSERT INTO town SELECT 'c' || id % 3, 'Town ' || id FROM folder;
      CREATE TABLE home (country TEXT, town TEXT, FOREIGN KEY (country, town) REFERENCES town);
      INSERT INTO home SELECT country, upper(name) FROM town;
      """
    let (report, built) = try captured(sql, rows: 6)
    #expect(count(report, "folder") == [6, 50])
    #expect(count(report, "a") == [6, 50] && count(report, "b") == [6, 50])
    #expect(count(report, "town") == [6, 50] && count(report, "home") == [6, 50])
    let joined = try sandbox.rows(
      "SELECT count(*) FROM home h JOIN town t ON t.country = h.country AND t.name = h.town", in: built)
    #expect(joined == [[6.databaseValue]])
  }

  @Test(
    "A row that refers to nothing stays so, and is reported; a row that needs too many others does not come")
  func edges() throws {
    let sql = """
      PRAGMA foreign_keys = OFF; CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (id INTEGER PRIMARY KEY, p REFERENCES p);
      INSERT INTO c VALUES (1, 9);
      CREATE TABLE chain (id INTEGER PRIMARY KEY, next INTEGER REFERENCES chain); INSERT INTO chain VALUES (1, 2), (2, 3), (3, 1);
      """
    try sandbox.database(sql)
    sandbox.options.rows = 2
    let report = try sandbox.capture()
    #expect(count(report, "c") == [1, 1])
    #expect(report.notes.contains { $0.contains("c: rows with a reference to a row that does not exist") })
    #expect(count(report, "chain") == [0, 3])
    #expect(try sandbox.rows("SELECT p FROM c", in: sandbox.built()) == [[9.databaseValue]])
  }

  @Test(
    "Rows at which migrations fail: without children, with nulls, least and greatest, oldest and newest, each value"
  )
  func rare() throws {
    let sql = """
      CREATE TABLE project (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE task (id INTEGER PRIMARY KEY, project INTEGER REFERENCES project, due INTEGER, state TEXT, note TEXT);
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
        INSERT INTO project SELECT i, 'p' || i FROM n;
      INSERT INTO task SELECT id, CASE WHEN id = 777 THEN 1 ELSE id END, 1000 + (id * 37) % 1999,
        CASE WHEN id = 1234 THEN 'cancelled' WHEN id % 2 THEN 'open' ELSE 'done' END, 'note ' || id FROM project;
      UPDATE task SET note = NULL WHERE id = 321; UPDATE task SET due = -5 WHERE id = 99; UPDATE task SET due = 99999 WHERE id = 1500;
      CREATE TABLE pair (a TEXT, b TEXT, kind INTEGER, PRIMARY KEY (a, b)) WITHOUT ROWID;
      INSERT INTO pair SELECT 'a' || id, 'b' || id, CASE id WHEN 55 THEN 7 ELSE id % 3 END FROM project;
      """
    let (report, built) = try captured(sql, rows: 20)
    for (sql, expected) in [
      // No task refers to it.
      ("SELECT group_concat(id) FROM project WHERE id = 777", "777"),
      ("SELECT group_concat(id) FROM (SELECT id FROM task WHERE id IN (1, 2000) ORDER BY id)", "1,2000"),
      ("SELECT group_concat(id) FROM task WHERE note IS NULL", "321"),
      ("SELECT min(due) || ' ' || max(due) FROM task", "-5 99999"),
      ("SELECT CAST(count(DISTINCT state) AS TEXT) FROM task", "3"),
      ("SELECT CAST(count(DISTINCT kind) AS TEXT) FROM pair", "4"),
    ] {
      let found = try sandbox.rows(sql, in: built)
      #expect(found == [[expected.databaseValue]], "\(sql)")
    }
    #expect(count(report, "task") == [20, 2000] && count(report, "pair") == [20, 2000])
  }

  @Test("A table for full text of another table is built from the rows that are kept")
  func fullText() throws {
    let sql = """
      CREATE TABLE task (id INTEGER PRIMARY KEY, title TEXT);
      CREATE VIRTUAL TABLE found USING fts5(title, content='task', content_rowid='id');
      CREATE VIRTUAL TABLE own USING fts5(title); CREATE VIRTUAL TABLE bare USING fts5(title, content='');
      CREATE VIEW loud AS SELECT id, upper(title) AS title FROM task;
      CREATE VIRTUAL TABLE ofview USING fts5(title, content=loud, content_rowid=id);
      CREATE VIRTUAL TABLE old USING fts4(content="task", title);
      CREATE VIRTUAL TABLE words USING fts5vocab('own', 'row'); CREATE VIRTUAL TABLE "a word" USING fts5vocab(found, col);
      CREATE VIRTUAL TABLE terms USING fts4aux(old);
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
        INSERT INTO task SELECT i, 'canary' || i || ' word' FROM n;
      INSERT INTO found(found) VALUES ('rebuild'); INSERT INTO ofview(ofview) VALUES ('rebuild'); INSERT INTO old(old) VALUES ('rebuild');
      INSERT INTO own SELECT title FROM task; INSERT INTO bare(rowid, title) SELECT id, title FROM task;
      """
    try sandbox.database(sql)
    sandbox.options.rows = 9
    sandbox.options.columns = ["task.title"]
    try sandbox.capture(hiding: ["canary77", "canary300"])
    let queue = try DatabaseQueue(path: sandbox.built().root + "/Documents/a.sqlite")
    defer { try? queue.close() }
    try queue.writeWithoutTransaction { db in
      for table in ["found", "ofview"] {
        try db.execute(sql: "INSERT INTO \(table)(\(table), rank) VALUES ('integrity-check', 1)")
      }
      try db.execute(sql: "INSERT INTO old(old) VALUES ('integrity-check')")
      for table in ["words", "\"a word\"", "terms"] {
        #expect(try Int.fetchOne(db, sql: "SELECT count(*) FROM \(table)") ?? 0 > 0, "\(table)")
      }
      let titles = try String.fetchAll(db, sql: "SELECT title FROM task")
      #expect(titles.count == 9)
      for title in titles {
        for table in ["found", "old"] {
          #expect(
            try Int.fetchOne(
              db, sql: "SELECT count(*) FROM \(table) WHERE \(table) MATCH ?",
              arguments: [String(title.prefix { $0 != " " })]) ?? 0 > 0, "\(table): \(title)")
        }
      }
    }
  }

  @Test("A Core Data store keeps all of its rows; so does any table under a limit beyond all numbers")
  func stores() throws {
    try sandbox.database(
      """
      CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR, Z_PLIST BLOB); CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY);
      CREATE TABLE ZNOTE (Z_PK INTEGER PRIMARY KEY, ZOWNER INTEGER);
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) INSERT INTO ZNOTE SELECT i, i FROM n;
      """)
    try sandbox.database("CREATE TABLE t (x); INSERT INTO t VALUES (1), (2), (3)", at: "Documents/b.sqlite")
    sandbox.options.rows = 2
    let report = try sandbox.capture()
    #expect(count(report, "ZNOTE") == [300, 300])
    #expect(count(report, "t") == [2, 3])
    sandbox.options.rows = .max
    #expect(try count(sandbox.capture("all"), "t") == [3, 3])
  }

  @Test("Values keep their types, and the file its own settings")
  func values() throws {
    try sandbox.database(
      """
      PRAGMA encoding = 'UTF-16le'; PRAGMA page_size = 1024; PRAGMA journal_mode = DELETE; PRAGMA user_version = 7; PRAGMA application_id = 99;
      CREATE TABLE "odd ""name" (a, rowid, "b c" GENERATED ALWAYS AS (a || '!'));
      INSERT INTO "odd ""name" VALUES (1, 1e999), (2.5, -1e999), ('it''s', x'00ff'), (NULL, 9223372036854775807), ('', CAST(x'610062' AS TEXT));
      CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO counted VALUES (41); DELETE FROM counted;
      """)
    try sandbox.capture()
    let built = try sandbox.built()
    for sql in [
      #"SELECT _rowid_, typeof(a), quote(a), typeof(rowid), quote(rowid), "b c" FROM "odd ""name""#,
      "PRAGMA encoding", "PRAGMA page_size",
      "PRAGMA journal_mode", "PRAGMA user_version", "PRAGMA application_id",
      "SELECT * FROM sqlite_sequence", "SELECT name, sql FROM sqlite_schema ORDER BY name",
    ] {
      let before = try sandbox.rows(
        sql,
        in: Container(at: sandbox.directory("Notes"), configuration: sandbox.configuration))
      #expect(try sandbox.rows(sql, in: built) == before, "\(sql)")
    }
  }
}
