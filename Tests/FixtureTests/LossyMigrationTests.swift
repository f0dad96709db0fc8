import Foundation
import MigrationEngine
import Testing

/// Migrations that lose data, and migrations that do not, all in one run on one fixture: each has a table of its own, `T`.
@Suite struct LossyMigrationTests {
  private static let base = """
    CREATE TABLE T (id INTEGER PRIMARY KEY, title TEXT, note TEXT, price REAL, data BLOB, state TEXT, done TEXT, rank INTEGER);
    INSERT INTO T VALUES
      (1, 'Groceries', 'milk, eggs and bread', 2.75, x'0102', 'open', 'true', 10), (2, 'Letters', 'write to Ada', 3.5, x'03', 'done', 'false', 20),
      (3, 'Garden', '', 10.0, x'0405', 'later', 'true', 30), (4, 'Books', NULL, 8.0, NULL, 'open', 'false', 40);
    """
  private static let columns = "title, note, price, data, state, done, rank"
  private static let definition =
    "id INTEGER PRIMARY KEY, title TEXT, note TEXT, price REAL, data BLOB, state TEXT, done TEXT, rank INTEGER"

  /// A rebuild of the table, with the statement that copies the rows.
  private static func rebuilt(_ copy: String, _ definition: String = definition) -> String {
    "CREATE TABLE T_new (\(definition)); \(copy); DROP TABLE T; ALTER TABLE T_new RENAME TO T;"
  }

  private struct Case {
    var sql: String
    var setup = base
    /// The tables that `destructive` names.
    var destroys: [String] = []
  }

  private static func step(_ sql: String, _ destroys: String...) -> Case {
    Case(sql: sql, destroys: destroys)
  }

  private static func rebuild(
    _ copy: String, _ definition: String = definition, of setup: String = base
  ) -> Case {
    Case(sql: rebuilt(copy, definition), setup: setup, destroys: ["T"])
  }

  private static func of(_ setup: String, _ sql: String, _ destroys: String...) -> Case {
    Case(sql: sql, setup: setup, destroys: destroys)
  }

  private static let keyed = """
    CREATE TABLE T (code TEXT PRIMARY KEY, name TEXT) WITHOUT ROWID;
    INSERT INTO T VALUES ('a', 'Ada'), ('b', 'Bob'), ('c', 'Cleo');
    """
  private static let pairs = """
    CREATE TABLE T (a INTEGER, b INTEGER, text TEXT, PRIMARY KEY (a, b));
    INSERT INTO T VALUES (1, 1, 'x'), (1, 2, 'y'), (2, 1, 'z');
    """
  private static let search = """
    CREATE VIRTUAL TABLE T USING fts5 (body); INSERT INTO T VALUES ('some words'), ('other words'), ('more');
    """
  private static let places = """
    CREATE VIRTUAL TABLE T USING rtree (id, x0, x1); INSERT INTO T VALUES (1, 0, 1), (2, 5, 6), (3, 8, 9);
    """
  private static let plain = "CREATE TABLE T (a, b); INSERT INTO T VALUES ('x', 1), ('y', 2), ('y', 2);"

