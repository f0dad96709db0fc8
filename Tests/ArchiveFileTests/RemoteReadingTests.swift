import AgeEncryption
import Cryptography
import Synchronization
import TestSupport
import Testing

@testable import ArchiveFile

/// What is asked of a server while an archive is read.
@Suite struct RemoteReadingTests {
  /// An archive whose reads are counted as requests.
  private final class Server: Sendable {
    private let bytes: [UInt8]
    private let requests = Mutex<[Range<UInt64>]>([])
    let offsets: [UInt64]
    /// Files without order, each of which needs a frame or two, and one of zeros in several small frames.
    static let files = [3, 3, 3, 20, 3, 3].map { $0 << 20 }

    init(_ directory: TemporaryDirectory) throws {
      var random = SeededRandom(seed: 1)
      let samples = Self.files.enumerated().map { number, size in
        Sample("file \(number)", size > 3 << 20 ? [UInt8](repeating: 7, count: size) : random.bytes(size))
      }
      let built = try writeArchive(samples, to: directory("a.tar.zst"))
      (bytes, offsets) = (built.bytes, built.offsets)
    }

    func open() throws -> ArchiveReader {
      try ArchiveReader(
        ArchiveSource(size: UInt64(bytes.count), requests: 6) { target, offset in
          self.requests.withLock { $0.append(offset..<(offset + UInt64(target.count))) }
          let range = Int(offset)..<(Int(offset) + target.count)
          self.bytes[range].withUnsafeBytes { target.copyMemory(from: $0) }
        })
    }

    /// The requests since the last call, in the order of the file.
    func asked() -> [Range<UInt64>] {
      requests.withLock { requests in
        defer { requests = [] }
        return requests.sorted { $0.lowerBound < $1.lowerBound }
      }
    }

    /// Reads files, from a reader to which some were announced.
    func read(_ numbers: [Int], of reader: ArchiveReader, expecting: [Int]) throws {
      let ranges = reader.rangeSource.reader()
      ranges.expect(expecting.map { (offset: offsets[$0], length: UInt64(Self.files[$0])) })
      for number in numbers {
        var count = 0
        try ranges.read(offset: offsets[number], length: UInt64(Self.files[number])) { count += $0.count }
        #expect(count == Self.files[number])
      }
      reader.rangeSource.waitForJobs()
    }
  }

  @Test func `Each byte once, small frames together, a file between two expected ones not at all`() throws {
    try TemporaryDirectory.with { directory in
      let server = try Server(directory)
      let reader = try server.open()
      let all = Array(Server.files.indices)
      _ = server.asked()
      try server.read(all, of: reader, expecting: all)
      let asked = server.asked()
      #expect(zip(asked, asked.dropFirst()).allSatisfy { $0.upperBound <= $1.lowerBound })
      // 15 MiB without order in four frames, and the zeros in others, which are fetched with a neighbour. Reading
      // begins after a short request; of the others, half of the room for one thread is the most.
      #expect(asked.count <= 4, "\(asked)")
      let longest = FetchedRuns.longest(in: FetchedRuns.allRoom)
      #expect(
        asked.allSatisfy { $0.count <= longest } && asked.contains { $0.count > longest / 2 }, "\(asked)")
      #expect(asked.first.map { $0.count < longest * 2 / 3 } ?? false, "\(asked)")

      // The same after the manifest, and by a reader that decodes ahead, as for `verify --data`.
      let whole = try server.open()
      try whole.readManifest { _ in }
      _ = server.asked()
      whole.ranges.readsEverything = true
      for number in all {
        try whole.ranges.read(offset: server.offsets[number], length: UInt64(Server.files[number])) { _ in }
      }
      whole.rangeSource.waitForJobs()
      let inOrder = server.asked()
      #expect(zip(inOrder, inOrder.dropFirst()).allSatisfy { $0.upperBound <= $1.lowerBound }, "\(inOrder)")

      // The first file and the last, each in one frame or two, and nothing between them.
      try server.read([0, 5], of: reader, expecting: [0, 5])
      let few = server.asked()
      #expect(few.reduce(0) { $0 + $1.count } < 13 << 20, "\(few)")
      #expect(few.count < asked.count)

      // Only the beginnings are announced, or the order is another one: what comes is used, and not asked for again.
      for numbers in [[0, 3, 5], [5, 3, 0]] {
        let ranges = reader.rangeSource.reader()
        ranges.expect([0, 3, 5].map { (offset: server.offsets[$0], length: 1) })
        for number in numbers {
          try ranges.read(offset: server.offsets[number], length: UInt64(Server.files[number])) { _ in }
        }
        reader.rangeSource.waitForJobs()
        let asked = server.asked()
        #expect(
          zip(asked, asked.dropFirst()).allSatisfy { $0.upperBound <= $1.lowerBound }, "\(numbers): \(asked)")
      }

