import ArchiveFile
import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// Archives that were cut or flipped: restored whole, or refused with the container untouched. DamageTests of
/// ArchiveFile has more places.
@Suite(.everyPlace) struct DamagedArchiveTests {
  private func lab() throws -> (Lab, archive: [UInt8], frames: [Int]) {
    let lab = try Lab()
    try lab.write("small", "content")
    try lab.write("big", SeededRandom.noise(5_000_000))
    try lab.write("dir/text", String(repeating: "the dock is dry. ", count: 20_000))
    try lab.sql("db", "CREATE TABLE t(a); INSERT INTO t VALUES (1)")
    let path = try lab.snapshot().path
    let frames = try ArchiveReader(path: lab.localCopy(of: path)).frames.map {
      Int($0.fileOffset) + $0.compressedSize
    }
    return (lab, try lab.stored(path), frames)
  }

  private func damagedPath(_ lab: Lab) -> String { lab.repository + "/damaged.tar.zst" }

  /// Tries to restore bytes over a damaged container; says whether they were taken.
  private func takes(_ bytes: [UInt8], _ lab: Lab, _ whole: TreeListing) throws -> Bool {
    let path = damagedPath(lab)
    try lab.store(path, bytes)
    let before = try TreeListing(lab.root)
    do {
      try lab.restore(path)
    } catch {
      #expect(error is DrydockError, "\(error)")
      #expect(try TreeListing(lab.root).differences(from: before, comparing: TreeListing.unread) == [])
      #expect(throws: (any Error).self) { _ = try Verification.run(Archive(path: path), data: true) }
      return false
    }
    #expect(try TreeListing(lab.root).differences(from: whole) == [])
    return true
  }

  @Test func cutArchivesAreRefused() throws {
    let (lab, bytes, frames) = try lab()
    let whole = try TreeListing(lab.root)
    for path in ["small", "big", "dir", "db"] { try lab.remove(path) }
    var random = SeededRandom(seed: 5)
    let cuts =
      [0, 1, 3, 4, 17, bytes.count - 1, bytes.count - 9, bytes.count - 17] + frames + frames.map { $0 - 1 }
      + (0..<4).map { _ in Int.random(in: 0..<bytes.count, using: &random) }
    for cut in lab.sample(cuts, 6) {
      let isTaken = try takes(Array(bytes.prefix(cut)), lab, whole)
      #expect(!isTaken, "cut at \(cut)")
    }
    // Cut where a frame ends, stock tools see nothing wrong.
    try RawFiles.write(Array(bytes.prefix(frames[1])), to: Array(lab.directory("cut.tar.zst").utf8))
    try lab.shell("zstd -qt cut.tar.zst")
    #expect(try takes(bytes, lab, whole))
  }

  @Test func flippedBytesAreRefusedOrHarmless() throws {
    let (lab, bytes, frames) = try lab()
    let whole = try TreeListing(lab.root)
    for path in ["small", "big", "dir", "db"] { try lab.remove(path) }
    let damaged = try TreeListing(lab.root)
    var random = SeededRandom(seed: 6)
    var positions = ([0] + frames).flatMap { [$0, $0 + 4, $0 + 6, $0 + 12] }
    positions += bytes.count - 30..<bytes.count
    positions += (0..<15).map { _ in Int.random(in: 0..<bytes.count, using: &random) }
    positions = lab.sample(positions.filter { $0 < bytes.count }, 8)
    // Flips that no verification finds either: of bits that zstd does not use.
    var silent = 0
    for position in positions {
      var copy = bytes
      copy[position] ^= UInt8(1 << Int.random(in: 0..<8, using: &random))
      if try takes(copy, lab, whole) {
        for path in ["small", "big", "dir", "db"] { try lab.remove(path) }
        if (try? Verification.run(Archive(path: damagedPath(lab)), data: true)) != nil { silent += 1 }
      }
    }
    #expect(silent <= max(1, positions.count / 20), "\(silent) of \(positions.count)")
    #expect(try TreeListing(lab.root).differences(from: damaged, comparing: TreeListing.timeless) == [])
  }

  /// Of files with other content, HostileArchiveSetTests has more.
  @Test(.local("paths of this machine")) func otherFilesAreRefused() throws {
    let lab = try Lab()
    try lab.shell("echo text > text; mkdir directory; mkfifo pipe; ln -s nowhere dangling")
    for (name, wanted) in [
      ("text", "notAnArchive"), ("directory", "notAnArchive"), ("none", "notFound"),
      ("dangling", "notFound"), ("none/none", "notFound"), ("text/none", "notFound"),
    ] {
      #expect(code { try Archive(path: lab.directory(name)) } == wanted, "\(name)")
    }
    #expect(failure { _ = try Archive(path: lab.directory("pipe")) } is DrydockError)
  }
}
