import AgeEncryption
import AppContainer
import AppStores
import Cryptography
import DrydockErrors
import DrydockTesting
import FileSystem
import Formats
import Foundation
import TestSupport
import Testing

@Suite struct GoldenCheckTests {
  private let folder: TemporaryDirectory
  init() throws { folder = try TemporaryDirectory() }

  private static let keys = Result { DeviceKeys(try AgeIdentity.generate()) }

  /// One line for each finding: `file:line: place: message: expected -> found`, the directory left out.
  private func lines(_ findings: [FixtureResult.Finding], _ folder: TemporaryDirectory) -> [String] {
    findings.map { finding in
      let file = (finding.file ?? "-").replacing(folder("golden") + "/", with: "")
      let values =
        finding.expected == nil && finding.found == nil
        ? "" : ": \(finding.expected ?? "-") -> \(finding.found ?? "-")"
      return "\(file):\(finding.line ?? 0): \(finding.place ?? "-"): \(finding.message)\(values)"
    }
  }

  private static let schema = """
    CREATE TABLE task(id INTEGER PRIMARY KEY, title TEXT, done INT);
    CREATE TABLE tag(name TEXT, task INT, PRIMARY KEY (name, task)) WITHOUT ROWID;
    INSERT INTO task VALUES (1, 'one', 0), (2, 'it''s
    two', 0), (3, 'three', 1); INSERT INTO tag VALUES ('a', 1), ('b', 2);
    """

  @Test("A golden of a checkout with other line ends is the same, and what differs is found all the same")
  func lineEnds() throws {
    let made = try GoldenContainer(folder, keys: Self.keys.get())
    try made.set(["name": "Ann\nBob"])
    try made.sql(Self.schema)
    try made.write()
    let golden = try Directory(folder("golden"))
    for name in try golden.names().map(ContainerPath.init(name:)) {
      let text = String(decoding: try golden.contents(name), as: UTF8.self)
      try golden.replace(name, with: Array(text.replacing("\n", with: "\r\n").utf8), mode: 0o644)
    }
    #expect(try made.findings().isEmpty)
    try made.sql("UPDATE task SET title = 'zwei' WHERE id = 1")
    let found = lines(try made.findings(), folder)
    #expect(found.count == 1 && found[0].contains("task, id 1: title"), "\(found)")
  }