  private static let lossy: [Case] = [
    // Rows.
    step("DELETE FROM T WHERE id = 2"), step("DELETE FROM T WHERE state = 'done'"),
    step("DELETE FROM T WHERE id = 2; INSERT INTO T (id, title) VALUES (9, 'new')"),
    step("INSERT OR REPLACE INTO T (id, title) SELECT id, title FROM T"),
    rebuild("INSERT INTO T_new SELECT * FROM T WHERE note IS NOT NULL"),
    rebuild(
      "INSERT INTO T_new SELECT a.id, b.title, b.note, b.price, b.data, b.state, b.done, b.rank FROM T a, T b WHERE b.id = 1"
    ),
    rebuild("INSERT INTO T_new (title) VALUES ('1'), ('2'), ('3'), ('4')"),
    rebuild("INSERT INTO T_new SELECT id, title, note, price, data, state, done, rank FROM T LIMIT 3"),
    rebuild("INSERT INTO T_new (\(columns)) SELECT \(columns) FROM T GROUP BY state"),
    rebuild("INSERT OR IGNORE INTO T_new SELECT * FROM T", definition + ", UNIQUE (state)"),
    rebuild("INSERT OR REPLACE INTO T_new SELECT * FROM T", definition + ", UNIQUE (done)"),
    of(keyed, "DELETE FROM T WHERE code = 'b'; INSERT INTO T VALUES ('d', 'Dora')"),
    of(keyed, "UPDATE OR REPLACE T SET code = 'a' WHERE code = 'b'"),
    of(pairs, "DELETE FROM T WHERE a = 2; INSERT INTO T VALUES (3, 3, 'w')"),
    rebuild(
      "INSERT OR REPLACE INTO T_new SELECT a, text FROM T", "a INTEGER PRIMARY KEY, text TEXT", of: pairs),
    of(plain, "DELETE FROM T WHERE a = 'x'; INSERT INTO T VALUES ('y', 2)"),
    rebuild("INSERT INTO T_new SELECT DISTINCT a, b FROM T", "a, b", of: plain),
    of(search, "DELETE FROM T WHERE rowid = 1"), of(search, "UPDATE T SET body = 'same' WHERE rowid > 0"),
    of(search, "DELETE FROM T WHERE rowid = 2; INSERT INTO T VALUES ('filler')"),
    of(places, "DELETE FROM T WHERE id = 2"),
    // Renamed away, and dropped under the new name.
    step(
      "ALTER TABLE T RENAME TO T_old; CREATE TABLE T (\(definition)); INSERT INTO T (id, title) SELECT id, title FROM T_old; DROP TABLE T_old",
      "T_old"),
    step(
      "ALTER TABLE T RENAME TO T_old; CREATE TABLE T (\(definition)); INSERT INTO T SELECT * FROM T_old WHERE id < 3; DROP TABLE T_old",
      "T_old"),
    // Values.
    step("UPDATE T SET title = substr(title, 1, 3) WHERE id > 0"),
    step("UPDATE T SET note = substr(note, 1, 10) WHERE id > 0"),
    step("UPDATE T SET title = substr(title, 1, 1) WHERE id = 1"),
    step("UPDATE T SET data = substr(data, 1, 1) WHERE id > 0"),
    step("UPDATE T SET title = 'untitled' WHERE id > 0"),
    step("UPDATE T SET title = 'untitled' WHERE id < 3"),
    step("UPDATE T SET note = NULL WHERE id = 1"), step("UPDATE T SET note = '' WHERE id = 2"),
    step("UPDATE T SET data = x'' WHERE id = 1"), step("UPDATE T SET data = NULL WHERE id > 0"),
    step("UPDATE T SET rank = NULL WHERE id = 4"), step("UPDATE T SET rank = 0 WHERE id > 0"),
    step("UPDATE T SET price = round(price) WHERE id > 0"),
    step("UPDATE T SET price = CAST(price AS INTEGER) WHERE id > 0"),
    step("UPDATE T SET price = round(price, 1) WHERE id > 0"), step("UPDATE T SET price = 0 WHERE price < 5"),
    step("UPDATE T SET state = CASE state WHEN 'done' THEN 'done' ELSE 'open' END WHERE id > 0"),
    step("UPDATE T SET state = 'open' WHERE state = 'later'"),
    step("UPDATE T SET rank = rank / 15 WHERE id > 0"),
    step("UPDATE T SET title = (SELECT title FROM T LIMIT 1) WHERE id > 0"),
    step("UPDATE T SET rank = min(rank, 25) WHERE id > 0"),
    step("UPDATE T SET note = CAST(note AS INTEGER) WHERE id > 0"),
    step("UPDATE T SET title = rank > 0 WHERE id > 0"),
    step("UPDATE T SET title = NULL, note = NULL WHERE id = 2"),
    step("UPDATE T SET title = substr(title, 1, 4) || '…' WHERE id > 0"),
    step("UPDATE T SET note = substr(note, -4) WHERE id > 0"),
    step("UPDATE T SET title = state WHERE id > 0"), step("UPDATE T SET note = title WHERE id > 0"),
    step("INSERT OR REPLACE INTO T VALUES (2, 'New', 'other', 1.5, x'09', 'none', 'no', 5)"),
    step("DELETE FROM T WHERE id = 3; INSERT INTO T VALUES (3, 'New', 'other', 1.5, x'09', 'none', 'no', 5)"),
    of(
      "CREATE TABLE T (id INTEGER PRIMARY KEY, zip TEXT); INSERT INTO T VALUES (1, '01234'), (2, '00501');",
      "UPDATE T SET zip = CAST(zip AS INTEGER) WHERE id > 0; CREATE TABLE T_new (id INTEGER PRIMARY KEY, zip INTEGER); INSERT INTO T_new SELECT * FROM T; DROP TABLE T; ALTER TABLE T_new RENAME TO T",
      "T"),
    of(
      "CREATE TABLE T (id INTEGER PRIMARY KEY, a TEXT, b TEXT); INSERT INTO T VALUES (1, 'x', 'y'), (2, 'z', 'w'); "
        + "CREATE TABLE T_all (id INTEGER PRIMARY KEY, a TEXT, b TEXT); INSERT INTO T_all VALUES (7, 'u', 'v');",
      "INSERT INTO T_all (a, b) SELECT a, NULL FROM T; DROP TABLE T", "T"),
    of(
      "CREATE TABLE T (id INTEGER PRIMARY KEY, n INTEGER); INSERT INTO T VALUES (1, 9007199254740993), (2, 9007199254740995);",
      "UPDATE T SET n = CAST(n AS REAL) WHERE id > 0"),
    of(
      "CREATE TABLE T (id INTEGER PRIMARY KEY, a TEXT); INSERT INTO T VALUES (1, 'head' || char(0) || 'tail');",
      "UPDATE T SET a = substr(a, 1, instr(a, char(0)) - 1) WHERE id = 1"),
    // Columns.
    rebuild("INSERT INTO T_new SELECT id, title FROM T", "id INTEGER PRIMARY KEY, title TEXT"),
    rebuild("INSERT INTO T_new (id, title, note) SELECT id, title, note FROM T"),
    rebuild("INSERT INTO T_new SELECT id, note, title, price, data, state, done, 1 FROM T"),
    rebuild(
      "INSERT INTO T_new SELECT id, title, note, CAST(price AS INTEGER), data, state, done, rank FROM T"),
    rebuild("INSERT INTO T_new SELECT id, substr(title, 1, 4), note, price, data, state, done, rank FROM T"),
    rebuild("INSERT INTO T_new SELECT id, title, note, price, NULL, state, done, rank FROM T"),
    rebuild("INSERT INTO T_new SELECT id, title, '', price, data, state, done, rank FROM T"),
    rebuild("INSERT INTO T_new SELECT id, title, note, price, data, 'open', done, rank FROM T"),
    rebuild("INSERT INTO T_new SELECT id, title FROM T", "id INTEGER PRIMARY KEY, name TEXT"),
    rebuild("INSERT INTO T_new SELECT id, substr(title, 1, 4) FROM T", "id INTEGER PRIMARY KEY, title TEXT"),
    rebuild("INSERT INTO T_new SELECT id + 100, 'x', note, price, data, state, done, rank FROM T"),
    of(keyed, "UPDATE T SET name = '' WHERE code = 'a'"), of(pairs, "UPDATE T SET text = 'x' WHERE a > 0"),
    rebuild("INSERT INTO T_new SELECT code FROM T", "code TEXT PRIMARY KEY", of: keyed),
  ]

