import AgeEncryption
import DrydockErrors
import FileSystem
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// Chains with a missing or damaged archive: what is affected is named, and everything else is restored on demand.
@Suite(.everyPlace) struct PartialRestoreTests {
  /// Two large files, a database, and some small files; then a snapshot that moved one of them.
  private func scene(
    _ change: (inout SnapshotOptions) -> Void = { _ in }
  ) throws -> (Lab, reports: [SnapshotReport], whole: TreeListing) {
    let lab = try Lab()
    // A frame has 4 MiB.
    try lab.shell("head -c 9M /dev/urandom > large", in: lab.root)
    for number in 1...20 { try lab.write("notes/\(number)", "note \(number)") }
    try lab.shell("ln large other; mkdir a", in: lab.root)
    try lab.sql(
      "db.sqlite",
      """
      CREATE TABLE t (a, b); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2200)
      INSERT INTO t SELECT i, randomblob(4000) FROM n
      """)
    let full = try lab.snapshot { change(&$0) }
    try lab.write("notes/2", "another text")
    try lab.shell("mv notes/3 a/moved", in: lab.root)
    let second = try lab.snapshot { change(&$0) }
    try lab.write("notes/4", "the last text")
    let third = try lab.snapshot { change(&$0) }
    return (lab, [full, second, third], try TreeListing(lab.root))
  }

  /// Flips a bit in the middle of the content of a path; only frames of that content are damaged.
  private func damage(
    _ path: ContainerPath, in file: String, _ lab: Lab, keys: AgeKeys = AgeKeys()
  ) throws {
    let archive = try Archive(path: file, keys: keys)
    let entry = try #require(try archive.manifest.entry(path))
    let extent = try #require(entry.extents.single)
    let middle = extent.offset + entry.size / 2
    let part = try #require(archive.parts.first { $0.header.archive == extent.archive })
    let frame = try #require(part.reader.frames.first { $0.tarEnd > middle })
    let damaged = part.path
    var bytes = try lab.stored(damaged)
    // An encrypted archive has a header, and 16 more bytes for each 64 KiB.
    let place = Int(frame.fileOffset) + frame.compressedSize / 2
    bytes[keys.identities.isEmpty ? place : place + place / 4096 + 300] ^= 1
    try lab.store(damaged, bytes)
  }

  private func restore(
    _ archive: String, _ lab: Lab, to path: String? = nil, keys: AgeKeys = AgeKeys(),
    _ change: (inout RestoreOptions) -> Void = { _ in }
  ) throws -> RestoreReport {
    let archive = try Archive(path: archive, keys: keys, acceptsGap: true)
    var options = RestoreOptions()
    options.acceptsIncomplete = true
    change(&options)
    return try Restore.run(archive, lab.target(archive, path), options).value
  }

  private func unreadable<Value>(_ body: () throws -> Value) -> (DrydockError?, [UnreadableArchive]) {
    let error = expectError { try body() }
    return (error, (error?.cause as? UnreadableArchives)?.archives ?? [])
  }

  @Test(arguments: [false, true]) func damagedContentAffectsItsPathsOnly(isEncrypted: Bool) throws {
    let identity = try AgeIdentity.generate()
    let keys = isEncrypted ? AgeKeys(identities: [identity]) : AgeKeys()
    let (lab, reports, whole) = try scene {
      if isEncrypted { ($0.encryption, $0.keys) = (.recipients([identity.recipient]), keys) }
    }
    let last = reports[2].path
    try damage("large", in: last, lab, keys: keys)
    let new = lab.directory("new")
    let (error, found) = unreadable {
      let archive = try Archive(path: last, keys: keys)
      _ = try Restore.run(archive, lab.target(archive, new))
    }
    #expect(found.map(\.archive) == [reports[0].archive.description])
    #expect(found.first?.affected == ["large", "other"] && found.first?.affectsUnknownPaths == false)
    #expect(found.first?.file == reports[0].path && found.first?.time == reports[0].header.time)
    let line =
      "snapshot \(reports[0].archive.short) of \(reports[0].header.time) is damaged, which affects 2 paths"
    #expect(error?.message.contains("\n  \(line)\n    large\n    other") == true, "\(error?.message ?? "")")
    #expect(!lab.exists("", in: new))
    let (_, verified) = unreadable { try Verification.run(Archive(path: last, keys: keys), data: true) }
    #expect(verified == found)

    let report = try restore(last, lab, to: new, keys: keys)
    #expect(report.unreadable == found && report.isIncomplete)
    let lines = try TreeListing(new).differences(from: whole)
    #expect(lines.count == 2 && lines.allSatisfy { $0.contains("large") || $0.contains("other") }, "\(lines)")
  }

