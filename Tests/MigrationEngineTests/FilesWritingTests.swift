import AppContainer
import ContainerTransaction
import FileSystem
import Foundation
import MigrationEngine
import TestSupport
import Testing

@Suite struct FilesWritingTests {
  private let lab: Lab

  init() throws { lab = try Lab() }

  @Test(
    arguments: [
      ("files.copy: {from: a, to: x/y/b}", ["a"], ["a", "x/y/b"], ""),
      ("files.copy: {from: z, to: b}", ["a"], ["a"], ""),
      (
        "files.copy: {from: z, to: b, if-missing: fail}", ["a"], nil,
        "0001_test.yaml:2:5: files.copy: `z` is not in the container"
      ),
      ("files.copy: {from: a, to: b}", ["a", "b"], nil, "`b` exists already: say `if-exists: keep`"),
      ("files.copy: {from: a, to: b, if-exists: keep}", ["a", "b"], ["a", "b"], ""),
      (
        "files.copy: {from: d, to: e, if-exists: replace}", ["d/1", "d/s/2", "e"],
        ["d/1", "d/s/2", "e/1", "e/s/2"], ""
      ),
      ("files.copy: {from: d, to: d/e}", ["d/1"], nil, "one of `from` and `to` is inside the other"),
      ("files.copy: {from: Library, to: L}", ["a"], nil, "`Library` contains Drydock's history"),
      (
        "files.copy: {from: a, to: Library/Application Support/.drydock/a}", ["a"], nil,
        "is where Drydock keeps its history"
      ),
      ("files.write: {path: n/b, text: hello}", ["a"], ["a", "n/b"], ""),
      ("files.write: {path: a, text: hello}", ["a"], nil, "`a` exists already"),
      ("files.write: {path: a, text: a}", ["a"], ["a"], ""),
      ("files.write: {path: d, text: a, if-exists: replace}", ["d/1", "a"], ["a", "d"], ""),
      ("files.write: {path: b}", ["a"], nil, "files.write needs one of `text`, `data` and `file`"),
      (
        "files.write: {path: b, text: x, data: !data AAEC}", ["a"], nil,
        "name either `text` or `data`, not both"
      ),
      (
        "files.write: {path: b, data: text}", ["a"], nil,
        "`data` is data in base64 (`!data AAEC`), not the text"
      ),
      (
        "files.write: {path: b, text: x, mode: 644}", ["a"], nil,
        "`mode` is octal, such as 0o644, not the integer 644"
      ),
      ("files.write: {path: b, file: x}", ["a"], nil, "make the migration a directory"),
      ("files.create-directory: {path: a}", ["a"], nil, "`a` exists already"),
      ("files.create-directory: {path: a, if-exists: keep}", ["a"], ["a"], ""),
      ("files.create-directory: {path: a/b}", ["a"], nil, "cannot create the directory: a file exists"),
      (
        "files.create-directory: {path: d, mode: 0o711, if-exists: replace}", ["d/1"], nil,
        "would remove what it contains"
      ),
      ("files.set-backup-exclusion: {path: z, excluded: true}", ["a"], ["a"], ""),
      (
        "files.set-backup-exclusion: {path: z, excluded: true, if-missing: fail}", ["a"], nil,
        "nothing matches `z`"
      ),
      ("files.set-backup-exclusion: {path: a, excluded: yes}", ["a"], nil, "`excluded` is true or false"),
      (
        "files.set-protection: {path: a, class: full}", ["a"], nil,
        "`class` of files.set-protection is one of complete"
      ),
      ("files.set-protection: {path: a}", ["a"], nil, "files.set-protection needs the key `class`"),
    ] as [(String, [String], [String]?, String)])
  func matrix(_ step: String, _ before: [String], _ after: [String]?, _ message: String) throws {
    for file in before { try lab.write(try ContainerPath(file), file) }
    let error = failure { try lab.run(step) }
    let found = try lab.look { stage in
      try stage.descendants(of: .root).filter { path in
        try stage.status(of: path)?.type == .file && !path.isInside("Library")
      }
    }
    #expect(found.map(\.description) == (after ?? before).sorted())
    if after == nil {
      #expect(error.text.contains(message), "\(error.text)")
    } else {
      #expect(error.text == "no error")
    }
  }

  @Test func aDatabaseIsCopiedWithItsLog() throws {
    try lab.busyDatabase("Documents/busy.sqlite")
    try lab.run("files.copy: {from: Documents/busy.sqlite, to: \(Lab.newDatabase)}")
    #expect(try lab.query(Lab.newDatabase, "SELECT count(*) AS n FROM t") == [["n": 2]])
    #expect(try lab.query("Documents/busy.sqlite", "SELECT count(*) AS n FROM t") == [["n": 2]])
    #expect(try !lab.exists(Lab.newDatabase.withSuffix("-wal")))
  }

  @Test func aFileIsWrittenAsItIsSaid() throws {
    try lab.write("kept", "old")
    try ExtendedAttributes.set("user.note", [1], of: Array(lab.path("kept").utf8))
    try lab.migration("0001_a/template.bin", "\u{feff}a\r\n")
    try lab.migration(
      "0001_a/migration.yaml",
      """
      steps:
        - files.write: {path: text, text: "grün\\n", mode: 0o640}
        - files.write: {path: bytes, data: !data AAEC, mode: "0600"}
        - files.write: {path: file, file: template.bin}
        - files.write: {path: kept, text: new, if-exists: replace}
        - files.create-directory: {path: one/two, mode: 0o750}
        - files.create-directory: {path: one/two}

      """)
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
      """
        - files.set-backup-exclusion: {path: [cache, "**/*.tmp"], excluded: true}
        - files.set-backup-exclusion: {path: plain, excluded: false}

      """)
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
      """
        - files.set-protection: {path: [a, Documents], class: completeUnlessOpen}
        - files.set-protection: {path: \(Lab.oldDatabase), class: none}

      """)
    let classes = try lab.look { stage in
      try ["a", "Documents", Lab.oldDatabase].map { try stage.metadata(of: $0)?.protection }
    }
    #expect(classes == [.completeUnlessOpen, .completeUnlessOpen, ProtectionClass.none])
    let raw = try ExtendedAttributes.all(of: Array(lab.path("a").utf8))
    #expect(
      raw[Array("user.drydock.protection-class".utf8)] == Array("NSFileProtectionCompleteUnlessOpen".utf8))
  }

  @Test func aLinkCarriesNoFlag() throws {
    try lab.write("a", "a")
    try FileManager.default.createSymbolicLink(atPath: lab.path("link"), withDestinationPath: "a")
    expectFailure("`link` is a symbolic link, which cannot carry the attribute") {
      try lab.run("files.set-backup-exclusion: {path: link, excluded: true}")
    }
  }
}
