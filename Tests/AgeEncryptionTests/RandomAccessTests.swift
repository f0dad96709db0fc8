import AgeEncryption
import Synchronization
import TestSupport
import Testing

/// Ranges of a file, and what is read for them.
@Suite struct RandomAccessTests {
  private static let chunk = PayloadCipher.chunkLength
  private static let sealed = PayloadCipher.sealedChunkLength
  private static let sizes = [0, 1, chunk - 1, chunk, chunk + 1, 2 * chunk, 3 * chunk + 17, 20 * chunk + 5]

  @Test(arguments: sizes) func `Any range is what the plain bytes have there`(size: Int) throws {
    let file = try SealedFile(size)
    let reader = try file.reader()
    #expect(reader.plainSize == UInt64(size))
    var random = SeededRandom(seed: 7)
    for _ in 0..<200 {
      let start = Int.random(in: 0...size, using: &random)
      let longest = random.next() % 3 == 0 ? size - start : min(size - start, 100)
      let range = start..<(start + Int.random(in: 0...longest, using: &random))
      #expect(try file.read(range, reader) == Array(file.plain[range]))
    }
    // Around every border between two chunks.
    for border in stride(from: 0, through: size, by: Self.chunk) {
      let range = max(0, border - 3)..<min(size, border + 3)
      #expect(try file.read(range, reader) == Array(file.plain[range]))
    }
    #expect(try file.read(0..<size, reader) == file.plain)
  }

  @Test func `Only the chunks of the range are read, the last one first`() throws {
    let size = 40 * Self.chunk + 9
    let file = try SealedFile(size)
    let reader = try file.reader()
    let start = file.payloadStart
    // The header in one piece, the nonce, and the last chunk.
    let opening = file.taken()
    #expect(opening.count == 3)
    #expect(opening[1] == (start - 16)..<start)
    #expect(opening[2] == (start + 40 * Self.sealed)..<(start + 40 * Self.sealed + 9 + 16))
    for (range, first, last) in [
      (0..<1, 0, 0), (5..<Self.chunk, 0, 0), (Self.chunk - 1..<Self.chunk + 1, 0, 1),
      (7 * Self.chunk..<8 * Self.chunk, 7, 7), (39 * Self.chunk + 1..<size, 39, 40),
      (size - 1..<size, 40, 40), (0..<size, 0, 40),
    ] {
      _ = try file.read(range, reader)
      let taken = file.taken()
      let end = last == 40 ? file.sealed.count : start + (last + 1) * Self.sealed
      #expect(taken.first?.lowerBound == start + first * Self.sealed && taken.last?.upperBound == end)
      #expect(taken.reduce(0) { $0 + $1.count } == end - start - first * Self.sealed, "each once")
      #expect(taken.allSatisfy { $0.count <= 16 * Self.sealed }, "bounded memory")
    }
    _ = try file.read(9..<9, reader)
    #expect(file.taken() == [])
  }

  @Test func `A range outside of the content is refused`() throws {
    let file = try SealedFile(100)
    let reader = try file.reader()
    for (offset, count) in [(101, 0), (100, 1), (0, 101), (99, 2), (UInt64.max, 1), (UInt64.max, 0)]
      as [(UInt64, Int)]
    {
      var bytes = [UInt8](repeating: 0, count: count)
      expectError(.badKey) { try bytes.withUnsafeMutableBytes { try reader.read(into: $0, at: offset) } }
    }
  }

  @Test func `Several threads read at once`() async throws {
    let file = try SealedFile(10 * Self.chunk + 1)
    let reader = try file.reader()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for seed in 0..<8 { group.addTask { try Self.readAround(file, reader, seed: UInt64(seed)) } }
      try await group.waitForAll()
    }
  }

  private static func readAround(_ file: SealedFile, _ reader: AgeReader, seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    for _ in 0..<50 {
      let start = Int.random(in: 0..<file.plain.count, using: &random)
      let range = start..<Int.random(in: start...file.plain.count, using: &random)
      #expect(try file.read(range, reader) == Array(file.plain[range]))
    }
  }

  @Test func `What the source throws comes through`() throws {
    struct Refusal: Error {}
    let file = try SealedFile(10)
    #expect(throws: Refusal.self) {
      try AgeReader(size: UInt64(file.sealed.count), keys: file.keys) { _, _ in throw Refusal() }
    }
  }
}

/// A file in memory, with notes of what was read of it.
final class SealedFile: Sendable {
  let plain: [UInt8]
  let sealed: [UInt8]
  let identity: AgeIdentity
  private let reads = Mutex<[Range<Int>]>([])

  init(_ size: Int) throws {
    let identity = try AgeIdentity.generate()
    let plain = SeededRandom.noise(size)
    self.identity = identity
    self.plain = plain
    sealed = try plain.withUnsafeBytes { try Age.seal($0, to: .recipients([identity.recipient])) }
  }

  var keys: AgeKeys { AgeKeys(identities: [identity]) }

  /// Where the first chunk starts.
  var payloadStart: Int {
    let chunks = max(1, (plain.count + PayloadCipher.chunkLength - 1) / PayloadCipher.chunkLength)
    return sealed.count - plain.count - chunks * PayloadCipher.overhead
  }

  func reader(of file: [UInt8]? = nil) throws -> AgeReader {
    let file = file ?? sealed
    return try AgeReader(size: UInt64(file.count), keys: keys) { [self] target, offset in
      let range = Int(offset)..<(Int(offset) + target.count)
      reads.withLock { $0.append(range) }
      target.copyBytes(from: file[range])
    }
  }

  func read(_ range: Range<Int>, _ reader: AgeReader) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0xAA, count: range.count)
    try bytes.withUnsafeMutableBytes { try reader.read(into: $0, at: UInt64(range.lowerBound)) }
    return bytes
  }

  /// What was read since the last call.
  func taken() -> [Range<Int>] {
    reads.withLock { reads in
      defer { reads = [] }
      return reads
    }
  }
}
