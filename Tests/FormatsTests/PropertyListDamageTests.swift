import DrydockErrors
import Formats
import Foundation
import TestSupport
import Testing

@Suite struct PropertyListDamageTests {
  @Test(arguments: [
    ("", "the file is empty"), ("hello", "neither binary, XML nor OpenStep text"),
    ("bplist00", "too short"), ("bplist00" + String(repeating: "x", count: 60), "trailer"),
    ("<?xml version=\"1.0\"?><plist version=\"1.0\"><dict><key>a</key>", "is corrupt"),
    ("<plist version=\"1.0\"><array/></plist>", "of type array"),
  ])
  func refused(_ text: String, _ message: String) {
    expectError(.malformed, message) { try PropertyListFile(bytes: Array(text.utf8)) }
  }

  /// A binary list from offsets of one or two bytes: objects as given, the first on top.
  private func binary(_ objects: [[UInt8]], wide: Bool = false) -> [UInt8] {
    func number(_ value: Int) -> [UInt8] { wide ? [UInt8(value >> 8), UInt8(value & 255)] : [UInt8(value)] }
    var bytes = Array("bplist00".utf8)
    var offsets: [UInt8] = []
    for object in objects {
      offsets += number(bytes.count)
      bytes += object
    }
    let table = number(bytes.count)
    return bytes + offsets + [0, 0, 0, 0, 0, 0, wide ? 2 : 1, 1] + [
      0, 0, 0, 0, 0, 0, 0, UInt8(objects.count),
    ]
      + [UInt8](repeating: 0, count: 16 - table.count) + table
  }

  @Test func hostileFiles() throws {
    let key: [UInt8] = [0x51, 0x61]
    #expect(try PropertyListFile(bytes: binary([[0xD1, 1, 2], key, [0x09]])).root == ["a": .boolean(true)])
    let cases: [(String, [[UInt8]])] = [
      ("holds itself", [[0xD1, 1, 0], key]),
      ("no such object", [[0xD1, 1, 9], key]),
      ("a key that is a number", [[0xD1, 1, 1], [0x10, 1]]),
      ("a set", [[0xD1, 1, 2], key, [0xC1, 1]]),
      ("one key twice", [[0xD2, 1, 1, 1, 1], key]),
      ("a count of 2^63", [[0xDF, 0x13, 0x7F, 255, 255, 255, 255, 255, 255, 255]]),
      ("a count of -1", [[0xDF, 0x13, 255, 255, 255, 255, 255, 255, 255, 255]]),
      ("data past the end", [[0xD1, 1, 2], key, [0x4F, 0x11, 0xFF, 0xFF]]),
      ("text past the end", [[0xD1, 1, 2], key, [0x6F, 0x13, 0x40, 0, 0, 0, 0, 0, 0, 0]]),
      ("text that is not ASCII", [[0xD1, 1, 2], key, [0x51, 0xFF]]),
    ]
    for (name, objects) in cases {
      #expect(throws: DrydockError.self, "\(name)") { try PropertyListFile(bytes: binary(objects)) }
    }
    // Two hundred levels and one, of which the inner ones are read first: the list on top holds each of them.
    var steps: [[UInt8]] = [[0xD1, 1, 2], key, [0xAF, 0x10, 201] + (3..<204).reversed().map { UInt8($0) }]
    for level in 3..<203 { steps.append([0xA1, UInt8(level + 1)]) }
    expectError(nil, "nested too deeply") {
      try PropertyListFile(bytes: binary(steps + [[0x09]], wide: true))
    }
  }

  @Test func cutsAndFlippedBytesNeverCrash() throws {
    var root: PropertyListDictionary = [
      "u": .unsigned(.max), "d": .data([UInt8](repeating: 3, count: 300)), "b": .boolean(true),
      "t": .date(Date(timeIntervalSinceReferenceDate: 1.25)),
      "n": .dictionary(["list": .array((0..<40).map { .integer($0) })]),
    ]
    for index in 0..<30 { root["key\(index)"] = .string("välue \(index)") }
    var numbers = SeededRandom(seed: 20_261_121)
    func random(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &numbers) }
    var survived = 0
    var files = try [PropertyListFile.Format.binary, .xml].map {
      try PropertyListFile(format: $0, root: root).encoded()
    }
    for name in ["gnustep-typed.plist", "openstep-plist-utf8.plist", "plistlib-utf16le.plist"] {
      // Without the white space at the end, so that every prefix is incomplete.
      files.append(Array(try PropertyListSampleTests.sample(name).reversed().drop { $0 <= 0x20 }.reversed()))
    }
    for bytes in files {
      for cut in 0..<min(bytes.count, 500) {
        #expect(throws: DrydockError.self) { try PropertyListFile(bytes: Array(bytes.prefix(cut))) }
      }
      for _ in 0..<3000 {
        var damaged = bytes
        for _ in 0...random(3) { damaged[random(damaged.count)] = UInt8(random(256)) }
        if random(2) == 0 { damaged[damaged.count - 1 - random(32)] = UInt8(random(256)) }
        do {
          // What still reads must also survive being written and read again.
          let file = try PropertyListFile(bytes: damaged)
          _ = try? PropertyListFile(bytes: try file.encoded())
          survived += 1
        } catch let error as DrydockError {
          #expect(error.code == .malformed)
        }
      }
    }
    #expect(survived > 0)
  }

  /// Each array holds the next one twice, on so many levels.
  private func doubling(_ levels: Int) -> [UInt8] {
    let lists = (2..<(2 + levels)).map { [0xA2, UInt8($0 + 1), UInt8($0 + 1)] }
    return binary([[0xD1, 1, 2], [0x51, 0x61]] + lists + [[0x09]])
  }

  @Test func `A file that expands to more than it could have as XML is refused before it does`() throws {
    let bytes = doubling(24)
    #expect(bytes.count < 200)
    let time = processorTime {
      expectError(nil, "expand to more than 16 MiB") { try PropertyListFile(bytes: bytes) }
    }
    #expect(time < .seconds(2))
  }

  @Test func `What a file shares is shared when it is written again`() throws {
    let bytes = doubling(12)
    var file = try PropertyListFile(bytes: bytes)
    file.root["more"] = 1
    let written = try file.encoded()
    #expect(written.count < bytes.count + 40)
    #expect(try PropertyListFile(bytes: written) == file)
  }

  @Test func `A list of many small values is not too much, however long it is`() throws {
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
