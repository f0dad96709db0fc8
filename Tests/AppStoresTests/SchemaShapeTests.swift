import AppStores
import GRDB
import Testing

/// A schema is read beside the one that was read last: what is kept of that one must be what the database has.
@Suite struct SchemaShapeTests {
  private static let tables = """
    CREATE TABLE list (id INTEGER PRIMARY KEY, title TEXT);
    CREATE TABLE task (id INTEGER PRIMARY KEY, list INTEGER REFERENCES list(id));
    CREATE INDEX by_list ON task (list);
    CREATE VIEW open_task AS SELECT id FROM task;
    CREATE TRIGGER kept AFTER INSERT ON task BEGIN SELECT 1; END;
    """

  /// What each object says in the database, in its order.
  private func definitions(_ db: Database) throws -> [String] {
    try String.fetchAll(db, sql: "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
  }

  private func expectRead(_ db: Database) throws {
    let shape = try SchemaShape(db)
    let wanted = try definitions(db)
    #expect(shape.objects.map(\.sql) == wanted)
  }

  @Test(arguments: ["UTF-8", "UTF-16le"])
  func isReadAfterEachChange(_ encoding: String) throws {
    try DatabaseQueue().writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA encoding = '\(encoding)'; \(Self.tables)")
      try expectRead(db)
      for sql in [
        "CREATE TABLE \"größe\" (\"é\" TEXT)", "DROP TRIGGER kept",
        "ALTER TABLE list ADD COLUMN done INTEGER", "DROP INDEX by_list", "ALTER TABLE list RENAME TO folder",
        "DROP VIEW open_task", "CREATE TABLE list (id INTEGER PRIMARY KEY, title TEXT)", "DROP TABLE task",
      ] {
        try db.execute(sql: sql)
        try expectRead(db)
      }
    }
  }

  /// More go at once than are looked for; and another database is read between.
  @Test func manyAreDropped() throws {
    let other = try DatabaseQueue()
    try DatabaseQueue().writeWithoutTransaction { db in
      for number in 0..<40 { try db.execute(sql: "CREATE TABLE t\(number) (a)") }
      try expectRead(db)
      for number in 5..<25 { try db.execute(sql: "DROP TABLE t\(number)") }
      try expectRead(db)
      try other.write {
        try $0.execute(sql: Self.tables)
        try expectRead($0)
      }
      try expectRead(db)
    }
  }

  /// One byte differs, or the name's composition, which is one text for Swift.
  @Test func nearlyTheSameIsAnother() throws {
    for (one, two) in [
      ("CREATE TABLE t (a TEXT)", "CREATE TABLE t (b TEXT)"),
      ("CREATE TABLE t (\"\u{E9}\")", "CREATE TABLE t (\"e\u{301}\")"),
      ("CREATE TABLE t (a DEFAULT 1)", "CREATE TABLE t (a DEFAULT 12)"),
    ] {
      let shapes = try [one, two].map { sql in
        try DatabaseQueue().write { db in
          try db.execute(sql: sql)
          return try SchemaShape(db)
        }
      }
      #expect(shapes.map { Array($0.objects[0].sql.utf8) } == [Array(one.utf8), Array(two.utf8)])
    }
  }

  /// A container's database may have been written to make Drydock run something.
  @Test func whatFollowsADefinitionDoesNotRun() throws {
    try DatabaseQueue().writeWithoutTransaction { db in
      try db.execute(
        sql: """
          CREATE TABLE a (x); CREATE INDEX i ON a (x); CREATE VIEW v AS SELECT y FROM b;
          CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT y FROM b; END; PRAGMA writable_schema = ON;
          UPDATE sqlite_schema SET sql = sql || '; CREATE TABLE b (y)';
          """)
      let results = try SchemaTrial.results(for: SchemaShape(db).objects)
      #expect(results.count == 2)
      #expect(results.values.allSatisfy { $0.error == "no such table: main.b" }, "\(results)")
    }
  }

  /// The statements of a long script are not read for the names that they drop when nothing has gone.
  @Test func droppedNamesAreAskedForWhenOneIsGone() throws {
    try DatabaseQueue().writeWithoutTransaction { db in
      func losses(_ sql: String) throws -> (lost: [String], asked: Int) {
        let before = try SchemaShape(db)
        try db.execute(sql: sql)
        var asked = 0
        let lost = try SchemaShape(db).losses(since: before) {
          asked += 1
          return ["by_list"]
        }
        return (lost, asked)
      }
      try db.execute(sql: Self.tables)
      #expect(try losses("CREATE TABLE more (a)") == ([], 0))
      #expect(try losses("ALTER TABLE list ADD COLUMN done INTEGER") == ([], 0))
      #expect(try losses("DROP INDEX by_list") == ([], 1))
      #expect(try losses("DROP TRIGGER kept") == (["trigger kept of `task`"], 1))
    }
  }
}
