import Foundation
import TestSupport
import Testing

@Suite("JSON")
struct JSONTests {
  /// A command line that succeeds, by what has happened to the container `Notes` before; `{A}` is an archive of it.
  static let successes: [[String]] = [
    ["inspect", "Notes"], ["inspect", "Notes", "--excluded"], ["explain", "Notes", "tmp"],
    ["audit", "Notes"], ["audit", "--rules"],
    ["explain", "Notes", "new/"], ["explain", "Notes", "Documents"],
    ["snapshot", "Notes", "-r", "Backups"], ["list", "-r", "Backups"], ["show", "{A}"],
    ["tag", "{A}", "--add", "keep"], ["forget", "-r", "Backups", "--keep-last", "9", "--dry-run"],
    ["forget", "-r", "Backups", "--keep-within", "90d"],
    ["show", "{A}", "Documents/Notes"], ["verify", "{A}"], ["verify", "-r", "Backups", "--data"],
    ["diff", "{A}", "Notes"], ["diff", "Notes", "{A}", "--exit-code", "--details"],
    ["verify", "{A}", "--container", "Notes"],
    ["export", "{A}", "-o", "Copy.tar.zst"], ["keygen", "-o", "key.txt"],
    [
      "rekey", "{A}", "-o", "Sealed", "--recipient",
      "age1f35gryhjktqrherf0f263jcmux6u4f3k9dsstrt73ws7fmy7wq4qvl69g0",
    ],
    ["status", "Notes"], ["validate"], ["test", "v0"], ["test", "v0", "--record"],
    ["migrate", "Notes", "--dry-run"],
    ["migrate", "Notes", "--to", "1"],
    ["migrate", "Notes"], ["migrate", "Notes"], ["status", "Notes"], ["log", "Notes"], ["rollback", "Notes"],
    ["rollback", "Notes", "--redo"], ["rollback", "Notes", "--to", "3", "--dry-run"],
    ["rollback", "Notes", "--down"], ["migrate", "Notes", "--each"],
    ["restore", "{A}", "Notes", "--dry-run"], ["restore", "{A}", "Notes"],
    ["restore", "{A}", "Again"], ["baseline", "Notes", "--to", "2"], ["recover", "Notes"], ["log", "Notes"],
    ["fixture", "capture", "Notes", "used", "--fixtures", "."],
    ["fixture", "capture", "{A}", "archived", "--fixtures", "."], ["release", "1.0"],
    ["new", "photos", "--directory"], ["summary", "results.jsonl"],
  ]

  /// The same for the vault.
  static let vaultSuccesses: [[String]] = [
    ["list", "Notes"], ["set", "Notes", "s/a", "--value-file", "drydock.yaml"], ["list", "Notes"],
    ["get", "Notes", "s/a"], ["get", "Notes", "s/a", "--output", "value.txt"],
    ["rename", "Notes", "s/a", "s/b", "--dry-run"],
    ["rename", "Notes", "s/a", "s/b", "--to-access-group", "g"],
    ["set-accessibility", "Notes", "s/b", "afterFirstUnlock"],
    ["set-access-control", "Notes", "s/b", "--access-control", "userPresence"],
    ["set-access-control", "Notes", "s/b", "--none"], ["set-synchronizable", "Notes", "s/b", "true"],
    ["rekey", "Notes", "--new-device-key", "device.key", "--dry-run"],
    ["rekey", "Notes", "--new-device-key", "device.key"], ["remove", "Notes", "s/b"],
  ]

  /// And for settings.
  static let defaultsSuccesses: [[String]] = [
    ["read", "Notes"], ["read", "Notes", "user_name"], ["write", "Notes", "theme", "dark", "--dry-run"],
    ["write", "Notes", "theme", "dark"], ["delete", "Notes", "theme"],
    ["export", "Notes", "settings.plist"], ["import", "Notes", "settings.plist", "--dry-run"],
    ["import", "Notes", "settings.plist"],
    ["convert", "settings.plist", "--as", "binary", "--output", "settings.bin"],
  ]

