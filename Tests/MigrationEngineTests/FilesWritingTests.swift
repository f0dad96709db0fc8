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

  @Test func aNewFileGetsTheClassThatIsRequired() throws {
    lab.configuration.protection = try lab.configuration(
      "protection: [{path: \"Documents/*.txt\", require: complete}]\n"
    ).protection
    try lab.run(
      """
        - files.write: {path: Documents/new.txt, text: new}
        - files.write: {path: Documents/new.md, text: new}

      """)
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
