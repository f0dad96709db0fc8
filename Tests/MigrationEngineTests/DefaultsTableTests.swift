import ContainerTransaction
import Formats
import Foundation
import GRDB
import Testing

@testable import MigrationEngine

@Suite("Settings as a table") struct DefaultsTableTests {
  static let settings: PropertyListDictionary = [
    "on": true, "n": 7, "x": 1.5, "f": .single(0.1), "name": "Ada",
    "at": .date(Date(timeIntervalSinceReferenceDate: 0.25)),
    "blob": .data([0, 1]), "list": [1, "a"], "map": ["k": false], "big": .unsigned(.max),
    "odd": ["d": .date(Date(timeIntervalSinceReferenceDate: 0))], "nul": "a\0b",
  ]

  private func run(
    _ up: String, database: String = "CREATE TABLE t (a); INSERT INTO t VALUES (1), (2);"
  ) throws -> (settings: PropertyListDictionary?, rows: [String], error: String) {
    try Lab.with { lab in
      try lab.set(Self.settings)
      try lab.database(Lab.oldDatabase, database)
      func state(_ stage: StagedContainer) throws -> (PropertyListDictionary?, [String]) {
        let rows = try stage.readDatabase(at: Lab.oldDatabase) {
          try Row.fetchAll($0, sql: "SELECT a FROM t")
        }
        return (try stage.settings(), rows.map { "\($0[0] as DatabaseValue)" })
      }
      var after = try lab.look(state)
      let step =
        "  - sql:\n      database: notes\n      defaults: true\n      up: |\n        \(up)\n      down: SELECT 1\n"
      let error = failure { try lab.tried(step) { stage, _ in after = try state(stage) } }
      return (after.0, after.1, error.text)
    }
  }

  @Test(
    "Settings become rows, and the rows' changes become settings",
    arguments: [
      ("SELECT * FROM defaults", [:]), ("UPDATE defaults SET value = value WHERE key <> ''", [:]),
      ("UPDATE defaults SET value = value + 1 WHERE key = 'n'", ["n": 8]),
      ("UPDATE defaults SET value = NOT value WHERE type = 'boolean'", ["on": false]),
      ("INSERT INTO defaults VALUES ('made', 'boolean', 1)", ["made": true]),
      (
        "INSERT INTO defaults (key, value) VALUES ('a', 1), ('b', 'x'), ('c', 2.5), ('d', x'00')",
        ["a": 1, "b": "x", "c": 2.5, "d": .data([0])]
      ),
      ("DELETE FROM defaults WHERE key IN ('n', 'odd')", ["n": nil, "odd": nil]),
      ("UPDATE defaults SET key = 'count' WHERE key = 'n'", ["count": 7, "n": nil]),
      ("UPDATE defaults SET type = 'text', value = CAST(value AS TEXT) WHERE key = 'n'", ["n": "7"]),
      (
        "UPDATE defaults SET value = datetime(value, '+1 hour') WHERE key = 'at'",
        ["at": .date(Date(timeIntervalSinceReferenceDate: 3600))]
      ),
      (
        "UPDATE defaults SET value = json_set(value, '$.k', json('true')) WHERE key = 'map'",
        ["map": ["k": true]]
      ), ("REPLACE INTO defaults SELECT 'n', 'integer', count(*) FROM t", ["n": 2]),
    ] as [(String, [String: PropertyListValue?])])
  func changes(_ sql: String, _ changes: [String: PropertyListValue?]) throws {
    var expected = Self.settings
    for (key, value) in changes { expected[key] = value }
    let result = try run(sql)
    #expect(result.error == "no error" && result.settings == expected && result.rows == ["1", "2"])
  }

  @Test func aSettingBecomesARow() throws {
    let result = try run("INSERT INTO t SELECT value FROM defaults WHERE key = 'n'")
    #expect(result.error == "no error" && result.settings == Self.settings)
    #expect(result.rows == ["1", "2", "7"])
  }