  @Test("Every command prints one document, and keys are snake case")
  func success() throws {
    try Sandbox.with { sandbox in
      try sandbox.create()
      try sandbox.addFixture("v0")
      let archive = try sandbox.snapshot()
      try sandbox.write(
        "results.jsonl", sandbox.drydock("status", "--all", ".", "--json").output)
      var seen: Set<String> = []
      for arguments in Self.successes + Self.vaultSuccesses.map({ ["vault"] + $0 })
        + Self.defaultsSuccesses.map({ ["defaults"] + $0 })
      {
        let words = arguments.map { $0 == "{A}" ? archive : $0 } + ["--json"]
        let result = try sandbox.drydock(words)
        #expect(result.succeeded, "\(words) \(result)")
        let document = try Self.document(result)
        #expect(document["error"] == nil)
        #expect(Self.oddKeys(document) == [], "\(words) \(result.output)")
        seen.insert(words[0])
      }
      // An applied migration is edited, and the edit accepted.
      let edited = "Migrations/0001_default_settings.yaml"
      _ = try sandbox.succeed("migrate", "Again", "--to", "1")
      try sandbox.write(edited, String(decoding: sandbox.read(edited), as: UTF8.self) + "# edited\n")
      let repaired = try Self.document(sandbox.drydock("repair", "Again", "--accept", "1", "--json"))
      #expect((repaired["notes"] as? [String])?.count == 1)
      let imported = try sandbox.drydock(
        "import", ImportTests.sample("plain-5.ab"), "--list", "--json")
      #expect(try Self.oddKeys(Self.document(imported)) == [], "\(imported)")
      try sandbox.shell("minisign -G -W -p sign.pub -s sign.key > tmp/made")
      let signed = try Self.document(sandbox.drydock("sign", archive, "--sign", "sign.key", "--json"))
      #expect((signed["archives"] as? [Any])?.count == 1 && Self.oddKeys(signed) == [], "\(signed)")
      let text = try sandbox.drydock("init", "--json", "Notes")
      #expect(text.exitCode == 1, "drydock.yaml is there already: \(text)")
      try sandbox.remove("drydock.yaml")
      _ = try Self.document(sandbox.drydock("init", "--json", "Notes"))
      #expect(
        seen.union(["init", "repair", "import", "sign"]) == Set(try ProgramCommand.top()),
        "a command is not tried here")
    }
  }

  @Test("A path that is a key stays as it is")
  func dataKeys() throws {
    try Sandbox.with { sandbox in
      try sandbox.create()
      try Self.breakDatabase(in: sandbox)
      let document = try Self.document(sandbox.drydock("snapshot", "Notes", "-r", "Backups", "--json"))
      let raw = try #require(document["raw_databases"] as? [String: String])
      #expect(Array(raw.keys) == [Self.brokenDatabase])
    }
  }

  @Test("What a document says is so")
  func content() throws {
    try Sandbox.with { sandbox in
      try sandbox.create()
      let inspected = try Self.document(sandbox.drydock("inspect", "Notes", "--json"))
      let container = try #require(inspected["container"] as? [String: Any])
      #expect(container["app"] as? String == "com.example.notes")
      #expect(container["schema_version"] as? Int == 0)
      #expect((inspected["pending"] as? [String])?.count == Sandbox.latest)

      let snapshot = try Self.document(sandbox.drydock("snapshot", "Notes", "-r", "Backups", "--json"))
      let path = try #require(snapshot["path"] as? String)
      #expect(snapshot["archive_bytes"] as? Int == (try RawFiles.read(Array(path.utf8)).count))

      let pending = try sandbox.drydock("status", "Notes", "--json", "--exit-code")
      #expect(pending.exitCode == 2)
      let entries = try #require(try Self.document(pending)["migrations"] as? [[String: Any]])
      #expect(entries.map { $0["state"] as? String } == Array(repeating: "pending", count: Sandbox.latest))

      let migrated = try Self.document(sandbox.drydock("migrate", "Notes", "--json"))
      let transaction = try #require(migrated["transaction"] as? String)
      let log = try Self.document(sandbox.drydock("log", "Notes", "--json"))
      let transactions = try #require(log["transactions"] as? [[String: Any]])
      #expect(transactions.map { $0["transaction"] as? String } == [transaction])
      #expect(transactions.map { $0["state"] as? String } == ["undoable"])
    }
  }

  /// Command lines that fail, with their exit code.
  static let failures: [(Int32, [String])] = [
    (1, ["inspect", "Nowhere"]), (1, ["explain", "Notes", "../x"]), (64, ["snapshot", "Notes"]),
    (1, ["list", "-r", "Nowhere"]), (1, ["show", "Nowhere"]), (4, ["show", "drydock.yaml"]),
    (64, ["verify"]), (64, ["verify", "--container", "Notes"]), (1, ["diff", "Nowhere", "Notes"]),
    (4, ["diff", "Notes", "drydock.yaml"]), (1, ["diff", "Notes", "Notes", "--path", "Nowhere"]),
    (64, ["diff", "Notes", "Notes", "--only", "rows"]), (1, ["restore", "Nowhere", "Notes"]),
    (64, ["migrate", "Notes", "--to", "9"]), (4, ["migrate", "Notes", "-m", "Nowhere"]),
    (1, ["status", "Nowhere"]), (4, ["validate", "-m", "Nowhere"]), (64, ["baseline", "Notes", "--to", "9"]),
    (1, ["rollback", "Notes"]), (1, ["log", "Nowhere"]), (1, ["recover", "Nowhere"]), (1, ["init"]),
    (64, ["inspekt"]), (64, ["inspect"]), (64, ["migrate", "Notes", "--too"]), (64, ["baseline", "Notes"]),
    (64, ["migrate", "Notes", "--exit-code"]), (64, ["migrate", "Notes", "--each", "--dry-run"]),
    (64, ["rollback", "Notes", "--redo", "--down"]), (64, ["rollback", "Notes", "--to", "9"]),
    (64, ["rollback", "Notes", "--down"]),
    (64, ["repair", "Notes"]),
    (64, ["repair", "Notes", "--accept", "9"]),
    (1, ["test", "Nowhere"]), (64, ["test", "--jobs", "0"]), (4, ["test", "-m", "Nowhere"]),
    (64, ["new", "two words"]), (64, ["new", "x", "--sql", "--database", "nots"]), (64, ["release", ""]),
  ]

  @Test("A failure is one document too, with the exit code; words go to standard error", arguments: failures)
  func failure(_ exit: Int32, _ arguments: [String]) throws {
    try Sandbox.with { sandbox in
      try sandbox.create()
      let result = try sandbox.drydock(arguments + ["--json"])
      #expect(result.exitCode == exit, "\(result)")
      let error = try #require(try Self.document(result)["error"] as? [String: Any], "\(result)")
      #expect(error["exit_code"] as? Int == Int(exit))
      #expect((error["code"] as? String)?.isEmpty == false)
      let message = try #require(error["message"] as? String)
      #expect(!message.isEmpty && result.errors.contains(message), "\(result)")
      #expect(Self.oddKeys(error) == [])
    }
  }

  @Test("A difference is told by store")
  func difference() throws {
    try Sandbox.with { sandbox in
      try sandbox.create()
      let archive = try sandbox.snapshot()
      try sandbox.run(
        Tools.system("sqlite3"), sandbox("Notes/" + Sandbox.oldDatabase),
        "UPDATE task SET title = 'New' WHERE id = 1"
      )
      try sandbox.write("Notes/Documents/new.txt", "new")
      let result = try sandbox.drydock("diff", archive, "Notes", "--json", "--exit-code")
      #expect(result.exitCode == 2)
      let document = try Self.document(result)
      #expect(Self.oddKeys(document) == [] && document["equal"] as? Bool == false)
      #expect((document["a"] as? [String: Any])?["kind"] as? String == "archive")
      #expect((document["b"] as? [String: Any])?["kind"] as? String == "container")
      let difference = try #require(document["difference"] as? [String: Any])
      let files = try #require(difference["files"] as? [[String: Any]])
      #expect(files.map { $0["path"] as? String } == ["Documents/new.txt"])
      let database = try #require((difference["databases"] as? [[String: Any]])?.first)
      let table = try #require((database["tables"] as? [[String: Any]])?.first)
      #expect(table["changed"] as? Int == 1 && table["name"] as? String == "task")
      let row = try #require((table["rows"] as? [[String: Any]])?.first)
      #expect((row["columns"] as? [[String: Any]])?.first?["after"] as? String == "\"New\"")

      let verified = try sandbox.drydock("verify", archive, "--container", "Notes", "--json")
      #expect(verified.exitCode == 2)
      let container = try #require(try Self.document(verified)["container"] as? [String: Any])
      #expect(container["equal"] as? Bool == false && container["difference"] != nil)
    }
  }

  @Test("A damaged archive is told in the document, with exit code 4")
  func damaged() throws {
    try Sandbox.with { sandbox in
      try sandbox.write("text.tar.zst", "not an archive\n")
      let result = try sandbox.drydock("verify", "text.tar.zst", "--json")
      #expect(result.exitCode == 4)
      let archives = try #require(try Self.document(result)["archives"] as? [[String: Any]])
      #expect(archives.map { $0["ok"] as? Bool } == [false])
      #expect((archives.first?["error"] as? String)?.isEmpty == false)
    }
  }

  static let brokenDatabase = "Documents/BrokenBase.sqlite"

  /// A database that SQLite cannot read, with something in its log.
  static func breakDatabase(in sandbox: Sandbox) throws {
    let header = Array("SQLite format 3\0".utf8)
    try sandbox.write("Notes/" + brokenDatabase, bytes: header + Array(repeating: 7, count: 5104))
    try sandbox.write(
      "Notes/\(brokenDatabase)-wal", bytes: [0x37, 0x7f, 0x06, 0x82] + Array(repeating: 7, count: 5000))
  }

  // MARK: Reading

  /// Standard output as the one JSON object that it must be.
  static func document(_ result: CommandResult) throws -> [String: Any] {
    let value = try? JSONSerialization.jsonObject(with: Data(result.outputBytes))
    return try #require(value as? [String: Any], "standard output is not one JSON object: \(result)")
  }

  /// Keys that are not snake case, at any depth.
  static func oddKeys(_ value: Any) -> [String] {
    if let list = value as? [Any] { return list.flatMap(oddKeys) }
    guard let object = value as? [String: Any] else { return [] }
    return object.flatMap { key, value in
      (key.wholeMatch(of: /[a-z][a-z0-9]*(_[a-z0-9]+)*/) == nil ? [key] : []) + oddKeys(value)
    }
  }
}
