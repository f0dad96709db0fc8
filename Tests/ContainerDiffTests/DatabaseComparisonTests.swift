import DrydockErrors
import Foundation
import GRDB
import TestSupport
import Testing

@testable import AppStores
@testable import ContainerDiff

/// Two database files that are compared.
struct DatabasePair {
  let folder: TemporaryDirectory
  var before: String { folder("before.db") }
  var after: String { folder("after.db") }

  static func with<T>(
    _ before: String, _ after: String, configuration: GRDB.Configuration = GRDB.Configuration(),
    body: (DatabasePair) throws -> T
  ) throws -> T {
    try TemporaryDirectory.with { folder in
      let pair = DatabasePair(folder: folder)
      for (path, sql) in [(pair.before, before), (pair.after, after)] {
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
        try queue.close()
      }
      return try body(pair)
    }
  }

  func compare(rows: Int = 100) throws -> DatabaseComparison.Result {
    try DatabaseComparison(before: before, after: after, rowLimit: rows, redactor: Redactor()).run()
  }

  /// The rows that differ as short texts: `~ id=1 title="a"→"b"`.
  static func rows(_ table: ContainerDifference.Table?) -> [String] {
    (table?.rows ?? []).map { row in
      let sign = [.added: "+", .removed: "-", .changed: "~"][row.change] ?? "?"
      let key = row.key.map { "\($0.name)=\($0.before ?? $0.after ?? "")" }
      let fields = row.columns.map {
        "\($0.name)=" + [$0.before, $0.after].compactMap { $0 }.joined(separator: "→")
      }
      return ([sign] + key + fields).joined(separator: " ")
    }
  }
}

@Suite struct DatabaseComparisonTests {
  @Test(
    "A secret is hidden under another column's name, too",
    arguments: [
      "ALTER TABLE t RENAME COLUMN token TO label",
      "ALTER TABLE t ADD COLUMN label; UPDATE t SET label = token",
      "UPDATE t SET name = token", "UPDATE t SET name = substr(token, 1, 9)",
      "UPDATE t SET name = 'it is ' || token",
    ])
  func copiedSecrets(change: String) throws {
    for key in ["id INTEGER PRIMARY KEY", "id TEXT COLLATE NOCASE PRIMARY KEY"] {
      if key.contains("TEXT"), change.contains("substr") || change.contains("it is") { continue }
      let old =
        "CREATE TABLE t (\(key), name, token); INSERT INTO t VALUES ('1', 'a', 'canary-one'), ('2', 'b', 'canary-two');"
      try DatabasePair.with(old, old + change) { pair in
        for (before, after) in [(pair.before, pair.after), (pair.after, pair.before)] {
          let result = try DatabaseComparison(
            before: before, after: after, rowLimit: 9, redactor: Redactor()
          ).run()
          let text = String(decoding: try JSONEncoder().encode(result.tables), as: UTF8.self)
          #expect(!text.contains("canary") && text.contains("secret"), "\(text)")
        }
      }
    }
  }

  @Test(
    "Columns: how many values differ, NULLs, distinct values, the longest; values of new and removed columns")
  func columns() throws {
    let old = """
      CREATE TABLE t (id INTEGER PRIMARY KEY, title TEXT, place TEXT, same TEXT, gone TEXT);
      INSERT INTO t VALUES (1, 'one', 'Paris, F', 'x', NULL), (2, 'three', 'Rome, I', 'y', NULL), (3, 'four', NULL, 'z', NULL);
      """
    let new = """
      CREATE TABLE t (id INTEGER PRIMARY KEY, title TEXT, same TEXT, city TEXT, token TEXT, more TEXT);
      INSERT INTO t VALUES (1, 'one', 'x', 'Paris', 'sk_live_4eC39HqLyjWDarjtT1zdp7dc', NULL), (2, 'o', 'y', 'Rome', NULL, NULL),
        (3, NULL, 'z', NULL, NULL, NULL);
      """
    try DatabasePair.with(old, new) { pair in
      let table = try #require(pair.compare().tables.first)
      typealias Figures = ContainerDifference.ColumnValues.Figures
      #expect(table.columns.map(\.name) == ["title", "place", "city", "token"] && table.changed == 2)
      #expect(table.columns.map(\.change) == [.changed, .removed, .added, .added])
      #expect(table.columns[0].changed == 2)
      #expect(table.columns[0].before == Figures(nulls: 0, distinct: 3, longest: 5))
      #expect(table.columns[0].after == Figures(nulls: 1, distinct: 2, longest: 3))
      #expect(table.columns[1].before == Figures(nulls: 1, distinct: 2, longest: 8))
      #expect(table.columns[1].samples == ["\"Paris, F\"", "\"Rome, I\""] && table.columns[1].after == nil)
      #expect(table.columns[2].samples == ["\"Paris\"", "\"Rome\""])
      #expect(table.columns[3].samples.count == 1 && !table.columns[3].samples[0].contains("live"))
      #expect(try pair.compare(rows: 0).tables.first?.columns[1].samples == [])
    }
    // A new column alone, and one that is empty.
    let more = "CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, 2);"
    try DatabasePair.with(more, more + "ALTER TABLE t ADD COLUMN b; ALTER TABLE t ADD COLUMN c DEFAULT 7") {
      pair in
      let table = try #require(pair.compare().tables.first)
      #expect(table.columns.map(\.name) == ["c"] && table.added + table.removed + table.changed == 0)
    }
  }

