import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// The independent reader, which was written from the format document, against archives of ours.
@Suite struct InteropTests {
  private static let program = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Interop/read_archive.py").path

  private func read(_ archive: String, to target: String) throws -> CommandResult {
    try Command.run(Tools.system("python3"), [Self.program, archive, target])
  }

  @Test func itRestoresWhatDrydockDoes() throws {
    let lab = try Lab()
    try lab.write("text", "content")
    try lab.write("big", [UInt8](repeating: 65, count: 5_000_000))
    // Around a boundary of blocks.
    try lab.write("below", SeededRandom.noise((1 << 20) - 1))
    try lab.write("above", SeededRandom.noise((1 << 20) + 1))
    try lab.write("empty", "")
    try lab.write("dir/größe", "more")
    try lab.directory(in: "dir/nothing")
    try lab.sql("db", "PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES (1)")
    try lab.sql("dir/other", "CREATE TABLE t(a); INSERT INTO t VALUES (zeroblob(100000))")
    try RawFiles.write([7], to: lab.full("dir/odd") + [0xE9, 0xFF])
    try ExtendedAttributes.set("user.note", [0, 10, 61, 255], of: lab.full("text"))
    try ExtendedAttributes.set("user.odd", [1], of: lab.full("dir/odd") + [0xE9, 0xFF])
    try lab.shell(
      """
      ln text dir/hard; ln -s ../outside link; ln -s nowhere dir/dangling; chmod 640 big; chmod 500 dir/nothing
      touch -d '1969-12-31 12:00:00.25' empty; touch -d '2020-02-02 02:02:02.123456789' dir/nothing
      """, in: lab.root)
    let path = try lab.snapshot().path
    try lab.restore(path, to: lab.directory("ours"))
    let result = try read(path, to: lab.directory("theirs"))
    #expect(result.succeeded, "\(result)")
    let lines = try TreeListing(lab.directory("theirs")).differences(from: TreeListing(lab.directory("ours")))
    #expect(lines == [])
    #expect(try TreeListing(lab.directory("theirs")).paths.count == 14)
  }

  @Test func itReadsTheGoodAndRefusesTheDamaged() throws {
    let lab = try Lab()
    let good = try read(HostileArchive.directory + "/good-in-small-frames.tar.zst", to: lab.directory("good"))
    #expect(good.succeeded, "\(good)")
    #expect(try lab.read("sub/file", in: lab.directory("good")) == "more\n")
    for name in ["location-hash", "frame-flipped", "extra-member", "entry-mode"] {
      let result = try read(HostileArchive.directory + "/\(name).tar.zst", to: lab.directory(name))
      #expect(result.exitCode == 1 && result.errors.contains("\(name).tar.zst: "), "\(name): \(result)")
      #expect(!result.errors.contains("Traceback"), "\(name): \(result)")
    }
  }
}
