import MigrationEngine
import Testing

/// SQL functions that the app defines, by `functions:` in `drydock.yaml`.
@Suite struct FunctionTests {
  private let lab: Lab

  init() throws { lab = try Lab() }

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
  func validateNamesUnknownOnes(_ sql: String, _ place: String, _ name: String) throws {
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