  private static let harmless: [Case] = [
    step("SELECT 1"), step("ALTER TABLE T ADD COLUMN more TEXT"),
    step("ALTER TABLE T ADD COLUMN more TEXT NOT NULL DEFAULT 'x'"),
    step("ALTER TABLE T RENAME TO T_item"), step("ALTER TABLE T RENAME COLUMN title TO name"),
    step("ALTER TABLE T RENAME COLUMN title TO name; ALTER TABLE T RENAME COLUMN note TO title"),
    step("ALTER TABLE T RENAME TO T_item; ALTER TABLE T_item RENAME COLUMN note TO text"),
    step("CREATE INDEX i_T ON T (title)"), step("CREATE VIEW v_T AS SELECT title FROM T"),
    step("INSERT INTO T (title) VALUES ('more')"), step("INSERT INTO T SELECT id + 100, \(columns) FROM T"),
    step("UPDATE T SET note = 'none' WHERE note IS NULL"), step("UPDATE T SET note = '' WHERE note IS NULL"),
    step("UPDATE T SET data = x'00' WHERE data IS NULL"), step("UPDATE T SET note = 'empty' WHERE note = ''"),
    step("UPDATE T SET title = upper(title) WHERE id > 0"),
    step("UPDATE T SET title = lower(title) WHERE id > 0"),
    step("UPDATE T SET title = trim(title) WHERE id > 0"),
    step("UPDATE T SET title = title || '!' WHERE id > 0"),
    step("UPDATE T SET title = 'The ' || title WHERE id > 0"),
    step("UPDATE T SET title = '' || id || title WHERE id > 0"),
    step(
      "UPDATE T SET state = CASE state WHEN 'open' THEN 'active' WHEN 'done' THEN 'closed' ELSE 'waiting' END WHERE id > 0"
    ),
    step("UPDATE T SET state = CASE state WHEN 'open' THEN 0 WHEN 'done' THEN 1 ELSE 2 END WHERE id > 0"),
    step("UPDATE T SET state = 'finished' WHERE state = 'done'"),
    step("UPDATE T SET done = CASE done WHEN 'true' THEN 1 ELSE 0 END WHERE id > 0"),
    step("UPDATE T SET rank = rank * 1000 WHERE id > 0"), step("UPDATE T SET rank = rank + 7 WHERE id > 0"),
    step("UPDATE T SET rank = -rank WHERE id > 0"), step("UPDATE T SET rank = rank / 10 WHERE id > 0"),
    step("UPDATE T SET rank = CAST(rank AS TEXT) WHERE id > 0"),
    step("UPDATE T SET rank = rank / 4.0 WHERE id > 0"),
    step("UPDATE T SET price = price * 100 WHERE id > 0"),
    step("UPDATE T SET price = CAST(price * 100 AS INTEGER) WHERE id > 0"),
    step("UPDATE T SET price = CAST(price AS TEXT) WHERE id > 0"),
    step("UPDATE T SET data = hex(data) WHERE data IS NOT NULL"),
    step("UPDATE T SET title = note, note = title WHERE id < 3"),
    step("UPDATE T SET id = id + 100 WHERE id > 0"),
    step("UPDATE T SET id = -id WHERE id > 0"),
    step("UPDATE T SET title = replace(title, 'Groceries', 'Shopping') WHERE id > 0"),
    rebuild("INSERT INTO T_new SELECT * FROM T"),
    rebuild("INSERT INTO T_new SELECT * FROM T ORDER BY title DESC"),
    rebuild("INSERT INTO T_new (\(columns)) SELECT \(columns) FROM T ORDER BY title"),
    rebuild("INSERT INTO T_new SELECT id + 50, \(columns) FROM T"),
    rebuild("INSERT INTO T_new SELECT *, 0 FROM T", definition + ", more INTEGER"),
    rebuild("INSERT INTO T_new SELECT id, title, coalesce(note, ''), price, data, state, done, rank FROM T"),
    rebuild("INSERT INTO T_new SELECT * FROM T", definition.replacing("title TEXT", with: "name TEXT")),
    rebuild("INSERT INTO T_new SELECT * FROM T", definition.replacing("price REAL", with: "price TEXT")),
    rebuild(
      "INSERT INTO T_new SELECT * FROM T",
      definition.replacing("title TEXT", with: "title TEXT COLLATE NOCASE")),
    rebuild(
      "INSERT INTO T_new SELECT printf('%04d', id), \(columns) FROM T", "id TEXT PRIMARY KEY, \(columns)"),
    rebuild(
      "INSERT INTO T_new SELECT id, rank, done, state, data, price, note, title FROM T",
      "id INTEGER PRIMARY KEY, rank, done, state, data, price, note, title"),
    step(
      "ALTER TABLE T RENAME TO T_old; CREATE TABLE T (\(definition)); INSERT INTO T SELECT * FROM T_old; DROP TABLE T_old",
      "T_old"),
    step("UPDATE T SET note = title, title = note WHERE id = 1"),
    step(
      "UPDATE T SET title = 'file:/' || title WHERE id > 0; UPDATE T SET title = substr(title, 7) WHERE id > 0"
    ),
    of(keyed, "UPDATE T SET code = 'app.' || code WHERE code > ''"),
    rebuild(
      "INSERT INTO T_new SELECT id + 4, a FROM T", "id INTEGER PRIMARY KEY, b TEXT",
      of:
        "CREATE TABLE T (id INTEGER PRIMARY KEY, a TEXT); INSERT INTO T VALUES (1, 'x'), (2, 'y'), (3, 'z');"),
    of(pairs, "UPDATE T SET a = a + 100 WHERE a > 0"), of(pairs, "UPDATE T SET b = -b WHERE b > 0"),
    of(
      "CREATE TABLE T (id INTEGER PRIMARY KEY, a TEXT, b TEXT); INSERT INTO T VALUES (1, 'x', 'y'), (2, 'z', 'w'); "
        + "CREATE TABLE T_all (id INTEGER PRIMARY KEY, a TEXT, b TEXT); INSERT INTO T_all VALUES (7, 'u', 'v');",
      "INSERT INTO T_all (a, b) SELECT a, b FROM T; DROP TABLE T", "T"),
    of(
      "CREATE TABLE T (id INTEGER PRIMARY KEY, path TEXT); INSERT INTO T VALUES (1, '/old/a'), (2, '/old/bc');",
      "UPDATE T SET path = substr(path, 6) WHERE id > 0"),
    rebuild("INSERT INTO T_new SELECT 'c-' || id, \(columns) FROM T", "uuid TEXT PRIMARY KEY, \(columns)"),
    step(
      "CREATE TABLE T_json (id, v); INSERT INTO T_json SELECT T.id, j.value FROM T, json_each('[1]') AS j"),
    // A column that becomes a table.
    rebuild(
      "CREATE TABLE T_note (item INTEGER, text TEXT); INSERT INTO T_note SELECT id, note FROM T; "
        + "INSERT INTO T_new SELECT id, title, price, data, state, done, rank FROM T",
      definition.replacing("note TEXT, ", with: "")),
    rebuild(
      "CREATE TABLE T_state (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO T_state (name) SELECT DISTINCT state FROM T; "
        + "INSERT INTO T_new SELECT T.id, title, note, price, data, T_state.id, done, rank FROM T JOIN T_state ON name = state",
      definition.replacing("state TEXT", with: "state_id INTEGER")),
    step(
      "ALTER TABLE T ADD COLUMN text TEXT; UPDATE T SET text = note WHERE id > 0; UPDATE T SET note = NULL WHERE id > 0"
    ),
    step("DELETE FROM T WHERE id = 4", "T"), step("ALTER TABLE T DROP COLUMN note", "T"),
    step("DROP TABLE T", "T"),
    of(keyed, "UPDATE T SET name = upper(name) WHERE code > ''"),
    of(keyed, "ALTER TABLE T RENAME TO T_person"), of(pairs, "UPDATE T SET text = text || '?' WHERE a > 0"),
    rebuild(
      "INSERT INTO T_new (a, b, text) SELECT a, b, text FROM T", "id INTEGER PRIMARY KEY, a, b, text",
      of: pairs),
    of(plain, "UPDATE T SET b = b + 1 WHERE a > ''"),
    rebuild("INSERT INTO T_new SELECT a, b FROM T ORDER BY a DESC", "a, b", of: plain),
    of(search, "INSERT INTO T VALUES ('more words')"),
    of(search, "UPDATE T SET body = body || ' too' WHERE rowid > 0"),
    of(places, "UPDATE T SET x1 = x1 + 1 WHERE id = 1"), of(places, "INSERT INTO T VALUES (4, 2, 3)"),
  ]

