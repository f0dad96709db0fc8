import DrydockErrors
import Testing

@testable import ArchiveFile

@Suite("Zlib streams") struct InflaterTests {
  /// By Python's zlib: `hello`, a thousand times.
  static let stream: [UInt8] = [
    0x78, 0xDA, 0xED, 0xC4, 0xA1, 0x0D, 0x00, 0x00, 0x08, 0x03, 0xB0, 0x6B, 0x49, 0x26, 0x96, 0xF0, 0xBF,
    0xE3, 0x0A, 0x5C, 0x2B, 0x9A, 0x69, 0x37, 0x92, 0x24, 0x49, 0x92, 0x24, 0x49, 0x92, 0x3E, 0x3B, 0xA6,
    0xA2, 0x1E, 0x99,
  ]

  private static func inflater(_ bytes: [UInt8], pieces size: Int) throws -> Inflater {
    var rest = bytes[...]
    return try Inflater {
      defer { rest = rest.dropFirst(size) }
      return rest.isEmpty ? nil : Array(rest.prefix(size))
    }
  }

  private static func all(_ inflater: Inflater) throws -> [UInt8] {
    var bytes: [UInt8] = []
    while let piece = try inflater.next() { bytes += piece }
    return bytes
  }

  @Test(arguments: [1, 2, 7, 36, 37, 100])
  func `It reads pieces of any size, and what follows the stream is left`(_ size: Int) throws {
    let inflater = try Self.inflater(Self.stream + [1, 2, 3], pieces: size)
    #expect(try Self.all(inflater) == Array(String(repeating: "hello", count: 1000).utf8))
    #expect(try inflater.next() == nil)
    var rest: [UInt8] = []
    while let piece = try inflater.rest() { rest += piece }
    #expect(rest == [1, 2, 3])
  }

  @Test func `Every prefix is too short, and a flipped byte is found by the checksum`() throws {
    for count in 0..<Self.stream.count {
      let error = #expect(throws: DrydockError.self) {
        try Self.all(Self.inflater(Array(Self.stream.prefix(count)), pieces: 9))
      }
      #expect(error?.code == .truncated, "\(count)")
    }
    for index in Self.stream.indices where index != 1 {
      var changed = Self.stream
      changed[index] ^= 0x10
      #expect(throws: DrydockError.self, "\(index)") { try Self.all(Self.inflater(changed, pieces: 9)) }
    }
  }
}
