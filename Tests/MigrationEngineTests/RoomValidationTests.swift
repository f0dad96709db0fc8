import AppFrameworks
import Formats
import GRDB
import Testing

/// Each of Room's rules: what it compares, and what it does not.
@Suite struct RoomValidationTests {
  private static let schema = """
    {"formatVersion": 1, "database": {"version": 1, "identityHash": "ab", "views": [
      {"viewName": "v", "createSql": "CREATE VIEW `${VIEW_NAME}` AS SELECT a FROM t"}], "entities": [
      {"tableName": "p", "createSql": "CREATE TABLE `${TABLE_NAME}` (`id` INTEGER NOT NULL, `k` TEXT NOT NULL, PRIMARY KEY(`id`, `k`))",
       "fields": [{"columnName": "id", "affinity": "INTEGER", "notNull": true}, {"columnName": "k", "affinity": "TEXT", "notNull": true}],
       "primaryKey": {"columnNames": ["id", "k"]}},
      {"tableName": "t", "createSql": "", "fields": [
        {"columnName": "a", "affinity": "TEXT", "notNull": true, "defaultValue": "('x' || 'y')"},
        {"columnName": "b", "affinity": "INTEGER"}, {"columnName": "c", "affinity": ""}, {"columnName": "pid", "affinity": "INTEGER"}],
       "primaryKey": {"columnNames": ["a"]},
       "indices": [{"name": "index_t_b", "unique": true, "columnNames": ["b", "c"], "orders": ["ASC", "DESC"], "createSql": ""},
         {"name": "own", "columnNames": ["c"], "createSql": ""}],
       "foreignKeys": [{"table": "p", "onDelete": "CASCADE", "onUpdate": "NO ACTION", "columns": ["pid"], "referencedColumns": ["id"]}]},
      {"tableName": "f", "createSql": "CREATE VIRTUAL TABLE `${TABLE_NAME}` USING FTS4(`a` TEXT, tokenize=porter `x,y`, prefix=`2,3`)",
       "fields": [{"columnName": "a", "affinity": "TEXT"}], "primaryKey": {"columnNames": ["rowid"]}, "ftsVersion": "FTS4",
       "ftsOptions": {"tokenizer": "porter"}, "contentSyncTriggers": []}]}}
    """
  private static let database = """
    CREATE TABLE p (id INTEGER NOT NULL, k TEXT NOT NULL, PRIMARY KEY(id, k));
    CREATE TABLE t (a TEXT NOT NULL DEFAULT ('x' || 'y'), b INTEGER, c DECIMAL, pid INTEGER, PRIMARY KEY(a),
      FOREIGN KEY (pid) REFERENCES p(id) ON DELETE CASCADE);
    CREATE UNIQUE INDEX index_t_b ON t (b, c DESC);
    CREATE INDEX own ON t (c);
    CREATE VIEW `v` AS SELECT a FROM t;
    CREATE VIRTUAL TABLE f USING FTS4(`a` TEXT, tokenize=porter `x,y`, prefix=`2,3`);
    """

