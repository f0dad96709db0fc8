@testable import ArchiveManifest
import AgeEncryption
import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// Incremental archives: what they hold, what they need, and that each snapshot of a chain is restored exactly.
@Suite(.everyPlace) struct IncrementalSnapshotTests {
  private func members(_ path: String, _ lab: Lab) throws -> [String] {
    let result = try Command.succeed(Tools.system("tar"), ["--zstd", "-tf", lab.localCopy(of: path)])
    return result.output.split(separator: "\n").map(String.init).filter { $0.hasPrefix("container") }
  }

  private func scene() throws -> Lab {
    let lab = try Lab()
    for number in 1...20 { try lab.write("notes/\(number).txt", "note \(number)") }
    try lab.write("large", SeededRandom.noise(3 << 20, seed: 1))
    try lab.write("empty", "")
    try lab.shell("ln notes/1.txt first; ln empty second; ln -s large link; mkdir -p a/b", in: lab.root)
    try lab.sql("db.sqlite", "CREATE TABLE t (a); INSERT INTO t VALUES (1), (2)")
    return lab
  }

  @Test(arguments: [true, false]) func anUnchangedContainerCostsNothing(trusting: Bool) throws {
    let lab = try scene()
    let first = try lab.incremental()
    let second = try lab.incremental(trusting: trusting)
    #expect(first.header.kind == .full && second.header.kind == .incremental)
    #expect(second.header.parent == first.archive && second.snapshot == first.snapshot)
    #expect(second.archiveBytes < 4096, "\(second.archiveBytes)")
    #expect(try members(second.path, lab) == [])
    #expect(second.entries == first.entries && second.contentBytes == first.contentBytes)
    #expect(try Verification.run(Archive(path: second.path), data: true).entries == first.entries)
  }

  @Test(.atEachPlace, arguments: [true, false]) func onlyWhatChangedIsStored(trusting: Bool) throws {
    let lab = try scene()
    try lab.incremental()
    try lab.write("notes/2.txt", "another text")
    try lab.shell(
      """
      chmod 600 notes/3.txt; rm notes/4.txt; mv notes/5.txt a/moved.txt; cp large copy; rm link; mkdir link
      touch -d 2001-01-01 notes/6.txt
      """, in: lab.root)
    let before = try TreeListing(lab.root)
    let second = try lab.incremental(trusting: trusting)
    // Attributes, moves and copies need no content.
    let expected = [
      "container/", "container/a/", "container/link/", "container/notes/", "container/notes/2.txt",
    ]
    let members = try members(second.path, lab)
    #expect(members == expected, "\(members)")
    let manifest = try Archive(path: second.path).manifest
    #expect(try manifest.parts[0].removed() == ["notes/4.txt", "notes/5.txt"])
    try lab.restore(second.path, to: lab.directory("new"))
    #expect(try TreeListing(lab.directory("new")).differences(from: before) == [])
    // In place, over what was changed since.
    try lab.shell("rm -r notes copy; echo x > a/moved.txt", in: lab.root)
    try lab.restore(second.path)
    #expect(try TreeListing(lab.root).differences(from: before) == [])
  }

  @Test func aParentIsFoundByItsID() throws {
    let lab = try scene()
    let first = try lab.incremental()
    let second = try lab.incremental()
    #expect(second.path.hasSuffix("-\(first.archive.short).tar.zst"))
    let renamed = lab.repository + "/renamed.tar.zst"
    try lab.changeRepository("cd repository; mv '\(lastName(first.path))' renamed.tar.zst")
    #expect(try Archive(path: second.path).parts.map(\.path).last == renamed)
    try lab.removeStored(renamed)
    expectError(.missingArchive, first.archive.short) { try Archive(path: second.path) }
    // The next snapshot says why it is full.
    let third = try lab.incremental()
    #expect(third.header.kind == .full)
    #expect(third.parentProblem?.contains(first.archive.short) == true)
  }

  @Test func aLongChainEnds() throws {
    let lab = try Lab()
    try lab.write("file", SeededRandom.noise(1 << 20, seed: 2))
    // 30 by default: SectionTests.fullArchives.
    lab.configuration.fullArchives.after = 2
    let kinds = try (0..<5).map { _ in try lab.incremental().header.kind }
    #expect(kinds == [.full, .incremental, .incremental, .full, .incremental])
    lab.configuration.fullArchives.after = 0
    #expect(try lab.incremental().header.kind == .full)
  }