  @Test func eachDifferenceIsFoundAtItsPlaceAndLine() throws {
    let made = try GoldenContainer(folder, keys: Self.keys.get())
    try made.set(["name": "Ann", "count": 1, "old": true])
    try made.sql(Self.schema)
    try made.seal([.made("token", "made-up-value-1"), .made("pin", "made-up-value-2")])
    try made.directory.create("Documents/note.md", Array("text".utf8), mode: 0o644)
    try made.directory.create("Documents/gone.md", Array("text".utf8), mode: 0o644)
    try made.directory.create("Library/Caches/thumb", Array("image".utf8), mode: 0o644)
    try made.write()
    #expect(try made.findings().isEmpty)

    try made.set(["name": "Bob", "count": "1", "new": true])
    try made.sql(
      """
      UPDATE task SET title = 'zwei' WHERE id = 2; DELETE FROM task WHERE id = 3; INSERT INTO task VALUES (4, '4', 0);
      UPDATE tag SET task = 9 WHERE name = 'b'; ALTER TABLE task ADD COLUMN due TEXT; CREATE INDEX i ON task(done);
      PRAGMA user_version = 7;
      """)
    try made.seal([.made("token", "made-up-value-9"), .made("other", "made-up-value-2")])
    try made.directory.setMode(0o600, of: "Documents/note.md")
    try made.directory.setAttribute(Exclusion.appleFlag, of: "Documents/note.md")
    try made.directory.removeFile("Documents/gone.md")
    try made.directory.replace("Library/Caches/thumb", with: Array("other".utf8), mode: 0o644)
    let findings = try made.findings()
    let found = lines(findings, folder)
    let plist = "Library/Preferences/com.example.g.plist"
    let expected = [
      "defaults.yaml:2: \(plist): count: the setting has another type: the integer 1 -> the string \"1\"",
      "defaults.yaml:3: \(plist): name: the setting has another value: \"Ann\" -> \"Bob\"",
      "defaults.yaml:1: \(plist): new: the setting exists, expected none: - -> true",
      "defaults.yaml:4: \(plist): old: the setting is absent: true -> -",
      "vault.yaml:0: Library/Vault/vault.age: com.example.g/other: the vault item exists, expected none",
      "vault.yaml:1: Library/Vault/vault.age: com.example.g/pin: the vault item is absent",
      "db.sqlite.sql:0: Documents/db.sqlite: user_version: the value differs: 0 -> 7",
      "db.sqlite.sql:0: Documents/db.sqlite: index i: the index exists, expected none: - -> CREATE INDEX i ON task(done)",
      "db.sqlite.sql:5: Documents/db.sqlite: table task, column due: the column exists, expected none: - -> TEXT",
      "db.sqlite.sql:4: Documents/db.sqlite: tag, name \"b\", task 2: the row is absent: the row -> -",
      "db.sqlite.sql:2: Documents/db.sqlite: tag, name \"b\", task 9: the row exists, expected none: - -> the row",
      "db.sqlite.sql:9: Documents/db.sqlite: task, id 3: the row is absent: title \"three\", done 1 -> -",
      "db.sqlite.sql:7: Documents/db.sqlite: task, id 2: title: the column has another value: "
        + "\"it's\ntwo\" -> \"zwei\"",
      "db.sqlite.sql:5: Documents/db.sqlite: task, id 4: the row exists, expected none: - -> title \"4\", done 0",
      "files.txt:5: Documents/gone.md: the file is absent",
      "files.txt:6: Documents/note.md: the file has another mode: 644 -> 600",
      "files.txt:6: Documents/note.md: the file has other flags: none -> excluded",
    ]
    for line in expected { #expect(found.contains(line), "\(line)\n\(found.joined(separator: "\n"))") }
    let rest = found.filter { !expected.contains($0) }
    #expect(rest.count == 2, "\(rest)")
    #expect(
      rest.first?.hasPrefix(
        "vault.yaml:5: Library/Vault/vault.age: com.example.g/token: the vault item has another value: (secret, "
      )
        == true)
    #expect(rest.last?.contains("Library/Caches/thumb: the file has other content: ") == true)
    #expect(!"\(findings)".contains("made-up"), "no secret is shown")
  }

