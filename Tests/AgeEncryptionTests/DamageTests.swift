import AgeEncryption
import DrydockErrors
import TestSupport
import Testing

/// Files of several chunks that were cut, changed or put together in another way.
@Suite struct DamageTests {
  private static let chunk = PayloadCipher.chunkLength
  private static let sealed = PayloadCipher.sealedChunkLength

  /// Opens a file in every way; each must come to the same code.
  private func code(_ file: [UInt8], _ sealed: SealedFile) throws -> DrydockError.Code? {
    var codes: [DrydockError.Code?] = []
    let ways: [() throws -> [UInt8]] = [
      { try Age.open(file, with: sealed.keys).withBytes { Array($0) } },
      {
        let reader = try sealed.reader(of: file)
        return try sealed.read(0..<Int(reader.plainSize), reader)
      },
    ]
    for way in ways {
      do {
        #expect(try way() == sealed.plain)
        codes.append(nil)
      } catch let error as DrydockError {
        codes.append(error.code)
      }
    }
    #expect(Set(codes).count == 1, "\(codes)")
    return codes[0]
  }

  @Test func `Cut anywhere, at borders of chunks above all`() throws {
    for size in [Self.chunk, 2 * Self.chunk, 3 * Self.chunk + 100] {
      let sealed = try SealedFile(size)
      let start = sealed.payloadStart
      let borders = Array(stride(from: start, through: sealed.sealed.count, by: Self.sealed))
      var cuts = [sealed.sealed.count - 1]
      for border in borders { cuts += [-1, 0, 1, 15, 16, 17].map { border + $0 } }
      for cut in Set(cuts) where cut < sealed.sealed.count {
        let expected: DrydockError.Code = cut < start ? .header : .payload
        #expect(try code(Array(sealed.sealed[..<cut]), sealed) == expected, "\(cut - start) of \(size)")
      }
      #expect(try code(sealed.sealed, sealed) == nil)
    }
  }

  @Test func `A flipped bit anywhere in the payload`() throws {
    let sealed = try SealedFile(2 * Self.chunk + 50)
    var random = SeededRandom(seed: 5)
    let start = sealed.payloadStart
    let places = (0..<40).map { _ in Int.random(in: start - 16..<sealed.sealed.count, using: &random) }
    let borders = [
      start - 16, start - 1, start, start + Self.sealed - 1, start + Self.sealed, sealed.sealed.count - 1,
    ]
    for place in places + borders {
      var file = sealed.sealed
      file[place] ^= 1 << UInt8(random.next() % 8)
      #expect(try code(file, sealed) == .payload, "\(place - start)")
    }
  }

  @Test func `A flipped bit anywhere in the header, and a cut anywhere in it`() throws {
    let sealed = try SealedFile(10)
    for place in 0..<(sealed.payloadStart - 16) {
      for bit in 0..<8 {
        var file = sealed.sealed
        file[place] ^= 1 << UInt8(bit)
        let code = try code(file, sealed)
        #expect(code == .header || code == .mac || code == .noIdentity, "bit \(bit) of \(place)")
      }
      #expect(try code(Array(sealed.sealed[..<place]), sealed) == .header)
    }
  }

  @Test func `Bytes after the end, chunks left out, doubled, swapped or from another file`() throws {
    let sealed = try SealedFile(3 * Self.chunk + 100)
    let other = try SealedFile(3 * Self.chunk + 100)
    let start = sealed.payloadStart
    let head = Array(sealed.sealed[..<start])
    let chunks = stride(from: start, to: sealed.sealed.count, by: Self.sealed).map {
      Array(sealed.sealed[$0..<min($0 + Self.sealed, sealed.sealed.count)])
    }
    #expect(chunks.count == 4)
    let orders = [
      [0, 1, 3], [0, 2, 3], [1, 2, 3], [0, 1, 2], [1, 0, 2, 3], [0, 0, 1, 2, 3], [0, 1, 2, 3, 3], [3], [],
    ]
    for order in orders {
      #expect(try code(head + order.flatMap { chunks[$0] }, sealed) == .payload, "\(order)")
    }
    #expect(try code(sealed.sealed + [0], sealed) == .payload)
    #expect(try code(sealed.sealed + sealed.sealed, sealed) == .payload)
    #expect(try code(head + other.sealed[other.payloadStart...], sealed) == .payload)
  }