  @Test func aCostlyChainEnds() throws {
    let lab = try Lab()
    lab.configuration.fullArchives = FullArchiveRule()
    let kinds = try (0..<4).map { number in
      try lab.write("file", SeededRandom.noise(number == 0 ? 1 << 20 : 600 << 10, seed: UInt64(number)))
      return try lab.incremental().header.kind
    }
    #expect(kinds == [.full, .incremental, .incremental, .full])
    lab.configuration.fullArchives.above = 10
    try lab.write("file", SeededRandom.noise(40 << 10, seed: 9))
    #expect(try (0..<2).map { _ in try lab.incremental().header.kind } == [.incremental, .incremental])
    try lab.write("file", SeededRandom.noise(40 << 10, seed: 10))
    #expect(try (0..<2).map { _ in try lab.incremental().header.kind } == [.incremental, .full])
  }

  /// What is wrong with the parent is found when its entries are read, after the new archive was begun.
  @Test(arguments: [
    "UPDATE entry SET mode = 99999 WHERE path = 'b'", "UPDATE entry SET size = 1 WHERE path = 'b'",
    "UPDATE extent SET offset = offset + 1",
    "INSERT INTO extent VALUES (2, 999, 0, 0, 512)",
    // Walks in the order of the numbers begin at 1; contents are looked up in all rows.
    """
    INSERT INTO entry SELECT -5, 'z', kind, mode, user, "group", modified, size, sha256, link_target, hard_link, flags,
      device, inode, changed FROM entry WHERE path = 'b';
    INSERT INTO extent SELECT -5, position, archive, offset, length FROM extent;
    """,
  ])
  func aDamagedParentDoesNotPreventTheNextArchive(sql: String) throws {
    let lab = try Lab()
    try lab.write("b", "another text")
    var parent = try HandmadeArchive(lab)
    try parent.addFile("b", "some text")
    parent.sql = sql
    let path = try parent.write()
    let report = try lab.incremental()
    #expect(report.header.kind == .full)
    #expect(report.parentProblem?.hasPrefix("\(lastName(path)) cannot be read: its manifest has") == true)
    _ = try Verification.run(Archive(path: report.path), data: true)
    #expect(try lab.storedNames().count == 2)
  }

  @Test func aParentOfAnotherInstanceIsNamed() throws {
    let lab = try Lab()
    try lab.write("a", "text")
    let full = try lab.incremental()
    try lab.write("a", "more text")
    let next = try lab.incremental()
    let other = try HandmadeArchive(lab, name: lastName(full.path), id: full.archive, instance: "other")
    _ = try other.write()
    expectError(.damaged, lastName(full.path), lastName(next.path)) { try Archive(path: next.path) }
  }

  @Test func aFullArchiveNeedsNoOther() throws {
    let lab = try scene()
    let first = try lab.incremental()
    let second = try lab.incremental()
    let full = try lab.incremental { $0.isFull = true }
    let exported = try SnapshotCopy.export(
      Archive(path: second.path), to: .file(lab.directory("exported.tar.zst")), tool: "test")
    try lab.removeStored(first.path)
    try lab.removeStored(second.path)
    for path in [full.path, exported.path] {
      let archive = try Archive(path: path)
      #expect(archive.header.kind == .full && archive.header.parent == nil)
      #expect(archive.snapshot == first.snapshot)
      _ = try Verification.run(archive, data: true)
    }
  }

  @Test func otherRecipientsGetAFullArchive() throws {
    let lab = try scene()
    let (ada, bob) = (try AgeIdentity.generate(), try AgeIdentity.generate())
    let keys = AgeKeys(identities: [ada, bob])
    let take = { (identities: [AgeIdentity], keys: AgeKeys) in
      try lab.incremental { ($0.encryption, $0.keys) = (.recipients(identities.map(\.recipient)), keys) }
    }
    let first = try take([ada], keys)
    let second = try take([ada], keys)
    #expect(first.header.kind == .full && second.header.parent == first.archive)
    #expect(second.path.hasSuffix("-\(first.archive.short).tar.zst.age"))
    _ = try Verification.run(Archive(path: second.path, keys: keys), data: true)
    let both = try take([ada, bob], keys)
    #expect(both.header.kind == .full && both.parentProblem?.contains("other keys") == true)
    #expect(try take([bob, ada], keys).header.parent == both.archive)
    // The newest one cannot be opened: an older one is no parent.
    #expect(try take([bob], keys).header.kind == .full)
    let last = try take([ada], AgeKeys(identities: [ada]))
    #expect(last.header.kind == .full && last.parentProblem?.contains("no key opens") == true)
  }

