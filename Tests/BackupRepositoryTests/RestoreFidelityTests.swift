import ContainerTransaction
import FileSystem
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// What comes back is what was there: links, holes, empty and read-only directories, times, owners, odd sizes.
@Suite struct RestoreFidelityTests {
  private func make(_ lab: Lab) throws {
    try lab.write("a/first", "one inode")
    try lab.directory(in: "b/empty/below")
    try lab.write("closed/file", "not to be written")
    try lab.write(String(repeating: "n", count: 255), "the longest name")
    try lab.shell(
      """
      ln a/first b/second; ln a/first closed/third
      truncate -s 64M sparse; printf data | dd of=sparse bs=1 seek=33554432 conv=notrunc status=none
      truncate -s 3M hole
      for page in $(seq 0 31); do printf page | dd of=pages bs=64k seek=$page conv=notrunc status=none; done
      chmod 400 closed/file; chmod 4755 b; touch -d '2001-02-03 04:05:06.789012345' a/first b/empty closed a b
      chmod 555 closed
      """, in: lab.root)
    if geteuid() == 0 {
      try lab.shell("chown 1234:5678 sparse b b/empty; chown -h 7:8 hole", in: lab.root)
    }
  }

  @Test func everythingAboutAPathComesBack() throws {
    let lab = try Lab()
    try make(lab)
    let before = try TreeListing(lab.root)
    let archive = try lab.snapshot().path
    try lab.restore(archive, to: lab.directory("new")) { $0.keepsSetID = true }
    #expect(try TreeListing(lab.directory("new")).differences(from: before) == [])
    for name in ["sparse", "hole", "pages"] {
      let blocks = try RawFiles.status(Array(lab.directory("new/\(name)").utf8)).st_blocks
      #expect(blocks * 512 <= 256 << 10, "\(name) takes \(blocks) blocks")
    }
    try lab.shell(
      """
      chmod 755 closed; rm -r closed a/first b/empty; echo x > b/second; echo more >> sparse; chmod 700 b
      touch hole; rm nnn*
      """, in: lab.root)
    let damaged = try TreeListing(lab.root)
    try lab.restore(archive) { $0.keepsSetID = true }
    #expect(try TreeListing(lab.root).differences(from: before) == [])
    _ = try Transaction.rollback(lab.container())
    #expect(try TreeListing(lab.root).differences(from: damaged) == [])
  }

  @Test func pathsBeyondTheKernelsLimit() throws {
    let lab = try Lab()
    try lab.deepen()
    let deep = try ContainerPath(
      Array(repeating: String(repeating: "d", count: 250), count: 20).joined(separator: "/") + "/leaf")
    let archive = try lab.snapshot().path
    try lab.restore(archive, to: lab.directory("new"))
    #expect(try Directory(lab.directory("new")).contents(deep) == Array("deep".utf8))
    try Directory(lab.root).removeFile(deep)
    try lab.restore(archive)
    #expect(try Directory(lab.root).contents(deep) == Array("deep".utf8))
    let stored = try #require(try Archive(path: archive).manifest.entry(deep))
    #expect(try Directory(lab.root).metadata(deep) == stored.metadata)
    _ = try Transaction.rollback(lab.container())
    #expect(try Directory(lab.root).status(deep) == nil)
  }

  /// Leaves nothing open, which would be a use of the container.
  private func deepen(_ lab: Lab, _ levels: Int) throws {
    var place = try Directory(lab.root)
    for level in 0..<levels {
      try place.create("f", Array("\(level)".utf8))
      try place.createDirectory("d")
      place = try place.directory("d")
    }
    try place.create("leaf", Array("the deepest".utf8))
  }

  /// Deeper, or with a longer path, than a member's name may be: the rest is stored, and the live one is preserved.
  @Test func whatIsBeyondTheFormatIsNamedAndSpared() throws {
    let lab = try Lab()
    try lab.write("file", "stored")
    try deepen(lab, 530)
    let report = try lab.snapshot()
    #expect(report.isIncomplete && (1...3).contains(report.skipped.count))
    let lost = try #require(report.skipped.first)
    #expect(lost.isBeyondLimits && lost.path.components.count > 500)
    _ = try Verification.run(Archive(path: report.path), data: true)

    let deepest = try ContainerPath(Array(repeating: "d", count: 530).joined(separator: "/") + "/leaf")
    try lab.write("file", "changed")
    try lab.write("extra", "goes")
    let restored = try lab.restore(report.path).value
    #expect(try lab.read("file") == "stored" && !lab.exists("extra"))
    #expect(restored.preserved.count > 0 && restored.removedPaths == ["extra"])
    #expect(try Directory(lab.root).contents(deepest) == Array("the deepest".utf8))
  }

  @Test func thousandsOfFilesInOneDirectory() throws {
    let lab = try Lab()
    try lab.directory(in: "many")
    let count = TestExtent.isFull ? 30_000 : 3000
    func many(_ root: String) throws -> Directory { try Directory(root).directory("many") }
    let made = try many(lab.root)
    for number in 0..<count { try made.create(ContainerPath("f\(number)"), [UInt8(number % 251)]) }
    let archive = try lab.snapshot().path
    try lab.restore(archive, to: lab.directory("new"))
    let restored = try many(lab.directory("new"))
    #expect(try restored.names() == made.names())
    for number in stride(from: 0, to: count, by: 997) {
      let name = try ContainerPath("f\(number)")
      #expect(try restored.contents(name) == [UInt8(number % 251)])
      #expect(try restored.metadata(name) == made.metadata(name))
    }
  }
}
