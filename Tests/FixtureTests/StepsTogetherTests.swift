import Foundation
import Testing

/// Migrations of several steps of which each is right for itself, while together they lose data, and others that do not. Each is
/// a migration of its own in one run on one fixture, with a table `T` and settings and files `K`.
@Suite struct StepsTogetherTests {
  private static func sql(_ up: String, _ destroys: String...) -> String {
    let reasons = destroys.map { "\($0): temporary" }.joined(separator: ", ")
    return "sql: {database: notes, up: \"\(up)\"" + (reasons.isEmpty ? "}" : ", destructive: {\(reasons)}}")
  }

  private static let remade =
    "ALTER TABLE T RENAME TO T_old; CREATE TABLE T (id INTEGER PRIMARY KEY, title TEXT, note TEXT, rank INTEGER)"
  private static let shell = "script: {program: sh, arguments: [-c, "

  private static let lossy: [[String]] = [
    // A column is not copied, rows are not, and a key is.
    [
      sql("\(remade); INSERT INTO T (id, title, rank) SELECT id, title, rank FROM T_old"),
      sql("DROP TABLE T_old", "T_old"),
    ],
    [sql("\(remade); INSERT INTO T SELECT * FROM T_old WHERE rank > 10"), sql("DROP TABLE T_old", "T_old")],
    [
      sql(remade), sql("INSERT INTO T (id, title, note) SELECT id, title, note FROM T_old"),
      sql("DROP TABLE T_old", "T_old"),
    ],
    [
      sql(
        "CREATE TABLE T_new (id INTEGER PRIMARY KEY, title TEXT); INSERT INTO T_new SELECT id, title FROM T"),
      sql("DROP TABLE T", "T"), sql("ALTER TABLE T_new RENAME TO T"),
    ],
    [
      sql("CREATE TABLE T_copy AS SELECT * FROM T"), sql("DROP TABLE T", "T"),
      sql("CREATE TABLE T (id INTEGER PRIMARY KEY, title TEXT); INSERT INTO T SELECT id, title FROM T_copy"),
      sql("DROP TABLE T_copy", "T_copy"),
    ],
    // The original is emptied when there is a copy, which is dropped.
    [
      sql("ALTER TABLE T ADD COLUMN copy TEXT"), sql("UPDATE T SET copy = note WHERE id > 0"),
      sql("UPDATE T SET note = NULL WHERE id > 0"), sql("ALTER TABLE T DROP COLUMN copy", "T"),
    ],
    // A store of another kind in between.
    [
      "defaults.move-to-file: {key: K, to: Documents/K.plist}",
      "files.delete: {path: Documents/K.plist, destructive: temporary}",
    ],
    [
      "defaults.rename: {keys: {K: K_tmp}}", "defaults.compute: {key: K_new, value: 'substr(:K_tmp, 1, 3)'}",
      "defaults.delete: {keys: [K_tmp], destructive: temporary}",
    ],
    [
      "files.move: {from: Documents/K.txt, to: Documents/K.tmp}",
      "files.delete: {path: Documents/K.tmp, destructive: temporary}",
    ],
    [
      "\(shell)\"cp Documents/K.txt Documents/K.bak; : > Documents/K.txt\"]}",
      "files.delete: {path: Documents/K.bak, destructive: temporary}",
    ],
    // Something new beside it, which is not what it became.
    [
      "defaults.set: {values: {K_more: hello}}", "defaults.rename: {keys: {K: K_tmp}}",
      "defaults.delete: {keys: [K_tmp], destructive: temporary}",
    ],
    [
      "files.move: {from: Documents/K.txt, to: Documents/K_tmp}",
      "files.write: {path: Library/K.json, text: '{}'}",
      "files.delete: {path: Documents/K_tmp, destructive: temporary}",
    ],
    // Another one's value is in its place.
    [
      sql("ALTER TABLE T ADD COLUMN copy TEXT"), sql("UPDATE T SET copy = note, note = title WHERE id > 0"),
      sql("ALTER TABLE T DROP COLUMN copy", "T"),
    ],
    [
      sql("CREATE TABLE T_side AS SELECT id, note FROM T"), sql("UPDATE T SET note = title WHERE id > 0"),
      sql("DROP TABLE T_side", "T_side"),
    ],
    [
      "defaults.rename: {keys: {K: K_tmp}}", "defaults.rename: {keys: {K_other: K}}",
      "defaults.delete: {keys: [K_tmp], destructive: temporary}",
    ],
  ]

