@testable import ArchiveManifest
import AppStores
import ArchiveFile
import FileSystem
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// Of databases and large files an incremental archive holds the blocks that changed.
@Suite struct ChangedBlocksTests {
  private static let database = "pages/container/db.sqlite", file = "pages/container/large"

  private func scene(pageSize: Int = 4096) throws -> Lab {
    let lab = try Lab()
    try lab.sql(
      "db.sqlite",
      """
      PRAGMA page_size=\(pageSize); PRAGMA journal_mode=WAL; CREATE TABLE t (a INTEGER PRIMARY KEY, b);
      WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT 8000)
      INSERT INTO t(b) SELECT hex(randomblob(200)) FROM r
      """)
    var random = SeededRandom(seed: 7)
    try lab.write("large", random.bytes(5 << 20))
    return lab
  }

  /// The members of an archive with content, and their sizes.
  private func members(_ path: String, _ lab: Lab) throws -> [String: Int] {
    let result = try Command.succeed(Tools.system("tar"), ["--zstd", "-tvf", lab.localCopy(of: path)])
    var sizes: [String: Int] = [:]
    for line in result.output.split(separator: "\n") where line.hasPrefix("-") {
      let words = line.split(separator: " ", maxSplits: 5)
      if let name = words.last, name.contains("container/") { sizes[String(name)] = Int(words[2]) }
    }
    return sizes
  }

  /// Takes a snapshot, and expects that it is restored exactly.
  private func exact(_ lab: Lab, trusting: Bool = true) throws -> SnapshotReport {
    let rows = try Lab.rows(lab.root + "/db.sqlite")
    let report = try lab.incremental(trusting: trusting)
    let target = lab.directory("restored-\(report.archive.short)")
    _ = try Verification.run(Archive(path: report.path), data: true)
    try lab.restore(report.path, to: target)
    #expect(try Lab.rows(target + "/db.sqlite") == rows)
    #expect(try lab.shell("cmp '\(lab.root)/large' '\(target)/large' && echo same") == "same\n")
    // A second restore has nothing to do: the hashes of the live files are the same ones.
    let again = try lab.restore(report.path, to: target).value
    #expect(again.restored.isEmpty, "\(again.restored)")
    return report
  }

  private static let ways =
    [(true, 512), (false, 4096), (true, 65_536)]
    + (TestExtent.isFull ? [(false, 512), (true, 4096), (false, 65_536)] : [])

