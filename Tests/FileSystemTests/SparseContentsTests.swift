import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import FileSystem

/// Holes are where zeros were, and read as zeros.
@Suite struct SparseContentsTests {
  private static let block = 4096
  private let folder: TemporaryDirectory
  private let root: Directory

  init() throws {
    folder = try TemporaryDirectory()
    root = try Directory(folder.path)
  }

  /// A content of zeros, but for some bytes.
  struct Sample: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let size: Int
    var data: [Range<Int>] = []
    /// Blocks on the disk: those with data, and zeros that are too few for a hole.
    var blocks: Int {
      var (count, place) = (0, 0)
      for range in data + [size..<size] {
        let start = range.lowerBound / block
        if (start - place) * block < 32 << 10 { count += max(start - place, 0) }
        place = range.isEmpty ? place : max(place, (range.upperBound - 1) / block + 1)
        count += range.isEmpty ? 0 : place - max(start, 0)
      }
      return count
    }

    var content: [UInt8] {
      var bytes = [UInt8](repeating: 0, count: size)
      for range in data { bytes.replaceSubrange(range, with: repeatElement(1, count: range.count)) }
      return bytes
    }
  }

  static let samples = [
    Sample(testDescription: "nothing", size: 0),
    Sample(testDescription: "small", size: 100, data: [0..<100]),
    Sample(testDescription: "one hole", size: 3_000_000),
    Sample(testDescription: "only the first byte", size: 1 << 20, data: [0..<1]),
    Sample(testDescription: "only the last byte", size: 1 << 20, data: [(1 << 20) - 1..<1 << 20]),
    Sample(
      testDescription: "the last byte of a block, and the first of another", size: 100_000,
      data: [4095..<4096, 65536..<65537]),
    Sample(testDescription: "a tail of zeros in a part of a block", size: 50_001, data: [0..<20_000]),
    Sample(testDescription: "a tail of data in a part of a block", size: 50_001, data: [50_000..<50_001]),
    Sample(
      testDescription: "overflow pages of a database", size: 8 << 20,
      data: (0..<128).map { $0 << 16..<$0 << 16 + 4 }),
    Sample(testDescription: "no hole", size: 700_000, data: [0..<700_000]),
  ]

  /// Writes a sample in pieces of that many bytes.
  private func write(_ sample: Sample, _ name: ContainerPath, pieces: Int) throws {
    let file = try root.createFile(name)
    defer { try? file.close() }
    let output = FileOutput(file, .init(.always))
    try sample.content.withUnsafeBytes { content in
      for start in stride(from: 0, to: content.count, by: pieces) {
        let end = min(start + pieces, content.count)
        try output.appendWithHoles(UnsafeRawBufferPointer(rebasing: content[start..<end]))
      }
    }
    try output.finish()
    #expect(output.size == UInt64(sample.size))
  }

  @Test("Written, read and copied in pieces of any size", arguments: samples)
  func writtenReadAndCopied(sample: Sample) throws {
    let content = sample.content
    for pieces in [4096, 10_007, 1 << 18, 1 << 20] {
      let written = try ContainerPath("pieces of \(pieces)")
      let copy = written.withSuffix(" copied")
      try write(sample, written, pieces: pieces)
      try root.copyContents(of: written, to: copy, in: root)
      // A part of a block of zeros at the end of a piece is written, unless it continues a hole.
      let parts = pieces % Self.block == 0 ? 0 : sample.size / pieces
      // The file system itself needs a few.
      let most = UInt64((sample.blocks + parts + 4) * Self.block)
      for name in [written, copy] {
        #expect(try root.contents(name) == content)
        let space = try root.status(name)?.space ?? .max
        #expect(space <= most, "\(name) takes \(space) bytes")
      }
      let file = try root.openFile(written)
      defer { try? file.close() }
      var (read, data): ([UInt8], Range<UInt64>) = ([], 0..<0)
      try readInPieces(
        of: pieces, read: { try file.fillAroundHoles($1, at: $0, data: &data, path: "") }, { read += $0 })
      #expect(read == content)
    }
  }

  @Test func moreRangesThanAreAskedForAtOnce() throws {
    let sample = Sample(
      testDescription: "", size: 700 << 16, data: (0..<700).map { $0 << 16 + 1..<$0 << 16 + 2 })
    try write(sample, "many", pieces: 1 << 20)
    let file = try root.openFile("many")
    defer { try? file.close() }
    var bytes = [UInt8](repeating: 7, count: sample.size + 100)
    var data: Range<UInt64> = 0..<0
    let count = try bytes.withUnsafeMutableBytes {
      try file.fillAroundHoles($0, at: 0, data: &data, path: "")
    }
    #expect(count == sample.size && Array(bytes.prefix(count)) == sample.content)
    #expect(Array(bytes.suffix(100)) == [UInt8](repeating: 7, count: 100))
    try root.copyContents(of: "many", to: "copy", in: root)
    #expect(try root.contents("copy") == sample.content)
  }

  @Test func endsWhereTheFileEnds() throws {
    try write(Sample(testDescription: "", size: 10_000), "file", pieces: 10_000)
    let file = try root.openFile("file")
    defer { try? file.close() }
    var (bytes, data): ([UInt8], Range<UInt64>) = ([UInt8](repeating: 7, count: 8192), 0..<0)
    let counts = try bytes.withUnsafeMutableBytes { buffer in
      try [5000, 10_000, 20_000].map { try file.fillAroundHoles(buffer, at: $0, data: &data, path: "") }
    }
    #expect(counts == [5000, 0, 0])
    #expect(bytes == [UInt8](repeating: 0, count: 5000) + [UInt8](repeating: 7, count: 3192))
  }

  @Test func aTruncatedFileHasNoHoleBehindItsEnd() throws {
    try write(Sample(testDescription: "", size: 3 << 20, data: [0..<1 << 20]), "file", pieces: 1 << 20)
    let file = try FileDescriptor.open(FilePath(root.full("file")), .readWrite)
    defer { try? file.close() }
    #expect(try file.endOfHole(at: 2 << 20, size: 3 << 20, "") == 3 << 20)
    try file.resize(to: (2 << 20) + 5)
    #expect(try file.endOfHole(at: 2 << 20, size: 3 << 20, "") == (2 << 20) + 5)
    #expect(try file.endOfHole(at: (2 << 20) + 5, size: 3 << 20, "") == nil)
  }

  /// On btrfs, to find the end of data takes longer the more of it there is.
  @Test func theEndOfDataIsFoundOnce() throws {
    let sample = Sample(testDescription: "", size: 3 << 20, data: [1 << 20..<2 << 20])
    try write(sample, "file", pieces: 1 << 20)
    let file = try root.openFile("file")
    defer { try? file.close() }
    var (bytes, data): ([UInt8], Range<UInt64>) = ([UInt8](repeating: 7, count: 4096), 0..<0)
    func read(at offset: UInt64) throws -> [UInt8] {
      let count = try bytes.withUnsafeMutableBytes {
        try file.fillAroundHoles($0, at: offset, data: &data, path: "")
      }
      return Array(bytes[..<count])
    }
    #expect(try read(at: (1 << 20) - 4000) == sample.content[((1 << 20) - 4000)...].prefix(4096) + [])
    #expect(data == 1 << 20..<2 << 20)
    // What is known of an earlier content does no harm, neither where a hole is by now nor behind the end.
    let writable = try FileDescriptor.open(FilePath(root.full("file")), .readWrite)
    defer { try? writable.close() }
    try writable.resize(to: (1 << 20) + 5000)
    #expect(try read(at: 1 << 20) == [UInt8](repeating: 1, count: 4096))
    #expect(try read(at: (1 << 20) + 4096) == [UInt8](repeating: 1, count: 904))
    #expect(try read(at: 2 << 20).isEmpty)
    try writable.resize(to: 3 << 20)
    #expect(
      try read(at: (1 << 20) + 4096) == [UInt8](repeating: 1, count: 904) + Array(repeating: 0, count: 3192))
  }

  /// XFS allocates room behind a file that grows, into holes that come later.
  @Test(arguments: [0, 1 << 20, 3_000_000, 5 << 20])
  func aFileHasItsLengthBeforeItsFirstHoleIsLeft(expected: Int) throws {
    let file = try root.createFile("file")
    defer { try? file.close() }
    let output = FileOutput(file, size: UInt64(expected))
    let sample = Sample(testDescription: "", size: 3_000_000, data: [0..<100_000, 2_000_000..<2_000_001])
    try sample.content.withUnsafeBytes { content in
      try output.appendWithHoles(UnsafeRawBufferPointer(rebasing: content[..<2_500_000]))
      #expect(try FileStatus(of: file, path: "").size == UInt64(max(expected, 102_400)))
      try output.appendWithHoles(UnsafeRawBufferPointer(rebasing: content[2_500_000...]))
    }
    try output.finish()
    #expect(try root.contents("file") == sample.content)
  }
}