  private func rows(_ before: String, _ after: String) throws -> [String] {
    try DatabasePair.with(before, after) { try DatabasePair.rows($0.compare().tables.first) }
  }

  @Test func rowsByPrimaryKey() throws {
    let table = "CREATE TABLE t(id INTEGER PRIMARY KEY, title TEXT, data);"
    let rows = try rows(
      table + "INSERT INTO t VALUES (1, 'a', x'00'), (2, 'b', 1), (3, 'c', NULL), (5, 'same', 5)",
      table + "INSERT INTO t VALUES (1, 'A', x'0001'), (2, 'b', 1.0), (4, 'd', NULL), (5, 'same', 5)")
    #expect(
      rows == [
        "- id=3 title=\"c\" data=null", #"~ id=1 title="a"→"A" data=blob (1 bytes)→blob (2 bytes)"#,
        "~ id=2 data=1→1.0", "+ id=4 title=\"d\" data=null",
      ])
  }

  /// Keys of every type in one column, null in a key, no key, a key with another name, a table's name with a quote, text that
  /// is no UTF-8, a NUL inside, long values that differ at their end.
  @Test func oddKeysAndValues() throws {
    let mixed = "CREATE TABLE t(k PRIMARY KEY, v) WITHOUT ROWID;"
    #expect(
      try rows(
        mixed + "INSERT INTO t VALUES (1, 1), ('1', 1), (x'31', 1), (1.5, 1), ('a', 1)",
        mixed + "INSERT INTO t VALUES (1, 2), ('1', 1), (x'31', 3), (1.5, 1), ('A', 1)") == [
          "- k=\"a\" v=1", "~ k=1 v=1→2", "~ k=blob (1 bytes) v=1→3", "+ k=\"A\" v=1",
        ])
    let two = mixed + "INSERT INTO t VALUES (1, 1), (2, 2);"
    let renamed = try DatabasePair.with(two, two + "ALTER TABLE t RENAME COLUMN k TO l") {
      try $0.compare().tables
    }
    #expect(renamed.map { [$0.added, $0.removed, $0.changed] } == [[2, 2, 0]])
    let odd =
      #"CREATE TABLE "odd ""name"(id INTEGER PRIMARY KEY, v); INSERT INTO "odd ""name" VALUES (1, 1);"#
    let quoted = try DatabasePair.with(odd, odd + #"INSERT INTO "odd ""name" VALUES (2, 2)"#) {
      try $0.compare().tables
    }
    #expect(quoted.map(\.name) == [#"odd "name"#])
    #expect(quoted.map { [$0.added, $0.removed, $0.changed] } == [[1, 0, 0]])
    let pair = "CREATE TABLE t(a, b, c, PRIMARY KEY(a, b));"
    #expect(
      try rows(
        pair + "INSERT INTO t VALUES (NULL, 1, 1), (NULL, 1, 2)",
        pair + "INSERT INTO t VALUES (NULL, 1, 1), (NULL, 1, 3)") == ["~ rowid=2 c=2→3"])
    let keyless = "CREATE TABLE t(\"rowid\", v COLLATE NOCASE);"
    #expect(
      try rows(
        keyless + "INSERT INTO t VALUES ('x', 'a'), ('y', 'b')",
        keyless + "INSERT INTO t VALUES ('x', 'A'), ('y', 'b')") == [#"~ _rowid_=1 v="a"→"A""#])
    let text = "CREATE TABLE t(k TEXT PRIMARY KEY, v);"
    let bad = try DatabasePair.with(
      text
        + "INSERT INTO t VALUES (CAST(x'61ff' AS TEXT), 1), (CAST(x'61fe' AS TEXT), 2), (CAST(x'610062' AS TEXT), 3)",
      text
        + "INSERT INTO t VALUES (CAST(x'61ff' AS TEXT), 1), (CAST(x'61fd' AS TEXT), 2), (CAST(x'610063' AS TEXT), 3)"
    ) { try $0.compare().tables }
    #expect(bad.map { [$0.added, $0.removed, $0.changed] } == [[2, 2, 0]])
    let long = "CREATE TABLE t(id INTEGER PRIMARY KEY, v);"
    let tail = try DatabasePair.with(
      long + "INSERT INTO t VALUES (1, hex(zeroblob(5000)) || 'a'), (2, zeroblob(100000))",
      long + "INSERT INTO t VALUES (1, hex(zeroblob(5000)) || 'b'), (2, zeroblob(99999) || x'01')"
    ) { try $0.compare().tables }
    #expect(tail.first?.changed == 2)
    let field = try #require(tail.first?.rows.first?.columns.first)
    #expect(field.before?.hasSuffix("0…\" (10001 characters)") == true && (field.before?.count ?? 999) < 200)
  }

  /// A key that is case-insensitive, one whose collation only the app knows, one that changed its type, none at all.
  @Test func keysWithoutAnIndexThatComparesByBytes() throws {
    let nocase = "CREATE TABLE t(k TEXT COLLATE NOCASE PRIMARY KEY, v);"
    #expect(
      try rows(
        nocase + "INSERT INTO t VALUES ('a', 1), ('b', 1)", nocase + "INSERT INTO t VALUES ('A', 1), ('b', 2)"
      ) == ["- k=\"a\" v=1", "~ k=\"b\" v=1→2", "+ k=\"A\" v=1"])
    #expect(
      try rows(
        "CREATE TABLE t(k INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 1), (2, 2)",
        "CREATE TABLE t(k TEXT PRIMARY KEY, v); INSERT INTO t VALUES ('1', 1), ('2', 2)"
      ).count == 4)
    var configuration = GRDB.Configuration()
    configuration.prepareDatabase { db in
      db.add(collation: DatabaseCollation("APP") { $1.compare($0) })
    }
    for end in ["", " WITHOUT ROWID"] {
      let own = "CREATE TABLE t(k TEXT COLLATE APP PRIMARY KEY, v TEXT COLLATE APP)\(end);"
      let tables = try DatabasePair.with(
        own + "INSERT INTO t VALUES ('a', 'x'), ('b', 'y'), ('c', 'z')",
        own + "INSERT INTO t VALUES ('a', 'x'), ('b', 'z'), ('d', 'z')", configuration: configuration
      ) { try $0.compare().tables }
      #expect(tables.map { [$0.added, $0.removed, $0.changed] } == [[1, 1, 1]])
    }
    let bare = "CREATE TABLE t(rowid, _rowid_, oid);"
    let tables = try DatabasePair.with(
      bare + "INSERT INTO t VALUES (1, 1, 1), (2, 2, 2), (2, 2, 2)",
      bare + "INSERT INTO t VALUES (2, 2, 2), (3, 3, 3)"
    ) { try $0.compare().tables }
    #expect(tables.map { [$0.added, $0.removed, $0.changed] } == [[1, 2, 0]])
  }

  @Test func schema() throws {
    try DatabasePair.with(
      """
      CREATE TABLE kept(a INTEGER, b TEXT, c); CREATE TABLE gone(a); CREATE INDEX i ON kept(a);
      CREATE VIEW v AS SELECT a FROM kept; CREATE TABLE same(id INTEGER PRIMARY KEY AUTOINCREMENT);
      INSERT INTO same DEFAULT VALUES;
      """,
      """
      CREATE TABLE kept(a INTEGER NOT NULL DEFAULT 0, b TEXT, d REAL, e AS (a + 1)); CREATE INDEX i ON kept(b);
      CREATE TRIGGER g AFTER INSERT ON kept BEGIN SELECT 1; END; PRAGMA user_version = 7;
      CREATE TABLE same(id INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO same DEFAULT VALUES;
      INSERT INTO same DEFAULT VALUES; DELETE FROM same WHERE id = 2;
      """
    ) { pair in
      let result = try pair.compare()
      #expect(
        result.schema.map { "\($0.change.rawValue) \($0.kind) \($0.name)" } == [
          "changed pragma user_version", "changed index i", "removed table gone", "changed table kept",
          "added trigger g", "removed view v",
        ])
      let columns = try #require(result.schema.first { $0.name == "kept" }).columns
      #expect(
        columns.map { "\($0.change.rawValue) \($0.name): \($0.before ?? "") → \($0.after ?? "")" } == [
          "removed c: (any type) → ", "changed a: INTEGER → INTEGER NOT NULL DEFAULT 0", "added d:  → REAL",
          "added e:  → GENERATED",
        ])
      #expect(DatabasePair.rows(result.tables.first) == ["~ name=\"same\" seq=1→2"])
    }
  }

  /// How a full-text index is laid out does not matter; what is in it does.
  @Test(
    "What SQLite quotes again when it renames a table is no difference, and what a definition says is one")
  func quotes() throws {
    let made = """
      CREATE TABLE note(id INTEGER PRIMARY KEY);
      CREATE TABLE task(id INTEGER PRIMARY KEY, note REFERENCES note(id), CHECK (id > 0));
      CREATE INDEX byNote ON task(note); CREATE VIEW open AS SELECT task.id FROM task;
      CREATE TRIGGER t AFTER DELETE ON task BEGIN DELETE FROM note WHERE id = old.note; END;
      """
    let renamed = "ALTER TABLE task RENAME TO other; ALTER TABLE other RENAME TO task;"
    let result = try DatabasePair.with(made, made + renamed) { pair in
      let queue = try DatabaseQueue(path: pair.after)
      let sql = try queue.read {
        try String.fetchOne($0, sql: "SELECT sql FROM sqlite_schema WHERE name = 'task'")
      }
      #expect(sql?.hasPrefix("CREATE TABLE \"task\"") == true, "SQLite has quoted the name")
      return try pair.compare()
    }
    #expect(result.schema.isEmpty && result.tables.isEmpty, "\(result)")
    for change in [
      "(id INTEGER PRIMARY KEY, title TEXT COLLATE NOCASE)",
      "(id INTEGER PRIMARY KEY, title TEXT DEFAULT 'b')",
      "(id INTEGER PRIMARY KEY, title TEXT DEFAULT 'a') STRICT",
      "(id INTEGER PRIMARY KEY, title TEXT CHECK (id))",
      "(id INTEGER PRIMARY KEY, title TEXT DEFAULT 'a') WITHOUT ROWID",
    ] {
      let table = "(id INTEGER PRIMARY KEY, title TEXT DEFAULT 'a')"
      try DatabasePair.with("CREATE TABLE \"t\"\(table)", "CREATE TABLE t\(change)") { pair in
        let names = try pair.compare().schema.map(\.name)
        #expect(names == ["t"], "\(change)")
      }
    }
  }

  @Test func virtualTables() throws {
    let table = "CREATE VIRTUAL TABLE f USING fts5(title, body);"
    let two = "INSERT INTO f VALUES ('a', 'one'); INSERT INTO f VALUES ('b', 'two');"
    try DatabasePair.with(table + two, table + two + "INSERT INTO f(f) VALUES ('optimize')") { pair in
      let result = try pair.compare()
      #expect(result.schema.isEmpty && result.tables.isEmpty)
    }
    try DatabasePair.with(table + two, table + two + "UPDATE f SET body = 'zwei' WHERE title = 'b'") { pair in
      let tables = try pair.compare().tables
      #expect(DatabasePair.rows(tables.first) == [#"~ rowid=2 body="two"→"zwei""#])
      #expect(tables.count == 1)
    }
    let bare = "CREATE VIRTUAL TABLE f USING fts5(body, content='');"
    try DatabasePair.with(
      bare + "INSERT INTO f(rowid, body) VALUES (1, 'one')",
      bare + "INSERT INTO f(rowid, body) VALUES (1, 'two')"
    ) { pair in
      let tables = try pair.compare().tables
      #expect(!tables.isEmpty, "its texts are nowhere, but its index is")
    }
  }

  @Test func secretsAreNotShown() throws {
    let sql = """
      CREATE TABLE account(id INTEGER PRIMARY KEY, name TEXT, password TEXT);
      CREATE TABLE setting(name TEXT PRIMARY KEY, value);
      INSERT INTO account VALUES (1, 'eyJhbGciOi.\(String(repeating: "x", count: 5000)).c', 'hunter2');
      INSERT INTO setting VALUES ('auth_token', 'hunter2'), ('theme', 'dark');
      """
    let other = sql.replacing("hunter2", with: "hunter3").replacing("dark", with: "light")
    try DatabasePair.with(sql, other.replacing("eyJhbGciOi", with: "eyJabcdefg")) { pair in
      let tables = try pair.compare().tables
      let text = tables.flatMap(DatabasePair.rows).joined(separator: "\n")
      #expect(!text.contains("hunter") && !text.contains("eyJ"), "\(text)")
      #expect(text.contains(#"~ name="theme" value="dark"→"light""#) && text.contains("auth_token"))
    }
  }

  @Test func otherEncodingsAndDamage() throws {
    let sql = "CREATE TABLE t(k TEXT PRIMARY KEY, v); INSERT INTO t VALUES ('ä', '€'), ('b', 'x');"
    let wide = "PRAGMA encoding = 'UTF-16le';" + sql
    try DatabasePair.with(wide, wide + "UPDATE t SET v = '¥' WHERE k = 'ä'") { pair in
      let rows = DatabasePair.rows(try pair.compare().tables.first)
      #expect(rows == [#"~ k="ä" v="€"→"¥""#])
    }
    try DatabasePair.with(sql, wide) { pair in
      let schema = try pair.compare().schema
      #expect(schema.map(\.name) == ["encoding"])
      var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: pair.before)))
      bytes.replaceSubrange(100..<300, with: Array(repeating: 0xff, count: 200))
      try Data(bytes).write(to: URL(fileURLWithPath: pair.before))
      do {
        _ = try pair.compare()
        Issue.record("nothing was thrown")
      } catch let error as DrydockError {
        #expect(error.code == .malformed)
      }
    }
  }

  /// No table is sorted, hashed or loaded: one side is read through, the other looked up by its key.
  @Test func everyLookupUsesAnIndex() throws {
    for table in [
      "CREATE TABLE t(id INTEGER PRIMARY KEY, v);", "CREATE TABLE t(k TEXT, l BLOB, v, PRIMARY KEY(k, l));",
      "CREATE TABLE t(k TEXT PRIMARY KEY, v) WITHOUT ROWID;", "CREATE TABLE t(v);",
    ] {
      try DatabasePair.with(table, table) { pair in
        try DatabaseQueue(path: pair.after).inDatabase { db in
          try db.execute(sql: "ATTACH ? AS before", arguments: [pair.before])
          let (old, new) = (try TableKey("t", "before", db), try TableKey("t", "main", db))
          let shared = TableKey.shared(old, new)
          let key = try #require(shared)
          #expect(key.isIndexed, "\(table)")
          let join = RowJoin(before: "before.t", after: "main.t", key: key.columns, values: ["v"])
          for from in [join.added, join.removed, try #require(join.changed)] {
            let plan = try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN SELECT count(*) \(from)").map {
              $0["detail"] as String
            }
            #expect(plan.count { $0.hasPrefix("SCAN") } == 1, "\(table) \(plan)")
            #expect(
              plan.contains { $0.hasPrefix("SEARCH") } && !plan.contains { $0.contains("TEMP") }, "\(plan)")
          }
        }
      }
    }
  }

  @Test func aLargeTable() throws {
    let count = TestExtent.isFull ? 300_000 : 30_000
    let sql = """
      CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b BLOB);
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
      INSERT INTO t SELECT i, 'title ' || i, zeroblob(100) FROM n;
      """
    let change = "UPDATE t SET a = 'x' WHERE id % 3 = 0; DELETE FROM t WHERE id > \(count - 1000);"
    try DatabasePair.with(sql, sql + change) { pair in
      let tables = try pair.compare(rows: 10).tables
      let table = try #require(tables.first)
      #expect(
        table.removed == 1000 && table.changed == (count - 1000) / 3 && table.added == 0
          && table.rows.count == 20)
    }
  }
}

