import DrydockErrors
import Testing

@Suite struct MigratorTests {
  private func outcome(_ sections: String, _ prepare: (Lab) throws -> Void = { _ in }) throws -> (
    code: DrydockError.Code?, text: String, notes: [String]
  ) {
    try Lab.with { lab in
      try prepare(lab)
      try lab.baseline(0)
      try lab.migration("0001_a.yaml", sections)
      var notes: [String] = []
      let error = failure { notes = try lab.migrate().migrations.first?.notes ?? [] }
      #expect(try lab.history()?.version == (error.text == "no error" ? 1 : 0))
      return (error.code, error.text, notes)
    }
  }

  private static let database = "CREATE TABLE t (a); INSERT INTO t VALUES (1), (2);"

  @Test(
    arguments: [
      ("defaults: {key: k, equals: 1}", nil), ("defaults: {key: k, one-of: [0, 1]}", nil),
      ("defaults: {key: k, exists: true}", nil), ("defaults: {key: k, exists: integer}", nil),
      ("defaults: {key: z, exists: false}", nil), ("defaults: {key: k, equals: before}", nil),
      ("defaults: {key: b, equals: 'before'}", nil),
      ("defaults: {key: k, equals: 1.0}", "the setting `k` is the integer 1, not the real 1.0"),
      ("defaults: {key: k, equals: true}", "the setting `k` is the integer 1, not the Bool true"),
      ("defaults: {key: z, one-of: [1]}", "the setting `z` is absent, not the integer 1"),
      ("defaults: {key: k, exists: false}", "the setting `k` is the integer 1, not absent"),
      ("defaults: {key: k, exists: boolean}", "the setting `k` is the integer 1, not a boolean"),
      ("defaults: {key: new, equals: before}", "the setting `new` did not exist before: give the name"),
      ("defaults: {key: new, equals: before, was: gone}", "the setting `gone` did not exist before"),
      ("defaults: {key: new, equals: before, was: k}", "the setting `new` is the text `x`, not what it was"),
      ("defaults: {key: b, equals: before, was: b}", nil),
      ("defaults: {key: b, equals: before, was: twin}", nil),
      ("sql: {database: notes, query: SELECT count(*) FROM t, equals: 2}", nil),
      ("sql: {database: notes, query: SELECT count(*) FROM t, equals: before}", nil),
      ("sql: {database: notes, query: SELECT * FROM t, equals: before}", nil),
      ("sql: {database: notes, query: SELECT NULL, equals: null}", nil),
      ("sql: {database: notes, query: SELECT 'x', equals: x}", nil),
      ("sql: {database: notes, query: SELECT count(*) FROM t, equals: 3}", "the query gives 2, not 3"),
      ("sql: {database: notes, query: SELECT a FROM t, equals: 3}", "the query gives 2 rows, not 3"),
      ("sql: {database: notes, query: SELECT 2.0, equals: 2}", "the query gives 2.0, not 2"),
      ("sql: {database: notes, query: SELEC 2, equals: 2}", "0001_a.yaml:4:21: the query cannot run: near"),
      ("files: {path: Documents/database.sqlite, exists: true}", nil),
      ("files: {path: 'Documents/*.sqlite', count: 1}", nil),
      ("files: {path: 'Documents/*', count: before}", nil),
      ("files: {path: Documents/z, exists: false}", nil),
      ("files: {path: Documents/z, exists: true}", "Documents/z: this is absent"),
      ("files: {path: 'Documents/*', count: 4}", "Documents/*: there are 1 of these, expected 4"),
    ] as [(String, String?)])
  func verifications(_ assertion: String, _ message: String?) throws {
    let step = "steps:\n  - defaults.set: {values: {new: x}}\n"
    let result = try outcome(step + "verify:\n  - \(assertion)\n") { lab in
      try lab.set(["k": 1, "b": "before", "twin": "before"])
      try lab.database(Lab.oldDatabase, Self.database)
    }
    if let message {
      #expect(result.text.hasPrefix("0001_a.yaml:4:"), "\(result.text)")
      #expect(result.text.contains(message), "\(result.text)")
      #expect(result.code == .verifyFailed || result.code == .sql)
    } else {
      #expect(result.text == "no error")
    }
  }

  @Test func checksRunBeforeTheSteps() throws {
    let text =
      "check:\n  - defaults: {key: a, equals: 1}\nsteps:\n  - defaults.set: {values: {a: 2}, if-exists: replace}\n"
    #expect(try outcome(text) { try $0.set(["a": 1]) }.text == "no error")
    let failed = try outcome(text) { try $0.set(["a": 5]) }
    #expect(failed.code == .checkFailed)
    #expect(
      failed.text.hasPrefix("0001_a.yaml:2:5: check: the setting `a` is the integer 5, not the integer 1"))
  }

  @Test(
    arguments: [
      "verify:\n  - defaults: {key: label, equals: x}\n", "  - defaults.convert: {key: label, map: {a: b}}\n",
    ])
  func aSecretWithANewNameIsNotShown(_ rest: String) throws {
    let text = "steps:\n  - defaults.rename: {keys: {auth_token: label}}\n" + rest
    let failed = try outcome(text) { try $0.set(["auth_token": "correct horse battery"]) }
    #expect(failed.code == .verifyFailed || failed.code == .stepFailed)
    #expect(failed.text.contains("label") && failed.text.contains("(secret, "), "\(failed.text)")
    #expect(!failed.text.contains("horse"), "\(failed.text)")
  }

  @Test func aCheckThatCannotRun() throws {
    let query = "sql: {database: notes, query: SELECT count(*) FROM t, equals: before}"
    // The database is missing before and after: a remark.
    let skipped = try outcome("steps: []\nverify:\n  - \(query)\n")
    #expect(skipped.text == "no error")
    #expect(
      skipped.notes.first?.hasSuffix(
        "the database notes is not in the container, so this could not be checked") == true)
    // It is gone after the migration: a failure, although there is nothing to query.
    let step = "steps:\n  - files.delete: {path: \(Lab.oldDatabase), destructive: test}\n"
    for query in [query, query.replacing("before", with: "2")] {
      let gone = try outcome(step + "verify:\n  - \(query)\n") {
        try $0.database(Lab.oldDatabase, Self.database)
      }
      #expect(
        gone.code == .verifyFailed && gone.text.contains("was there before, and is gone now"), "\(gone.text)")
    }
  }

  @Test func aQueryOfTheNewSchemaNeedNotRunBefore() throws {
    let text = """
      steps:
        - sql: {database: notes, up: ALTER TABLE t ADD COLUMN b}
      verify:
        - sql: {database: notes, query: SELECT count(b) FROM t, equals: 0}
      """
    #expect(try outcome(text) { try $0.database(Lab.oldDatabase, Self.database) }.text == "no error")
  }
}
