import AppContainer
import ContainerTransaction
import Foundation
import GRDB
import MigrationEngine
import TestSupport
import Testing

/// Collations and functions that the app defines, by `collations:` and `functions:` in `drydock.yaml`.
@Suite struct AppDefinedSQLTests {
  private static let tables = """
    CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT COLLATE LOCALIZED); CREATE INDEX i ON t (name);
    INSERT INTO t (name) VALUES ('b'), ('A'), ('c'), ('D');
    """
  private static let keys = """
    CREATE TABLE w (k TEXT COLLATE Localized PRIMARY KEY, v) WITHOUT ROWID;
    INSERT INTO w VALUES ('b', 1), ('A', 1), ('c', 1), ('D', 1);
    """

  private func configuration(_ text: String) throws -> ContainerConfiguration {
    try lab.configuration(text)
  }

  /// Opens the database as the app, whose order ignores case.
  private func app<T>(_ lab: Lab, _ name: String = "LOCALIZED", _ body: (Database) throws -> T) throws -> T {
    try lab.change(Lab.oldDatabase) { db in
      db.add(collation: DatabaseCollation(name) { $0.lowercased().compare($1.lowercased()) })
      return try body(db)
    }
  }

  private let lab: Lab
  init() throws { lab = try Lab() }

  private func prepare(_ sql: String, _ name: String = "LOCALIZED") throws {
    try lab.write(Lab.oldDatabase, "")
    try app(lab, name) { try $0.execute(sql: sql) }
    try lab.baseline(0)
  }

  private func step(_ lab: Lab, _ sql: String) throws {
    try lab.migration("0001_a.sql", sqlFile(sql, "irreversible"))
  }

  @Test(arguments: [
    (
      tables, "INSERT INTO t (name) VALUES ('B2'), ('a2'); UPDATE t SET name = 'E' WHERE name = 'a';",
      "t WHERE name = 'e'"
    ),
    (
      keys, "INSERT INTO w VALUES ('B2', 2), ('a2', 2); UPDATE w SET k = 'E' WHERE k = 'a';",
      "w WHERE k = 'e'"
    ),
  ])
  func declared(_ sql: String, _ change: String, _ query: String) throws {
    try prepare(sql)
    try step(lab, change)
    // As the table spells it.
    let name = sql.contains("Localized") ? "Localized" : "LOCALIZED"
    expectFailure(
      "no such collation sequence: \(name); if the app defines it, declare its order in drydock.yaml: "
        + "`collations: {\(name): WORD}`, where WORD is one of binary, nocase, rtrim"
    ) { try lab.migrate() }
    lab.configuration.sql.collations = try configuration("collations: {LOCALIZED: nocase}\n").sql.collations
    let catalog = try lab.catalog()
    let outcome = try Transaction.run(on: lab.container, .migrate, summary: "test") {
      try Migrator.run(MigrationStatus(catalog, of: $0), on: $0, stamp: lab.stamp)
    }
    #expect(outcome.value.migrations.map(\.notes) == [[]] && outcome.notes == [], "\(outcome.notes)")
    try app(lab) { db throws in
      #expect(try String.fetchAll(db, sql: "PRAGMA integrity_check") == ["ok"])
      #expect(try Int.fetchOne(db, sql: "SELECT count(*) FROM \(query)") == 1)
    }
  }

