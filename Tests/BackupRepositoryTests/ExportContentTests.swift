import Cryptography
import TestSupport
import Testing

@testable import BackupRepository

/// Archives whose checksums are right and whose parts disagree.
@Suite struct ExportContentTests {
  @Test func contentThatIsNotWhatTheManifestSaysIsNotExported() throws {
    let lab = try Lab()
    var handmade = try HandmadeArchive(lab)
    try handmade.addFile("a", "one")
    handmade.entries[1].digest = try SHA256.hash(Array("two".utf8))
    let archive = try Archive(path: handmade.write())
    let before = try RawFiles.names(in: Array(lab.repository.utf8))
    expectError(.damaged) {
      try SnapshotCopy.export(archive, to: .file(lab.repository + "/out.tar.zst"), tool: "test")
    }
    #expect(try RawFiles.names(in: Array(lab.repository.utf8)) == before)
  }

  @Test(.everyPlace) func entriesThatDoNotGiveTheSnapshotAreNotExported() throws {
    let lab = try Lab()
    var handmade = try HandmadeArchive(lab)
    try handmade.addFile("a", "one")
    handmade.sql =
      "UPDATE property SET value = '\(String(repeating: "0", count: 64))' WHERE name = 'snapshot'"
    let archive = try Archive(path: handmade.write())
    expectError(.damaged) { try SnapshotCopy.export(archive, to: .repository(lab.repository), tool: "test") }
    #expect(try lab.storedNames().count == 1)
  }
}
