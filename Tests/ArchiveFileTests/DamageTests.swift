import Cryptography
import DrydockErrors
import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import ArchiveFile

/// Whatever happens to the file, a reader says so, and never gives wrong bytes.
@Suite struct DamageTests {
  private let directory: TemporaryDirectory
  init() throws { directory = try TemporaryDirectory() }

  /// Four frames, some of random bytes and some of text.
  private func build() throws -> (built: BuiltArchive, reader: ArchiveReader, entries: [SeekTable.Entry]) {
    var random = SeededRandom(seed: 4)
    let built = try writeArchive(
      [
        Sample("text", Array(String(repeating: "all work and no play\n", count: 300_000).utf8)),
        Sample("random", random.bytes(600_000)),
        Sample("more", Array(String(repeating: "and all play and no work\n", count: 200_000).utf8)),
      ], to: directory("a"))
    let reader = try ArchiveReader(path: directory("a"))
    let entries = reader.frames.map {
      SeekTable.Entry(
        compressedSize: UInt32($0.compressedSize), plainSize: UInt32($0.plainSize), checksum: $0.checksum)
    }
    return (built, reader, entries)
  }

  @Test func everyCutIsFound() throws {
    let (built, reader, _) = try build()
    let frames = reader.frames
    #expect(frames.count >= 3)
    var random = SeededRandom(seed: 5)
    let boundaries =
      frames.map { Int($0.fileOffset) } + [
        Int(frames[frames.count - 1].fileOffset) + frames[frames.count - 1].compressedSize
      ]
    var cuts = boundaries + boundaries.map { $0 + 1 } + boundaries.filter { $0 > 0 }.map { $0 - 1 }
    cuts += (0..<50).map { _ in Int.random(in: 0..<built.bytes.count, using: &random) }
    cuts += (1...300).map { built.bytes.count - $0 }.filter { $0 > 0 }
    for cut in cuts.sorted(by: >) {
      #expect(truncate(directory("a"), cut) == 0)
      #expect(errorCode { _ = try ArchiveReader(path: directory("a")) } == .truncated, "cut at \(cut)")
    }
    // The stock program finds nothing wrong with a cut between frames: that is why this matters.
    try store(Array(built.bytes[..<boundaries[2]]), at: directory("cut.zst"))
    #expect(try run("zstd", ["-tq", directory("cut.zst")]).succeeded)
  }

  /// Of the end, `everyBitOfASmallArchive` has every byte.
  @Test func everyFlippedByteIsFound() throws {
    let (built, reader, _) = try build()
    let size = built.bytes.count
    let original = try SHA256.hash(try tarStream(reader))
    let tailStart = reader.frames.reduce(0) { $0 + $1.compressedSize }
    var silent = 0
    var random = SeededRandom(seed: 6)
    var places = (0..<25).map { _ in Int.random(in: 0..<size, using: &random) }
    places += reader.frames.flatMap { frame in (0..<8).map { Int(frame.fileOffset) + $0 } }
    places += reader.frames.map { Int($0.fileOffset) + $0.compressedSize - 2 }
    places += [size - 1, tailStart]
    let file = try FileDescriptor.open(FilePath(directory("a")), .readWrite)
    try file.closeAfter {
      for place in places {
        let mask = UInt8.random(in: 1...255, using: &random)
        try file.writeAll(toAbsoluteOffset: Int64(place), [built.bytes[place] ^ mask])
        // A flip may leave the content as it was, where a frame has two ways to say the same, such as a match
        // with another copy of the same text. Only then is no error right.
        var digest: SHA256.Digest?
        let code = errorCode {
          let reader = try ArchiveReader(ArchiveSource(file))
          let sha256 = try SHA256()
          try reader.read(offset: 0, length: reader.tarSize) { sha256.update($0) }
          digest = try sha256.finalize()
        }
        #expect(code != nil || (digest == original && place < tailStart), "byte \(place), mask \(mask)")
        silent += code == nil ? 1 : 0
        try file.writeAll(toAbsoluteOffset: Int64(place), [built.bytes[place]])
      }
      _ = try readAll(try ArchiveReader(ArchiveSource(file)))
      // Without the end, where none is silent.
      #expect(silent * 10 < places.count)
    }
  }