  @Test func `Invalid sequences of chunks`() throws {
    let sealed = try SealedFile(0)
    func made(_ chunks: [(length: Int, number: UInt64, isLast: Bool)]) throws -> [UInt8] {
      let start = try AgeFileStart(to: .recipients([sealed.identity.recipient]))
      var file = start.bytes
      for chunk in chunks {
        let plain = [UInt8](repeating: 7, count: chunk.length)
        var bytes = [UInt8](repeating: 0, count: chunk.length + PayloadCipher.overhead)
        try plain.withUnsafeBytes { plain in
          try bytes.withUnsafeMutableBytes {
            try start.cipher.seal(plain, number: chunk.number, isLast: chunk.isLast, into: $0)
          }
        }
        file += bytes
      }
      return file
    }
    let full = Self.chunk
    let wrong: [[(length: Int, number: UInt64, isLast: Bool)]] = [
      [(full, 0, false), (0, 1, true)],  // an empty last chunk
      [(full, 0, false), (0, 1, false)], [(full, 0, false)], [(full, 0, false), (full, 1, false)],
      [(100, 0, false), (100, 1, true)],  // a short chunk inside
      [(full, 0, true), (100, 1, true)], [(full, 0, true), (full, 1, true)],  // two last ones
      [(full, 0, false), (100, 0, true)], [(full, 0, false), (100, 2, true)],
      [(full, 1, false), (100, 2, true)],
      [(full + 1, 0, true)],  // a long one
    ]
    for chunks in wrong {
      #expect(try code(made(chunks), sealed) == .payload, "\(chunks)")
    }
    let fine = try made([(full, 0, false), (100, 1, true)])
    #expect(try Age.open(fine, with: sealed.keys).count == full + 100)
  }

  @Test func `A failed or finished writer rejects more content`() throws {
    struct Refusal: Error {}
    let bytes = SeededRandom.noise(20 * Self.chunk)
    let target = AgeTarget.recipients([try AgeIdentity.generate().recipient])
    var isRefusing = false
    var count = 0
    let writer = try AgeWriter(to: target) {
      if isRefusing { throw Refusal() }
      count += $0.count
    }
    isRefusing = true
    #expect(throws: Refusal.self) { try bytes.withUnsafeBytes { try writer.write($0) } }
    isRefusing = false
    let before = count
    #expect(throws: DrydockError.self) { try bytes.withUnsafeBytes { try writer.write($0) } }
    #expect(throws: DrydockError.self) { try writer.finish() }
    #expect(count == before)
    let ended = try AgeWriter(to: target) { _ in }
    try ended.finish()
    #expect(throws: DrydockError.self) { try bytes.withUnsafeBytes { try ended.write($0) } }
    #expect(throws: DrydockError.self) { try ended.finish() }
    #expect(throws: Refusal.self) { try AgeWriter(to: target) { _ in throw Refusal() } }
  }

  @Test func `A file can be verified with its writer, and only that file`() throws {
    let plain = SeededRandom.noise(2 * Self.chunk + 3)
    let target = AgeTarget.recipients([try AgeIdentity.generate().recipient])
    var file: [UInt8] = []
    let writer = try AgeWriter(to: target) { file.append(contentsOf: $0) }
    try plain.withUnsafeBytes { try writer.write($0) }
    try writer.finish()
    func open(_ file: [UInt8]) throws -> [UInt8] {
      let reader = try AgeReader(size: UInt64(file.count), writtenWith: writer.start) {
        $0.copyBytes(from: file[Int($1)..<(Int($1) + $0.count)])
      }
      var read = [UInt8](repeating: 0, count: Int(reader.plainSize))
      try read.withUnsafeMutableBytes { try reader.read(into: $0, at: 0) }
      return read
    }
    #expect(try open(file) == plain)
    let other = try plain.withUnsafeBytes { try Age.seal($0, to: target) }
    for wrong in [other, [], Array(file.prefix(50)), Array(file.dropLast()), file + [0]] {
      #expect(throws: DrydockError.self) { try open(wrong) }
    }
  }
}
