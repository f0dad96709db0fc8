import Formats
import Testing

@testable import ContainerDiff

@Suite("Definitions in SQL")
struct SQLDefinitionTests {
  private func isSame(_ a: String, _ b: String, _ kind: String) -> Bool {
    SQLToken.definition(a, kind: kind).map(\.source) == SQLToken.definition(b, kind: kind).map(\.source)
  }

  @Test("Quotes around names, white space and comments make no difference")
  func same() {
    for other in [
      "CREATE INDEX open ON task (dueAt) WHERE \"isDone\" = 0",
      "CREATE INDEX [open] ON `task`(dueAt)\n  WHERE isDone = 0 -- only open ones",
      #"CREATE INDEX "open" ON "task" ( dueAt ) WHERE isDone = 0"#,
    ] { #expect(isSame("CREATE INDEX open ON task (dueAt) WHERE isDone = 0", other, "index"), "\(other)") }
    let table =
      "CREATE TABLE task (id INTEGER PRIMARY KEY, title TEXT REFERENCES note(id), CHECK (title <> 'a'))"
    for other in [
      #"CREATE TABLE "task" (id INTEGER PRIMARY KEY, title TEXT REFERENCES "note"(id), CHECK (title <> 'a'))"#,
      "CREATE TABLE [task] (\"id\" INTEGER PRIMARY KEY,\n  `title` TEXT REFERENCES note([id]), CHECK (\"title\" <> 'a'))",
    ] { #expect(isSame(table, other, "table"), "\(other)") }
    #expect(
      isSame("CREATE TABLE plan (\"order\" INT)", "CREATE TABLE \"plan\" ([order] INT)", "table"),
      "a keyword as the name of a table")
    #expect(
      isSame(
        "CREATE VIEW v AS SELECT task.title FROM task JOIN note ON note.id = task.id",
        #"CREATE VIEW v AS SELECT "task".title FROM "task" JOIN note ON note."id" = "task".id"#, "view")
    )
    #expect(
      isSame(
        "CREATE TRIGGER t AFTER UPDATE OF title ON task BEGIN INSERT INTO note VALUES (new.title); END",
        #"CREATE TRIGGER t AFTER UPDATE OF title ON "task" BEGIN INSERT INTO "note" VALUES (new.title); END"#,
        "trigger"))
    #expect(
      isSame(
        "CREATE VIRTUAL TABLE f USING fts5(body)", "CREATE VIRTUAL TABLE \"f\" USING fts5(body)", "table"))
    for (a, b) in [
      (
        "CREATE VIRTUAL TABLE f USING fts5(title, body UNINDEXED, content='note', prefix=2)",
        "CREATE VIRTUAL TABLE [f] USING \"fts5\" (\n  \"title\",\n  [body] UNINDEXED, -- text\n  content = \"note\",prefix='2')"
      ),
      (
        "CREATE VIRTUAL TABLE f USING rtree(id, x0, x1)", "CREATE VIRTUAL TABLE f USING rtree (id,\"x0\",x1 )"
      ),
      ("CREATE VIRTUAL TABLE f USING m(a, b c)", "CREATE VIRTUAL TABLE f USING m (a,b  c)"),
    ] { #expect(isSame(a, b, "table"), "\(b)") }
  }

  @Test(
    "All else is a difference",
    arguments: [
      ("CHECK (a <> 'x')", "CHECK (a <> 'y')"), ("CHECK (a <> 'x')", "CHECK (a <> x)"),
      ("CHECK (a <> 'x')", "CHECK (a <> 'X')"), ("DEFAULT null", "DEFAULT \"null\""),
      ("DEFAULT 1", "DEFAULT \"1\""), ("DEFAULT true", "DEFAULT \"true\""),
      ("DEFAULT 'a b'", "DEFAULT 'a  b'"),
      ("DEFAULT CURRENT_TIMESTAMP", "DEFAULT \"CURRENT_TIMESTAMP\""), ("DEFAULT 1", "DEFAULT 1.0"),
      ("COLLATE NOCASE", "COLLATE BINARY"), ("COLLATE NOCASE", ""), ("NOT NULL", ""), ("UNIQUE", ""),
      ("REFERENCES b(x)", "REFERENCES \"c\"(x)"), ("REFERENCES b(x) ON DELETE CASCADE", "REFERENCES b(x)"),
      ("DEFAULT x'ab'", "DEFAULT 'ab'"), ("CHECK (\"a b\")", "CHECK (a b)"), ("CHECK (a)", "CHECK (A)"),
      ("CHECK (1.5)", #"CHECK ("1"."5")"#),
    ])
  func different(_ a: String, _ b: String) {
    #expect(!isSame("CREATE TABLE t (a TEXT \(a))", "CREATE TABLE t (a TEXT \(b))", "table"))
    #expect(!isSame("CREATE TABLE t (a TEXT \(b))", "CREATE TABLE t (a TEXT \(a))", "table"))
  }

  @Test("Options of a table, its columns and arguments of a module are differences")
  func options() {
    let table = "CREATE TABLE t (a INT PRIMARY KEY, b TEXT)"
    for other in [
      "\(table) STRICT", "\(table) WITHOUT ROWID", "CREATE TABLE u (a INT PRIMARY KEY, b TEXT)",
      "CREATE TABLE t (b TEXT, a INT PRIMARY KEY)", "CREATE TABLE t (a INT PRIMARY KEY, bb TEXT)",
    ] { #expect(!isSame(table, other, "table"), "\(other)") }
    #expect(!isSame("\(table) STRICT", "\(table) WITHOUT ROWID", "table"))
    #expect(
      !isSame(
        "CREATE VIRTUAL TABLE f USING m(a, \"b\")", "CREATE VIRTUAL TABLE f USING m(a, b)", "table"))
    let search =
      "CREATE VIRTUAL TABLE f USING fts5(title, body UNINDEXED, content='', tokenize='porter ascii')"
    for other in [
      search.replacing("title", with: "titel"), search.replacing(" UNINDEXED", with: ""),
      search.replacing("''", with: "'note'"), search.replacing("porter ", with: ""),
      search.replacing("title, body UNINDEXED", with: "body UNINDEXED, title"),
    ] { #expect(!isSame(search, other, "table"), "\(other)") }
  }

  @Test("In views and triggers, which SQLite does not check, a name in quotes may be a text")
  func unchecked() {
    #expect(!isSame("CREATE VIEW v AS SELECT \"open\" FROM t", "CREATE VIEW v AS SELECT open FROM t", "view"))
    #expect(
      !isSame(
        "CREATE VIEW v AS SELECT a FROM t WHERE a IS DISTINCT FROM \"b\"",
        "CREATE VIEW v AS SELECT a FROM t WHERE a IS DISTINCT FROM b", "view"))
    #expect(
      !isSame(
        "CREATE VIEW v AS SELECT a FROM t JOIN u ON \"b\"", "CREATE VIEW v AS SELECT a FROM t JOIN u ON b",
        "view"))
    #expect(
      !isSame(
        "CREATE TRIGGER r AFTER INSERT ON t BEGIN UPDATE u SET a = \"b\"; END",
        "CREATE TRIGGER r AFTER INSERT ON t BEGIN UPDATE u SET a = b; END", "trigger"))
  }
}