  @Test func aGoldenIsReadableText() throws {
    let groups = ["group.com.example.g": "../group"]
    try RawFiles.createDirectories(folder("group/Library/Preferences"))
    var made = try GoldenContainer(folder, groups: groups, keys: Self.keys.get())
    var item = VaultItem.made("auth", "two\nlines")
    item.label = "A label"
    var inet = VaultItem(
      .internetPassword, account: "me", accessibility: .whenUnlockedThisDeviceOnly,
      value: SecretBytes([0, 0xff]))
    inet[.server] = "mail.example.com"
    inet[.port] = "143"
    inet.accessControl = VaultItem.AccessControl([.userPresence, .devicePasscode])
    inet.isSynchronizable = true
    try made.seal([item, inet])
    try Directory(folder("group")).create(
      "Library/Preferences/group.com.example.g.plist", PropertyListFile(root: ["x": 1]).encoded())
    try made.directory.setAttribute(Exclusion.appleFlag, of: "Documents")
    try made.directory.setAttribute(
      .init(name: ProtectionClass.attribute, value: Array("NSFileProtectionComplete".utf8)), of: "Documents"
    )
    try made.directory.createDirectories("Library/Application Support/.drydock")
    try made.directory.create("Library/Application Support/.drydock/history.json", [1])
    try made.write()
    let vault = """
      - service: "com.example.g"
        account: "auth"
        label: "A label"
        accessible: afterFirstUnlock
        value: "two\\nlines"
      - class: internetPassword
        account: "me"
        server: "mail.example.com"
        port: "143"
        accessible: whenUnlockedThisDeviceOnly
        synchronizable: true
        access-control: [devicePasscode, userPresence]
        value: !data "AP8="

      """
    #expect(try made.text("vault.yaml") == vault)
    let list = try made.text("files.txt")
    #expect(list.contains("directory 755  excluded,protection=complete - Documents\n"), "\(list)")
    #expect(list.contains("directory 755  - - tmp\n"), "what no backup takes is there: \(list)")
    #expect(!list.contains("history") && !list.contains("Application Support"), "\(list)")
    #expect(list.contains(" .groups/group.com.example.g/Library/Preferences\n"), "\(list)")
    #expect(
      try made.text("defaults.yaml")
        == "\".groups/group.com.example.g/Library/Preferences/group.com.example.g.plist\":\n  x: 1\n")
    #expect(try made.findings().isEmpty)
    // Sealed anew, to another key: the same items.
    made.keys = DeviceKeys(try AgeIdentity.generate())
    try made.seal([inet, item])
    #expect(try made.findings().isEmpty)
    item.label = "Another"
    try made.seal([inet, item])
    let findings = try made.findings()
    #expect(findings.map(\.message) == ["the vault item has another label"])
    #expect(findings.first?.expected == "\"A label\"" && findings.first?.line == 1)
    made.keys = try Self.keys.get()
    #expect(throws: DrydockError.self) { try made.findings() }
  }

  @Test func whatIsWrittenOtherwiseAndSaysTheSameIsTheSame() throws {
    let made = try GoldenContainer(folder)
    try made.set(["a": 16, "b": "x"])
    try made.sql(Self.schema)
    try made.write()
    try made.edit("defaults.yaml", "  a: 16\n  b: \"x\"", "  # by hand\n  b: x\n  a: 0x10")
    try made.edit("files.txt", "directory 755  - - tmp\n", "")
    try made.edit("files.txt", "path\n", "path\r\n# a remark\ndirectory 755 - - tmp\n")
    try made.edit("db.sqlite.sql", "BEGIN;\n", "-- by hand\n")
    try made.edit("db.sqlite.sql", "COMMIT;\n", "")
    #expect(try made.findings() == [])
    // Texts that Unicode takes for the same, and bytes do not.
    try made.edit("defaults.yaml", "b: x", "b: \"e\\u0301\"")
    try made.set(["a": 16, "b": "\u{e9}"])
    let findings = try made.findings()
    #expect(findings.count == 1 && findings.first?.file?.hasSuffix("defaults.yaml") == true, "\(findings)")
  }

  @Test func aGoldenThatIsBrokenIsAFindingWithItsLine() throws {
    let made = try GoldenContainer(folder, keys: Self.keys.get())
    try made.set(["a": 16])
    try made.sql(Self.schema)
    try made.seal([.made("token", "made-up")])
    try made.write("whole")
    let edits: [(file: String, old: String, new: String, message: String, line: Int?)] = [
      ("defaults.yaml", "  a: 16", "  a: 16\n  a: 17", "duplicate key", nil),
      ("defaults.yaml", "a: 16", "a: !date nonsense", "is not a date", 2),
      ("defaults.yaml", "com.example.g", "com.example.other", "has no settings for", 8),
      ("vault.yaml", "accessible", "accessable", "did you mean `accessible`", 3),
      ("vault.yaml", "- service", "- serv", "unknown key", 1),
      ("files.txt", "vault.yaml", "", "not type", 10),
      ("files.txt", "db.sqlite.sql", "nothing.sql", "lacks", 4),
      ("files.txt", "db.sqlite.sql Documents/db.sqlite", "- Documents/x", "nothing in files.txt refers", nil),
      ("db.sqlite.sql", "(3, 'three', 1)", "(2, 'three', 1)", "UNIQUE constraint failed: task.id", 9),
      ("db.sqlite.sql", "COMMIT", "ATTACH 'other' AS o; COMMIT", "ATTACH is not allowed", 10),
      ("db.sqlite.sql", #"INSERT INTO "tag" ("name""#, #"INSERT INTO "tagg" ("name""#, "no such table", 3),
    ]
    for edit in edits {
      try? FileManager.default.removeItem(atPath: folder("golden"))
      try FileManager.default.copyItem(atPath: folder("whole"), toPath: folder("golden"))
      try made.edit(edit.file, edit.old, edit.new)
      let findings = try made.findings()
      #expect(findings.count == 1 && findings.first?.message.contains(edit.message) == true, "\(findings)")
      if let line = edit.line { #expect(findings.first?.line == line, "\(findings)") }
      #expect(findings.first?.file?.hasPrefix(folder("golden")) == true, "\(findings)")
    }
    #expect(!FileManager.default.fileExists(atPath: "other"))
    for file in ["files.txt", "defaults.yaml", "vault.yaml", "db.sqlite.sql"] {
      try? FileManager.default.removeItem(atPath: folder("golden"))
      try FileManager.default.copyItem(atPath: folder("whole"), toPath: folder("golden"))
      try FileManager.default.removeItem(atPath: folder("golden") + "/" + file)
      let findings = try made.findings()
      #expect(findings.count == 1 && findings.first?.message.contains(file) == true, "\(findings)")
    }
    #expect(try made.findings("no-such").count == 1)
  }

  @Test func manyRowsAreCountedAndDamageIsNoObstacle() throws {
    let made = try GoldenContainer(folder)
    let many =
      "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000) INSERT INTO t SELECT i, i FROM n"
    try made.sql("CREATE TABLE t(id INTEGER PRIMARY KEY, v INT); \(many)")
    let damaged = Array("SQLite format 3\0".utf8) + [UInt8](repeating: 7, count: 500)
    try made.directory.create("Documents/damaged.db", damaged)
    try made.directory.create("Documents/damaged.db-wal", [0x37, 0x7f, 6, 0x82, 1, 2])
    try made.write()
    #expect(try made.text("files.txt").contains("database  600  - raw="))
    #expect(try made.findings() == [])
    try made.sql("UPDATE t SET v = 0 WHERE id > 100")
    try made.directory.replace("Documents/damaged.db-wal", with: [0x37, 0x7f, 6, 0x82, 1, 3])
    let findings = try made.findings()
    #expect(findings.count == 22, "\(findings.count)")
    let rest = try #require(findings.first { $0.message == "2880 more rows differ" })
    #expect(rest.count == 2880 && rest.place == "Documents/db.sqlite: t.v", "\(rest)")
    #expect(try made.findings(rowLimit: .max).count == 2901, "all are listed")
    #expect(
      findings.contains { $0.place == "Documents/damaged.db" && $0.message.contains("cannot be compared") })
  }

  @Test func oddTablesAreFoundToo() throws {
    let made = try GoldenContainer(folder)
    try made.sql(
      """
      CREATE TABLE "INSERT INTO x"(rowid TEXT, oid TEXT, "a""b" TEXT, [c d] BLOB);
      INSERT INTO "INSERT INTO x" VALUES ('1', '2', 'first
      INSERT INTO "y" (z) VALUES (1);', x'00'), ('3', '4', 'second', x'01');
      CREATE TABLE note(id INTEGER PRIMARY KEY, body TEXT); INSERT INTO note VALUES (1, 'walk the dog');
      CREATE VIRTUAL TABLE found USING fts5(body, content='note', content_rowid='id');
      INSERT INTO found(found) VALUES ('rebuild'); CREATE VIRTUAL TABLE bare USING fts5(body, content='');
      INSERT INTO bare(rowid, body) VALUES (1, 'text'); CREATE VIRTUAL TABLE box USING rtree(id, x0, x1);
      INSERT INTO box VALUES (4, 1, 2); CREATE VIRTUAL TABLE old USING fts4(body); INSERT INTO old VALUES ('four');
      CREATE VIRTUAL TABLE words USING fts5vocab('found', 'row');
      CREATE TABLE gen(a INT, b INT AS (a * 2) STORED, c INT AS (a * 3)); INSERT INTO gen(a) VALUES (1);
      CREATE TABLE strict(k ANY PRIMARY KEY, v INT CHECK (v > 0)) STRICT, WITHOUT ROWID;
      INSERT INTO strict VALUES (1, 1), ('1', 2), (x'31', 3), (1.5, 4);
      CREATE TABLE pair(a, b, PRIMARY KEY (b, a)); INSERT INTO pair VALUES (1, NULL), (1, NULL), (2, 1);
      CREATE TABLE quoted(a TEXT DEFAULT "none"); INSERT INTO quoted DEFAULT VALUES;
      """)
    try made.write()
    #expect(try made.findings().isEmpty)
    // By a path that must compare, since the texts are not the same in every byte.
    try made.edit("files.txt", "path\n", "path\n# by hand\n")
    #expect(try made.findings().isEmpty)
    try made.sql(
      """
      UPDATE "INSERT INTO x" SET "a""b" = 'third' WHERE rowid = '3'; UPDATE note SET body = 'feed the cat';
      UPDATE box SET x1 = 3; UPDATE old SET body = 'five'; UPDATE gen SET a = 2; UPDATE pair SET a = 3 WHERE rowid = 2;
      UPDATE strict SET v = 9 WHERE k = '1';
      """)
    // The words of the full-text table follow from it.
    let found = lines(try made.findings(), folder).filter { !$0.contains("db.sqlite: words,") }
    for line in [
      "db.sqlite.sql:5: Documents/db.sqlite: INSERT INTO x, _rowid_ 2: a\"b: the column has another value: "
        + #""second" -> "third""#,
      #"note, id 1: body: the column has another value: "walk the dog" -> "feed the cat""#,
      #"found, rowid 1: body: the column has another value: "walk the dog" -> "feed the cat""#,
      #"old, rowid 1: body: the column has another value: "four" -> "five""#,
      "x1: the column has another value",
      "gen, rowid 1: a: the column has another value: 1 -> 2",
      "pair, rowid 2: a: the column has another value: 1 -> 3",
      "strict, k \"1\": v: the column has another value: 2 -> 9",
    ] { #expect(found.contains { $0.contains(line) }, "\(line)\n\(found.joined(separator: "\n"))") }
    #expect(found.count == 8, "\(found.joined(separator: "\n"))")
  }

  @Test func documentsAreTextAndComparedValueByValue() throws {
    var made = try GoldenContainer(folder)
    made.volatile.settings = ["at"]
    let path: ContainerPath = "Documents/state.json"
    func set(_ json: String) throws {
      try made.directory.replace(path, with: Array(json.utf8), mode: 0o644)
    }
    try set(#"{"theme":"light","at":17,"open":[1,{"id":"a"}],"auth_token":"made-up-4f9b2c7d1e"}"#)
    try made.directory.create("Documents/broken.json", Array("{".utf8), mode: 0o644)
    try made.sql(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, doc BLOB); INSERT INTO t VALUES (1, CAST('{\"a\":''x''}' AS BLOB))"
    )
    try made.sql("INSERT INTO t VALUES (2, CAST('{\"a\":1}' AS BLOB))")
    try made.write()
    let text = """
      {
        "at": 0,
        "auth_token": "made-up-4f9b2c7d1e",
        "open": [
          1,
          {
            "id": "a"
          }
        ],
        "theme": "light"
      }

      """
    #expect(try made.text("documents/Documents/state.json") == text)
    #expect(try made.text("db.sqlite.sql").contains("VALUES (2, CAST('{\"a\":1}' AS BLOB));"))
    #expect(!FileManager.default.fileExists(atPath: folder("golden/documents/Documents/broken.json")))
    // The order of keys, white space and volatile values make no difference.
    try set(#"{"auth_token": "made-up-4f9b2c7d1e", "open": [1, {"id": "a"}], "at": 18, "theme": "light"}"#)
    #expect(try made.findings() == [])
    try set(#"{"auth_token": "made-up-0000000000", "open": [true, {"id": "a"}, 3], "at": 18}"#)
    try made.directory.replace("Documents/broken.json", with: Array("[".utf8), mode: 0o644)
    let found = lines(try made.findings(), folder)
    let document = "documents/Documents/state.json"
    for line in [
      "\(document):5: Documents/state.json: /open/0: the value has another type: the number 1 -> the Bool true",
      "\(document):10: Documents/state.json: /theme: the value is absent: \"light\" -> -",
      "\(document):0: Documents/state.json: /open/2: the value exists, expected none: - -> 3",
    ] { #expect(found.contains(line), "\(line)\n\(found.joined(separator: "\n"))") }
    #expect(found.count == 5 && !"\(found)".contains("made-up"), "\(found.joined(separator: "\n"))")
    #expect(found.contains { $0.contains("Documents/broken.json: the file has other content") })
  }
}
