import GRDB
import TestSupport

/// Parts of a schema that the databases of random containers have. Each has tables of its own, and steps that fit whatever other
/// steps have run.
struct SchemaPart: Sendable {
  let setup: String
  /// Statements and those that undo them; a `#` is a number that no other step of the case has.
  var steps: [(up: String, down: String)] = []
  /// Statements that leave the schema or its rows broken, or fail.
  var breaking: [String] = []
  /// Whether something in it is broken from the start.
  var isFaulty = false

  /// The parts of a database, the same for the same seed.
  static func of(_ database: String, seed: UInt64) -> [SchemaPart] {
    var random = RandomMigrations.stream(seed, "schema of \(database)")
    let parts = all.filter { _ in Int.random(in: 0..<5, using: &random) == 0 }
    return parts.isEmpty ? [all[Int.random(in: 0..<all.count, using: &random)]] : parts
  }

  /// Makes it in a database whose connection enforces nothing.
  func make(_ db: Database) throws {
    try db.execute(sql: "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON;" + setup)
    try db.execute(sql: "PRAGMA writable_schema = RESET; PRAGMA ignore_check_constraints = OFF")
  }

  static let all = [
    search, found, area, plan, entry, team, pair, typed, guest, visit, checked, filled, unused, damaged,
  ]

  private static let search = SchemaPart(
    setup: """
      CREATE VIRTUAL TABLE search USING fts5(title, body, tokenize = 'porter');
      INSERT INTO search VALUES ('one', 'first words'), ('two', 'other words');
      """,
    steps: [
      (
        "INSERT INTO search(rowid, title, body) VALUES (1000 + #, 'n', 'more words')",
        "DELETE FROM search WHERE rowid = 1000 + #"
      ),
      (
        "UPDATE search SET body = body || ' more#' WHERE 1",
        "UPDATE search SET body = replace(body, ' more#', '') WHERE 1"
      ),
      ("CREATE VIRTUAL TABLE search# USING fts5(a); INSERT INTO search# VALUES ('x')", "DROP TABLE search#"),
    ], breaking: ["DELETE FROM search_data WHERE id > 0", "DROP TABLE search_content"])

  /// An index for the full text of another table, kept by triggers.
  private static let found = SchemaPart(
    setup: """
      CREATE TABLE note(id INTEGER PRIMARY KEY, body TEXT);
      CREATE VIRTUAL TABLE found USING fts5(body, content = 'note', content_rowid = 'id');
      CREATE TRIGGER note_ai AFTER INSERT ON note BEGIN
        INSERT INTO found(rowid, body) VALUES (new.id, new.body); END;
      CREATE TRIGGER note_ad AFTER DELETE ON note BEGIN
        INSERT INTO found(found, rowid, body) VALUES ('delete', old.id, old.body); END;
      CREATE TRIGGER note_au AFTER UPDATE ON note BEGIN
        INSERT INTO found(found, rowid, body) VALUES ('delete', old.id, old.body);
        INSERT INTO found(rowid, body) VALUES (new.id, new.body); END;
      INSERT INTO note VALUES (1, 'walk the dog'), (2, 'feed the cat');
      """,
    steps: [
      ("INSERT INTO note VALUES (1000 + #, 'new')", "DELETE FROM note WHERE id = 1000 + #"),
      (
        "UPDATE note SET body = body || ' more#' WHERE 1",
        "UPDATE note SET body = replace(body, ' more#', '') WHERE 1"
      ),
    ],
    breaking: [
      "DROP TABLE note", "ALTER TABLE note RENAME TO memo", "ALTER TABLE note RENAME COLUMN body TO text",
      "DROP TABLE found",
    ])

  private static let area = SchemaPart(
    setup: """
      CREATE VIRTUAL TABLE area USING rtree(id, x0, x1, +label);
      INSERT INTO area VALUES (1, 0, 1, 'a'), (2, 4, 6, 'b');
      """,
    steps: [
      ("INSERT INTO area VALUES (1000 + #, #, 2 * #, 'n')", "DELETE FROM area WHERE id = 1000 + #"),
      ("UPDATE area SET x1 = x1 + 1 WHERE 1", "UPDATE area SET x1 = x1 - 1 WHERE 1"),
    ], breaking: ["DELETE FROM area_node WHERE nodeno = 1", "DROP TABLE area_node"])

  private static let plan = SchemaPart(
    setup: """
      CREATE TABLE plan(a TEXT, b INTEGER); INSERT INTO plan VALUES ('x', 1), ('y', 2);
      CREATE VIEW plans AS SELECT a, b * 2 AS twice FROM plan WHERE b > 0;
      CREATE TRIGGER plans_insert INSTEAD OF INSERT ON plans BEGIN INSERT INTO plan VALUES (new.a, new.twice / 2); END;
      """,
    steps: [
      ("INSERT INTO plans VALUES ('n#', 2 * #)", "DELETE FROM plan WHERE a = 'n#'"),
      ("CREATE VIEW view# AS SELECT a FROM plans", "DROP VIEW view#"),
    ],
    breaking: [
      "DROP TABLE plan", "DROP VIEW plans; CREATE VIEW plans AS SELECT missing FROM plan",
      "CREATE VIEW other AS SELECT * FROM nothing",
    ])

