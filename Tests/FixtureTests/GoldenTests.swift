import AppContainer
import ContainerDiff
import ContainerTransaction
import DrydockErrors
import DrydockTesting
import FileSystem
import Formats
import Foundation
import MigrationEngine
import TestSupport
import Testing

@Suite struct GoldenTests {
  private let folder: TemporaryDirectory
  init() throws { folder = try TemporaryDirectory() }

  private func container(_ folder: TemporaryDirectory, _ options: [String] = []) throws -> Container {
    let made = try Command.run(Tools.notesApp(), ["create", folder("c"), "--photos", "2"] + options)
    #expect(made.succeeded, "\(made)")
    return try Container(at: folder("c"))
  }

  private func write(_ container: Container, to path: String) throws {
    try Transaction.inspect(container) { try GoldenText(of: ContentSide(live: $0)).write(to: path) }
  }

  private func compare(_ golden: String, _ container: Container) throws -> Comparison {
    var options = ComparisonOptions()
    options.rowLimit = 10
    return try Transaction.inspect(container) {
      try Comparison(of: Golden(golden), with: ContentSide(live: $0), options: options)
    }
  }

  @Test(arguments: ["--leave-wal", "--rollback-journal"]) func aContainerEqualsItsGolden(_ option: String)
    throws
  {
    let container = try container(folder, [option])
    try write(container, to: folder("golden"))
    #expect(Golden.isGolden(folder("golden")) && !Golden.isGolden(folder("c")))
    let same = try compare(folder("golden"), container)
    #expect(same.difference.isEmpty, "\(same.difference)")
    #expect(same.compared > 20 && same.notCompared.contains { $0.path == "Library/Caches" })
    try write(container, to: folder("again"))
    let diff = try Command.run(Tools.system("diff"), ["-r", folder("golden"), folder("again")])
    #expect(diff.succeeded, "the same container gives the same text: \(diff)")

    let sql = "UPDATE task SET title = 'Neu' WHERE id = 2; CREATE TABLE more(x)"
    let changed = try Command.run(Tools.system("sqlite3"), [folder("c") + "/Documents/database.sqlite", sql])
    #expect(changed.succeeded)
    try RawFiles.write(Array("x".utf8), to: Array((folder("c") + "/Documents/new").utf8))
    let other = try compare(folder("golden"), container).difference
    #expect(other.files.map(\.path) == ["Documents/new"] && other.settings.isEmpty)
    #expect(other.databases.map(\.path) == ["Documents/database.sqlite"])
    #expect(other.databases.first?.tables.map(\.name) == ["task"])
    #expect(other.databases.first?.schema.map(\.name) == ["more"])
  }