  /// Runs all of them, and gives the findings about losses by the number of the case.
  private func found(_ cases: [Case]) throws -> [Int: [String]] {
    try SuiteSandbox.with { sandbox in
      func named(_ text: String, _ number: Int) -> String {
        // A point is no boundary between words for Unicode.
        let table = /\bT(?=_|\b)/.wordBoundaryKind(.simple), end = /_T\b/.wordBoundaryKind(.simple)
        return text.replacing(table, with: "t\(number)x").replacing(end, with: "_t\(number)x")
      }
      let setup = cases.enumerated().map { named($1.setup, $0) }.joined(separator: "\n")
      let steps = cases.enumerated().map { number, item in
        let reasons = item.destroys.map { named("\($0): why", number) }.joined(separator: ", ")
        return """
            - sql:
                database: notes
                up: "\(named(item.sql, number))"
                \(reasons.isEmpty ? "" : "destructive: {\(reasons)}")
          """
      }
      try sandbox.migration("0001_all", steps.joined(separator: "\n"), more: "irreversible: true\n")
      try sandbox.fixture("one", version: 0, more: "expect: {settings: {schema: 1}}", sql: setup)
      return try sandbox.losses()
    }
  }

  @Test("Each migration that loses data is found")
  func lossyOnes() throws {
    let found = try found(Self.lossy)
    #expect(Self.lossy.count >= 60 && found[-1] == nil, "\(found[-1] ?? [])")
    for (number, item) in Self.lossy.enumerated() where found[number] == nil {
      Issue.record("not found: \(item.sql)")
    }
  }

