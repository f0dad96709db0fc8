import FileSystem
import Foundation
import TestSupport
import Testing

@testable import ArchiveFile

/// What is written comes back, and stock tools see the same.
@Suite struct RoundTripTests {
  private let directory: TemporaryDirectory
  init() throws { directory = try TemporaryDirectory() }

  private static let time: Int64 = 1_700_000_000_123_456_789

  /// One member of every kind, with everything that is hard about names and metadata.
  private static func everyKind() -> [Sample] {
    let odd: [UInt8] = Array("files/caf".utf8) + [0xE9, 0xFF, 0x20, 0x5C, 0x0A] + Array("x".utf8)
    let long = Array(
      (Array(repeating: String(repeating: "d", count: 250), count: 20).joined(separator: "/") + "/end").utf8)
    let attributes: [ExtendedAttribute] = [
      .init(name: "user.comment", value: Array("hällo".utf8)),
      .init(name: "user.binary", value: [0, 10, 61, 255, 0]),
      .init(name: "user.empty", value: []),
      .init(name: "user.a=b%20c", value: [1]),
      .init(name: "com.apple.metadata:com_apple_backup_excludeItem", value: Array(0...60)),
    ].sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    return [
      Sample(ArchiveMember(name: Array("files".utf8), kind: .directory, mode: 0o700, modified: time)),
      Sample("files/plain", Array("content".utf8)),
      Sample("files/empty", []),
      Sample(
        ArchiveMember(
          name: odd, kind: .file(size: 3), mode: 0o4755, modified: -1_500_000_001, userID: 4_000_000_000,
          groupID: 3_000_000, attributes: attributes), [1, 2, 3]),
      Sample("files/größe – 船", [9], modified: 0),
      Sample("files/old", [9], modified: -86_400_000_000_000),
      Sample("files/before", [9], modified: -1),
      Sample("files/late", [9], modified: 9_000_000_000_000_000_007),
      Sample(ArchiveMember(name: long, kind: .file(size: 1), mode: 0o600, modified: time), [7]),
      Sample(
        ArchiveMember(
          name: Array("files/link".utf8), kind: .symbolicLink(target: [0x2E, 0x2E, 0x2F, 0xFE]), mode: 0o777,
          modified: time)),
      Sample(
        ArchiveMember(
          name: Array("files/absolute".utf8),
          kind: .symbolicLink(target: Array(("/" + String(repeating: "t", count: 300)).utf8)), mode: 0o777,
          modified: time)),
      Sample(
        ArchiveMember(name: Array("files/hard".utf8), kind: .hardLink(target: odd), mode: 0o4755, modified: 5)
      ),
    ]
  }

  @Test func everyKindComesBack() throws {
    let samples = Self.everyKind()
    let built = try writeArchive(samples, to: directory("a"))
    let reader = try ArchiveReader(path: directory("a"))
    let read = try readAll(reader)
    #expect(read.map(\.sample.member).dropLast() == samples.map(\.member)[...])
    #expect(read.map(\.sample.content).dropLast() == samples.map(\.content)[...])
    #expect(read.map(\.offset) == built.offsets)
    let tar = try tarStream(reader)
    for entry in read {
      let start = Int(entry.offset)
      #expect(Array(tar[start..<start + entry.sample.content.count]) == entry.sample.content)
    }
    #expect(built.fileSize == UInt64(built.bytes.count))
    #expect(reader.tarSize == UInt64(tar.count))
    var manifest: [UInt8] = []
    try reader.readManifest { manifest += $0 }
    #expect(manifest == Array("the manifest".utf8))
  }

  @Test func severalFramesComeBackWithAnyNumberOfThreads() throws {
    var random = SeededRandom(seed: 1)
    let samples = (0..<40).map { index in
      index % 2 == 0
        ? Sample("f\(index)", random.bytes(Int(random.next() % 900_000)))
        : Sample("f\(index)", Array(String(repeating: "line \(index) ", count: 70_000).utf8))
    }
    var first: [UInt8]?
    for threads in [1, 2, 7] {
      let built = try writeArchive(samples, to: directory("a"), threads: threads)
      #expect(try ArchiveReader(path: directory("a")).frames.count > 4)
      #expect(first == nil || first == built.bytes)
      first = built.bytes
      #expect(try readAll(directory("a")).map(\.sample.content).dropLast() == samples.map(\.content)[...])
    }
  }

  @Test func skippedContentsAreNotRead() throws {
    var random = SeededRandom(seed: 2)
    let samples = [Sample("big", random.bytes(40 << 20)), Sample("small", [1])]
    try writeArchive(samples, to: directory("a"))
    let reader = try ArchiveReader(path: directory("a"))
    var names: [String] = []
    let walk = try reader.walk()
    while let (member, _) = try walk.next() { names.append(member.printableName) }
    #expect(names == ["big", "small", "manifest.sqlite"])
    #expect(reader.bytesRead < reader.fileSize / 2)
  }

  @Test func filesBeyondEightGigabytesAreAnnounced() throws {
    // Zeros: 9 GiB would be slow, so the header alone is looked at, through the unfinished file.
    let sink = try FrameSinkProbe(directory("a"))
    try sink.encoder.writeHeader(.file("huge", size: 9 << 30, modified: Self.time))
    #expect(String(decoding: try sink.contents(), as: UTF8.self).contains("size=9663676416\n"))
  }

  @Test func unusualNumbersOfBytes() throws {
    // Members whose content ends at, before and behind a block's and a frame's end.
    for size in [0, 1, 511, 512, 513, ArchiveFormat.frameSize - 4096, ArchiveFormat.frameSize, 9 << 20] {
      let sample = Sample("f", [UInt8](repeating: 0x61, count: size))
      try writeArchive([sample], to: directory("a"))
      #expect(try readAll(directory("a")).first?.sample.content == sample.content)
    }
  }
}
