import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import Formats

/// What Foundation's own archiver writes, binary and XML.
@Suite(.serialized) struct KeyedArchiveTests {
  static let formats: [PropertyListSerialization.PropertyListFormat] = [.binary, .xml]

  private func archive(
    _ format: PropertyListSerialization.PropertyListFormat, _ body: (NSKeyedArchiver) -> Void
  ) -> [UInt8] {
    let archiver = NSKeyedArchiver(requiringSecureCoding: false)
    archiver.outputFormat = format
    body(archiver)
    archiver.finishEncoding()
    return [UInt8](archiver.encodedData)
  }

  private func root(
    _ object: Any, _ format: PropertyListSerialization.PropertyListFormat = .binary,
    _ change: (inout KeyedArchiveOptions) -> Void = { _ in }
  ) throws -> PropertyListValue {
    var options = KeyedArchiveOptions()
    change(&options)
    let bytes = archive(format) { $0.encode(object, forKey: NSKeyedArchiveRootObjectKey) }
    return try KeyedArchiveReader.read(bytes, options)
  }

  @Test(arguments: formats) func foundationsTypes(
    _ format: PropertyListSerialization.PropertyListFormat
  ) throws {
    let id = try #require(UUID(uuidString: "0F0E0D0C-0B0A-0908-0706-050403020100"))
    let base = URL(string: "https://example.com/a/")
    let object: NSDictionary = [
      "text": "héllo 👩‍🚀", "empty": "", "true": true, "int": -5, "big": UInt64.max, "real": 0.1, "whole": 3.0,
      "date": Date(timeIntervalSinceReferenceDate: 700_000_000.25), "data": Data([0, 255, 1]),
      "uuid": id as NSUUID, "url": NSURL(string: "https://example.com/x?y=1") as Any,
      "relative": NSURL(string: "b/c", relativeTo: base) as Any, "null": NSNull(),
      "list": ["a", 4, ["nested": [4, 2]]] as NSArray, "set": NSSet(array: ["only"]),
      "ordered": NSOrderedSet(array: ["z", "a"]), "mutable": NSMutableArray(array: [NSMutableString("m")]),
    ]
    guard case .dictionary(let values) = try root(object, format) else { throw Unexpected() }
    let expected: PropertyListDictionary = [
      "text": .string("héllo 👩‍🚀"), "empty": .string(""), "true": .boolean(true), "int": .integer(-5),
      "real": .real(0.1), "whole": .real(3),
      "date": .date(Date(timeIntervalSinceReferenceDate: 700_000_000.25)),
      "data": .data([0, 255, 1]), "uuid": .string("0F0E0D0C-0B0A-0908-0706-050403020100"),
      "url": .string("https://example.com/x?y=1"), "relative": .string("https://example.com/a/b/c"),
      "list": .array([
        .string("a"), .integer(4), .dictionary(["nested": .array([.integer(4), .integer(2)])]),
      ]),
      "set": .array([.string("only")]), "ordered": .array([.string("z"), .string("a")]),
      "mutable": .array([.string("m")]),
    ]
    for (key, value) in expected { #expect(values[key] == value, "\(key)") }
    #expect(values["null"]?.isNull == true)
    #expect(values["big"] != nil)
    #expect(values.count == expected.count + 2)
  }

  @Test(arguments: formats) func theAppsOwnClasses(
    _ format: PropertyListSerialization.PropertyListFormat
  ) throws {
    let tag = ArchivedNote("tag", count: 1)
    let note = ArchivedNote("n", count: 2)
    (note.friends, note.date) = ([tag, tag], Date(timeIntervalSinceReferenceDate: 5))
    expectError(nil, "(`\(noteClass)`) of the keyed archive is of an unknown class") {
      try root(note, format)
    }
    let value = try root(note, format) {
      $0.classes = [noteClass: .init(names: ["noteTitle": "title"], dropped: ["owner"])]
      $0.classKey = "type"
    }
    let common: PropertyListDictionary = ["type": .string(noteClass), "isDone": .boolean(true)]
    let expectedTag = PropertyListValue.dictionary(
      common.merging(
        ["title": .string("tag"), "count": .integer(1), "friends": .array([]), "date": .null]) { $1 })
    let expected = PropertyListValue.dictionary(
      common.merging(
        [
          "title": .string("n"), "count": .integer(2), "friends": .array([expectedTag, expectedTag]),
          "date": .date(Date(timeIntervalSinceReferenceDate: 5)),
        ]) { $1 })
    #expect(value == expected)
  }

  @Test func cycles() throws {
    let note = ArchivedNote("n", count: 1)
    let other = ArchivedNote("o", count: 2)
    (note.friends, other.owner) = ([other], note)
    let drop = "`classes: {\(noteClass): {drop: [owner]}}`"
    expectError(nil, "leads back to object 1, which contains it", drop) {
      try root(note) { $0.classes = [noteClass: .init()] }
    }
    note.friends = []
    // Left out, it is no circle any more.
    other.friends = [note]
    _ = try root(other) { $0.classes = [noteClass: .init(dropped: ["owner"])] }
  }

  @Test func objectsByName() throws {
    let bytes = archive(.binary) {
      $0.encode("a", forKey: "name")
      $0.encode(7, forKey: "count")
    }
    let expected: PropertyListValue = .dictionary(["name": .string("a"), "count": .integer(7)])
    #expect(try KeyedArchiveReader.read(bytes, .init()) == expected)
  }

  @Test func keysThatAreNotText() throws {
    let numbers: NSDictionary = [NSNumber(value: 7): "seven"]
    expectError(nil, "has a key that is not text (integer): use") { try root(numbers) }
    #expect(try root(numbers) { $0.keys = .text } == .dictionary(["7": .string("seven")]))
    #expect(try root(numbers) { $0.keys = .pairs } == .array([.integer(7), .string("seven")]))
    // A plain one stays a dictionary.
    #expect(try root(["a": 1] as NSDictionary) { $0.keys = .pairs } == .dictionary(["a": .integer(1)]))
    let lists: NSDictionary = [["a"] as NSArray: "x"]
    expectError(nil, "cannot be text (array)") { try root(lists) { $0.keys = .text } }
    expectError(nil, "equal as text") { try root([1: "x", "1": "y"] as NSDictionary) { $0.keys = .text } }
    // UUIDs are text already.
    let ids: NSDictionary = [NSUUID(): "x"]
    guard case .dictionary = try root(ids) else { throw Unexpected() }
  }

  /// Random property lists through Foundation's archiver come back as they were.
  @Test func randomObjectsRoundTrip() throws {
    var random = RandomValues()
    for round in 0..<300 {
      let value = random.value(depth: 4)
      let format = Self.formats[round % 2]
      #expect(try root(value.object, format) == value, "round \(round)")
      let json = JSONDocument(try JSONValue(keyedArchive: value, dates: .iso8601), isIndented: false).bytes
      // What is written is what Foundation reads.
      _ = try JSONSerialization.jsonObject(with: Data(json), options: .fragmentsAllowed)
    }
  }
}

private let noteClass = "FormatsTests.ArchivedNote"

/// A class as apps have them: fields by name, one that leads back.
final class ArchivedNote: NSObject, NSCoding {
  let title: String
  let count: Int
  var friends: [ArchivedNote] = []
  var owner: ArchivedNote?
  var date: Date?

