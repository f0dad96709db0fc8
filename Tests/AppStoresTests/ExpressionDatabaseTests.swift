import AppStores
import Cryptography
import Foundation
import Testing

/// Expressions that SQLite evaluates without tables, files and time.
@Suite struct ExpressionDatabaseTests {
  private func database(_ functions: [String: SQLFunction] = [:]) throws -> ExpressionDatabase {
    var definitions = AppDefinedSQL()
    definitions.functions = functions
    return try ExpressionDatabase(definitions)
  }

  private static func text(_ text: String) -> SQLiteValue { .text(SecretBytes(Array(text.utf8))) }

  /// The message of the failure of an expression.
  private func message(
    _ expression: String, _ parameters: [String: SQLiteValue] = [:],
    functions: [String: SQLFunction] = [:]
  ) throws -> String {
    do {
      let value = try database(functions).value(of: expression) { parameters[$0] ?? .null }
      return "no failure: \(value)"
    } catch let failure as ExpressionFailure {
      return failure.message
    }
  }

  @Test(
    arguments: [
      ("1 + 2", .integer(3)), ("SELECT 1", .integer(1)), ("7 / 2.0", .real(3.5)),
      ("'a' || \u{27}b\u{27}", text("ab")),
      ("x'00ff'", .blob(SecretBytes([0, 0xFF]))), ("NULL", .null), ("''", text("")),
      ("x''", .blob(SecretBytes([]))), ("9223372036854775807", .integer(.max)),
      ("-9223372036854775808", .integer(.min)), ("9223372036854775807 + 1", .real(9_223_372_036_854_775_808)),
      ("9e999", .real(.infinity)), ("1 -- a comment", .integer(1)), ("1 /* another */", .integer(1)),
      ("datetime('2026-11-23T10:00:00Z')", text("2026-11-23 10:00:00")),
      ("json_extract('{\"a\": [1, 2]}', '$.a[1]')", .integer(2)),
      ("(SELECT group_concat(value, '+') FROM json_each('[1, 2]'))", text("1+2")),
      (
        "(WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 9) SELECT sum(x) FROM c)",
        .integer(45)
      ),
      (
        "(WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 9) SELECT count(*) FROM c)",
        .integer(9)
      ),
    ] as [(String, SQLiteValue)])
  func `A value is what SQLite says`(_ expression: String, _ value: SQLiteValue) throws {
    #expect(try database().value(of: expression) { _ in .null } == value)
  }

  @Test(
    arguments: [
      .null, .integer(0), .integer(.max), .integer(.min), .real(3), .real(-0.0), .real(.infinity),
      .real(-.infinity), .real(.leastNonzeroMagnitude), .real(0.1), text(""), text("é\u{301}\u{1F600}\n"),
      text(String(repeating: "x", count: 1 << 20)), .blob(SecretBytes([])), .blob(SecretBytes([0, 1, 0])),
    ] as [SQLiteValue])
  func `A parameter comes back as it went in`(_ value: SQLiteValue) throws {
    let result = try database().value(of: ":größe_1") { name in
      #expect(name == "größe_1")
      return value
    }
    #expect(result == value)
    if case .real(let one) = value, case .real(let other) = result {
      #expect(one.bitPattern == other.bitPattern)
    }
  }

  @Test func namesOfParameters() throws {
    #expect(try database().parameters(of: ":a || :b || :a") == ["a", "b"])
    #expect(try database().parameters(of: "1") == [])
    for unnamed in ["?", "?1", "@a", "$a"] {
      #expect(try message(unnamed).contains("has no name: write one such as `:user_name`"))
    }
  }

  @Test(arguments: [
    ("1; SELECT 2", "syntax error"), ("1), (2", "these are 2 expressions"), ("1 +", "syntax error"),
    ("(1", "incomplete input"), ("'a", "unrecognized token"), ("/* open", "incomplete input"),
    ("foo", "no such column: foo; a parameter starts with a colon"), ("\"foo\"", "no such column"),
    ("nosuch(1)", "no such function: nosuch"), ("1;", "syntax error"),
    ("1) UNION ALL SELECT (2", "more than one value"), ("1) WHERE (0", "gives no value"),
    ("(SELECT name FROM sqlite_schema)", "reads the table sqlite_"),
    ("(SELECT name FROM pragma_function_list)", "more than an expression"),
    ("(SELECT * FROM pragma_database_list)", "expression"), ("(SELECT 1 FROM nowhere)", "no such table"),
    ("load_extension('x')", "load_extension"), ("readfile('/etc/passwd')", "no such function"),
    ("writefile('/tmp/x', 'y')", "no such function"), ("edit('x')", "no such function"),
    ("fts3_tokenizer('simple')", "fts3_tokenizer"), ("random()", "random gives another value in each run"),
    ("hex(RandomBlob(4))", "randomblob gives another value"),
    ("CURRENT_TIMESTAMP", "current_timestamp gives another value"), ("a\0b", "a NUL character is not SQL"),
    ("1) ; PRAGMA temp_store_directory='/' ; SELECT (1", "a semicolon ends it"),
    ("(DELETE FROM x RETURNING 1)", "syntax error"),
  ])
  func `What is more than an expression is refused`(_ expression: String, _ words: String) throws {
    let said = try message(expression)
    #expect(said.contains(words), "\(said)")
  }

  @Test func `Functions of the app may be used, except for those that give another value each time`() throws {
    let apple = try database(["from_apple": .appleToUnix]).value(of: "from_apple(0)") { _ in .null }
    #expect(apple == .integer(978_307_200))
    #expect(
      try message("new_id()", functions: ["new_id": .uuid]).contains("new_id gives another value in each run")
    )
  }

  @Test(arguments: [
    ("(WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c)", "does not end within"),
    ("(WITH c(x) AS (VALUES('a') UNION ALL SELECT x || x FROM c) SELECT max(x) FROM c)", "too large"),
    ("length(zeroblob(1000000000))", "too large"), ("hex(zeroblob(30000000))", "too large"),
    ("replace(printf('%.1000000c', 'a'), 'a', printf('%.1000c', 'b'))", "too large"),
    ("'a' LIKE printf('%.2000c', '%')", "LIKE or GLOB pattern too complex"),
  ])
  func `What does not end, or gets too large, is ended`(_ expression: String, _ words: String) throws {
    let said = try message(expression)
    #expect(said.contains(words), "\(said)")
    // The next one is not affected.
    #expect(try database().value(of: "1") { _ in .null } == .integer(1))
  }

  @Test(arguments: [
    ("json_extract(:x, '$.a')", "malformed JSON"), ("json_extract('{}', :x)", "error 1"),
    ("json(:x)", "malformed JSON"), ("1 LIKE 2 ESCAPE :x", "ESCAPE expression must be a single character"),
    ("unhex_(:x)", "error 1"), ("abs(-9223372036854775808) || :x", "integer overflow"),
    ("'a' REGEXP :x", "error 1"), ("json_array(CAST(:x AS BLOB))", "JSON cannot hold BLOB values"),
  ])
  func `No message has a value`(_ expression: String, _ words: String) throws {
    let said = try message(
      expression, ["x": Self.text("canary-[012345")],
      functions: ["unhex_": .base64Decode, "regexp": .regexp])
    #expect(said.contains(words) && !said.contains("canary"), "\(said)")
  }
}
