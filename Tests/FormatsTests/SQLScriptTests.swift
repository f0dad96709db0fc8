import Formats
import Testing

@Suite struct SQLScriptTests {
  private func texts(_ sql: String) -> [String] {
    SQLScript(text: sql, file: "a.sql", firstLine: 1).statements().map(\.text)
  }

  @Test func statementsEndAtTheirSemicolons() {
    #expect(
      texts(
        ";; -- a;\n insert into t values (';', \";\", [;], `;`) /* ; */;\nSELECT 1;;\n-- b\n UPDATE t SET a = 1 -- c"
      )
        == [
          "insert into t values (';', \";\", [;], `;`) /* ; */;", "SELECT 1;", "UPDATE t SET a = 1 -- c",
        ])
    let trigger = "CREATE TEMP TRIGGER a AFTER INSERT ON t BEGIN SELECT 1; SELECT 2; END;"
    #expect(
      texts("\(trigger) create table u (a); SELECT 'it''s;'") == [
        trigger, "create table u (a);", "SELECT 'it''s;'",
      ])
    // A file that begins with a byte order mark was appended to another.
    #expect(texts("SELECT 1;\n\u{FEFF}DELETE FROM t") == ["SELECT 1;", "DELETE FROM t"])
    #expect(texts("; /* unclosed").isEmpty)
    #expect(texts("SELECT 'unclosed;") == ["SELECT 'unclosed;"])
  }

  @Test(arguments: [
    ("CREATE TABLE t (temperature, tempo)", false), ("CREATE TABLE t (a); DROP TABLE temp.u", true),
    ("create temporary view v as select 1", true), ("PRAGMA user_version = 3", false),
    ("PRAGMA 'foreign_keys' = ON", true), ("SELECT user_version FROM pragma_user_version", false),
    ("INSERT INTO t SELECT \"changes\"()", true), ("-- changes()\nSELECT 1 /* temp */", false),
    ("SELECT Last_Insert_RowID()", true), ("ANALYZE", true),
    ("INSERT INTO sqlite_stat1 VALUES ('t', NULL, '9')", true),
  ])
  func wordsOfConnections(_ sql: String, _ isUsed: Bool) {
    #expect(SQLScript(text: sql, file: "a.sql", firstLine: 1).usesConnection == isUsed)
  }

  @Test func linesOfComments() {
    let sql = "-- one\nSELECT '\n-- text';\n /*\n-- block\n*/ -- after\n\t-- two\n\n--three"
    let bytes = Array(sql.utf8)
    let lines = SQLTokens.commentLines(in: bytes)
    #expect(lines.map(\.number) == [1, 7, 9])
    #expect(
      lines.map { String(decoding: bytes[$0.line], as: UTF8.self) } == ["-- one", "\t-- two", "--three"])
  }

  @Test(
    arguments: [
      ("<<<<<<< a", 1), ("a\n=======\n", 2), ("a\n\n>>>>>>>\r\n", 3), ("a\n<<<<<<<", 2), ("========", nil),
      ("<<<<<<<x\n <<<<<<<\n<<<<<<\n<", nil), ("", nil),
    ] as [(String, Int?)])
  func markersOfConflicts(_ text: String, _ line: Int?) {
    #expect(TextFile.conflictLine(in: Array(text.utf8), marks: "<>=") == line)
  }
}