  @Test(.atEachPlace) func affectedPathsStayAsTheyAre() throws {
    let (lab, reports, whole) = try scene()
    try damage("large", in: reports[2].path, lab)
    try damage("db.sqlite", in: reports[2].path, lab)
    try lab.sql("db.sqlite", "PRAGMA journal_mode=WAL; DELETE FROM t WHERE a > 5")
    try lab.shell(Lab.leavingTheLog("DELETE FROM t WHERE a > 3"), in: lab.root)
    try lab.shell(
      "rm -r notes; echo new > extra; rm other large; mkdir large; echo x > large/own", in: lab.root)
    try #require(lab.exists("db.sqlite-wal"))
    let before = try TreeListing(lab.root)

    let report = try restore(reports[2].path, lab)
    #expect(report.unreadable.map(\.affected) == [["db.sqlite", "large", "other"]])
    #expect(report.removedPaths == ["extra"])
    let kept: Set<String> = ["db.sqlite", "db.sqlite-wal", "db.sqlite-shm", "large", "large/own", "other"]
    let after = try TreeListing(lab.root)
    let changed = after.differences(from: before, comparing: TreeListing.unread.subtracting([.inode]))
    #expect(changed.allSatisfy { line in !kept.contains { line.contains($0) } }, "\(changed)")
    let missing = after.differences(from: whole)
    #expect(missing.allSatisfy { line in kept.contains { line.contains($0) } }, "\(missing)")
    #expect(try lab.sql("db.sqlite", "SELECT count(*) FROM t") == "3\n")
  }

  @Test func aMissingArchiveIsNamedWithTheKnownPaths() throws {
    let (lab, reports, _) = try scene()
    try lab.remove("notes/7")
    try lab.write("notes/2", "live")
    try lab.write("extra", "nowhere else")
    try lab.removeStored(reports[0].path)
    let before = try TreeListing(lab.root)
    let (error, found) = unreadable {
      let archive = try Archive(path: reports[2].path, acceptsGap: true)
      _ = try Restore.run(archive, lab.target(archive))
    }
    #expect(error?.code == .missingArchive)
    // Their content is in the full archive, and their entries in a later one.
    #expect(found.map(\.affected) == [["a/moved", "db.sqlite"]])
    #expect(found.map(\.archive) == [reports[0].archive.description] && found[0].affectsUnknownPaths)
    #expect(found[0].file == nil)
    let text = "snapshot \(reports[0].archive.short) is missing, which affects 2 paths and the unknown paths"
    #expect(error?.message.contains(text) == true, "\(error?.message ?? "")")
    expectSame(try TreeListing(lab.root), as: before, comparing: TreeListing.unread)
    let (_, verified) = unreadable {
      try Verification.run(Archive(path: reports[2].path, acceptsGap: true), data: false)
    }
    #expect(verified == found)
    expectError(.missingArchive) { try Archive(path: reports[2].path) }

    // What only the missing one names is neither restored nor removed.
    try lab.write("a/moved", "live")
    let report = try restore(reports[2].path, lab)
    #expect(report.unreadable.map(\.affected) == [["a/moved"]] && report.removed.isEmpty)
    #expect(report.restoredPaths == ["notes/2"])
    #expect(try lab.read("notes/2") == "another text" && lab.read("extra") == "nowhere else")
    #expect(try lab.read("a/moved") == "live" && !lab.exists("notes/7"))

    let new = lab.directory("new")
    #expect(try restore(reports[2].path, lab, to: new).unreadable == found)
    #expect(try lab.read("notes/4", in: new) == "the last text" && !lab.exists("a/moved", in: new))
    expectError(.notInArchive) { try restore(reports[2].path, lab) { $0.scope = ["notes/7"] } }
  }

  @Test func aDamagedManifestInTheChainIsLikeAMissingArchive() throws {
    let (lab, reports, _) = try scene()
    try lab.store(reports[1].path, lab.stored(reports[1].path).dropLast(40))
    let (error, found) = unreadable {
      _ = try Verification.run(Archive(path: reports[2].path, acceptsGap: true), data: false)
    }
    #expect(error?.code == .truncated && found.map(\.file) == [reports[1].path])
    #expect(found.first?.summary.first?.contains("is damaged, which affects 1 path and the unknown") == true)
    try lab.write("notes/4", "live")
    #expect(try restore(reports[2].path, lab).restoredPaths == ["notes/4"])
  }

  @Test func whatIsThereNeedsNoArchive() throws {
    let (lab, reports, whole) = try scene()
    try damage("large", in: reports[2].path, lab)
    try lab.remove("notes/4")
    // Only what differs is read.
    let report = try restore(reports[2].path, lab)
    #expect(report.unreadable.isEmpty && !report.isIncomplete && report.restoredPaths == ["notes/4"])
    #expect(try TreeListing(lab.root).differences(from: whole) == [])
  }

  @Test func versionsAreNotMixed() throws {
    let (lab, reports, _) = try scene()
    try damage("large", in: reports[2].path, lab)
    try lab.remove("large")
    let before = try TreeListing(lab.root)
    expectError(.mismatch) { try restore(reports[2].path, lab) { $0.readsVersion = { _ in 7 } } }
    expectSame(try TreeListing(lab.root), as: before, comparing: TreeListing.unread)
  }

  @Test func anIncompleteChainIsNotExportedOrCompared() throws {
    let (lab, reports, _) = try scene()
    try lab.removeStored(reports[0].path)
    let archive = try Archive(path: reports[2].path, acceptsGap: true)
    let target = ArchiveTarget.file(lab.directory("out.tar.zst"))
    expectError(.missingArchive) { try SnapshotCopy.export(archive, to: target, tool: "test") }
    expectError(.missingArchive) { try ArchiveSide(archive) }
  }
}