  @Test(arguments: ways) func someRowsCostTheirPages(trusting: Bool, pageSize: Int) throws {
    let lab = try scene(pageSize: pageSize)
    let first = try exact(lab)
    #expect(try members(first.path, lab).keys.sorted() == ["container/db.sqlite", "container/large"])
    for round in 0..<3 {
      try lab.shell(
        Lab.leavingTheLog("UPDATE t SET b = 'changed \(round)' WHERE a % 2000 = \(round)"), in: lab.root)
      let members = try members(exact(lab, trusting: trusting).path, lab)
      #expect(members.keys.sorted() == [Self.database])
      #expect(members[Self.database] ?? .max <= 8 * max(pageSize, 1024), "\(members)")
    }
    #expect(try members(exact(lab, trusting: trusting).path, lab).isEmpty)
    // A checkpoint moves the pages into the main file, and changes no content.
    try lab.sql("db.sqlite", "PRAGMA wal_checkpoint(TRUNCATE)")
    #expect(try members(exact(lab, trusting: trusting).path, lab).isEmpty)
    try lab.sql("db.sqlite", "PRAGMA journal_mode=DELETE; DELETE FROM t WHERE a = 77")
    let deleted = try members(exact(lab, trusting: trusting).path, lab)
    #expect(
      deleted.keys.sorted() == [Self.database] && deleted[Self.database] ?? .max <= 6 * max(pageSize, 1024))
    // Fewer pages, of which most are others.
    try lab.sql("db.sqlite", "DELETE FROM t WHERE a % 3 > 0; VACUUM")
    #expect(try members(exact(lab, trusting: trusting).path, lab).keys.sorted() == ["container/db.sqlite"])
  }

  @Test func aLargeFileThatIsChangedInPlaceGrowsAndShrinks() throws {
    let lab = try scene()
    _ = try exact(lab)
    let block = BlockHashes.fileBlock
    for (change, blocks) in [
      ("printf changed | dd of=large bs=1 seek=3000000 conv=notrunc status=none", 1),
      ("printf more >> large", 1), ("head -c 100000 /dev/urandom >> large", 4),
      ("truncate -s 4M large", 0), ("truncate -s -5 large", 1), ("touch large; chmod 600 large", 0),
    ] {
      try lab.shell(change, in: lab.root)
      let members = try members(exact(lab).path, lab)
      #expect(members.keys.sorted() == (blocks == 0 ? [] : [Self.file]), "\(change)")
      #expect((members[Self.file] ?? 0) <= blocks * block, "\(change): \(members)")
    }
    // Moved, and changed later: the content is found by its hash, and then the blocks that changed.
    try lab.shell("cp large copy; mv copy moved", in: lab.root)
    #expect(try members(exact(lab).path, lab).isEmpty)
    try lab.shell("printf x | dd of=moved bs=1 seek=70000 conv=notrunc status=none", in: lab.root)
    #expect(try members(exact(lab).path, lab).keys.sorted() == ["pages/container/moved"])
    try lab.shell(
      "ln large second; printf y | dd of=large bs=1 seek=70000 conv=notrunc status=none", in: lab.root)
    let linked = try exact(lab)
    #expect(try members(linked.path, lab).keys.sorted() == [Self.file])
    // A full archive of the same snapshot needs no other, and stock tools unpack it.
    let path = lab.directory("exported.tar.zst")
    let exported = try SnapshotCopy.export(Archive(path: linked.path), to: .file(path), tool: "test")
    #expect(try Archive(path: exported.path).snapshot == linked.snapshot)
    _ = try Verification.run(Archive(path: path), data: true)
    try lab.shell(
      "mkdir out; tar --zstd -xf exported.tar.zst -C out; cmp out/container/large '\(lab.root)/large'")
  }

  @Test func aLogThatDoesNotContinueIsNotTrusted() throws {
    let lab = try scene()
    let script = { (text: String) in _ = try lab.shell(text, in: lab.root) }
    let update = { (value: String, row: Int) in
      try script(Lab.leavingTheLog("UPDATE t SET b = '\(value)' WHERE a = \(row)"))
    }
    try update("one", 10)
    try script("cp db.sqlite-wal ../earlier")
    try update("two", 4000)
    _ = try exact(lab)
    // The second transaction is lost, as after a power failure; then the log grows beyond its former size.
    try script("cat ../earlier > db.sqlite-wal; rm -f db.sqlite-shm")
    for row in [7000, 7500, 7600] { try update("three", row) }
    #expect(try members(exact(lab).path, lab).keys.sorted() == [Self.database])
    // The log is gone, with what was in it alone.
    try script("rm -f db.sqlite-wal db.sqlite-shm")
    _ = try exact(lab)
    try update("four", 20)
    _ = try exact(lab)
  }

  @Test func hashesOfBlocksThatAreWrongAreNotUsed() throws {
    let lab = try scene()
    let first = try lab.incremental()
    let archive = try Archive(path: first.path)
    let entry = try #require(try archive.manifest.entry("db.sqlite"))
    let blocks = try #require(try archive.manifest.blocks(of: entry, blockSize: 4096))
    #expect(try blocks.digest(size: entry.size) == entry.digest && blocks.count > 400)
    #expect(try archive.manifest.blocks(of: entry, blockSize: 8192) == nil)
    var other = entry
    other.digest = try archive.manifest.entry("large")?.digest
    #expect(try archive.manifest.blocks(of: other, blockSize: 4096) == nil)
    other = entry
    other.extents = Extents([Extent(archive: first.archive, offset: 0, length: entry.size)])
    #expect(try archive.manifest.blocks(of: other, blockSize: 4096) == nil)
  }

  @Test func aSparseFileIsNotReadWhereItHasHoles() throws {
    let lab = try Lab()
    try lab.shell(
      "printf start > sparse; truncate -s 100M sparse; printf end >> sparse; head -c 3000000 /dev/zero > zeros",
      in: lab.root)
    let report = try lab.incremental()
    let archive = try Archive(path: report.path)
    // The same digests as without holes.
    try lab.shell(
      "mkdir copy; cp --sparse=never zeros copy/zeros; fallocate -p -o 0 -l 3000000 zeros", in: lab.root)
    let entry = try #require(try archive.manifest.entry("zeros"))
    #expect(try ContentHash.of("copy/zeros", in: Directory(lab.root), isDatabase: false) == entry.digest)
    let second = try lab.incremental(trusting: false)
    #expect(try Archive(path: second.path).manifest.entry("zeros")?.digest == entry.digest)
    #expect(try members(second.path, lab).isEmpty)
    // Holes do not count against the limit on expansion.
    let limited = try Archive(path: second.path, limit: ExpansionLimit(bytes: 20 << 20))
    _ = try Verification.run(limited, data: true)
    _ = try Restore.run(limited, lab.target(limited, lab.directory("new")), RestoreOptions())
    try lab.shell(
      "cmp '\(lab.root)/sparse' new/sparse; test $(stat -c %b new/sparse) -lt 1000; test $(stat -c %s new/sparse) -gt 100000000"
    )
  }
}