  @Test(
    "An order that is not the app's is refused before anything is changed",
    arguments: [
      (tables, "the index `i`", "(row 4 missing from index i)"),
      (keys, "the index `sqlite_autoindex_w_1`", "(row not in PRIMARY KEY order for w)"),
    ])
  func wrong(_ sql: String, _ index: String, _ found: String) throws {
    try prepare(sql)
    lab.configuration.sql.collations = ["LOCALIZED": .binary]
    let file = Array(lab.path(Lab.oldDatabase).utf8)
    let before = try RawFiles.read(file)
    // Also where only a check reads it, or another table is changed.
    for (name, text) in [
      (
        "0001_a.yaml",
        "steps:\n  - sql: {database: notes, up: \"CREATE TABLE x (a)\", down: \"DROP TABLE x\"}\n"
      ),
      ("0001_a.yaml", "steps: []\nverify:\n  - sql: {database: notes, query: SELECT 1, equals: 1}\n"),
    ] {
      try lab.migration(name, text)
      let error = failure { try lab.migrate() }
      #expect(error.code == .stepFailed && error.code?.exitCode == 1)
      #expect(
        error.text.contains(
          "\(index) is not in the order of `collations: {LOCALIZED: binary}` \(found): correct"),
        "\(error.text)")
      #expect(try lab.history()?.version == 0 && RawFiles.read(file) == before)
    }
  }

  @Test("GRDB's collations have the order of the system: the app's was another")
  func ofGRDB() throws {
    try prepare(Self.tables.replacing("LOCALIZED", with: "swiftCompare"), "swiftCompare")
    try step(lab, "INSERT INTO t (name) VALUES ('B2');")
    expectFailure("not in the order of the collation swiftCompare here") { try lab.migrate() }
    lab.configuration.sql.collations = ["swiftCompare": .nocase]
    try lab.migrate()
    #expect(try app(lab, "swiftCompare") { try String.fetchAll($0, sql: "PRAGMA integrity_check") } == ["ok"])
  }

  @Test("An index that cannot be checked is not used")
  func unchecked() throws {
    try prepare("CREATE TABLE t (a, b COLLATE LOCALIZED); CREATE INDEX i ON t (b)")
    try app(lab) { db in
      db.add(collation: DatabaseCollation("OTHER") { $0.compare($1) })
      try db.execute(sql: "CREATE INDEX j ON t (a COLLATE OTHER)")
    }
    lab.configuration.sql.collations = ["LOCALIZED": .nocase]
    try step(lab, "CREATE TABLE x (a);")
    expectFailure("(no such collation sequence: OTHER; if the app") { try lab.migrate() }
    lab.configuration.sql.collations["OTHER"] = .binary
    try lab.migrate()
  }

  @Test("A restored or moved database is checked in the declared order")
  func afterTheStep() throws {
    try prepare(Self.tables)
    lab.configuration.sql.collations = ["LOCALIZED": .binary]
    let bytes = try RawFiles.read(Array(lab.path(Lab.oldDatabase).utf8))
    try FileManager.default.removeItem(atPath: lab.path(Lab.oldDatabase))
    expectFailure("whether `collations:` of drydock.yaml declares the app's order", code: .checkFailed) {
      try Transaction.run(on: lab.container, .restore, summary: "test") {
        try $0.write([UInt8](bytes), to: Lab.oldDatabase)
      }
    }
    #expect(try lab.exists(Lab.oldDatabase) == false)
  }

  @Test func ordersAreThoseOfSQLite() throws {
    let values = [
      "''", "'a'", "'A'", "'a '", "'a  '", "'B'", "' '", "'ä'", "'Ä'", "CAST(x'FF' AS TEXT)",
      "CAST(x'FE41' AS TEXT)", "CAST(x'6100' AS TEXT)", "CAST(x'410062' AS TEXT)", "'ab'", "'aB '",
    ]
    let settings = try configuration("collations: {l1: binary, l2: nocase, l3: rtrim}\n")
    try DatabaseQueue().write { db in
      settings.sql.define(in: db)
      try db.execute(
        sql: "CREATE TABLE t (a); INSERT INTO t VALUES \(values.map { "(\($0))" }.joined(separator: ", "))")
      for (own, name) in [("l1", "BINARY"), ("l2", "NOCASE"), ("l3", "RTRIM")] {
        let sql = "SELECT count(*) FROM t, t AS u WHERE "
        for sign in ["<", "=", ">"] {
          let differ = "(t.a \(sign) u.a COLLATE \(own)) <> (t.a \(sign) u.a COLLATE \(name))"
          #expect(try Int.fetchOne(db, sql: sql + differ) == 0, "\(name) \(sign)")
        }
      }
    }
  }

  @Test(arguments: [
    ("{L: nocas}", "drydock.yaml:1:17: unknown collation `nocas`; did you mean `nocase`?"),
    ("{NoCase: binary}", "drydock.yaml:1:14: `NoCase` is a collation of SQLite's: leave it out"),
    ("{L: binary, l: nocase}", "drydock.yaml:1:25: `l` is the collation `L`, too: SQLite ignores case"),
    ("{\"a b\": binary}", "`a b` is not the name of a SQL collation"),
  ])
  func configured(_ text: String, _ message: String) throws {
    expectFailure(message) { try configuration("collations: \(text)\n") }
  }

  @Test func validateNamesUnknownOnes() throws {
    try step(lab, "CREATE TABLE t (a COLLATE LOCALIZED);")
    let found = try lab.problems()
    #expect(
      found.first?.contains("0001_a.sql:4:1: no such collation sequence: LOCALIZED; if the app") == true)
    lab.configuration.sql.collations = ["localized": .nocase]
    #expect(try lab.problems() == [])
  }

  @Test(
    arguments: [
      ("base64", "f('hello')", "aGVsbG8="), ("base64", "f(x'00ff')", "AP8="),
      ("base64-decode", "CAST(f('aGVsbG8=') AS TEXT)", "hello"), ("hex", "f('az')", "617A"),
      ("hex-decode", "CAST(f('617a') AS TEXT)", "az"),
      ("sha256", "f('')", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
      ("uuid", "length(f())", "36"), ("regexp", "f('^a+$', 'aaa')", "1"), ("regexp", "f('^a+$', 'ab')", "0"),
      ("date-to-unix", "f('2026-11-21T02:06:58Z')", "1795226818"),
      ("unix-to-date", "f(1795226818)", "2026-11-21T02:06:58Z"), ("apple-to-unix", "f(0)", "978307200"),
      ("unix-to-apple", "f(978307200)", "0"), ("sha256", "coalesce(f(NULL), 'null')", "null"),
    ])
  func provided(_ word: String, _ expression: String, _ expected: String) throws {
    lab.configuration.sql.functions = try lab.configuration("functions: {f: \(word)}\n").sql.functions
    try lab.database(Lab.oldDatabase, "CREATE TABLE t (a)")
    try lab.baseline(0)
    try lab.migration(
      "0001_a.sql",
      sqlFile("INSERT INTO t VALUES (CAST(\(expression) AS TEXT));", "irreversible"))
    #expect(try lab.problems() == [])
    try lab.migrate()
    #expect(try lab.query(Lab.oldDatabase, "SELECT a FROM t") == [["a": expected]])
  }

  @Test func theOperatorREGEXP() throws {
    lab.configuration.sql.functions = ["regexp": .regexp]
    try lab.database(Lab.oldDatabase, "CREATE TABLE t (a); INSERT INTO t VALUES ('one'), ('two')")
    try lab.baseline(0)
    try lab.migration("0001_a.sql", sqlFile("UPDATE t SET a = 'x' WHERE a REGEXP '^t';", "irreversible"))
    try lab.migrate()
    #expect(try lab.query(Lab.oldDatabase, "SELECT a FROM t") == [["a": "one"], ["a": "x"]])
  }

  @Test(arguments: [
    // Of tables that a migration makes, and of the app's own, which `validate` does not know.
    ("CREATE TABLE t (a);\nUPDATE t SET a = slug(a) WHERE a > 1;", "5:1", "slug"),
    ("UPDATE task SET a = lower(b), c = slug ( a ) WHERE a > 1;", "4:1", "slug"),
    ("INSERT INTO task (a, b) SELECT to_base64(a), count(*) FROM other;", "4:1", "to_base64"),
  ])
  func validateNamesUnknownFunctions(_ sql: String, _ place: String, _ name: String) throws {
    try lab.migration("0001_a.sql", sqlFile(sql, "irreversible"))
    let found = try lab.problems()
    #expect(found.count == 1, "\(found)")
    #expect(
      found.first?.hasPrefix(
        "0001_a.sql:\(place): no such function: \(name); if the app defines it, map it in drydock.yaml: "
          + "`functions: {\(name): WORD}`") == true, "\(found)")
  }

  @Test(arguments: [
    "INSERT INTO task (a, b) VALUES (1, max(2, 3));",
    "WITH x (a) AS (SELECT 1), y (b) AS (SELECT 2) INSERT INTO task SELECT a, b FROM x, y WHERE a IN (1, 2);",
    "INSERT INTO task (a) SELECT CAST(b AS varchar(20)) FROM u JOIN json_each(u.c) ON (1 = 1) WHERE EXISTS (SELECT 1);",
    "INSERT INTO task (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET a = excluded.a;",
    "SELECT sum(a) FILTER (WHERE b > 1) OVER (PARTITION BY c) FROM task;",
  ])
  func namesOfTablesAreNoFunctions(_ sql: String) throws {
    try lab.migration("0001_a.sql", sqlFile(sql, "irreversible"))
    #expect(try lab.problems() == [])
  }

  @Test(
    "A dollar sign is a part of a name",
    arguments: ["SELECT a$b(1);", "UPDATE app SET x = a$b(1) WHERE y = 2;"])
  func dollarSigns(_ sql: String) throws {
    try lab.migration("0001_a.sql", sqlFile(sql, "irreversible"))
    let found = try lab.problems()
    #expect(found.count == 1 && found[0].contains("no such function: a$b;"), "\(found)")
    lab.configuration.sql.functions = ["a$b": .base64]
    #expect(try lab.problems().isEmpty)
  }

  @Test func placesInTheConfiguration() throws {
    expectFailure("drydock.yaml:1:16: unknown function `bas64`; did you mean `base64`?") {
      try lab.configuration("functions: {f: bas64}\n")
    }
    expectFailure("`1f` is not the name of a SQL function") {
      try lab.configuration("functions: {\"1f\": base64}\n")
    }
    #expect(try lab.configuration("functions: {a$b: base64}\n").sql.functions["a$b"] == .base64)
  }
}