  /// All bits of a small archive, one by one. A reader sees the file as its tar stream and its manifest's place: where
  /// both are the same, no command can tell the difference, and need not.
  @Test func everyBitOfASmallArchive() throws {
    let path = directory("a")
    let text = Array(String(repeating: "all work and no play\n", count: 20).utf8)
    let built = try writeArchive([Sample("text", text), Sample("more", text)], to: path)
    let reader = try ArchiveReader(path: path)
    let (tar, place) = (try tarStream(reader), reader.manifest)
    let framesEnd = reader.frames.reduce(0) { $0 + $1.compressedSize }
    var silent: Set<Int> = []
    let file = try FileDescriptor.open(FilePath(path), .readWrite)
    try file.closeAfter {
      for bit in 0..<built.bytes.count * 8 {
        let at = bit / 8
        try file.writeAll(toAbsoluteOffset: Int64(at), [built.bytes[at] ^ 1 << (bit % 8)])
        let code = errorCode {
          let reader = try ArchiveReader(ArchiveSource(file))
          let isSame = try reader.manifest == place && tarStream(reader) == tar
          #expect(isSame, "byte \(at) was flipped, and other content came out")
          try reader.readManifest { _ in }
        }
        if code == nil { silent.insert(at) }
        try file.writeAll(toAbsoluteOffset: Int64(at), [built.bytes[at]])
      }
    }
    // Only the encoding of a frame has two ways to say the same, and rarely.
    #expect(silent.allSatisfy { $0 < framesEnd })
    #expect(silent.count * 20 < built.bytes.count)
  }

  @Test func aLyingSeekTableIsFound() throws {
    let (built, reader, entries) = try build()
    let dataSize = entries.reduce(0) { $0 + Int($1.compressedSize) }
    func code(_ lie: (inout [SeekTable.Entry]) -> Void) throws -> DrydockError.Code? {
      var changed = entries
      lie(&changed)
      try store(built.bytes[..<dataSize] + (try tail(changed, reader.manifest)), at: directory("b"))
      return errorCode {
        let reader = try ArchiveReader(path: directory("b"))
        try reader.read(offset: 0, length: reader.tarSize) { _ in }
      }
    }
    #expect(try code { _ in } == nil)
    let lies: [((inout [SeekTable.Entry]) -> Void, DrydockError.Code)] = [
      ({ $0[0].plainSize -= 1 }, .damaged), ({ $0[0].plainSize = 5 << 20 }, .limit),
      ({ $0[0].plainSize = .max }, .limit), ({ $0[0].plainSize = 0 }, .limit),
      ({ $0[0].checksum ^= 1 }, .damaged), ({ $0[0].compressedSize += 1 }, .damaged),
      ({ $0[0].compressedSize = 1 }, .damaged), ({ $0[0].compressedSize = .max }, .damaged),
      ({ $0.swapAt(0, 1) }, .damaged), ({ $0.removeLast() }, .damaged), ({ $0.append($0[0]) }, .damaged),
      ({ $0.removeAll() }, .damaged),
      // One byte moved from frame to frame: the sum still fits.
      (
        { entries in
          entries[0].compressedSize += 1
          entries[1].compressedSize -= 1
        }, .damaged
      ),
    ]
    for (number, (lie, expected)) in lies.enumerated() { #expect(try code(lie) == expected, "\(number)") }
    // A table with more entries than the file has bytes.
    let tooMany = built.bytes.dropLast(9) + [0xFF, 0xFF, 0xFF, 0x00, 0x80, 0xB1, 0xEA, 0x92, 0x8F]
    try store(Array(tooMany), at: directory("b"))
    expectError(.damaged) { try ArchiveReader(path: directory("b")) }
  }

  @Test func aFrameLargerThanTheLimitIsRefused() throws {
    // A real frame of 5 MiB, by the zstd program, under a table that admits it and under one that does not.
    try store([UInt8](repeating: 0, count: 5 << 20), at: directory("zeros"))
    #expect(try run("zstd", ["-q", "zeros"], in: directory.path).succeeded)
    let frame = try stored(directory("zeros.zst"))
    let checksum = frame.suffix(4).reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    let location = MemberLocation(offset: 0, length: 0, sha256: try SHA256.hash([]))
    for (claim, code) in [(UInt32(5 << 20), DrydockError.Code.limit), (4 << 20, .damaged)] {
      let entry = SeekTable.Entry(compressedSize: UInt32(frame.count), plainSize: claim, checksum: checksum)
      try store(frame + (try tail([entry], location)), at: directory("a"))
      #expect(
        errorCode {
          let reader = try ArchiveReader(path: directory("a"))
          try reader.read(offset: 0, length: reader.tarSize) { _ in }
        } == code)
    }
  }

  @Test func aWrongManifestIsFound() throws {
    let (built, reader, entries) = try build()
    let dataSize = reader.frames.reduce(0) { $0 + $1.compressedSize }
    func code(_ location: MemberLocation) throws -> DrydockError.Code? {
      try store(built.bytes[..<dataSize] + (try tail(entries, location)), at: directory("b"))
      return errorCode { try ArchiveReader(path: directory("b")).readManifest { _ in } }
    }
    let real = reader.manifest
    #expect(try code(real) == nil)
    for (offset, length) in [
      (real.offset + 1, real.length), (real.offset, real.length - 1), (.max, 1), (real.offset, .max),
    ] {
      let location = MemberLocation(offset: offset, length: length, sha256: real.sha256)
      #expect(try code(location) == .damaged, "\(offset) \(length)")
    }
  }
}