  @Test("No migration that loses nothing is reported")
  func harmlessOnes() throws {
    let found = try found(Self.harmless)
    #expect(Self.harmless.count >= 60)
    for (number, lines) in found.sorted(by: { $0.key < $1.key }) {
      Issue.record("\(number < 0 ? "" : Self.harmless[number].sql): \(lines)")
    }
  }

  @Test("A stage in Swift gives reasons for what it loses, and for what its down migration loses")
  func swiftPlan() throws {
    try SuiteSandbox.with { sandbox in
      let sql = """
        CREATE TABLE task (id INTEGER PRIMARY KEY, title TEXT);
        INSERT INTO task VALUES (1, 'Washington, D.C.'), (2, 'Paris, France');
        """
      try sandbox.fixture("one", sql: sql)
      func found(_ loses: [String: String], _ downLoses: [String: String]) throws -> Set<String> {
        let catalog = try MigrationCatalog(migrations: [
          .lightweight(version: 1, "start", [.step("defaults.set-default", ["values": ["size": 10]])]),
          .lightweight(
            version: 2, "cut",
            [
              .step(
                "sql",
                [
                  "database": "notes", "up": "UPDATE task SET title = substr(title, 1, 5) WHERE id > 0",
                  "down": "SELECT 1",
                ])
            ], loses: loses, downLoses: downLoses),
        ])
        return Set(
          try sandbox.found(catalog).compactMap { line in
            ["lost-values", "down"].first { line.hasPrefix("one: \($0) ") }
          })
      }
      #expect(try found([:], [:]) == ["lost-values", "down"])
      #expect(try found(["task.Title": "five letters are enough"], [:]) == ["down"])
      #expect(try found(["task.title": "five letters"], ["task.title": "only five are left"]) == [])
      #expect(throws: (any Error).self) { try found(["task.title": ""], [:]) }
    }
  }
}
