import AppStores
import BackupRepository
import ContainerTransaction
import Formats
import Foundation
import TestSupport
import Testing

@Suite("A fixture's container is what its files say, and nothing outside is touched")
struct FixtureContainerTests {
  private let sandbox: FixtureSandbox
  init() throws { sandbox = try FixtureSandbox() }

  private static let group = "group.com.example.notes"

  @Test(
    "Groups are where drydock.yaml says, inside of the fixture's own directory",
    arguments: [
      ("../Shared/notes", "Shared/notes", "container"),
      ("../../../Shared/./AppGroup/notes", "Shared/AppGroup/notes", "nest/nest/container"),
      (".././../up/", "up", "nest/container"),
    ])
  func groups(path: String, root: String, container: String) throws {
    sandbox.configuration.groups = [Self.group: path, "group.none": "../never"]
    try sandbox.write("container/Documents/a", "a")
    try sandbox.write("groups/\(Self.group)/Library/Preferences/\(Self.group).plist.yaml", "theme: dark\n")
    try sandbox.write("groups/\(Self.group)/data.db.sql", "CREATE TABLE t(x);")
    try sandbox.write("groups/.DS_Store", "x")
    try sandbox.describe(
      """
      container:
        directories: [.groups/\(Self.group)/Empty]
        excluded: [.groups/\(Self.group)/data.db, .groups/\(Self.group)]
      """)
    let work = sandbox.directory("work")
    let made = try sandbox.load().build(
      in: work, configuration: sandbox.configuration, deviceKeys: sandbox.deviceKeys)
    #expect(made.root == work + "/" + container && made.groups.map(\.root) == [work + "/" + root])
    #expect(made.missingGroups.map(\.id) == ["group.none"])
    let tree = try TreeListing(work)
    #expect(
      tree["\(root)/Library/Preferences/\(Self.group).plist"]?.content.starts(with: Array("bplist".utf8))
        == true)
    #expect(tree["\(root)/Empty"]?.kind == .directory && tree["\(container)/Documents/a"] != nil)
    #expect(tree["\(root)/data.db"]?.attributes.count == 1 && tree["\(root)"]?.attributes.count == 1)
    #expect(try Self.names(sandbox.directory.path) == ["Fixtures", "work"])
  }

  private static func names(_ path: String) throws -> Set<String> {
    Set(try RawFiles.names(in: Array(path.utf8)).map { String(decoding: $0, as: UTF8.self) })
  }
  @Test("Groups that would be outside, or that nobody knows, are errors")
  func strangeGroups() throws {
    try sandbox.write("container/a", "a")
    try sandbox.describe("")
    sandbox.configuration.groups = [Self.group: sandbox.directory("outside")]
    #expect(FixtureSandbox.message(sandbox.build).contains("is at an absolute path"))
    for path in ["..", ".", "../container", "Library", "../../nest"] {
      sandbox.configuration.groups = [Self.group: path]
      try sandbox.write("groups/\(Self.group)/b", "b")
      let said = FixtureSandbox.message(sandbox.build)
      #expect(said.contains("overlap"), "\(path): \(said)")
    }
    sandbox.configuration.groups = [Self.group: "../x/../../y"]
    #expect(FixtureSandbox.message(sandbox.build).contains("write `..` only at its beginning"))
    sandbox.configuration.groups = ["group.other": "../other"]
    #expect(FixtureSandbox.message(sandbox.build).contains("the fixture has the group \(Self.group)"))
    try sandbox.write("container/.groups/x", "x")
    try RawFiles.remove(Array(sandbox.directory(FixtureSandbox.fixture + "/groups").utf8))
    #expect(FixtureSandbox.message(sandbox.build).contains("groups are beside the container"))
  }

  @Test("Settings may be XML, files may be taken as they are, links and programs stay what they are")
  func files() throws {
    let settings = PropertyListFile(
      format: .xml, root: ["a": 1, "when": .date(Date(timeIntervalSince1970: 60))])
    try sandbox.write("container/Library/x.plist.xml", settings.encoded())
    try sandbox.write("container/Library/raw.plist.xml", settings.encoded())
    try sandbox.write("container/Library/empty.plist.yaml", "")
    try sandbox.write("container/Documents/schema.sql", "not SQL")
    try sandbox.write("container/Documents/.sql", "no name")
    try sandbox.write("container/Documents/settings.yaml", "a: 1\n")
    try sandbox.write("container/Documents/odd \u{1F95B} \\ name\n", "odd")
    try sandbox.write("container/bin/run", "#!/bin/sh\n")
    let fixture = sandbox.directory(FixtureSandbox.fixture + "/container/")
    #expect(chmod(fixture + "bin/run", 0o700) == 0 && symlink("../../outside", fixture + "link") == 0)
    try sandbox.describe(
      """
      container:
        directories: [closed/inner]
        verbatim: [Documents/schema.sql, Library/raw.plist.xml]
        modes: {closed: 0o000, closed/inner: 0o500, .: 0o700}
      """)
    let container = try sandbox.build()
    #expect(chmod(container.root + "/closed", 0o700) == 0)
    let tree = try TreeListing(container.root)
    let read = { (path: String) in try PropertyListFile(bytes: [UInt8](tree[path]?.content ?? Data())) }
    #expect(try read("Library/x.plist") == PropertyListFile(format: .binary, root: settings.root))
    #expect(try read("Library/empty.plist").root.isEmpty)
    #expect(try tree["Library/raw.plist.xml"]?.content == Data(settings.encoded()))
    #expect(tree["Documents/schema.sql"]?.content == Data("not SQL".utf8) && tree["Documents/.sql"] != nil)
    #expect(tree["Documents/settings.yaml"] != nil && tree["Documents/odd \u{1F95B} \\ name\n"] != nil)
    #expect(tree["bin/run"]?.mode == 0o755 && tree["Documents"]?.mode == 0o755)
    #expect(tree["Documents/settings.yaml"]?.mode == 0o644 && tree["closed/inner"]?.mode == 0o500)
    #expect(tree["link"]?.kind == .symbolicLink && tree[""]?.mode == 0o700)
  }

  @Test("What cannot be built says which file or line is wrong")
  func mistakes() throws {
    let cases: [(files: [String: String], yaml: String, message: String)] = [
      (["a.plist.yaml": "a: 1\n", "a.plist.xml": "<plist><dict/></plist>"], "", "makes a.plist"),
      (["a.db.sql": "CREATE TABLE t(x);", "a.db": "x"], "", "makes a.db"),
      (["a.plist.yaml": "- 1\n"], "", "a.plist.yaml:1:1:"),
      (["a.plist.yaml": "a: null\n"], "", "a.plist.yaml:1:4:"),
      (["a.plist.xml": "<plist>"], "", "container/a.plist.xml: "),
      (
        ["a.db.sql": "CREATE TABLE t(x); INSERT INTO u VALUES (1);"], "",
        "a.db.sql:1:1: the SQL fails: no such table"
      ),
      (
        [
          "a.db.sql":
            "CREATE TABLE t(x UNIQUE);\n\nINSERT INTO t VALUES (1);\n-- why\nINSERT INTO t VALUES (1);\n"
            + "INSERT INTO t VALUES (2);\n"
        ], "", "a.db.sql:5:1: the SQL fails: UNIQUE"
      ),
      (
        ["a.db.sql": "CREATE TABLE t(x);\nSELECT\n1;\nSELECT\nnone;\nSELECT\n1;"], "",
        "a.db.sql:4:1: the SQL fails: no such column"
      ),
      (["a.db.sql": "BEGIN; CREATE TABLE t(x); INSERT INTO u VALUES (1);"], "", "no such table: u"),
      (["a.db.sql": "CREATE TABLE t(x UNIQUE); BEGIN; COMMIT"], "", "within a transaction"),
      (["a.db.sql": "CREATE TABLE \"t"], "", "a.db.sql:1:1: the SQL fails: unrecognized token"),
      (["a.db.sql": "ATTACH '/tmp/never' AS o"], "", "ATTACH is not allowed"),
      (["a.db.sql": "/* */ -- x\n vacuum into '/tmp/never'"], "", "VACUUM is not allowed"),
      (
        ["a.db.sql": "PRAGMA journal_mode = DELETE; CREATE TABLE t(x)"], "only-in-wal: [a.db]",
        "needs WAL mode"
      ),
      (["a.db.sql": ""], "only-in-wal: [b.db]", "fixture.yaml:2:27: the fixture has no `b.db.sql`"),
      (["a": "a"], "verbatim: [b.sql]", "fixture.yaml:2:24: the fixture has no file `b.sql`"),
      (["a": "a"], "excluded: [b]", "fixture.yaml:2:24: the container has no `b`"),
      (["a": "a"], "directories: [a]", "fixture.yaml:2:27: `a` cannot be set up"),
      (["a": "a"], "directories: [a/b]", "fixture.yaml:2:27: `a/b` cannot be set up"),
      (["a": "a"], "attributes: {a: {nonamespace: x}}", "fixture.yaml:2:26: `a` cannot be set up"),
      (
        ["Library/Vault/vault.age": "x"], "vault: [{service: a, accessible: always, value: made-up}]",
        "has one already"
      ),
    ]
    for (files, yaml, message) in cases {
      try FixtureSandbox.with { sandbox in
        for (path, text) in files { try sandbox.write("container/" + path, text) }
        try sandbox.describe("container: {\(yaml)}\n")
        let said = FixtureSandbox.message(sandbox.build)
        #expect(said.contains(message), "\(message): \(said)")
      }
    }
  }

  @Test("A checkout with other line ends gives the same container")
  func lineEnds() throws {
    let list = try PropertyListFile(format: .xml, root: ["a": "one\ntwo"]).encoded()
    let files = [
      "a.db.sql": "CREATE TABLE t(\n  x\n);\nINSERT INTO t VALUES ('one\ntwo');\n",
      "Library/x.plist.xml": String(decoding: list, as: UTF8.self),
      "Library/y.plist.yaml": "a: |\n  one\n  two\n",
    ]
    try sandbox.describe("")
    func built(_ change: (String) -> String) throws -> TreeListing {
      for (path, text) in files { try sandbox.write("container/" + path, change(text)) }
      return try TreeListing(sandbox.build().root)
    }
    let (one, other) = (try built { $0 }, try built { $0.replacing("\n", with: "\r\n") })
    for path in one.paths { #expect(one[path]?.content == other[path]?.content, "\(path)") }
  }

  @Test("SQL may be a dump with its own transaction, and says of the file what comes first")
  func dumps() throws {
    let dump = """
      PRAGMA foreign_keys=OFF;
      PRAGMA encoding = 'UTF-16le';
      BEGIN TRANSACTION;
      CREATE TABLE child(parent REFERENCES missing(id));
      INSERT INTO child VALUES (1);
      COMMIT;
      PRAGMA user_version = 7;
      """
    try sandbox.write("container/dump.db.sql", dump)
    try sandbox.write(
      "container/old.db.sql", "PRAGMA journal_mode = DELETE; CREATE TABLE t(x); INSERT INTO t VALUES (1)")
    try sandbox.write("container/plain.db.sql", "-- nothing\nCREATE TABLE t(x);\nINSERT INTO t VALUES (1);")
    try sandbox.write("container/empty.db.sql", "-- no content\n")
    try sandbox.describe("")
    let root = try sandbox.build().root
    let ask = { (name: String, sql: String) in
      try Command.run(Tools.system("sqlite3"), ["file:\(root)/\(name)?immutable=1", sql]).output
    }
    let asked = "PRAGMA encoding; PRAGMA user_version; SELECT count(*) FROM child"
    #expect(try ask("dump.db", asked) == "UTF-16le\n7\n1\n")
    let header = { (name: String) in
      try Array(RawFiles.read(Array("\(root)/\(name)".utf8)).prefix(20).suffix(2))
    }
    #expect(try header("old.db") == [1, 1] && header("plain.db") == [2, 2] && header("dump.db") == [2, 2])
    #expect(try ask("old.db", "SELECT count(*) FROM t") == "1\n")
    #expect(try header("empty.db") == [2, 2])
  }

  @Test("An archive is a container too: with groups, flags and excluded files, and a vault that is made anew")
  func archives() throws {
    sandbox.configuration.groups = [Self.group: "../Shared/notes"]
    try sandbox.write("container/Documents/a", "a")
    try sandbox.write("container/Documents/kept/b", "b")
    try sandbox.write(
      "container/Documents/database.sqlite.sql", "CREATE TABLE t(x); INSERT INTO t VALUES (1);")
    try sandbox.write("groups/\(Self.group)/shared", "s")
    try sandbox.describe(
      """
      container:
        excluded: [Documents/kept]
        modes: {Documents/a: 0o600}
        vault: [{service: s, accessible: always, value: made-up-real}]
      """)
    let source = try sandbox.build()
    let archive = sandbox.directory("archive.tar.zst")
    var options = SnapshotOptions()
    options.includesExcluded = true
    _ = try Snapshot.take(source, to: .file(archive), options)

    let folder = sandbox.directory(FixtureSandbox.fixture)
    for name in ["container", "groups"] { try RawFiles.remove(Array("\(folder)/\(name)".utf8)) }
    try FileManager.default.moveItem(atPath: archive, toPath: folder + "/container.tar.zst")
    try sandbox.write("fixture.yaml", "version: 0\n")
    #expect(FixtureSandbox.message(sandbox.build).contains("which only its own device can open"))
    let vault =
      "container: {vault: [{service: t, accessible: always, value: x}], modes: {Documents/kept/b: 0o640}}\n"
    try sandbox.write("fixture.yaml", "version: 0\n" + vault)
    let work = sandbox.directory("built")
    let made = try sandbox.load().build(
      in: work, configuration: sandbox.configuration, deviceKeys: sandbox.deviceKeys)
    let own = ["Library/Vault/vault.age", "Library/Vault"]
    let (before, after) = (try TreeListing(source.root).without(own), try TreeListing(made.root).without(own))
    #expect(after["Documents/kept/b"]?.mode == 0o640 && after["Documents/a"]?.mode == 0o600)
    #expect(after.paths == before.paths && after["Documents/kept"]?.attributes.count == 1)
    #expect(try TreeListing(work + "/Shared/notes").paths.contains("shared"))
    let items = try Transaction.inspect(made, options: sandbox.transaction) {
      try #require(try $0.vault()).sorted.map(\.service)
    }
    #expect(items == ["t"])
    #expect(try Self.names(work) == ["container", "Shared"], "the restore left something of its own")
    #expect(try Self.names(work + "/Shared") == ["notes"])
    #expect(try Transaction.log(made).isEmpty)
    try sandbox.write("fixture.yaml", "version: 0\ncontainer: {only-in-wal: [a.db]}\n")
    #expect(FixtureSandbox.message(sandbox.build).contains("which only its own device can open"))
    try sandbox.write("fixture.yaml", "version: 0\ncontainer: {vault: [], verbatim: [a.sql]}\n")
    #expect(
      FixtureSandbox.message(sandbox.build).contains("fixture.yaml:2:35: the fixture has no `container/`"))
    sandbox.configuration.groups = [:]
    #expect(FixtureSandbox.message(sandbox.build).contains("the archive has the group \(Self.group)"))
  }

  @Test("An archive that is cut or lies gives an error, and nothing outside is touched")
  func damagedArchives() throws {
    try sandbox.write("container/Documents/a", [UInt8](repeating: 7, count: 100_000))
    try sandbox.describe("")
    let archive = sandbox.directory("archive.tar.zst")
    _ = try Snapshot.take(sandbox.build(), to: .file(archive))
    let bytes = [UInt8](try RawFiles.read(Array(archive.utf8)))
    try RawFiles.remove(Array(sandbox.directory(FixtureSandbox.fixture + "/container").utf8))
    try sandbox.write("fixture.yaml", "version: 0\n")
    var flipped = bytes
    flipped[bytes.count / 2] ^= 0x40
    for damaged in [
      Array(bytes.dropLast(9)), Array(bytes.prefix(bytes.count / 2)), flipped, [], Array("text".utf8),
    ] {
      try sandbox.write("container.tar.zst", damaged)
      let said = FixtureSandbox.message(sandbox.build)
      #expect(said != "nothing was thrown" && said.contains("container.tar.zst"), "\(said)")
    }
  }
}

extension FixtureSandbox {
  fileprivate var transaction: TransactionOptions {
    var options = TransactionOptions()
    options.deviceKeys = deviceKeys
    return options
  }
}
