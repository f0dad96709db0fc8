import Formats
import TestSupport
import Testing

/// Values that a binary property list holds once and refers to many times.
@Suite struct PropertyListSharingTests {
  /// Each array holds the next one twice, on so many levels.
  private func doubling(_ levels: Int) -> [UInt8] {
    var bytes = Array("bplist00".utf8)
    var offsets: [UInt8] = []
    func add(_ object: [UInt8]) {
      offsets.append(UInt8(bytes.count))
      bytes += object
    }
    add([0xD1, 1, 2])
    add([0x51, 0x61])
    for level in 2..<(2 + levels) { add([0xA2, UInt8(level + 1), UInt8(level + 1)]) }
    add([0x09])
    let table = UInt8(bytes.count)
    bytes += offsets + [0, 0, 0, 0, 0, 0, 1, 1] + [0, 0, 0, 0, 0, 0, 0, UInt8(offsets.count)]
    return bytes + [UInt8](repeating: 0, count: 15) + [table]
  }

  @Test("A file that expands to more than it could have as XML is refused before it does")
  func bomb() throws {
    let bytes = doubling(24)
    #expect(bytes.count < 200)
    let time = processorTime {
      expectError(nil, "expand to more than 16 MiB") { try PropertyListFile(bytes: bytes) }
    }
    #expect(time < .seconds(2))
  }

  @Test("What a file shares is shared when it is written again")
  func sharing() throws {
    let bytes = doubling(12)
    var file = try PropertyListFile(bytes: bytes)
    file.root["more"] = 1
    let written = try file.encoded()
    #expect(written.count < bytes.count + 40)
    #expect(try PropertyListFile(bytes: written) == file)
  }

  @Test("A list of many small values is not too much, however long it is")
  func manySmallValues() throws {
    let count = 1_100_000
    let header: [UInt8] = Array("bplist00".utf8) + [0x09, 0xAF, 0x12]
    func bigEndian(_ number: Int) -> [UInt8] { withUnsafeBytes(of: UInt64(number).bigEndian) { Array($0) } }
    let start = header + bigEndian(count).suffix(4)
    var bytes = start + [UInt8](repeating: 0, count: count) + [8, 9, 0, 0, 0, 0, 0, 0, 1, 1]
    for number in [2, 1, start.count + count] { bytes += bigEndian(number) }
    guard case .array(let values) = try PropertyListDocument(bytes: bytes).value else {
      Issue.record("no array")
      return
    }
    #expect(values.count == count && values.last == true)
  }
}