  private static let entry = SchemaPart(
    setup: """
      CREATE TABLE entry(id INTEGER PRIMARY KEY, text TEXT); CREATE TABLE counter(n INTEGER);
      INSERT INTO counter VALUES (0);
      CREATE TRIGGER entry_ai AFTER INSERT ON entry BEGIN UPDATE counter SET n = n + 1; END;
      INSERT INTO entry VALUES (1, 'a');
      """,
    steps: [
      (
        "INSERT INTO entry VALUES (1000 + #, 'n')",
        "DELETE FROM entry WHERE id = 1000 + #; UPDATE counter SET n = n - 1 WHERE 1"
      ),
      (
        "CREATE TRIGGER trigger# AFTER DELETE ON entry BEGIN SELECT n FROM counter; END",
        "DROP TRIGGER trigger#"
      ),
    ],
    breaking: [
      "DROP TABLE counter",
      "CREATE TRIGGER bad AFTER INSERT ON entry BEGIN INSERT INTO nothing VALUES (1); END",
    ])

  /// Foreign keys in a circle.
  private static let team = SchemaPart(
    setup: """
      CREATE TABLE team(id INTEGER PRIMARY KEY, lead INTEGER REFERENCES person(id));
      CREATE TABLE "person"(id INTEGER PRIMARY KEY, team INTEGER REFERENCES team(id));
      INSERT INTO team VALUES (1, 1); INSERT INTO person VALUES (1, 1), (2, 1);
      """,
    steps: [
      (
        "INSERT INTO team VALUES (1000 + #, 1000 + #); INSERT INTO person VALUES (1000 + #, 1000 + #)",
        "DELETE FROM team WHERE id = 1000 + #; DELETE FROM person WHERE id = 1000 + #"
      ),
      (
        "CREATE TABLE person_new(id INTEGER PRIMARY KEY, team INTEGER REFERENCES team(id)); "
          + "INSERT INTO person_new SELECT * FROM person; INSERT INTO person_new VALUES (1000 + #, 1); "
          + "DROP TABLE person; ALTER TABLE person_new RENAME TO person",
        "DELETE FROM person WHERE id = 1000 + #"
      ),
    ],
    breaking: [
      "DROP TABLE person", "DELETE FROM team WHERE id = 1", "INSERT INTO person VALUES (999, 12345)",
    ]
  )

  private static let pair = SchemaPart(
    setup: """
      CREATE TABLE pair(a TEXT, b INTEGER, v INTEGER, PRIMARY KEY (a, b)) WITHOUT ROWID;
      CREATE TABLE part(n TEXT PRIMARY KEY, a TEXT, b INTEGER, FOREIGN KEY (a, b) REFERENCES pair) WITHOUT ROWID;
      INSERT INTO pair VALUES ('x', 1, 0), ('x', 2, 0); INSERT INTO part VALUES ('first', 'x', 1);
      """,
    steps: [
      ("INSERT INTO pair VALUES ('n', #, 0)", "DELETE FROM pair WHERE a = 'n' AND b = #"),
      ("UPDATE pair SET v = v + 1 WHERE 1", "UPDATE pair SET v = v - 1 WHERE 1"),
      ("INSERT INTO part VALUES ('n#', 'x', 2)", "DELETE FROM part WHERE n = 'n#'"),
    ], breaking: ["DELETE FROM pair WHERE b = 1", "INSERT INTO part VALUES ('second', 'y', 1)"])

  /// A strict table with generated columns.
  private static let typed = SchemaPart(
    setup: """
      CREATE TABLE typed(id INTEGER PRIMARY KEY, n INT NOT NULL, t TEXT, twice INT GENERATED ALWAYS AS (n * 2) STORED,
        name TEXT AS (t || n)) STRICT;
      CREATE INDEX typed_twice ON typed(twice); INSERT INTO typed(id, n, t) VALUES (1, 1, 'a'), (2, 2, NULL);
      """,
    steps: [
      ("INSERT INTO typed(id, n, t) VALUES (1000 + #, #, 'n')", "DELETE FROM typed WHERE id = 1000 + #"),
      ("UPDATE typed SET n = n + 1 WHERE 1", "UPDATE typed SET n = n - 1 WHERE 1"),
      ("ALTER TABLE typed ADD COLUMN g# INT AS (n + #)", "ALTER TABLE typed DROP COLUMN g#"),
    ],
    breaking: [
      "INSERT INTO typed(id, n) VALUES (999, 'text')", "UPDATE typed SET twice = 1 WHERE 1",
      "INSERT INTO typed(id) VALUES (999)",
    ])

  private static let guest = SchemaPart(
    setup: """
      CREATE TABLE home(id INTEGER PRIMARY KEY); CREATE TABLE guest(id INTEGER PRIMARY KEY, home REFERENCES home(id));
      INSERT INTO home VALUES (1); INSERT INTO guest VALUES (1, 1), (2, 7), (3, 8);
      """,
    steps: [
      ("INSERT INTO guest(id, home) VALUES (1000 + #, 1)", "DELETE FROM guest WHERE id = 1000 + #"),
      ("ALTER TABLE guest ADD COLUMN c#", "ALTER TABLE guest DROP COLUMN c#"),
    ],
    breaking: [
      "INSERT INTO guest(id, home) VALUES (999, 9)", "DELETE FROM home WHERE id = 1", "DROP TABLE home",
    ],
    isFaulty: true)

