import AppStores
import Testing

@testable import ContainerDiff

@Suite("Secrets in databases")
struct RowRedactionTests {
  /// The rows that are told when one database holds `hunter2` and `4821` and the other something else.
  private func told(_ sql: String, rows: Int = 5) throws -> String {
    let other = sql.replacing("hunter2", with: "hunter3").replacing("4821", with: "4822")
      .replacing("dark", with: "light")
    return try DatabasePair.with(sql, other) { pair in
      try pair.compare(rows: rows).tables.flatMap(DatabasePair.rows).joined(separator: "\n")
    }
  }

  /// Digits of a secret may be in a fingerprint by chance.
  private func withoutFingerprints(_ text: String) -> String { text.replacing(/#[0-9a-f]{8}/, with: "#") }

  static let hidden = [
    "CREATE TABLE t(id INTEGER PRIMARY KEY, password TEXT); INSERT INTO t VALUES (1, 'hunter2');",
    "CREATE TABLE t(id INTEGER PRIMARY KEY, ZAUTHTOKEN VARCHAR); INSERT INTO t VALUES (1, 'hunter2');",
    "CREATE TABLE t(id INTEGER PRIMARY KEY, pin INTEGER); INSERT INTO t VALUES (1, 4821);",
    "CREATE TABLE t(id INTEGER PRIMARY KEY, pin REAL); INSERT INTO t VALUES (1, 4821.0);",
    "CREATE TABLE t(id INTEGER PRIMARY KEY, note TEXT); INSERT INTO t VALUES (1, 'https://ada:hunter2@x.org');",
    #"CREATE TABLE t(id INTEGER PRIMARY KEY, note TEXT); INSERT INTO t VALUES (1, '{"token": "hunter2"}');"#,
    // Cut, so that the document cannot be read.
    "CREATE TABLE t(id INTEGER PRIMARY KEY, note TEXT); INSERT INTO t "
      + #"VALUES (1, '{"token": {"a": "hunter2"}, "x": "' || printf('%.*c', 5000, 'x') || '"}');"#,
    // Keys and what names the value beside it.
    "CREATE TABLE setting(name TEXT PRIMARY KEY, value); INSERT INTO setting VALUES ('auth_token', 'hunter2');",
    "CREATE TABLE setting(k TEXT PRIMARY KEY, x) WITHOUT ROWID; INSERT INTO setting VALUES ('api-key', 'hunter2');",
    "CREATE TABLE setting(id INTEGER PRIMARY KEY, name TEXT, value TEXT); "
      + "INSERT INTO setting VALUES (1, 'pin', '4821');",
    "CREATE TABLE tokens(id INTEGER PRIMARY KEY, value TEXT); INSERT INTO tokens VALUES (1, 'hunter2');",
    "CREATE TABLE cookies(host TEXT, name TEXT, value TEXT, PRIMARY KEY(host, name)); "
      + "INSERT INTO cookies VALUES ('x.org', 'sid', 'hunter2');",
    // What a row is known by.
    "CREATE TABLE session(token TEXT PRIMARY KEY, user TEXT); INSERT INTO session VALUES ('hunter2', 'ada');",
  ]

  @Test("Are not told", arguments: hidden)
  func hides(_ sql: String) throws {
    let text = try told(sql)
    let shown = withoutFingerprints(text)
    #expect(!shown.contains("hunter") && !shown.contains("4821") && !shown.contains("4822"), "\(text)")
    #expect(text.contains(#/\(secret, [0-9]+ [a-z]+, #[0-9a-f]{8}\)/#), "\(text)")
  }

  static let shown = [
    "CREATE TABLE t(id INTEGER PRIMARY KEY, tokenizer TEXT); INSERT INTO t VALUES (1, 'dark');",
    "CREATE TABLE t(id INTEGER PRIMARY KEY, passwordPolicy TEXT); INSERT INTO t VALUES (1, 'dark');",
    "CREATE TABLE setting(name TEXT PRIMARY KEY, value); INSERT INTO setting VALUES ('theme', 'dark');",
    "CREATE TABLE setting(key TEXT PRIMARY KEY, value); INSERT INTO setting VALUES ('setting_2024_v22', 'dark');",
    "CREATE TABLE session(id INTEGER PRIMARY KEY, kind TEXT); INSERT INTO session VALUES (1, 'dark');",
    "CREATE TABLE note(id INTEGER PRIMARY KEY, title TEXT, tag TEXT); INSERT INTO note VALUES (1, 'Password', 'dark');",
  ]

  @Test("All else is", arguments: shown)
  func shows(_ sql: String) throws {
    let text = try told(sql)
    #expect(text.contains("dark") && text.contains("light") && !text.contains("(secret"), "\(text)")
  }

  @Test("Data and long texts have fingerprints too, and equal ones are equal in all tables")
  func fingerprints() throws {
    let tables = ["a", "b"].map { table in
      """
      CREATE TABLE \(table)(id INTEGER PRIMARY KEY, secret BLOB, token TEXT);
      INSERT INTO \(table) VALUES (1, x'0102030405060708', printf('%.*c', 5000, 'x')), (2, x'01', 'x');
      """
    }.joined()
    let empty = tables.replacing(#/INSERT[^;]*;/#, with: "")
    try DatabasePair.with(empty, tables) { pair in
      let rows = try pair.compare().tables.map { DatabasePair.rows($0) }
      #expect(rows.count == 2 && rows.first == rows.last)
      let text = rows.first?.joined(separator: "\n") ?? ""
      #expect(
        text.contains(#/secret=\(secret, 8 bytes, #[0-9a-f]{8}\) token=\(secret, 5000 characters, #/#),
        "\(text)")
    }
  }

  @Test("A store's metadata may hold what the app put there")
  func metadata() throws {
    let sql = "CREATE TABLE Z_METADATA(Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB);"
    try DatabasePair.with(sql, sql + "INSERT INTO Z_METADATA VALUES (1, 'U', x'6162636465666768')") { pair in
      let text = try pair.compare().tables.flatMap(DatabasePair.rows).joined()
      #expect(text.contains("Z_PLIST=(secret, 8 bytes, #") && text.contains("Z_UUID=\"U\""), "\(text)")
    }
  }

  @Test("Schemas: default values and remarks")
  func schemas() throws {
    let old = "CREATE TABLE t(id INTEGER PRIMARY KEY, theme TEXT DEFAULT 'dark');"
    let new = """
      CREATE TABLE t(id INTEGER PRIMARY KEY, theme TEXT DEFAULT 'dark', "auth token" TEXT DEFAULT 'hunter2',
        pin TEXT DEFAULT ('48' || '4821'), url TEXT DEFAULT 'https://ada:hunter2@x.org' -- password: hunter2
      );
      CREATE VIEW v AS SELECT 'it''s Bearer hunter2-hunter2' AS a /* token=hunter2 */;
      """
    try DatabasePair.with(old, new) { pair in
      let schema = try pair.compare().schema
      let text = schema.map { object in
        let columns = object.columns.map { "\($0.name) \($0.before ?? "") \($0.after ?? "")" }
        return ([object.before ?? "", object.after ?? ""] + columns).joined(separator: "\n")
      }.joined(separator: "\n")
      let shown = withoutFingerprints(text)
      #expect(!shown.contains("hunter") && !shown.contains("4821"), "\(text)")
      #expect(
        text.contains("DEFAULT 'dark'") && text.contains("auth token TEXT DEFAULT (secret, 7 characters")
          || text.contains("auth token  TEXT DEFAULT (secret, 7 characters"), "\(text)")
      #expect(text.contains("SELECT (secret, "), "\(text)")
    }
  }

  @Test(
    "A text beside the name of a secret: compared, assigned, in a list, with an alias, generated",
    arguments: [
      "CREATE TABLE t(a, token TEXT, CHECK (a <> 1 AND token<>'hunter2'))",
      "CREATE TRIGGER r AFTER INSERT ON t BEGIN UPDATE t SET a = 'x', \"token\"='hunter2'; END",
      "CREATE VIEW v AS SELECT a FROM t WHERE t.token COLLATE NOCASE = 'hunter2'",
      "CREATE VIEW v AS SELECT a FROM t WHERE 'hunter2' IS NOT t.token",
      "CREATE VIEW v AS SELECT a FROM t WHERE token NOT IN ('other', 'hunter2')",
      "CREATE VIEW v AS SELECT 'x' AS a, 'hunter2' AS password",
      "CREATE VIEW v AS SELECT 'x' a, 'hunter2' /* so */ password",
      "CREATE INDEX i ON t(a) WHERE token='hunter2'",
      "CREATE TABLE t(a, token TEXT GENERATED ALWAYS AS ('hunter2') STORED)",
    ])
  func beside(_ sql: String) {
    let shown = Redactor().shown(sql: sql)
    #expect(!shown.contains("hunter2") && shown.contains("(secret, 7 characters"), "\(shown)")
  }

  @Test("SQL without secrets is shown as it is")
  func plainSQL() {
    for sql in [
      "", "CREATE TABLE t(a TEXT DEFAULT 'x', b DEFAULT (1 + 2), c CHECK(length(c) > 3) -- a remark\n)",
      #"CREATE INDEX "odd ""name""" ON t(a COLLATE NOCASE)"#, "CREATE TABLE t(a, 'b', `c`, [d])",
      "'unfinished",
      "/* unfinished", "\"unfinished", "((", "))",
      "CREATE TABLE tokens(n TEXT DEFAULT 'none', token TEXT DEFAULT '')",
      "CREATE VIEW v AS SELECT a FROM t WHERE typeof(token) = 'text' AND secret -> 'field' = 1",
    ] { #expect(Redactor().shown(sql: sql) == sql) }
  }
}