      // What nobody expected is fetched when it is read; what does not exist, never.
      try server.read([5, 0], of: reader, expecting: [])
      #expect(!server.asked().isEmpty)
      let ranges = reader.rangeSource.reader()
      let wrong: [(offset: UInt64, length: UInt64)] = [(.max - 3, 9), (0, 0), (server.offsets[0], .max)]
      ranges.expect(wrong)
      reader.rangeSource.waitForJobs()
      #expect(server.asked().isEmpty)
    }
  }

  @Test func `An error of a request is thrown where its bytes are read`() throws {
    try TemporaryDirectory.with { directory in
      let built = try writeArchive([Sample("a", SeededRandom.noise(9 << 20))], to: directory("a"))
      let isDown = Mutex(false)
      let reader = try ArchiveReader(
        ArchiveSource(size: UInt64(built.bytes.count), requests: 6) { target, offset in
          if isDown.withLock({ $0 }) { throw SystemFailure("the server is down") }
          built.bytes[Int(offset)..<(Int(offset) + target.count)].withUnsafeBytes {
            target.copyMemory(from: $0)
          }
        })
      let ranges = reader.rangeSource.reader()
      ranges.expect([(offset: built.offsets[0], length: 9 << 20)])
      isDown.withLock { $0 = true }
      #expect(throws: (any Error).self) {
        try ranges.read(offset: built.offsets[0], length: 9 << 20) { _ in }
      }
      isDown.withLock { $0 = false }
      var count = 0
      try reader.rangeSource.reader().read(offset: built.offsets[0], length: 9 << 20) { count += $0.count }
      #expect(count == 9 << 20)
    }
  }

  @Test func `A damaged chunk spoils only its frame, not those that were fetched with it`() throws {
    try TemporaryDirectory.with { directory in
      let identity = try AgeIdentity.generate()
      // Frames of 4 MiB, of which one takes 1 MiB: three come with one request.
      let samples = (0..<3).map { number in
        Sample(
          "file \(number)",
          SeededRandom.noise(1 << 20, seed: UInt64(number)) + [UInt8](repeating: 7, count: 3 << 20))
      }
      var built = try writeArchive(samples, to: directory("a"), encryption: .recipients([identity.recipient]))
      built.bytes[400_000] ^= 1
      let bytes = built.bytes
      let reader = try ArchiveReader(
        ArchiveSource(size: UInt64(bytes.count), requests: 6) { target, offset in
          bytes[Int(offset)..<(Int(offset) + target.count)].withUnsafeBytes { target.copyMemory(from: $0) }
        }, keys: AgeKeys(identities: [identity]))
      let ranges = reader.rangeSource.reader()
      ranges.expect(built.offsets.prefix(3).map { (offset: $0, length: 4 << 20) })
      #expect(throws: (any Error).self) {
        try ranges.read(offset: built.offsets[0], length: 4 << 20) { _ in }
      }
      var count = 0
      try ranges.read(offset: built.offsets[2], length: 3 << 20) { count += $0.count }
      #expect(count == 3 << 20)
    }
  }
}
