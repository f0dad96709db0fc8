@testable import ArchiveManifest
import ContainerTransaction
import FileSystem
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import BackupRepository

/// What a snapshot stores, seen with stock tools.
@Suite(.everyPlace) struct SnapshotTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  /// What iOS never backs up, and what the sample app flags.
  static let left = [
    "tmp", "SystemData", ".com.apple.mobile_container_manager.metadata.plist", "Library/Caches",
    "Library/Application Support/Downloads",
  ]

  @Test(arguments: ["bsdtar --xattrs -xpf", "tar --zstd --xattrs --xattrs-include='*' -xpf"])
  func extractionGivesWhatWasThere(_ tool: String) throws {
    let lab = try Lab(name: "notes", notes: ["--version", "3"])
    let report = try lab.snapshot()
    let archive = try lab.localCopy(of: report.path)
    let name = #/com\.example\.notes_\d{8}T\d{6}Z_[0-9a-f]{16}\.tar\.zst/#
    #expect(lastName(archive).wholeMatch(of: name) != nil && archive.contains(report.archive.short))
    let names = try lab.shell("bsdtar -tf '\(archive)'; zstd -qt '\(archive)'").split(separator: "\n")
    #expect(names.first == "drydock.json" && names.last == "manifest.sqlite" && names.count > 40)
    #expect(names.dropFirst().dropLast().allSatisfy { $0.hasPrefix("container/") })
    let out = lab.directory("out")
    try lab.make(out)
    try lab.shell("\(tool) '\(archive)' -C '\(out)' 2>&1")
    let before = try TreeListing(lab.root).without(Self.left)
    let after = try TreeListing(out + "/container")
    #expect(after.differences(from: before) == [])
    #expect(after.entries.keys.contains { $0.contains(0xff) })
    let check = try Lab.notes(["check", out + "/container/Library/Application Support/database.sqlite"])
    #expect(check.contains("200000"))
  }

  @Test func socketsAndDevicesAreReportedAndNotStored() throws {
    try lab.write("file", "here")
    try lab.shell("mkfifo pipe", in: lab.root)
    let report = try lab.snapshot()
    #expect(report.skipped == [SkippedPath(path: "pipe", reason: .special)])
    #expect(!report.isIncomplete && report.entries == 2)
    #expect(try Archive(path: report.path).manifest.skipped() == report.skipped)
  }

  @Test func attributesWhoseNamesAreNotTextAreReported() throws {
    try lab.write("file", "here")
    try lab.write("other", "here")
    try lab.shell(
      "python3 -c 'import os; [os.setxattr(p, bytes.fromhex(\"757365722eff\"), b\"x\") for p in (\".\", \"file\")]'",
      in: lab.root)
    try ExtendedAttributes.set("user.\u{E4}", [1], of: Array((lab.root + "/other").utf8))
    // What the other name would be if it were repaired.
    try ExtendedAttributes.set("user.\u{FFFD}", [2], of: Array((lab.root + "/file").utf8))
    // No metadata.
    try ExtendedAttributes.set(ExtendedAttribute.ownNote, [3], of: lab.full("other"))
    let report = try lab.snapshot()
    #expect(report.unnamedAttributes == [.root, "file"] && !report.isIncomplete)
    let manifest = try Archive(path: report.path).manifest
    #expect(try manifest.entry("file")?.metadata.attributes.map(\.name) == ["user.\u{FFFD}"])
    #expect(try manifest.entry("other")?.metadata.attributes.map(\.name) == ["user.\u{E4}"])
  }

  /// If invalid bytes were replaced, both names would be the same.
  @Test(arguments: [false, true]) func attributesWithOneTextAreTwo(_ isInGroup: Bool) throws {
    try lab.write("file", "here")
    if isInGroup { try lab.write("file.crc", "its checksum") }
    try ExtendedAttributes.set("user.\u{FFFD}", [1], of: lab.full("file"))
    let set = "import os; os.setxattr(\"file\", b\"user.\\xff\", b\"x\")"
    try lab.shell("python3 -c '\(set)'", in: lab.root)
    let report = try lab.snapshot()
    #expect(report.unnamedAttributes == ["file"] && !report.isIncomplete)
    let archive = try Archive(path: report.path)
    let attributes = try archive.manifest.entry("file")?.metadata.attributes
    #expect(attributes == [ExtendedAttribute(name: "user.\u{FFFD}", value: [1])])
    _ = try Verification.run(archive, data: true)
  }

  @Test func aNameWhoseFileHasAnotherModeMeanwhileIsAFile() throws {
    try lab.write("a", "shared")
    try lab.shell("ln a b", in: lab.root)
    let path = lab.root + "/a"
    // After the root and the first name.
    let report = try lab.incremental(after: 2) { chmod(path, 0o600) }
    let archive = try Archive(path: report.path)
    #expect(!report.isIncomplete && report.entries == 3)
    let (a, b) = try (archive.manifest.entry("a"), archive.manifest.entry("b"))
    #expect(a?.kind == .file && b?.kind == .file && b?.hardLink == nil && a?.digest == b?.digest)
    #expect(a?.metadata.mode != 0o600 && b?.metadata.mode == 0o600)
    _ = try Verification.run(archive, data: true)
  }

  @Test func otherNamesOfAPartOfADatabaseAreFiles() throws {
    try lab.write("bad.sqlite", Array("SQLite format 3\0".utf8) + [UInt8](repeating: 0x5a, count: 4080))
    try lab.write("bad.sqlite-wal", [0x37, 0x7f, 0x06, 0x82] + [UInt8](repeating: 1, count: 60))
    try lab.shell("ln bad.sqlite-wal c; ln bad.sqlite-wal d", in: lab.root)
    let archive = try Archive(path: lab.snapshot().path)
    _ = try Verification.run(archive, data: true)
    #expect(try archive.manifest.entry("c")?.hardLink == nil && archive.manifest.entry("d")?.hardLink == "c")
  }

  @Test func hardLinksAndDamagedDatabases() throws {
    try lab.write("a", "shared")
    try lab.shell("ln a b; ln a z; ln -s a link; ln link linked-link", in: lab.root)
    try lab.write("bad.sqlite", Array("SQLite format 3\0".utf8) + [UInt8](repeating: 0x5a, count: 4080))
    try lab.write("bad.sqlite-wal", [0x37, 0x7f, 0x06, 0x82] + [UInt8](repeating: 1, count: 60))
    try lab.write("bad.sqlite+", "sorts between the two")
    let report = try lab.snapshot()
    #expect(Set(report.raw.keys) == ["bad.sqlite"] && report.isIncomplete)
    let manifest = try Archive(path: report.path).manifest
    #expect(try manifest.entry("bad.sqlite-wal")?.kind == .rawDatabase)
    #expect(try manifest.entry("b")?.hardLink == "a")
    var paths: [ContainerPath] = []
    try manifest.entries { paths.append($0.path) }
    #expect(paths == paths.sorted())
    lab.configuration.opaque = ["bad.sqlite"]
    let opaque = try lab.snapshot()
    #expect(opaque.raw.isEmpty && !opaque.isIncomplete && opaque.snapshot == report.snapshot)
    _ = try Verification.run(Archive(path: report.path), data: true)
    try lab.restore(report.path, to: lab.directory("back"))
    #expect(try TreeListing(lab.directory("back")).differences(from: TreeListing(lab.root)) == [])
  }

  @Test func versionIsReadUnderTheLockOfTheContent() throws {
    try lab.write("file", "x")
    let container = try lab.container()
    let refused = Mutex<[String]>([])
    let change: @Sendable () -> Void = {
      let code = code { try ContainerLock(container, exclusive: true, timeout: 0) }
      refused.withLock { $0.append(code) }
    }
    let report = try lab.snapshot {
      $0.readsVersion = { stage in
        change()
        return (try stage.status(of: "file") != nil ? 7 : nil, nil)
      }
      $0.seams.stores = change
    }
    #expect(report.header.schemaVersion == 7 && report.versionProblem == nil)
    #expect(refused.withLock { $0 } == ["locked", "locked", "locked"])
    _ = try ContainerLock(container, exclusive: true, timeout: 0)
  }

  /// The walk is the only one: nothing counts the container beforehand, so there are no totals.
  @Test(arguments: [false, true]) func theProgressCountsWhatIsStored(_ isFirst: Bool) throws {
    let lab = try Lab(notes: ["--photos", "20"])
    try lab.write("Documents/one", "the same")
    try lab.shell("ln one two; ln -s one link; mkfifo fifo", in: lab.root + "/Documents")
    if !isFirst { try lab.snapshot() }
    let progress = WorkProgress()
    let report = try lab.snapshot { $0.progress = progress }
    #expect(report.header.parent == nil || !isFirst)
    let state = progress.state
    #expect(state.phase == .snapshot && state.files == report.entries && state.bytes == report.contentBytes)
    #expect(state.totalFiles == nil && state.totalBytes == nil, "\(state)")
  }

  /// SQLite writes the pages of the file into the log, and takes those of the header for the database.
  @Test func whatIsBehindADatabaseIsNotStoredWithItsLog() throws {
    let script = Lab.leavingTheLog("INSERT INTO t VALUES(1)")
    try lab.shell(
      "sqlite3 db.sqlite 'PRAGMA journal_mode=WAL; CREATE TABLE t(a)'; truncate -s 3G db.sqlite; \(script)",
      in: lab.root)
    let report = try lab.snapshot()
    #expect(report.contentBytes == 8192 && !report.isIncomplete)
    let out = lab.directory("out")
    try lab.restore(report.path, to: out)
    let rows = try lab.shell("sqlite3 db.sqlite 'SELECT a FROM t; PRAGMA integrity_check'", in: out)
    #expect(rows == "1\nok\n")
  }
}
