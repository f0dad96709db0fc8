import Foundation
import TestSupport
import Testing

@Suite("JSON") struct JSONTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox() }

  /// A command line that succeeds, by what has happened to the container `Notes` before; `{A}` is an archive of it.
  static let successes: [String] = [
    "inspect Notes", "inspect Notes --excluded", "explain Notes tmp", "audit Notes", "audit --rules",
    "explain Notes new/", "explain Notes Documents", "snapshot Notes -r Backups", "list -r Backups",
    "show {A}", "tag {A} --add keep", "forget -r Backups --keep-last 9 --dry-run",
    "forget -r Backups --keep-within 90d", "show {A} Documents/Notes", "verify {A}",
    "verify -r Backups --data", "diff {A} Notes", "diff Notes {A} --exit-code --details",
    "verify {A} --container Notes", "export {A} -o Copy.tar.zst", "keygen -o key.txt",
    "rekey {A} -o Sealed --recipient age1f35gryhjktqrherf0f263jcmux6u4f3k9dsstrt73ws7fmy7wq4qvl69g0",
    "status Notes", "validate", "test v0", "test v0 --record", "migrate Notes --dry-run",
    "migrate Notes --to 1", "migrate Notes", "migrate Notes", "status Notes", "log Notes", "rollback Notes",
    "rollback Notes --redo", "rollback Notes --to 3 --dry-run", "rollback Notes --down",
    "migrate Notes --each", "restore {A} Notes --dry-run", "restore {A} Notes", "restore {A} Again",
    "baseline Notes --to 2", "recover Notes", "log Notes", "fixture capture Notes used --fixtures .",
    "fixture capture {A} archived --fixtures .", "release 1.0", "new photos --directory",
    "summary results.jsonl",
  ]

  static let vaultSuccesses: [String] = [
    "list Notes", "set Notes s/a --value-file drydock.yaml", "list Notes", "get Notes s/a",
    "get Notes s/a --output value.txt", "rename Notes s/a s/b --dry-run",
    "rename Notes s/a s/b --to-access-group g", "set-accessibility Notes s/b afterFirstUnlock",
    "set-access-control Notes s/b --access-control userPresence", "set-access-control Notes s/b --none",
    "set-synchronizable Notes s/b true", "rekey Notes --new-device-key device.key --dry-run",
    "rekey Notes --new-device-key device.key", "remove Notes s/b",
  ]

  static let defaultsSuccesses: [String] = [
    "read Notes", "read Notes user_name", "write Notes theme dark --dry-run", "write Notes theme dark",
    "delete Notes theme", "export Notes settings.plist", "import Notes settings.plist --dry-run",
    "import Notes settings.plist", "convert settings.plist --as binary --output settings.bin",
  ]

  /// All of them, with the path of the archive. A fixture takes a second: one of an archive prints what one of a container
  /// does.
  static func commands(_ archive: String) -> [[String]] {
    let all = successes + vaultSuccesses.map { "vault " + $0 } + defaultsSuccesses.map { "defaults " + $0 }
    return all.filter { TestExtent.isFull || !$0.hasPrefix("fixture capture {A}") }
      .map { $0.words.map { $0 == "{A}" ? archive : $0 } }
  }

  @Test func `Every command prints one document, and keys are snake case`() throws {
    try sandbox.create()
    try sandbox.addFixture("v0")
    let archive = try sandbox.snapshot()
    try sandbox.write("results.jsonl", sandbox.drydock("status --all . --json").output)
    var seen: Set<String> = []
    func document(_ words: [String]) throws -> JSONNode {
      let document = try sandbox.drydock(words + ["--json"]).expect().json()
      #expect(!document["error"].exists && document.oddKeys == [], "\(words) \(document)")
      seen.insert(words[0])
      return document
    }
    for words in Self.commands(archive) { _ = try document(words) }
    // An applied migration is edited, and the edit accepted.
    let edited = "Migrations/0001_default_settings.yaml"
    try sandbox.succeed("migrate Again --to 1")
    try sandbox.edit(edited) { $0 + "# edited\n" }
    #expect(try document(["repair", "Again", "--accept", "1"])["notes"].list.count == 1)
    _ = try document(["import", ImportTests.sample("plain-5.ab"), "--list"])
    try sandbox.shell("minisign -G -W -p sign.pub -s sign.key > tmp/made")
    #expect(try document(["sign", archive, "--sign", "sign.key"])["archives"].list.count == 1)
    // One is there already.
    try sandbox.drydock("init --json Notes").expect(exit: 1)
    try sandbox.remove("drydock.yaml")
    _ = try document(["init", "Notes"])
    #expect(seen == Set(try ProgramCommand.top()), "a command is not tried here")
  }

  @Test func `What a document says is so; a path that is a key stays as it is`() throws {
    try sandbox.create()
    let pending = try sandbox.drydock("status Notes --json --exit-code").expect(exit: 2).json()
    let states = pending["migrations"].list.map { $0["state"].text }
    #expect(states == Array(repeating: "pending", count: Sandbox.latest))
    try Self.breakDatabase(in: sandbox)
    let document = try sandbox.drydock("snapshot Notes -r Backups --json").json()
    let path = try #require(document["path"].text)
    #expect(document["archive_bytes"].number == (try RawFiles.read(Array(path.utf8)).count))
    #expect(document["raw_databases"].keys == [Self.brokenDatabase])
    // Also when quiet it says what is incomplete.
    let quiet = try sandbox.drydock("snapshot Notes -r Others -q").expect(exit: 3, errors: "raw bytes")
    #expect(quiet.output.isEmpty && quiet.errors.split(separator: "\n").count == 1, "\(quiet)")
  }

  /// Command lines that fail, with their exit code.
  static let failures: [(Int32, String)] = [
    (1, "inspect Nowhere"), (1, "explain Notes ../x"), (64, "snapshot Notes"), (1, "list -r Nowhere"),
    (1, "show Nowhere"), (4, "show drydock.yaml"), (64, "verify"), (64, "verify --container Notes"),
    (1, "diff Nowhere Notes"), (4, "diff Notes drydock.yaml"), (1, "diff Notes Notes --path Nowhere"),
    (64, "diff Notes Notes --only rows"), (1, "restore Nowhere Notes"), (64, "migrate Notes --to 9"),
    (4, "migrate Notes -m Nowhere"), (1, "status Nowhere"), (4, "validate -m Nowhere"),
    (64, "baseline Notes --to 9"), (1, "rollback Notes"), (1, "log Nowhere"), (1, "recover Nowhere"),
    (1, "init"), (64, "inspekt"), (64, "inspect"), (64, "migrate Notes --too"), (64, "baseline Notes"),
    (64, "migrate Notes --exit-code"), (64, "migrate Notes --each --dry-run"),
    (64, "rollback Notes --redo --down"), (64, "rollback Notes --to 9"), (64, "rollback Notes --down"),
    (64, "repair Notes"), (64, "repair Notes --accept 9"), (1, "test Nowhere"), (64, "test --jobs 0"),
    (4, "test -m Nowhere"), (64, "new x --sql --database nots"),
  ]

  @Test func `A failure is one document too, with the exit code; words go to standard error`() throws {
    try sandbox.create()
    // None of them changes anything for the next.
    let names: [(Int32, [String])] = [(64, ["new", "two words"]), (64, ["release", ""])]
    for (exit, words) in Self.failures.map({ ($0, $1.words) }) + names {
      let result = try sandbox.drydock(words + ["--json"]).expect(exit: exit)
      let error = try result.json()["error"]
      #expect(error["exit_code"].number == Int(exit) && error["code"].text?.isEmpty == false, "\(result)")
      let message = error["message"].text ?? ""
      #expect(!message.isEmpty && result.errors.contains(message) && error.oddKeys == [], "\(result)")
    }
  }

  @Test func `A difference is told by store`() throws {
    try sandbox.create()
    let archive = try sandbox.snapshot()
    try sandbox.sqlite("Notes/" + Sandbox.oldDatabase, "UPDATE task SET title = 'New' WHERE id = 1")
    try sandbox.write("Notes/Documents/new.txt", "new")
    let document = try sandbox.drydock("diff", archive, "Notes", "--json", "--exit-code")
      .expect(exit: 2).json()
    #expect(document.oddKeys == [] && document["equal"].flag == false)
    #expect(document["a"]["kind"].text == "archive" && document["b"]["kind"].text == "container")
    let difference = document["difference"]
    #expect(difference["files"].list.map { $0["path"].text } == ["Documents/new.txt"])
    let table = difference["databases"][0]["tables"][0]
    #expect(table["changed"].number == 1 && table["name"].text == "task")
    #expect(table["rows"][0]["columns"][0]["after"].text == "\"New\"")

    let verified = try sandbox.drydock("verify", archive, "--container", "Notes", "--json")
      .expect(exit: 2).json()["container"]
    #expect(verified["equal"].flag == false && verified["difference"].exists)
  }

  @Test func `A damaged archive is told in the document, with exit code 4`() throws {
    try sandbox.write("text.tar.zst", "not an archive\n")
    let archives = try sandbox.drydock("verify text.tar.zst --json").expect(exit: 4).json()["archives"]
    #expect(archives.list.map { $0["ok"].flag } == [false])
    #expect(archives[0]["error"].text?.isEmpty == false)
  }

  static let brokenDatabase = "Documents/BrokenBase.sqlite"

  /// A database that SQLite cannot read, with something in its log.
  static func breakDatabase(in sandbox: Sandbox) throws {
    let header = Array("SQLite format 3\0".utf8)
    try sandbox.write("Notes/" + brokenDatabase, bytes: header + Array(repeating: 7, count: 5104))
    try sandbox.write(
      "Notes/\(brokenDatabase)-wal", bytes: [0x37, 0x7f, 0x06, 0x82] + Array(repeating: 7, count: 5000))
  }
}
