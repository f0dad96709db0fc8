import DrydockErrors
import Formats
import Foundation
import TestSupport
import Testing

@Suite struct PropertyListTests {
  private let sample: PropertyListDictionary = [
    "bool": .boolean(true), "zero": .integer(0), "one": .integer(1), "real one": .real(1),
    "no": .boolean(false),
    "negative": .integer(.min), "large": .integer(.max), "unsigned": .unsigned(.max), "byte": .integer(255),
    "word": .integer(65_536), "pi": .real(3.14159), "text": .string("plain"), "ünï": .string("naïve 🚢"),
    "empty": .string(""), "date": .date(Date(timeIntervalSinceReferenceDate: 700_000_000)),
    "data": .data(Array(0...255)), "none": .data([]),
    "list": .array([.integer(1), .string("a"), .array([]), .dictionary(["k": .boolean(false)])]),
    "": .string("a key without characters"), "with.dot": .string("literal"),
  ]

  @Test(arguments: [PropertyListFile.Format.binary, .xml])
  func roundTrip(_ format: PropertyListFile.Format) throws {
    let file = PropertyListFile(format: format, root: sample)
    let bytes = try file.encoded()
    #expect(try PropertyListFile(bytes: bytes) == file)
    #expect(try file.encoded() == bytes)
  }

  @Test func foundationReadsWhatWeWriteAndBack() throws {
    var root = sample
    root["single"] = .single(2.5)
    root["fraction"] = .date(Date(timeIntervalSinceReferenceDate: 1.25))
    for index in 0..<400 { root["key\(index)"] = .string("value \(index)") }
    let bytes = try PropertyListFile(root: root).encoded()
    let object = try PropertyListSerialization.propertyList(from: Data(bytes), options: [], format: nil)
    let values = try #require(object as? [String: Any])
    #expect(values.count == root.count)
    #expect(values["bool"] as? Bool == true && values["large"] as? Int64 == .max)
    #expect(values["fraction"] as? Date == Date(timeIntervalSinceReferenceDate: 1.25))
    #expect(values["unsigned"] as? UInt64 == .max && values["ünï"] as? String == "naïve 🚢")
    let again = try PropertyListSerialization.data(fromPropertyList: object, format: .binary, options: 0)
    #expect(try PropertyListFile(bytes: [UInt8](again)).root == root)
  }

  @Test func unknownObjectsArePreserved() throws {
    let archive = NSKeyedArchiver(requiringSecureCoding: false)
    archive.encode("hello" as NSString, forKey: "root")
    archive.finishEncoding()
    let file = try PropertyListFile(bytes: [UInt8](archive.encodedData))
    guard case .dictionary(let top) = file.root["$top"], case .unknown(let reference) = top["root"] else {
      Issue.record("no reference")
      return
    }
    #expect(reference.keyedArchiveReference == 1)
    let copy = try PropertyListFile(bytes: try file.encoded())
    #expect(copy == file)
    let back = try NSKeyedUnarchiver(forReadingFrom: Data(try file.encoded()))
    back.requiresSecureCoding = false
    #expect(back.decodeObject(of: NSString.self, forKey: "root") == "hello")
    let xml = try PropertyListFile(format: .xml, root: file.root).encoded()
    #expect(try PropertyListFile(bytes: xml).root == file.root)
    // Half a surrogate pair, and a number of 128 bits.
    let odd: [UInt8] =
      Array("bplist00".utf8) + [0xD2, 1, 2, 3, 4, 0x51, 0x61, 0x51, 0x62, 0x61, 0xD8, 0x00]
      + [0x14, 1] + [UInt8](repeating: 0, count: 15) + [8, 13, 15, 17, 20]
      + [0, 0, 0, 0, 0, 0, 1, 1] + [0, 0, 0, 0, 0, 0, 0, 5] + [UInt8](repeating: 0, count: 8)
      + [0, 0, 0, 0, 0, 0, 0, 37]
    let strange = try PropertyListFile(bytes: odd)
    #expect(try PropertyListFile(bytes: try strange.encoded()) == strange)
    #expect(throws: DrydockError.self) { try PropertyListFile(format: .xml, root: strange.root).encoded() }
  }

  @Test func typesAreNotMixed() {
    #expect(PropertyListValue.boolean(true) != .integer(1))
    #expect(PropertyListValue.integer(1) != .real(1))
    #expect(!PropertyListValue.integer(1).matches(.real(1)))
    #expect(PropertyListValue.single(1.5).matches(.real(1.5)))
  }

  @Test func xmlRoundsFractions() {
    let fraction = PropertyListValue.date(Date(timeIntervalSinceReferenceDate: 1.25))
    #expect(PropertyListFile.Format.xml.rounds(.array([fraction])))
    #expect(!PropertyListFile.Format.xml.rounds(.date(Date(timeIntervalSinceReferenceDate: 1))))
    #expect(!PropertyListFile.Format.binary.rounds(fraction))
  }

  @Test func fromYAML() throws {
    let text = "{a: true, b: 1, c: 1.0, d: no, e: !data aGk=, f: [x, {g: 2}]}"
    let root = try #require(try YAMLDocument(text: text, file: "t").root)
    #expect(
      try root.propertyListValue()
        == .dictionary([
          "a": .boolean(true), "b": .integer(1), "c": .real(1), "d": .string("no"), "e": .data([104, 105]),
          "f": .array([.string("x"), .dictionary(["g": .integer(2)])]),
        ]))
    for (bad, message) in [
      ("{a: null}", "t:1:5: a setting cannot be null"), ("{1: x}", "t:1:2: a setting's name is text"),
    ] {
      let node = try #require(try YAMLDocument(text: bad, file: "t").root)
      expectError(nil, message) { try node.propertyListValue() }
    }
  }
}
