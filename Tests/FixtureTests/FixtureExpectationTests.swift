import AppStores
import DrydockTesting
import TestSupport
import Testing

@Suite("Expectations of fixtures are really checked") struct FixtureExpectationTests {
  private let sandbox: FixtureSandbox
  init() throws { sandbox = try FixtureSandbox() }

  @Test("The latest version is as expected without a migration")
  func latest() throws {
    #expect(try findings("v7", asExpectedBy: "v7") == [])
  }

  @Test("A container that was not migrated is not as expected, and each finding has its line")
  func notMigrated() throws {
    let findings = try findings("v0", asExpectedBy: "v0")
    let settings = "Library/Preferences/com.example.notes.plist"
    let lines = findings.map { finding in
      let values = [finding.expected.map { "expected \($0)" }, finding.found.map { "found \($0)" }]
      return "\(finding.place ?? ""): \(finding.message) " + values.compactMap(\.self).joined(separator: ", ")
    }
    for wanted in [
      "\(settings): username: the setting is absent expected \"Ada Lovelace\"",
      "\(settings): user_name: the setting exists, expected none found \"Ada Lovelace\"",
      "Library/Application Support/database.sqlite: the database is absent ",
      "Documents/database.sqlite: this exists, expected nothing ",
    ] {
      #expect(lines.contains(wanted), "\(wanted)\n\(lines)")
    }
    let username = try #require(findings.first { $0.place?.hasSuffix("username") == true })
    #expect(username.check == .expectation && username.file?.hasSuffix("v0/fixture.yaml") == true)
    #expect(username.line == 11)
  }

  @Test("Rows, types and flags count")
  func details() throws {
    let findings = try findings("v7", asExpectedBy: "v3")
    #expect(findings.count == 2, "\(findings)")
    let first = try #require(findings.first)
    #expect(first.message == "the row is different" && first.place?.hasSuffix(", row 1") == true)
    #expect(first.expected == "[1, \"Buy milk 🥛\", 1, 1, null, null]")
    #expect(first.found == #"[1, "Buy milk 🥛", 1, 1, null, "Oat, not cow"]"#)
    #expect(first.line == 26, "\(first)")
  }