  private static let visit = SchemaPart(
    setup: """
      CREATE TABLE place(name TEXT PRIMARY KEY) WITHOUT ROWID;
      CREATE TABLE visit(day TEXT, place TEXT REFERENCES place, PRIMARY KEY (day, place)) WITHOUT ROWID;
      INSERT INTO place VALUES ('here'); INSERT INTO visit VALUES ('mon', 'here'), ('tue', 'nowhere');
      """,
    steps: [("INSERT INTO visit VALUES ('n#', 'here')", "DELETE FROM visit WHERE day = 'n#'")],
    breaking: ["INSERT INTO visit VALUES ('wed', 'gone')", "UPDATE place SET name = 'there' WHERE 1"],
    isFaulty: true)

  private static let checked = SchemaPart(
    setup: """
      CREATE TABLE checked(id INTEGER PRIMARY KEY, n INTEGER CHECK (n > 0), m INTEGER);
      INSERT INTO checked VALUES (1, -1, 0), (2, 5, 0);
      """,
    steps: [
      ("INSERT INTO checked VALUES (1000 + #, 1, #)", "DELETE FROM checked WHERE id = 1000 + #"),
      ("UPDATE checked SET m = m + 1 WHERE id > 1", "UPDATE checked SET m = m - 1 WHERE id > 1"),
    ], breaking: ["INSERT INTO checked VALUES (999, -1, 0)"], isFaulty: true)

  private static let filled = SchemaPart(
    setup: """
      CREATE TABLE filled(id INTEGER PRIMARY KEY, v TEXT, m INTEGER); INSERT INTO filled VALUES (1, NULL, 0), (2, 'x', 0);
      PRAGMA writable_schema = ON;
      UPDATE sqlite_schema SET sql = replace(sql, 'v TEXT', 'v TEXT NOT NULL') WHERE name = 'filled';
      """,
    steps: [
      ("INSERT INTO filled VALUES (1000 + #, 'n', 0)", "DELETE FROM filled WHERE id = 1000 + #"),
      ("CREATE INDEX filled# ON filled(m)", "DROP INDEX filled#"),
    ], breaking: ["INSERT INTO filled VALUES (999, NULL, 0)"], isFaulty: true)

  /// An index for full text that cannot be opened.
  private static let damaged = SchemaPart(
    setup: """
      CREATE VIRTUAL TABLE damaged USING fts5(a); INSERT INTO damaged VALUES ('x');
      DELETE FROM damaged_data WHERE id > 0;
      """,
    steps: [("CREATE TABLE beside#(x)", "DROP TABLE beside#")], isFaulty: true)

  /// Pages that nothing uses.
  private static let unused = SchemaPart(
    setup: """
      CREATE TABLE ghost(x); INSERT INTO ghost VALUES (zeroblob(9000)); PRAGMA writable_schema = ON;
      DELETE FROM sqlite_schema WHERE name = 'ghost';
      """,
    steps: [
      ("CREATE TABLE grown#(x); INSERT INTO grown# VALUES (zeroblob(9000))", "DROP TABLE grown#")
    ], isFaulty: true)
}

extension RandomMigrations {
  /// A migration with SQL steps alone, which fit; the last one may leave something broken.
  static func ofSchema(_ seed: UInt64, broken: Bool = false) -> [String: String] {
    var random = stream(seed, "steps of schema")
    var lines = (10..<Int.random(in: 12...18, using: &random)).compactMap { number in
      schemaStep(number, seed, &random)
    }
    if broken {
      let statements = RandomContainer.databaseNames.flatMap { database in
        SchemaPart.of(database, seed: seed).flatMap(\.breaking).map { (database, $0) }
      }
      // Unused pages cannot be broken further.
      let (database, sql) =
        statements.randomElement(using: &random)
        ?? ("notes", "CREATE VIEW other AS SELECT * FROM nothing")
      lines.append("sql: {database: \(database), up: \"\(sql)\", down: SELECT 1, destructive: x}")
    }
    return ["0001_schema.yaml": "steps:\n" + lines.map { "  - \($0)\n" }.joined()]
  }

  /// A step for a part of a database; nil when the part that is drawn has none.
  static func schemaStep(_ number: Int, _ seed: UInt64, _ random: inout SeededRandom) -> String? {
    let database = RandomContainer.databaseNames.randomElement(using: &random) ?? "notes"
    let steps = SchemaPart.of(database, seed: seed).flatMap(\.steps)
    guard let step = steps.randomElement(using: &random) else { return nil }
    let text = { (sql: String) in "\"\(sql.replacing("#", with: "\(number)"))\"" }
    return "sql: {database: \(database), up: \(text(step.up)), down: \(text(step.down)), destructive: x}"
  }
}