  private static let harmless: [[String]] = [
    [sql("\(remade); INSERT INTO T SELECT * FROM T_old"), sql("DROP TABLE T_old", "T_old")],
    [
      sql(
        "CREATE TABLE T_new (id INTEGER PRIMARY KEY, title TEXT); INSERT INTO T_new SELECT id, title FROM T"),
      sql(
        "CREATE TABLE T_note (id INTEGER PRIMARY KEY, note TEXT, rank INTEGER); INSERT INTO T_note SELECT id, note, rank FROM T"
      ),
      sql("DROP TABLE T", "T"), sql("ALTER TABLE T_new RENAME TO T"),
    ],
    [sql("ALTER TABLE T RENAME COLUMN note TO text"), sql("ALTER TABLE T DROP COLUMN text", "T")],
    [sql("ALTER TABLE T RENAME TO T_person"), sql("DELETE FROM T_person", "T_person")],
    [sql("ALTER TABLE T RENAME TO T_person"), sql("DROP TABLE T_person", "T_person")],
    [
      sql("ALTER TABLE T ADD COLUMN copy TEXT"), sql("UPDATE T SET copy = note WHERE id > 0"),
      sql("ALTER TABLE T DROP COLUMN note", "T"), sql("ALTER TABLE T RENAME COLUMN copy TO note"),
    ],
    [
      sql("UPDATE T SET title = 'a' || title WHERE id > 0"),
      sql("UPDATE T SET title = upper(title) WHERE id > 0"), sql("ALTER TABLE T ADD COLUMN more"),
    ],
    [
      "defaults.rename: {keys: {K: K_tmp}}",
      "defaults.convert: {key: K_tmp, to: K_new, map: {\"Ada Lovelace of London\": 1}}",
    ],
    ["defaults.rename: {keys: {K: K_tmp}}", "defaults.rename: {keys: {K_tmp: K_new}}"],
    [
      "defaults.move-to-file: {key: K, to: Documents/K.plist}",
      "files.move: {from: Documents/K.plist, to: Library/K.plist}",
    ],
    ["defaults.delete: {keys: [K], destructive: unused}", "defaults.set-default: {values: {K: Bob}}"],
    [
      "files.delete: {path: Documents/K.txt, destructive: unused}",
      "files.write: {path: Documents/K.txt, text: new}",
    ],
    [
      "files.move: {from: Documents/K.txt, to: Documents/K.tmp}", sql("DELETE FROM T WHERE id = 1", "T"),
      "files.move: {from: Documents/K.tmp, to: Library/K.txt}",
    ],
    // What is replaced was saved before.
    [
      sql("ALTER TABLE T ADD COLUMN copy TEXT"), sql("UPDATE T SET copy = note WHERE id > 0"),
      sql("UPDATE T SET note = title WHERE id > 0"), sql("UPDATE T SET title = copy WHERE id > 0"),
      sql("ALTER TABLE T DROP COLUMN copy", "T"),
    ],
    [
      sql("ALTER TABLE T ADD COLUMN copy TEXT"), sql("UPDATE T SET copy = note WHERE id > 0"),
      sql("UPDATE T SET note = NULL WHERE id > 0"),
    ],
    // A number becomes text in a new table.
    [
      sql(
        "CREATE TABLE T_rank (id INTEGER PRIMARY KEY, rank TEXT); INSERT INTO T_rank SELECT id, rank FROM T"),
      sql(
        "CREATE TABLE T_rest (id INTEGER PRIMARY KEY, title TEXT, note TEXT); INSERT INTO T_rest SELECT id, title, note FROM T"
      ),
      sql("DROP TABLE T", "T"),
    ],
  ]

  /// Runs all of them, and gives the findings about losses by the number of the migration, from 0.
  private func found(_ cases: [[String]]) throws -> [Int: [String]] {
    try SuiteSandbox.with { sandbox in
      var (sql, settings) = ("", "")
      for (number, steps) in cases.enumerated() {
        func named(_ text: String) -> String {
          text.replacing(/\bT(?=_|\b)/.wordBoundaryKind(.simple), with: "t\(number)x")
            .replacing(/\bK(?=_|\b)/.wordBoundaryKind(.simple), with: "k\(number)x")
        }
        try sandbox.migration(
          String(format: "%04d_all", number + 1), steps.map { "  - \(named($0))\n" }.joined(),
          more: "irreversible: true\n")
        settings += named("K: Ada Lovelace of London\nK_other: grace.K@example.com\n")
        try sandbox.write("Fixtures/one/container/Documents/\(named("K.txt"))", named("the text of K"))
        sql += named(
          """
          CREATE TABLE T (id INTEGER PRIMARY KEY, title TEXT, note TEXT, rank INTEGER);
          INSERT INTO T VALUES (1, 'Groceries K', 'milk and eggs of K', 10), (2, 'Letters', 'write to Ada', 20), (3, 'Garden', 'seeds', 30);

          """)
      }
      try sandbox.fixture(
        "one", version: 0, more: "expect: {settings: {schema: \(cases.count)}}", settings: settings, sql: sql)
      return try sandbox.losses()
    }
  }

  @Test("Steps that lose data only together are found")
  func lossyOnes() throws {
    let found = try found(Self.lossy)
    #expect(found[-1] == nil, "\(found[-1] ?? [])")
    for (number, steps) in Self.lossy.enumerated() where found[number] == nil {
      Issue.record("not found: \(steps)")
    }
  }

  @Test("Steps that keep the data together, or remove it for a reason, are not reported")
  func harmlessOnes() throws {
    for (number, lines) in try found(Self.harmless).sorted(by: { $0.key < $1.key }) {
      Issue.record("\(number < 0 ? [] : Self.harmless[number]): \(lines)")
    }
  }
}