/// Random pairs of databases: what the comparison counts is what a plain comparison of all rows counts.
@Suite struct DatabaseComparisonPropertyTests {
  private static let forms = [
    "k INTEGER PRIMARY KEY, a, b", "k PRIMARY KEY, a, b", "k TEXT PRIMARY KEY, a TEXT COLLATE NOCASE, b",
    "k, l, a, b, PRIMARY KEY(k, l)", "k TEXT COLLATE NOCASE, a, b, PRIMARY KEY(k)", "k BLOB, a, b",
  ]

  @Test(arguments: 0..<30 as Range<UInt64>) func countsAreRight(_ seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let form = Self.forms[Int(seed) % Self.forms.count]
    let isWithoutRowid = form.contains("PRIMARY KEY") && random.next() % 3 == 0
    let create = "CREATE TABLE t(\(form))\(isWithoutRowid ? " WITHOUT ROWID" : "");"
    let before = create + inserts(form, &random)
    // Mostly the same rows.
    let after = before + changes(form, &random)
    try DatabasePair.with(before, after) { pair in
      let found = try pair.compare(rows: 1000).tables.first
      let wanted = try Self.reference(pair, form, isWithoutRowid)
      #expect([found?.added ?? 0, found?.removed ?? 0, found?.changed ?? 0] == wanted, "\(form) \(after)")
      let rows = found?.rows ?? []
      #expect(
        [.added, .removed, .changed].map { change in rows.count { $0.change == change } } == wanted, "\(form)"
      )
      #expect(rows.allSatisfy { $0.change != .changed || !$0.columns.isEmpty })
    }
  }

  /// A value for the key: an INTEGER PRIMARY KEY takes nothing else.
  private func key(_ form: String, _ random: inout SeededRandom) -> String {
    form.hasPrefix("k INTEGER") ? "\(random.next() % 20)" : literal(&random)
  }

  private func literal(_ random: inout SeededRandom) -> String {
    let number = Int(random.next() % 6)
    switch random.next() % 7 {
    case 0: return "\(number)"
    case 1: return "'\(number)'"
    case 2: return "x'3\(number)'"
    case 3: return "\(number).5"
    case 4: return "NULL"
    case 5: return random.next() % 2 == 0 ? "'a\(number)'" : "'A\(number)'"
    default: return "CAST(x'61f\(number)00' AS TEXT)"
    }
  }

  private func inserts(_ form: String, _ random: inout SeededRandom) -> String {
    let count =
      form.split(separator: ",").count - (form.contains("PRIMARY KEY(") ? form.contains("l,") ? 2 : 1 : 0)
    return (0..<Int(random.next() % 40)).map { _ in
      // What does not fit the table is left out.
      let values = [key(form, &random)] + (1..<count).map { _ in literal(&random) }
      return "INSERT OR IGNORE INTO t VALUES (\(values.joined(separator: ", ")));"
    }.joined()
  }

  private func changes(_ form: String, _ random: inout SeededRandom) -> String {
    (0..<Int(random.next() % 6)).map { _ in
      let value = literal(&random)
      return [
        "UPDATE t SET a = \(value) WHERE b IS \(literal(&random));", "DELETE FROM t WHERE a IS \(value);",
        "UPDATE OR IGNORE t SET k = \(key(form, &random)) WHERE a IS \(literal(&random));",
        "INSERT OR IGNORE INTO t(k, b) VALUES (\(key(form, &random)), \(literal(&random)));",
      ][Int(random.next() % 4)]
    }.joined()
  }

  /// Loads everything, each value as its type and its bytes.
  private static func reference(_ pair: DatabasePair, _ form: String, _ isWithoutRowid: Bool) throws -> [Int]
  {
    let names = form.contains("l,") ? ["k", "l", "a", "b"] : ["k", "a", "b"]
    func rows(_ path: String, by key: [String]) throws -> [[String]: [String]] {
      let text = { (name: String) in "typeof(\(name)) || ':' || hex(CAST(\(name) AS BLOB))" }
      return try DatabaseQueue(path: path).inDatabase { db in
        let list = (key + names).map(text).joined(separator: ", ")
        return try Row.fetchAll(db, sql: "SELECT \(list) FROM t").reduce(into: [:]) { result, row in
          let values = row.databaseValues.map { $0.description }
          result[Array(values.prefix(key.count))] = Array(values.dropFirst(key.count))
        }
      }
    }
    func hasNull(_ path: String) throws -> Bool {
      try DatabaseQueue(path: path).inDatabase { db in
        try Bool.fetchOne(
          db, sql: "SELECT count(*) FROM t WHERE k IS NULL\(form.contains("l,") ? " OR l IS NULL" : "")")
          == true
      }
    }
    var key = form.contains("PRIMARY KEY") ? form.contains("l,") ? ["k", "l"] : ["k"] : ["rowid"]
    if !isWithoutRowid, try hasNull(pair.before) || hasNull(pair.after) { key = ["rowid"] }
    let (old, new) = (try rows(pair.before, by: key), try rows(pair.after, by: key))
    return [
      new.keys.count { old[$0] == nil }, old.keys.count { new[$0] == nil },
      old.count { key, value in new[key] != nil && new[key] != value },
    ]
  }
}
