import AppContainer
import FileSystem
import Foundation
import TestSupport
import Testing

@testable import MigrationEngine

@Suite struct FilesOperationTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  private static let history: String = "Library/Application Support/.drydock"
  private static let kept: String = "is where Drydock keeps its history"

  @Test(
    arguments: [
      ("files.move: {from: a, to: x/y/b}", ["a"], ["x/y/b"], ""),
      ("files.move: {from: z, to: b}", ["a"], ["a"], ""),
      ("files.move: {from: z, to: b, if-missing: fail}", ["a"], nil, "move: `z` is not in the container"),
      ("files.move: {from: a, to: b}", ["a", "b"], nil, "the target `b` of `a` exists already"),
      ("files.move: {from: a, to: b, if-exists: keep}", ["a", "b"], ["a", "b"], ""),
      ("files.move: {from: a, to: b, if-exists: replace}", ["a", "b"], ["b"], ""),
      ("files.move: {from: d, to: e}", ["d/1", "d/s/2"], ["e/1", "e/s/2"], ""),
      ("files.move: {from: 'd/*.md', to: e}", ["d/1.md", "d/2.md", "d/3"], ["d/3", "e/1.md", "e/2.md"], ""),
      ("files.move: {from: ['*.md', b], to: e}", ["1.md", "b/c", "d"], ["d", "e/1.md", "e/b/c"], ""),
      ("files.move: {from: '*', to: e}", ["a", "e/b"], nil, "`Library` contains Drydock's history"),
      ("files.move: {from: 'd/*', to: d/e}", ["d/1", "d/e/2"], ["d/e/1", "d/e/2"], ""),
      ("files.move: {from: '**/a', to: e}", ["d/a", "f/a"], nil, "`d/a` and `f/a` would both become `e/a`"),
      ("files.move: {from: ['z*', z], to: e}", ["a"], ["a"], ""),
      ("files.move: {from: 'z*', to: e, if-missing: fail}", ["a"], nil, "nothing matches `z*`"),
      ("files.move: {from: 'a\\*', to: b}", ["a*", "ab"], ["ab", "b"], ""),
      ("files.copy: {from: 'd/*', to: e}", ["d/1", "d/2"], ["d/1", "d/2", "e/1", "e/2"], ""),
      ("files.copy: {from: 'd/*', to: e}", ["d/1", "e/1"], nil, "`e/1` exists already"),
      ("files.move: {from: Library, to: L}", ["a"], nil, "`Library` contains Drydock's history"),
      (
        "files.patch: {path: \(history)/history.json, patch: [{op: remove, path: /format}]}", ["a"], nil, kept
      ),
      ("files.delete: {path: a, destructive: x}", ["a", "b"], ["b"], ""),
      ("files.delete: {path: [d, b], destructive: x}", ["d/1", "d/2", "b", "c"], ["c"], ""),
      ("files.delete: {path: ['*.log'], destructive: x}", ["a.log", "d/b.log"], ["d/b.log"], ""),
      ("files.delete: {path: ['**/*.log'], destructive: x}", ["a.log", "d/b.log", "c"], ["c"], ""),
      ("files.delete: {path: [z], destructive: x}", ["a"], ["a"], ""),
      ("files.delete: {path: [z], destructive: x, if-missing: fail}", ["a"], nil, "nothing matches `z`"),
      ("files.delete: {path: [Library], destructive: x}", ["a"], nil, "`Library` contains Drydock's history"),
      ("files.copy: {from: a, to: x/y/b}", ["a"], ["a", "x/y/b"], ""),
      (
        "files.copy: {from: d, to: e, if-exists: replace}", ["d/1", "d/s/2", "e"],
        ["d/1", "d/s/2", "e/1", "e/s/2"], ""
      ),
      ("files.copy: {from: d, to: d/e}", ["d/1"], nil, "one of `from` and `to` is inside the other"),
      ("files.copy: {from: Library, to: L}", ["a"], nil, "`Library` contains Drydock's history"),
      ("files.copy: {from: a, to: \(history)/a}", ["a"], nil, kept),
      ("files.write: {path: n/b, text: hello}", ["a"], ["a", "n/b"], ""),
      ("files.write: {path: a, text: hello}", ["a"], nil, "`a` exists already"),
      ("files.write: {path: a, text: a}", ["a"], ["a"], ""),
      ("files.write: {path: d, text: a, if-exists: replace}", ["d/1", "a"], ["a", "d"], ""),
      ("files.write: {path: b}", ["a"], nil, "files.write needs one of `text`, `data` and `file`"),
      ("files.write: {path: b, text: x, data: !data AAEC}", ["a"], nil, "name either `text` or `data`"),
      ("files.write: {path: b, data: text}", ["a"], nil, "`data` is data in base64"),
      ("files.write: {path: b, text: x, mode: 644}", ["a"], nil, "`mode` is octal, such as 0o644"),
      ("files.write: {path: b, file: x}", ["a"], nil, "make the migration a directory"),
      ("files.create-directory: {path: a}", ["a"], nil, "`a` exists already"),
      ("files.create-directory: {path: a, if-exists: keep}", ["a"], ["a"], ""),
      ("files.create-directory: {path: a/b}", ["a"], nil, "cannot create the directory: a file exists"),
      (
        "files.create-directory: {path: d, mode: 0o711, if-exists: replace}", ["d/1"], nil,
        "would remove what it contains"
      ),
      ("files.set-backup-exclusion: {path: z, excluded: true}", ["a"], ["a"], ""),
      ("files.set-backup-exclusion: {path: z, excluded: true, if-missing: fail}", ["a"], nil, "matches `z`"),
      ("files.set-backup-exclusion: {path: a, excluded: yes}", ["a"], nil, "`excluded` is true or false"),
      ("files.set-protection: {path: a, class: full}", ["a"], nil, "is one of complete"),
      ("files.set-protection: {path: a}", ["a"], nil, "files.set-protection needs the key `class`"),
    ] as [(String, [String], [String]?, String)])
  func matrix(_ step: String, _ before: [String], _ after: [String]?, _ message: String) throws {
    for file in before { try lab.write(try ContainerPath(file), file) }
    var found = before
    let error = failure {
      try lab.tried(step) { stage, _ in
        found = try stage.descendants(of: .root).filter { path in
          try stage.status(of: path)?.type == .file && !path.isInside("Library")
        }.map(\.description)
      }
    }
    #expect(found.sorted() == (after ?? before).sorted())
    if after == nil {
      #expect(error.text.contains(message), "\(error.text)")
    } else {
      #expect(error.text == "no error")
    }
  }

  @Test(
    "A database goes as a whole, by itself and by a pattern", arguments: ["move", "copy"],
    ["\(Lab.oldDatabase), to: Documents/Old/database.sqlite", "'Documents/database*', to: Documents/Old"])
  func databases(_ verb: String, _ paths: String) throws {
    try lab.busyDatabase(Lab.oldDatabase)
    try lab.run("files.\(verb): {from: \(paths)}")
    #expect(try lab.query("Documents/Old/database.sqlite", "SELECT count(*) AS n FROM t") == [["n": 2]])
    #expect(try !lab.exists("Documents/Old/database.sqlite-wal"))
    if verb == "copy" {
      #expect(try lab.query(Lab.oldDatabase, "SELECT count(*) AS n FROM t") == [["n": 2]])
    } else {
      #expect(try !lab.exists(Lab.oldDatabase) && !lab.exists(Lab.oldDatabase.withSuffix("-wal")))
    }
  }

  /// SQLite would play it into the database that arrives.
  @Test(
    "The log of another database at a target is removed",
    arguments: [
      "files.move: {from: \(Lab.oldDatabase), to: \(Lab.newDatabase)}",
      "files.copy: {from: \(Lab.oldDatabase), to: \(Lab.newDatabase)}",
      "files.write: {path: \(Lab.newDatabase), file: other.sqlite}",
    ])
  func orphanedLog(_ step: String) throws {
    try lab.database(Lab.oldDatabase, "CREATE TABLE mine (a); INSERT INTO mine VALUES (1), (2)")
    try lab.busyDatabase(Lab.newDatabase)
    try lab.remove(Lab.newDatabase)
    try lab.migration("0001_test/migration.yaml", step: step)
    try FileManager.default.copyItem(
      atPath: lab.path(Lab.oldDatabase),
      toPath: lab.directory("migrations/0001_test/other.sqlite"))
    try lab.baseline(0)
    let dry = try lab.dryRun()
    let log = Lab.newDatabase.withSuffix("-wal")
    #expect("\(dry.difference)".contains("database.sqlite-wal"))
    try lab.migrate()
    #expect(try lab.sqlite(Lab.newDatabase, "SELECT count(*) FROM mine") == "2\n")
    try lab.rollback()
    #expect(try lab.exists(log) && !lab.exists(Lab.newDatabase))
  }

  @Test("A log that appears where a database was does not outlive the rollback of its move")
  func orphanedLogAtRollback() throws {
    try lab.database(Lab.oldDatabase, "CREATE TABLE mine (a); INSERT INTO mine VALUES (1), (2)")
    try lab.busyDatabase("Documents/other.sqlite")
    try lab.run("files.move: {from: \(Lab.oldDatabase), to: \(Lab.newDatabase)}")
    try FileManager.default.moveItem(
      atPath: lab.path("Documents/other.sqlite-wal"),
      toPath: lab.directory("container/\(Lab.oldDatabase)-wal"))
    try lab.rollback()
    #expect(try lab.sqlite(Lab.oldDatabase, "SELECT count(*) FROM mine") == "2\n")
  }

  @Test(
    "A step that names the log of a database is refused",
    arguments: [
      "files.move: {from: Documents/database.sqlite-wal, to: x}",
      "files.copy: {from: Documents/database.sqlite-wal, to: x}",
      "files.delete: {path: '**/*-wal', destructive: x}",
      "files.write: {path: Documents/database.sqlite-wal, text: x, if-exists: replace}",
      "files.write: {path: Documents/database.sqlite-journal, text: x}",
      "defaults.move-to-file: {key: k, to: Documents/database.sqlite-wal, if-exists: replace}",
      "files.patch: {path: Documents/database.sqlite-wal, patch: [{op: remove, path: /x}]}",
    ])
  func sidecars(_ step: String) throws {
    try lab.set(["k": "v"])
    try lab.busyDatabase(Lab.oldDatabase)
    lab.expectFailing(step, "belongs to the database")
  }

  @Test func patternsTakeDatabasesAsWholes() throws {
    try lab.busyDatabase(Lab.oldDatabase)
    try lab.run("files.set-backup-exclusion: {path: 'Documents/*', excluded: true}")
    #expect(try lab.query(Lab.oldDatabase, "SELECT count(*) AS n FROM t") == [["n": 2]])
    try lab.migration("0002_test.yaml", step: "files.delete: {path: 'Documents/*', destructive: x}")
    try lab.migrate()
    #expect(try RawFiles.names(in: Array(lab.path("Documents").utf8)).isEmpty)
  }

  @Test("What changes documents takes patterns and lists, too")
  func documents() throws {
    for name in ["a", "b", "c"] {
      try lab.write(try ContainerPath("d/\(name).json"), #"{"version": 1, "x": 1}"#)
    }
    try lab.run(
      "files.patch: {path: [\"d/[ab].json\", d/none.json], patch: [{op: remove, path: /x}]}",
      "defaults.document-migrate: {path: \"d/*.json\", data-key: '', versions: {2: {defaults: {y: 1}}}}",
      "files.set-backup-exclusion: {path: d/a.json, excluded: true}")
    let texts = try ["a", "b", "c"].map { try lab.text(ContainerPath("d/\($0).json")) }
    #expect(texts.map { $0.contains("\"x\"") } == [false, false, true], "\(texts)")
    #expect(texts.allSatisfy { $0.contains("\"version\": 2") && $0.contains("\"y\"") }, "\(texts)")
  }

  @Test func aFileIsWrittenAsItIsSaid() throws {
    try lab.write("kept", "old")
    try ExtendedAttributes.set("user.note", [1], of: Array(lab.path("kept").utf8))
    try lab.migration("0001_a/template.bin", "\u{feff}a\r\n")
    try lab.migration(
      "0001_a/migration.yaml",
      steps: [
        "files.write: {path: text, text: \"grün\\n\", mode: 0o640}",
        "files.write: {path: bytes, data: !data AAEC, mode: \"0600\"}",
        "files.write: {path: file, file: template.bin}",
        "files.write: {path: kept, text: new, if-exists: replace}",
        "files.create-directory: {path: one/two, mode: 0o750}", "files.create-directory: {path: one/two}",
      ])
    try lab.baseline(0)
    try lab.migrate()
    let tree = try lab.tree()
    #expect(tree["text"]?.content == Data("grün\n".utf8) && tree["text"]?.mode == 0o640)
    #expect(tree["bytes"]?.content == Data([0, 1, 2]) && tree["bytes"]?.mode == 0o600)
    #expect(tree["file"]?.content == Data("\u{feff}a\r\n".utf8) && tree["file"]?.mode == 0o644)
    #expect(tree["kept"]?.content == Data("new".utf8))
    #expect(tree["kept"]?.attributes == [Array("user.note".utf8): [1]])
    #expect(tree["one"]?.mode == 0o755 && tree["one/two"]?.mode == 0o750)
  }

  @Test func theFlagKeepsOutOfBackups() throws {
    for file in ["cache/1", "a.tmp", "d/b.tmp", "plain"] { try lab.write(try ContainerPath(file), file) }
    try ExtendedAttributes.set("user.com.apple.MobileBackup", [1], of: Array(lab.path("plain").utf8))
    try lab.run(
      "files.set-backup-exclusion: {path: [cache, \"**/*.tmp\"], excluded: true}",
      "files.set-backup-exclusion: {path: plain, excluded: false}")
    let scan = try lab.look { stage in
      try ["cache", "a.tmp", "d/b.tmp", "plain", "d"].filter {
        try stage.metadata(of: try ContainerPath($0))?.hasAppleFlag == true
      }
    }
    #expect(scan == ["cache", "a.tmp", "d/b.tmp"])
    let value = try ExtendedAttributes.all(of: Array(lab.path("cache").utf8))
    let flag = Array("user.com.apple.metadata:com_apple_backup_excludeItem".utf8)
    #expect(value[flag].map { Data($0) } == Self.applesValue)
    #expect(try ExtendedAttributes.all(of: Array(lab.path("plain").utf8)).isEmpty)
  }

  /// What Apple's systems write: the binary property list of the text `com.apple.backupd`.
  private static let applesValue = Data(
    base64Encoded: "YnBsaXN0MDBfEBFjb20uYXBwbGUuYmFja3VwZAgAAAAAAAABAQAAAAAAAAABAAAAAAAAAAAAAAAAAAAAHA==")

  @Test func theClassOfProtectionIsWrittenDown() throws {
    try lab.write("a", "a")
    try lab.database(Lab.oldDatabase, "CREATE TABLE t (a)")
    try lab.run(
      "files.set-protection: {path: [a, Documents], class: completeUnlessOpen}",
      "files.set-protection: {path: \(Lab.oldDatabase), class: none}")
    let classes = try lab.look { stage in
      try ["a", "Documents", Lab.oldDatabase].map { try stage.metadata(of: $0)?.protection }
    }
    #expect(classes == [.completeUnlessOpen, .completeUnlessOpen, ProtectionClass.none])
    let raw = try ExtendedAttributes.all(of: Array(lab.path("a").utf8))
    #expect(
      raw[Array("user.drydock.protection-class".utf8)] == Array("NSFileProtectionCompleteUnlessOpen".utf8))
  }

  @Test func aNewFileGetsTheClassThatIsRequired() throws {
    lab.configuration.protection = try lab.configuration(
      "protection: [{path: \"Documents/*.txt\", require: complete}]\n"
    ).protection
    try lab.run(
      "files.write: {path: Documents/new.txt, text: new}", "files.write: {path: Documents/new.md, text: new}")
    let classes = try lab.look { stage in
      try ["Documents/new.txt", "Documents/new.md"].map { try stage.metadata(of: $0)?.protection }
    }
    #expect(classes == [.complete, nil])
  }

  @Test func aLinkCarriesNoFlag() throws {
    try lab.write("a", "a")
    try FileManager.default.createSymbolicLink(atPath: lab.path("link"), withDestinationPath: "a")
    expectFailure("`link` is a symbolic link, which cannot carry the attribute") {
      try lab.run("files.set-backup-exclusion: {path: link, excluded: true}")
    }
  }
}

extension Lab {
  fileprivate func remove(_ path: ContainerPath) throws {
    try RawFiles.remove(Array(directory("container/\(path)").utf8))
  }

  /// What stock SQLite answers, which plays any log that is there.
  fileprivate func sqlite(_ path: ContainerPath, _ sql: String) throws -> String {
    let result = try Command.run(Tools.system("sqlite3"), [directory("container/\(path)"), sql])
    return result.output + result.errors
  }
}