  @Test(
    "A row that cannot be a setting fails the step, and nothing is changed",
    arguments: [
      ("UPDATE defaults SET value = 'x' WHERE key = 'n'", "the row `n` of `defaults` cannot be a setting"),
      ("UPDATE defaults SET value = 2 WHERE key = 'on'", "an integer other than 0 and 1"),
      ("UPDATE defaults SET value = NULL WHERE key = 'n'", "NULL, not an integer"),
      ("UPDATE defaults SET type = 'number' WHERE key = 'n'", "has an unknown type: use one of text"),
      ("UPDATE defaults SET value = 1 WHERE key = 'big'", "its type `other` is for settings that SQL cannot"),
      ("INSERT INTO defaults VALUES ('z', 'text', 'a' || char(0))", "text with a NUL character"),
      ("INSERT INTO defaults (key) VALUES ('z')", "NULL, and a setting is never null"),
      ("INSERT INTO defaults VALUES (x'00', 'text', 'a')", "NUL character"),
      ("DROP TABLE temp.defaults", "the table `defaults` cannot be read"),
      ("DELETE FROM defaults", "is DELETE without WHERE"),
      ("INSERT INTO t VALUES (3); INSERT INTO nowhere VALUES (1)", "no such table: nowhere"),
    ])
  func refused(_ sql: String, _ words: String) throws {
    let result = try run(sql)
    #expect(result.error.contains(words), "\(result.error)")
    #expect(result.settings == Self.settings && result.rows == ["1", "2"])
  }

  @Test("An app's own table of that name is never hidden")
  func collision() throws {
    let result = try run("SELECT 1", database: "CREATE TABLE t (a); CREATE TABLE Defaults (x);")
    #expect(result.error.contains("the database has a table `defaults`, which the settings would hide"))
    try Lab.with { lab in
      try lab.database(Lab.oldDatabase, "CREATE TABLE defaults (x); INSERT INTO defaults VALUES (1);")
      try lab.run("sql: {database: notes, up: UPDATE defaults SET x = 2 WHERE x = 1, down: SELECT 1}")
      #expect(try lab.query(Lab.oldDatabase, "SELECT x FROM defaults").map { $0[0] as Int } == [2])
    }
  }

  @Test("Suites and files, and down statements that see the settings, too")
  func upAndDown() throws {
    try Lab.with { lab in
      lab.configuration.defaults["group"] = Lab.group
      try lab.write(Lab.group, settings: ["n": 1, "keep": 5])
      try lab.database(Lab.oldDatabase, "CREATE TABLE t (a);")
      try lab.run(
        """
          - sql:
              database: notes
              defaults: {suite: group}
              up: |
                INSERT INTO t SELECT value FROM defaults WHERE key = 'n';
                UPDATE defaults SET value = value + 1 WHERE key IN ('n', 'keep');
                INSERT INTO defaults VALUES ('made', 'text', 'x');
              down: |
                UPDATE defaults SET value = (SELECT a * 100 FROM t) WHERE key = 'n';
                DELETE FROM t WHERE a > 0;
        """)
      #expect(try lab.settings(Lab.group) == ["n": 2, "keep": 6, "made": "x"])
      #expect(try lab.revert() == [])
      // What the down statements leave gets its recorded value back.
      #expect(try lab.settings(Lab.group) == ["n": 100, "keep": 5])
      #expect(try lab.query(Lab.oldDatabase, "SELECT a FROM t").isEmpty)
    }
  }

  @Test("`validate` knows the table for such a step, and only for it")
  func validation() throws {
    try Lab.with { lab in
      try lab.migration(
        "0001_a.yaml",
        steps: [
          "sql: {database: notes, up: CREATE TABLE t (a), down: DROP TABLE t}",
          "sql: {database: notes, defaults: true, up: SELECT wrong FROM defaults, down: SELECT 1}",
          "sql: {database: notes, defaults: true, up: SELECT key FROM defaults, down: SELECT value FROM defaults}",
        ])
      expectOne(try lab.problems(), start: "0001_a.yaml:3:1: no such column: wrong")
      try lab.migration(
        "0001_a.yaml", step: "sql: {database: notes, defaults: yes, up: SELECT 1, down: SELECT 1}")
      expectFailure("0001_a.yaml:2:38: `defaults` is true or false") { try lab.catalog() }
    }
  }
}