  @Test("Vault items count, by name, class and value, and no value is shown")
  func vault() throws {
    let place = "Library/Vault/vault.age: com.example.notes/auth"
    let other = try findings("v7", asExpectedBy: "v5")
    #expect(other.map(\.message).contains("the vault item has another value"))
    #expect(other.contains { $0.expected == "19 bytes" && $0.found == "19 bytes" && $0.place == place })
    #expect(try findings("v4", asExpectedBy: "v5").map(\.message).contains("the vault item is absent"))
    try sandbox.describe(
      """
      container:
        vault:
          - {service: com.example.notes, account: auth, accessible: whenUnlocked, value: made-up-token-ada-6}
          - {service: com.example.notes, account: more, accessible: whenUnlocked, value: made-up}
      expect:
        vault:
          - service: com.example.notes
            account: auth
            accessible: afterFirstUnlock
            label: Sign-in
            access-control: [userPresence]
            value: made-up-token-ada-6
      """)
    let findings = try sandbox.findings()
    #expect(
      findings.map(\.message) == [
        "the vault item has another accessibility", "the vault item has another access control",
        "the vault item has another label", "the vault item exists, expected none",
      ])
    #expect(findings.last?.place == "Library/Vault/vault.age: com.example.notes/more")
    #expect(!"\(findings)".contains("made-up"))
  }

  @Test("Settings differ by value, by type, and in further files")
  func settings() throws {
    sandbox.configuration.defaults["widget"] = "Library/Preferences/widget.plist"
    sandbox.configuration.groups = ["group.com.example.notes": "../Shared/notes"]
    try sandbox.write("container/Library/Preferences/com.example.notes.plist.yaml", "a: 1\nb: two\nc: true\n")
    try sandbox.write("container/Library/Preferences/widget.plist.yaml", "size: 2\n")
    let group = "group.com.example.notes/Library/Preferences/group.com.example.notes.plist"
    try sandbox.write("groups/\(group).yaml", "shared: {deep: [1, 2]}\nsession_token: made-up-4f9b2c7d1e\n")
    try sandbox.describe(
      """
      expect:
        settings: {a: 1, b: 2, c: false}
        suites:
          widget: {settings: {size: 3}, absent-settings: [gone]}
          group.com.example.notes:
            settings: {shared: {deep: [1, 2]}, session_token: made-up-0000000000}
      """)
    let findings = try sandbox.findings()
    #expect(
      findings.map { "\($0.place ?? "")|\($0.expected ?? "")|\($0.found ?? "")" }.prefix(3) == [
        "Library/Preferences/com.example.notes.plist: b|the integer 2|the string \"two\"",
        "Library/Preferences/com.example.notes.plist: c|false|true",
        "Library/Preferences/widget.plist: size|3|2",
      ])
    let token = try #require(findings.last)
    #expect(findings.count == 4 && token.place == ".groups/\(group): session_token")
    #expect(token.found?.hasPrefix("(secret, ") == true && token.expected?.hasPrefix("(secret, ") == true)
    try sandbox.describe("expect: {suites: {widgte: {settings: {a: 1}}}}\n")
    #expect(FixtureSandbox.message(sandbox.findings).contains("did you mean `widget`?"))
  }

  @Test("Files are counted by patterns and their text is searched; Drydock's own are passed over")
  func files() throws {
    for (name, text) in [("a.md", "Buy milk"), ("b.md", "Call Grandma"), ("c.txt", "x")] {
      try sandbox.write("container/Documents/\(name)", text)
    }
    try sandbox.write("container/Documents/photo.jpg", [0xff, 0xd8, 0xff])
    let own = "container/Library/Application Support/.drydock/history.json"
    try sandbox.write(own, "{}")
    try sandbox.describe(
      """
      expect:
        files:
          - Documents/a.md
          - "Documents/*.md"
          - {path: "**/*.md", count: 2}
          - {path: Documents/a.md, matches: "(?i)MILK$"}
          - {path: "**/*.json", count: 0}
          - {path: "Documents/*", count: 3}
          - {path: "Documents/*.md", matches: milk}
          - {path: "Documents/photo.jpg", matches: milk}
          - Documents/none
          - {path: "*.md"}
        absent: ["Documents/*.txt", "Documents/a.md"]
      """)
    let findings = try sandbox.findings()
    #expect(
      findings.map { "\($0.line ?? 0) \($0.place ?? ""): \($0.message)" } == [
        "10 Documents/*: there are 4 of these, expected 3",
        "11 Documents/b.md: the file has no such text",
        "12 Documents/photo.jpg: the file is not UTF-8 text",
        "13 Documents/none: this is absent",
        "14 *.md: this is absent",
        "15 Documents/*.txt: this exists, expected nothing",
        "15 Documents/a.md: this exists, expected nothing",
      ], "\(findings)")
  }

  @Test("Queries name a database by its name or path, also in a group; what fails is a finding")
  func queries() throws {
    sandbox.configuration.groups = ["group.x": "../Shared/x"]
    let sql = "CREATE TABLE t(a, token); INSERT INTO t VALUES (1, 'made-up-4f9b2c7d1e'), (2.5, NULL);"
    try sandbox.write("container/Documents/database.sqlite.sql", sql)
    try sandbox.write("groups/group.x/shared.db.sql", "CREATE TABLE s(x); INSERT INTO s VALUES (x'0102');")
    try sandbox.write(
      "container/Documents/broken.db", "SQLite format 3\0" + String(repeating: "x", count: 99))
    try sandbox.write("container/Documents/text.db", "no database")
    try sandbox.describe(
      """
      expect:
        queries:
          - {database: notes, sql: SELECT a FROM t, rows: [[1], [2.5]]}
          - {database: .groups/group.x/shared.db, sql: SELECT x FROM s, rows: [[!data "AQI="]]}
          - {database: notes, sql: "SELECT a, token FROM t", rows: [[1, 2]]}
          - {database: notes, sql: SELECT missing FROM t, rows: []}
          - {database: notes, sql: DELETE FROM t, rows: []}
          - {database: notes, sql: "SELECT 1; SELECT 2", rows: []}
          - {database: Documents/broken.db, sql: SELECT 1 FROM t, rows: []}
          - {database: Documents/text.db, sql: SELECT 1, rows: []}
          - {database: Documents/none.db, sql: SELECT 1, rows: []}
          - {database: notes, sql: SELECT token FROM t WHERE a = 1, rows: [[a]]}
      """)
    let findings = try sandbox.findings()
    let messages = findings.map { "\($0.line ?? 0) \($0.message)" }
    #expect(messages.first == "7 the query gives 2 rows, expected 1", "\(messages)")
    #expect(messages.contains { $0.hasPrefix("8 the query fails: no such column") }, "\(messages)")
    #expect(messages.contains { $0.hasPrefix("9 the query fails: attempt to write") }, "\(messages)")
    #expect(messages.contains { $0.hasPrefix("10 a query is one statement") }, "\(messages)")
    #expect(messages.contains { $0.hasPrefix("11 this is not a database") })
    #expect(messages.contains("13 the database is absent"), "\(messages)")
    #expect(messages.contains("14 the row is different"), "\(messages)")
    #expect(messages.count == 8 && !"\(findings)".contains("made-up"), "\(findings)")
  }

  @Test("Flags and protection count, on the root too; rows that may go are known by table and database")
  func marksAndLosses() throws {
    try sandbox.write("container/Documents/a.md", "a")
    try sandbox.describe(
      """
      container:
        excluded: [Documents]
        protection: {Documents/a.md: complete, .: completeUnlessOpen}
      expect:
        excluded: [Documents, Documents/a.md]
        protection: {Documents/a.md: complete, .: none, Documents: complete, Documents/x: none}
        lost-rows: {notes: {task: 3}, Documents/other.db: {t: 1}}
      """)
    let findings = try sandbox.findings()
    #expect(
      findings.map { "\($0.place ?? ""): \($0.message) \($0.expected ?? "") \($0.found ?? "")" } == [
        "Documents/a.md: this is not flagged as excluded from backups  ",
        ".: this has another protection class none completeUnlessOpen",
        "Documents: this has another protection class complete ",
        "Documents/x: this is absent  ",
      ])
    let expectation = try #require(try sandbox.load().expectation)
    let container = try sandbox.build()
    func numbers(_ table: String, _ path: ContainerPath) -> [Int] {
      expectation.losses.filter { $0.isOf(table, in: path, of: container) }.map(\.rows)
    }
    #expect(numbers("task", "Documents/database.sqlite") == [3])
    #expect(numbers("task", "Documents/other.db") == [])
    #expect(numbers("t", "Documents/other.db") == [1])
  }

  @Test("Looking changes nothing")
  func looksOnly() throws {
    try TemporaryDirectory.with { directory in
      let container = try Sample.build("rows-only-in-wal", in: directory("work"))
      let before = try TreeListing(directory("work"))
      let expectation = try #require(try Sample.fixture("rows-only-in-wal").expectation)
      _ = try expectation.findings(in: container)
      let after = try TreeListing(directory("work"))
      #expect(after.differences(from: before, comparing: TreeListing.untouched) == [])
    }
  }

  private func findings(_ built: String, asExpectedBy other: String) throws -> [FixtureResult.Finding] {
    try TemporaryDirectory.with { directory in
      let keys = try Sample.runner().deviceKeys
      let container = try Sample.build(built, in: directory("work"), deviceKeys: keys)
      return try #require(Sample.fixture(other).expectation).findings(in: container, deviceKeys: keys)
    }
  }
}