  @Test func oddNamesValuesAndRows() throws {
    let root = folder("com.example.odd")
    try RawFiles.createDirectories(root + "/Library/Preferences")
    try RawFiles.createDirectories(root + "/Documents")
    let container = try Container(at: root)
    let directory = try Directory(root)
    for name in [" lead", "tail ", "a\nb", "back\\x41slash", "Grüße", "-", "#x"] {
      try directory.create(ContainerPath(name: Array("Documents/\(name)".utf8)), Array(name.utf8))
    }
    try directory.create(ContainerPath(bytes: Array("Documents/".utf8) + [0xff, 0x20, 0x41]), [1])
    try directory.createLink("Documents/link", target: Array("a b -> ,c\\".utf8))
    try directory.setAttribute(.init(name: "user.a=b, c", value: [0, 1]), of: "Documents/Grüße")
    let values: PropertyListDictionary = [
      "text": "a\"b\\c\n\u{1b}\u{2028}é yes", "yes": "yes", "1": "1", "": "", "int": .integer(.min),
      "big": .unsigned(.max), "real": .real(1), "tiny": .real(.leastNonzeroMagnitude),
      "inf": .real(-.infinity), "single": .single(0.1), "on": true, "data": .data([0, 255]),
      "date": .date(Date(timeIntervalSinceReferenceDate: 700_000_000.25)), "empty": .array([]),
      "nested": .dictionary(["a b": .array([1, .single(0.5), .dictionary([:])])]),
    ]
    try directory.create(
      "Library/Preferences/com.example.odd.plist", PropertyListFile(root: values).encoded())
    try directory.create("Library/Preferences/com.example.none.plist", PropertyListFile(root: [:]).encoded())
    let sql = """
      PRAGMA user_version = 4; CREATE TABLE "odd ""n"(k TEXT COLLATE NOCASE PRIMARY KEY, v, g AS (v || 'x'));
      INSERT INTO "odd ""n" VALUES ('it''s' || char(10), 1e999), ('n', -1e999), ('nul' || char(0) || 'x', 0.1),
        (CAST(x'ff41' AS TEXT), x'00ff'), (NULL, 1.0), (NULL, 9007199254740993);
      CREATE TABLE seq(id INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO seq VALUES (9); DELETE FROM seq;
      CREATE TABLE keyless(v); INSERT INTO keyless(rowid, v) VALUES (5, 'five'), (-3, 'three');
      CREATE VIRTUAL TABLE f USING fts5(body); INSERT INTO f VALUES ('words here');
      CREATE TRIGGER t AFTER INSERT ON keyless BEGIN DELETE FROM seq; INSERT INTO keyless VALUES ('no'); END;
      CREATE VIEW z AS SELECT * FROM a; CREATE VIEW a AS SELECT 1; CREATE INDEX i ON keyless(v) WHERE v > 1;
      """
    for name in ["Documents/one.db", "Documents/Über.db", "Library/one.db"] {
      let made = try Command.run(Tools.system("sqlite3"), ["-bail", root + "/" + name, sql])
      #expect(made.succeeded, "\(made)")
    }
    let wide = try Command.run(
      Tools.system("sqlite3"),
      [
        root + "/Documents/wide.db",
        "PRAGMA encoding='UTF-16be'; CREATE TABLE t(k PRIMARY KEY); INSERT INTO t VALUES ('€')",
      ])
    #expect(wide.succeeded)
    try write(container, to: folder("golden"))
    let same = try compare(folder("golden"), container)
    #expect(same.difference.isEmpty, "\(same.difference)")
    #expect(same.compared == 19, "every path takes part")
  }

  @Test func whatIsNoGolden() throws {
    let container = try container(folder)
    try write(container, to: folder("golden"))
    let list = folder("golden") + "/files.txt"
    let text = try String(contentsOfFile: list, encoding: .utf8)
    let breaks: [(String, String)] = [
      (text.replacing("golden 1", with: "golden 2"), "first line"), (text + "file 644 -\n", ":1: not type"),
      (text + "blob 644 - - x\n", "not type"), (text + "file 999 - - x\n", "not type"),
      (text + "file 644 - - ../x\n", "not type"), (text + "directory 755 - - Documents\n", "twice"),
      (text.replacing("database.sqlite.sql", with: "other.sql"), "other.sql"),
      (text.replacing("database.sqlite.sql", with: "../other.sql"), "not a path"),
    ]
    for (broken, message) in breaks {
      try broken.write(toFile: list, atomically: true, encoding: .utf8)
      do {
        _ = try compare(folder("golden"), container)
        Issue.record("nothing was thrown for \(message)")
      } catch {
        #expect("\(error)".contains(message), "\(error)")
      }
    }
    try text.write(toFile: list, atomically: true, encoding: .utf8)
    try "INSERT INTO nowhere VALUES (1);".write(
      toFile: folder("golden") + "/database.sqlite.sql", atomically: true, encoding: .utf8)
    let error = #expect(throws: DrydockError.self) { _ = try compare(folder("golden"), container) }
    #expect(error?.code == .badFixture && error?.path?.hasSuffix("database.sqlite.sql") == true)
  }

  /// A fixture of version 1 whose container a test changes, with migrations 1 to 4 of which 2 is released.
  private struct Recording {
    let folder: TemporaryDirectory
    let made: GoldenContainer
    var released = [1, 2]
    var latest = 4

    init(_ folder: TemporaryDirectory) throws {
      self.folder = folder
      made = try GoldenContainer(folder)
      try RawFiles.createDirectories(folder("f/container"))
      try RawFiles.createDirectories(folder("m"))
      try "version: 1\nvolatile: {settings: at}\n".write(
        toFile: folder("f/fixture.yaml"), atomically: true, encoding: .utf8)
    }