  @Test(.local("sets the times of the files")) func archivesOfOneSecondAreInTheOrderOfTheirChain() throws {
    let lab = try scene()
    let now = Date()
    let reports = try (0..<4).map { _ in try lab.incremental { $0.seams.now = { now } } }
    // As a copy may set the times of the files.
    for (number, report) in reports.enumerated() {
      try FileManager.default.setAttributes(
        [.modificationDate: now.addingTimeInterval(Double(-number))], ofItemAtPath: report.path)
    }
    let listing = try Repository(lab.repository).list()
    #expect(listing.items.map(\.path) == reports.map(\.path))
    #expect(try listing.find("latest") == reports[3].path)
  }

  @Test func aRawDatabaseDoesNotShareTheContentOfADatabase() throws {
    let lab = try scene()
    try lab.incremental()
    // The same bytes, but for those that a database's hash takes as zero; the log makes it unreadable for SQLite.
    var bytes = try RawFiles.read(lab.full("db.sqlite"))
    for index in Array(24..<28) + Array(92..<100) { bytes[index] = 0 }
    try lab.write("raw.db", Array(bytes))
    try lab.write("raw.db-wal", Self.logOfTheFuture())
    let second = try lab.incremental()
    _ = try Verification.run(Archive(path: second.path), data: true)
    try lab.restore(second.path, to: lab.directory("new"))
    #expect(try RawFiles.read(Array(lab.directory("new/raw.db").utf8)) == bytes)
  }

  /// The log of a database in a version that no SQLite knows, with the checksum that its header must have.
  private static func logOfTheFuture() -> [UInt8] {
    let words: [UInt32] = [0x377f_0682, 9_999_999, 4096, 0, 1, 2]
    let header = words.flatMap { word in withUnsafeBytes(of: word.bigEndian) { Array($0) } }
    var (first, second): (UInt32, UInt32) = (0, 0)
    for index in stride(from: 0, to: words.count, by: 2) {
      first = first &+ words[index].byteSwapped &+ second
      second = second &+ words[index + 1].byteSwapped &+ first
    }
    let sums = [first, second].flatMap { sum in withUnsafeBytes(of: sum.bigEndian) { Array($0) } }
    return header + sums + [UInt8](repeating: 0, count: 24 + 4096)
  }

  @Test(.atEachPlace) func damageInAnEarlierArchiveIsFound() throws {
    let lab = try scene()
    let first = try lab.incremental()
    try lab.write("notes/2.txt", "another text")
    let second = try lab.incremental()
    var bytes = try lab.stored(first.path)
    bytes[bytes.count / 2] ^= 1
    try lab.store(first.path, bytes)
    #expect(throws: DrydockError.self) { try Verification.run(Archive(path: second.path), data: true) }
    #expect(throws: DrydockError.self) { try lab.restore(second.path, to: lab.directory("new")) }
    #expect(!lab.exists("", in: lab.directory("new")))
  }

  @Test func contentThatSnapshotsShareIsVerifiedOnce() throws {
    let lab = try scene()
    var reports = [try lab.incremental()]
    try lab.shell("touch -d 2001-01-01 large", in: lab.root)
    for _ in 1...2 { reports.append(try lab.incremental()) }
    var verification = Verification()
    func bytesRead(_ report: SnapshotReport) throws -> UInt64 {
      let archive = try Archive(path: report.path)
      let opened = archive.bytesRead
      #expect(try verification.verify(archive, data: true).entries == reports[0].entries)
      return archive.bytesRead - opened
    }
    let large: UInt64 = 3 << 20
    #expect(try bytesRead(reports[0]) > large)
    // Its own entry of the large file names content of the first archive.
    #expect(try bytesRead(reports[1]) > large)
    #expect(try bytesRead(reports[2]) < large / 10)
    verification = Verification()
    #expect(try bytesRead(reports[2]) > large)
  }

  @Test func whatWasNotVerifiedIsReadAgain() throws {
    let lab = try scene()
    let reports = try (1...3).map { _ in try lab.incremental() }
    let intact = try lab.stored(reports[0].path)
    var damaged = intact
    damaged[damaged.count / 2] ^= 1
    var verification = Verification()
    func isIntact(_ report: SnapshotReport, data: Bool = true) -> Bool {
      (try? verification.verify(Archive(path: report.path), data: data)) != nil
    }
    #expect(isIntact(reports[0], data: false))
    // Only its structure was checked.
    try lab.store(reports[0].path, damaged)
    #expect(!isIntact(reports[1]) && !isIntact(reports[0]) && !isIntact(reports[2]))
    try lab.store(reports[0].path, intact)
    #expect(isIntact(reports[0]) && isIntact(reports[2]))
    // Changed after it was verified; at remote places, files are never changed.
    guard lab.place == nil else { return }
    usleep(20_000)
    try lab.store(reports[0].path, damaged)
    #expect(!isIntact(reports[1]))
  }
}