  private func differences(_ sql: String) throws -> [String] {
    let schema = try RoomSchema(Array(Self.schema.utf8), file: "1.json")
    return try DatabaseQueue().write { (db: Database) throws in
      try db.execute(sql: sql)
      return try schema.differences(in: db).map {
        $0.description.replacing(#/ \(1\.json.*\)$/#, with: "")
      }
    }
  }

  /// What Room accepts, although it is not as declared.
  @Test(arguments: [
    ("", ""),
    // Names of tables by SQLite's rule, order of columns, types of one affinity, the order of a key of several columns.
    ("CREATE TABLE t (a TEXT", "CREATE TABLE T (a VARCHAR(20)"),
    ("b INTEGER, c DECIMAL", "c NUMERIC, b BIGINT"),
    ("PRIMARY KEY(id, k)", "PRIMARY KEY(k, id)"),
    // CHECK, COLLATE, UNIQUE, conflict clauses and generated columns.
    ("b INTEGER,", "b INTEGER UNIQUE CHECK (b > 0) COLLATE NOCASE, g INTEGER GENERATED ALWAYS AS (b + 1),"),
    // A default that the app does not declare.
    ("b INTEGER,", "b INTEGER DEFAULT 7,"),
    // Names that Room makes, and WHERE.
    ("INDEX index_t_b ON t (b, c DESC)", "INDEX index_other ON t (b, c DESC) WHERE b > 0"),
    // Triggers, other tables and their indexes, rows.
    (
      "CREATE VIEW",
      "CREATE TABLE other (x); CREATE INDEX i ON other (x); CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; END; "
        + "INSERT INTO p VALUES (1, 'k'); CREATE VIEW"
    ),
    // The order of options, and the names of their columns' types.
    ("tokenize=porter `x,y`, prefix=`2,3`", "prefix=`2,3`, tokenize=porter `x,y`"),
  ])
  func accepted(_ old: String, _ new: String) throws {
    #expect(Self.database.contains(old) || old.isEmpty)
    let found = try differences(old.isEmpty ? Self.database : Self.database.replacing(old, with: new))
    #expect(found == [], "\(found)")
  }

  @Test(arguments: [
    ("b INTEGER,", "b TEXT,", ["table t: column b: affinity INTEGER expected, found TEXT"]),
    ("c DECIMAL", "c BLOB", ["table t: column c: affinity UNDEFINED expected, found BLOB"]),
    ("b INTEGER,", "b INTEGER NOT NULL,", ["table t: column b: nullable expected, found NOT NULL"]),
    ("a TEXT NOT NULL", "a TEXT", ["table t: column a: NOT NULL expected, found nullable"]),
    (
      "b INTEGER, c DECIMAL, pid INTEGER, PRIMARY KEY(a)",
      "b INTEGER, c DECIMAL, pid INTEGER, PRIMARY KEY(a, b)",
      ["table t: column b: not in the primary key expected, found in the primary key"]
    ),
    // Names of columns by their case, and columns that the app does not know.
    (
      "c DECIMAL", "C DECIMAL",
      ["table t: column c: missing", "table t: column C: not in the schema"] + [
        "table t: index index_t_b UNIQUE (b, c DESC): missing", "table t: index own (c): missing",
        "table t: index index_t_b UNIQUE (b, C DESC): not in the schema",
        "table t: index own (C): not in the schema",
      ]
    ),
    ("b INTEGER,", "b INTEGER, more TEXT,", ["table t: column more: not in the schema"]),
    (
      "DEFAULT ('x' || 'y')", "DEFAULT 'xy'", ["table t: column a: default ('x' || 'y') expected, found 'xy'"]
    ),
    ("DEFAULT ('x' || 'y')", "", ["table t: column a: default ('x' || 'y') expected, found none"]),
    (
      "ON DELETE CASCADE", "ON DELETE SET NULL",
      [
        "table t: foreign key (pid) to p (id) ON DELETE CASCADE ON UPDATE NO ACTION: missing",
        "table t: foreign key (pid) to p (id) ON DELETE SET NULL ON UPDATE NO ACTION: not in the schema",
      ]
    ),
    (
      "(b, c DESC)", "(b, c)",
      [
        "table t: index index_t_b UNIQUE (b, c DESC): missing",
        "table t: index index_t_b UNIQUE (b, c): not in the schema",
      ]
    ),
    (
      "INDEX own", "INDEX owned",
      ["table t: index own (c): missing", "table t: index owned (c): not in the schema"]
    ),
    (
      "CREATE VIEW", "CREATE INDEX index_t_c ON t (pid); CREATE VIEW",
      ["table t: index index_t_c (pid): not in the schema"]
    ),
    (
      "AS SELECT a FROM t;", "AS SELECT a  FROM t;",
      ["view v: text CREATE VIEW `v` AS SELECT a FROM t expected, found CREATE VIEW `v` AS SELECT a  FROM t"]
    ),
    (
      "prefix=`2,3`", "prefix=`2,4`",
      ["table f: option prefix=`2,3`: missing", "table f: option prefix=`2,4`: not in the schema"]
    ),
    ("`a` TEXT, tokenize", "`a` TEXT, `b` TEXT, tokenize", ["table f: column b: not in the schema"]),
    ("CREATE TABLE p (", "CREATE TABLE q (", ["table p: missing"]),
  ])
  func refused(_ old: String, _ new: String, _ expected: [String]) throws {
    #expect(Self.database.contains(old))
    // A view's text counts, and the sample's has backticks.
    let found = try differences(Self.database.replacing(old, with: new)).filter {
      !$0.hasPrefix("view v") || expected.contains($0)
    }
    #expect(found == expected, "\(found)")
  }

  @Test(arguments: [
    ("1", "1", true), ("(1)", "1", true), ("( 1 )", "1", true), ("((1))", "(1)", true), ("1", "(1)", false),
    ("(1) + (2)", "1) + (2", false), ("(1", "1", false), ("'A'", "'a'", false), ("()", "", true),
    ("", "", true),
  ])
  func defaults(_ expected: String, _ found: String, _ isSame: Bool) {
    #expect(RoomSchema.isDefault(expected, ExactText(found)) == isSame)
    #expect(!RoomSchema.isDefault("1", nil))
  }

  @Test(arguments: [
    ("INTEGER", "INTEGER"), ("tinyint(1)", "INTEGER"), ("FLOATING POINT", "INTEGER"), ("nvarchar(5)", "TEXT"),
    ("CLOB", "TEXT"), ("blob", "BLOB"), ("double precision", "REAL"), ("FLOAT", "REAL"), ("NUMERIC", ""),
    ("", ""),
  ])
  func affinities(_ type: String, _ affinity: String) {
    #expect(RoomSchema.affinity(type) == affinity)
  }

  @Test func hostileFullTextStatements() {
    for sql in ["", "(", ")", ")(", "(,,'", "(prefix=`", "()", "x(content=`a,b`)y)"] {
      #expect(RoomSchema.fullTextOptions(sql).count <= 1)
    }
  }
}
