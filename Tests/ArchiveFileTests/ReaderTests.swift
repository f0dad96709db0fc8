import Cryptography
import Foundation
import TestSupport
import Testing

@testable import ArchiveFile

/// Reading parts.
@Suite struct ReaderTests {
  private let directory: TemporaryDirectory
  init() throws { directory = try TemporaryDirectory() }

  /// An archive of random bytes.
  private func reader(_ size: Int) throws -> ArchiveReader {
    var random = SeededRandom(seed: UInt64(size))
    try writeArchive([Sample("r", random.bytes(size))], to: directory("a"))
    return try ArchiveReader(path: directory("a"))
  }

  @Test func anyRangeIsThatPartOfTheStream() throws {
    var random = SeededRandom(seed: 7)
    let text = Array(String(repeating: "the quick brown fox ", count: 400_000).utf8)
    try writeArchive(
      [Sample("r", random.bytes(9_000_000)), Sample("t", text), Sample("s", random.bytes(5_000_000))],
      to: directory("a"))
    let reader = try ArchiveReader(path: directory("a"))
    let tar = Data(try tarStream(reader))
    #expect(try tar == Data(run("zstd", ["-dcq", directory("a")]).outputBytes))
    let edges = reader.frames.flatMap { [Int($0.tarOffset), Int($0.tarEnd)] }
    for round in 0..<150 {
      var offset = Int.random(in: 0...tar.count, using: &random)
      if round % 3 == 0, let edge = edges.randomElement(using: &random) {
        offset = min(max(edge + Int.random(in: -2...2, using: &random), 0), tar.count)
      }
      let longest = round % 30 == 0 ? tar.count : 10_000
      let length = Int.random(in: 0...min(longest, tar.count - offset), using: &random)
      var bytes = Data()
      try reader.read(offset: UInt64(offset), length: UInt64(length)) { bytes.append(contentsOf: $0) }
      #expect(bytes == tar[offset..<offset + length])
    }
    for (offset, length) in [
      (UInt64(tar.count), UInt64(1)), (0, UInt64(tar.count) + 1), (.max, .max), (1, .max),
    ] {
      expectError(.damaged) { try reader.read(offset: offset, length: length) { _ in } }
    }
  }

  @Test func onlyTheFramesOfARangeAreRead() throws {
    let reader = try reader(30_000_000)
    #expect(reader.bytesRead < 1000)
    try reader.read(offset: 10_000_000, length: 10) { _ in }
    #expect(reader.bytesRead < 5 << 20)
    let before = reader.bytesRead
    try reader.read(offset: 10_000_100, length: 10) { _ in }
    #expect(reader.bytesRead == before)
  }

  @Test func readingInsideOfReadingAndStoppingMidway() throws {
    struct Stop: Error {}
    let reader = try reader(13_000_000)
    let tar = try tarStream(reader)
    var all = Data()
    try reader.read(offset: 0, length: reader.tarSize) { piece in
      for place in [all.count, 0, tar.count - 1, tar.count / 2] {
        try reader.read(offset: UInt64(place), length: 1) { #expect($0[0] == tar[place]) }
      }
      all.append(contentsOf: piece)
    }
    #expect(all == Data(tar))
    #expect(throws: Stop.self) { try reader.read(offset: 0, length: reader.tarSize) { _ in throw Stop() } }
    #expect(try readAll(reader).count == 2)
  }

  @Test func offsetsBeyondFourGigabytes() throws {
    let entry = SeekTable.Entry(compressedSize: 4_000_000, plainSize: 4 << 20, checksum: 0)
    let last = SeekTable.Entry(compressedSize: 80, plainSize: 0, checksum: ArchiveFormat.checksumOfNothing)
    let entries = [SeekTable.Entry](repeating: entry, count: 5000) + [last]
    let coded = try SeekTable.encode(entries)
    #expect(try SeekTable.frameCount(footer: Array(coded.suffix(9))) == 5001)
    #expect(try SeekTable.decode(coded, count: 5001) == entries)
    let index = try FrameIndex(entries, tableOffset: 5000 * 4_000_000 + 80)
    #expect(index.tarSize == 5000 * (4 << 20) && index.locationOffset == 20_000_000_000)
    for (place, frame) in [
      (UInt64(0), 0), (4 << 20, 1), ((4 << 20) - 1, 0), (10 << 30, 2560), (index.tarSize - 1, 4999),
    ] {
      #expect(index.frame(at: place) == frame)
    }
  }

  @Test func theManifestsLocationIsCodedAsDocumented() throws {
    let location = MemberLocation(offset: 0x0102_0304_0506_0708, length: 9, sha256: try SHA256.hash([]))
    let frame = try location.frame()
    #expect(frame.count == 80)
    #expect(Array(frame[..<8]) == [0x50, 0x2A, 0x4D, 0x18, 72, 0, 0, 0])
    #expect(Array(frame[8..<16]) == Array("drydock\0".utf8))
    #expect(Array(frame[24..<33]) == [8, 7, 6, 5, 4, 3, 2, 1, 9])
    #expect(try MemberLocation(frame: frame) == location)
    var newer = frame
    newer[16] = 2
    newer.replaceSubrange(72..., with: try SHA256.hash(Array(newer[..<72])).bytes.prefix(8))
    expectError(.newerFormat) { try MemberLocation(frame: newer) }
  }
}