    func recorder() throws -> GoldenRecorder {
      let text = released.map { "- {release: \"\($0).0\", version: \($0), migrations: []}\n" }.joined()
      try text.write(toFile: folder("m/releases.yaml"), atomically: true, encoding: .utf8)
      return GoldenRecorder(
        try Fixture.load(folder("f")), latest: latest, releases: try Releases.read(folder("m")))
    }

    /// Records; the container says which version it is in.
    func record(_ more: PropertyListDictionary = [:]) throws -> [String] {
      try recorder().record { version in
        let own: PropertyListDictionary = [
          "v": .integer(Int64(version)), "at": .integer(.random(in: 1...9999)),
        ]
        try made.set(own.merging(more) { $1 })
        return made.container
      }.map {
        let shown = $0.base.map { " since \($0)" } ?? $0.difference.map { " \($0.settings.map(\.key))" } ?? ""
        return "\($0.version) \($0.change.rawValue)\(shown)"
      }
    }

    var names: [String] {
      get throws { try FileManager.default.contentsOfDirectory(atPath: folder("f/expected")).sorted() }
    }
  }

  @Test func goldensAreWrittenUpdatedFrozenAndRemoved() throws {
    var recording = try Recording(folder)
    #expect(try recording.recorder().versions == [1, 2, 4])
    #expect(try recording.record() == ["1 written", "2 written since 1", "4 written since 2"])
    #expect(try recording.record() == ["4 unchanged"])
    #expect(try recording.record(["n": 1]) == ["4 updated [\"n\"]"])
    let text = try String(contentsOfFile: folder("f/expected/4/defaults.yaml"), encoding: .utf8)
    #expect(text.hasSuffix("  at: 0\n  \"n\": 1\n  v: 4\n"))
    // A new version: the one before was never released.
    recording.latest = 5
    #expect(try recording.record() == ["4 removed", "5 written since 4"])
    #expect(try recording.names == ["1", "2", "5"])
    // Released, and the same: nothing to do. Another result is refused, and nothing changes.
    recording.released.append(5)
    #expect(try recording.record() == ["5 unchanged"])
    let error = expectError(.frozen, "released with 5.0") { try recording.record(["n": 1]) }
    #expect(error?.path == folder("f") + "/expected/5")
    #expect(try recording.record() == ["5 unchanged"])
    // How a frozen one is written does not matter.
    let yaml = folder("f/expected/5/defaults.yaml")
    try (String(contentsOfFile: yaml, encoding: .utf8) + "# by hand\n").write(
      toFile: yaml, atomically: true, encoding: .utf8)
    #expect(try recording.record() == ["5 unchanged"])
    #expect(try String(contentsOfFile: yaml, encoding: .utf8).hasSuffix("# by hand\n"))
    let hidden = try FileManager.default.contentsOfDirectory(atPath: folder("f")).sorted()
    #expect(hidden == ["container", "expected", "fixture.yaml"])
  }

  @Test func allOrNothing() throws {
    let recording = try Recording(folder)
    struct Stop: Error {}
    #expect(throws: Stop.self) {
      try recording.recorder().record { version in
        if version == 4 { throw Stop() }
        return recording.made.container
      }
    }
    #expect(!FileManager.default.fileExists(atPath: folder("f/expected")))
    // A golden that cannot be read any more is replaced.
    #expect(try recording.record().count == 3)
    try "nonsense".write(toFile: folder("f/expected/4/files.txt"), atomically: true, encoding: .utf8)
    #expect(try recording.record() == ["4 updated"])
    #expect(try recording.record() == ["4 unchanged"])
  }

  @Test(arguments: [(nil, false), ("", false), ("false", false), ("true", true), ("1", true)])
  func pipelinesDoNotRecord(_ value: String?, _ refused: Bool) {
    let environment = value.map { ["CI": $0] } ?? [:]
    #expect((GoldenRecorder.refusal(in: environment) != nil) == refused)
  }
}