  init(_ title: String, count: Int) { (self.title, self.count) = (title, count) }
  init?(coder: NSCoder) { nil }

  func encode(with coder: NSCoder) {
    coder.encode(title as NSString, forKey: "noteTitle")
    coder.encode(count, forKey: "count")
    coder.encode(true, forKey: "isDone")
    coder.encode(friends as NSArray, forKey: "friends")
    coder.encode(date as NSDate?, forKey: "date")
    coder.encode(owner, forKey: "owner")
  }
}

private struct Unexpected: Error {}

/// Random values that both an archive and a property list hold.
private struct RandomValues {
  var random = SeededRandom(seed: 20_261_121)

  mutating func number(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

  mutating func text() -> String {
    let letters = Array("aZ0 \"\\/\n\u{1}é\u{2028}👍$")
    return String((0..<number(8)).map { _ in letters[number(letters.count)] })
  }

  mutating func value(depth: Int) -> PropertyListValue {
    switch number(depth > 0 ? 9 : 6) {
    case 0: return .string(text())
    case 1: return .boolean(number(2) == 0)
    // Foundation on Linux takes 1 and true for the same object, and archives the first of them.
    case 2: return .integer(Int64(number(1 << 30)) + 2)
    case 3: return .real(Double(number(1 << 20)) + 0.5)
    case 4: return .date(Date(timeIntervalSinceReferenceDate: Double(number(1 << 30))))
    case 5: return .data((0..<number(20)).map { UInt8($0) })
    case 6: return .array((0..<number(5)).map { _ in value(depth: depth - 1) })
    default:
      var values: PropertyListDictionary = [:]
      for _ in 0..<number(5) { values[text()] = value(depth: depth - 1) }
      return .dictionary(values)
    }
  }
}

extension PropertyListValue {
  /// As Foundation has it.
  fileprivate var object: NSObject {
    switch self {
    case .string(let text): text as NSString
    case .boolean(let bool): NSNumber(value: bool)
    case .integer(let number): NSNumber(value: number)
    case .real(let real): NSNumber(value: real)
    case .date(let date): date as NSDate
    case .data(let bytes): Data(bytes) as NSData
    case .array(let values): values.map(\.object) as NSArray
    case .dictionary(let values): values.compactMapValues { $0.object } as NSDictionary
    case .unsigned, .single, .int, .long, .set, .unknown: NSNull()
    }
  }
}
