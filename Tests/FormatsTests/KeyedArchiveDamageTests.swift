import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import Formats

/// Archives that are damaged, or built to harm.
@Suite struct KeyedArchiveDamageTests {
  private typealias Archive = HandmadeKeyedArchive
  private static func uid(_ number: Int) -> PropertyListValue { Archive.uid(number) }

  @Test(
    arguments: [
      ("$archiver", nil, "without `$archiver`"), ("$archiver", .integer(1), "without `$archiver`"),
      ("$archiver", .string("NRKeyedArchiver"), "an archiver other than NSKeyedArchiver"),
      ("$version", nil, "`$version` is not 100000"),
      ("$version", .integer(100_001), "`$version` is not 100000"),
      ("$version", .string("100000"), "`$version` is not 100000"), ("$top", nil, "no `$top`"),
      ("$top", .dictionary([:]), "no `$top`"), ("$top", .array([uid(1)]), "no `$top`"),
      ("$top", .dictionary(["root": uid(7)]), "refers to object 7 of 2"),
      ("$top", .dictionary(["root": uid(-1)]), "refers to object 4294967295"),
      (
        "$top", .dictionary(["root": .unknown(PropertyListValue.Opaque(marker: 0x0F, payload: []))]),
        "of unknown kind"
      ),
      ("$objects", .dictionary([:]), "no list `$objects`"), ("$objects", .array([]), "refers to object 1"),
    ] as [(String, PropertyListValue?, String)])
  func heads(_ key: String, _ value: PropertyListValue?, _ message: String) throws {
    var archive = Archive([.string("a")])
    #expect(try archive.read() == .string("a"))
    archive.root[key] = value
    archive.expectFailure(message)
  }

  @Test(
    arguments: [
      ("NSArray", ["NS.objects": .string("x")], "`NS.objects` that is not a list"),
      ("NSArray", ["NS.objects": .array([uid(99)])], "refers to object 99"),
      ("NSDictionary", ["NS.keys": .array([uid(3)]), "NS.objects": .array([])], "has 1 keys and 0 values"),
      (
        "NSDictionary", ["NS.keys": .array([uid(3), uid(3)]), "NS.objects": .array([uid(3), uid(3)])],
        "two keys that are equal"
      ),
      (
        "NSDictionary", ["NS.keys": .array([uid(0)]), "NS.objects": .array([uid(3)])],
        "a key that is not text"
      ),
      ("NSString", [:], "has no field `NS.string`"), ("NSString", ["NS.string": .integer(1)], "not text"),
      ("NSString", ["NS.bytes": .data([0xFF])], "text that is not valid UTF-8"),
      ("NSData", [:], "no field `NS.data`"),
      ("NSData", ["NS.data": .string("x")], "not data"),
      ("NSDate", ["NS.time": .string("x")], "without a time"),
      ("NSDate", ["NS.time": .real(.nan)], "without a time"),
      ("NSUUID", ["NS.uuidbytes": .data([1])], "16 bytes"),
      ("NSURL", ["NS.relative": .integer(1)], "not text"), ("NSTimeZone", [:], "no field `NS.name`"),
      ("NSDecimalNumber", ["NS.length": .integer(99)], "invalid fields"),
      ("NSDecimalNumber", [:], "invalid fields"),
      ("NSObject", [:], "of an unknown class"),
      ("NSString", ["NS.string": uid(1)], "leads back to object 1"),
      ("NSArray", ["NS.objects": .array([uid(1)])], "leads back to object 1"),
      ("NSArray", ["NS.objects": .array([uid(4)])], "object 4 of the keyed archive is a reference itself"),
      ("NSArray", ["NS.objects": .array([uid(2)])], "object 2 of the keyed archive has no class"),
    ] as [(String, PropertyListDictionary, String)])
  func objects(_ name: String, _ fields: PropertyListDictionary, _ message: String) {
    let archive = Archive.instance(of: name, fields, [.string("a"), Self.uid(3)])
    archive.expectFailure(message)
  }

  @Test(
    arguments: [
      nil, .string("NSArray"), uid(1), uid(0), uid(3), uid(99),
      .dictionary(["$classname": .string("NSArray")]),
    ] as [PropertyListValue?])
  func classesThatAreNone(_ type: PropertyListValue?) {
    // Object 3 is a class whose name is a reference to the next, and so on.
    var fields: PropertyListDictionary = ["NS.objects": .array([])]
    fields["$class"] = type
    let chain = Archive([
      .dictionary(fields), .null, .dictionary(["$classname": Self.uid(4)]),
      .dictionary(["$classname": Self.uid(3)]),
    ])
    chain.expectFailure("object 1 of the keyed archive has no class")
  }

  @Test func namesInMessagesAreNames() {
    let archive = Archive.instance(of: "a\u{1B}[31m b", [:])
    archive.expectFailure("object 1 (`…`) of the keyed archive is of an unknown class")
    let long = Archive.instance(of: String(repeating: "x", count: 101), [:])
    long.expectFailure("object 1 (`…`)")
  }

  @Test func collidingFields() {
    let archive = Archive.instance(of: "A", ["a": .integer(1), "b": .integer(2), "$$c": .integer(3)])
    archive.expectFailure("gets the field `b` twice") { $0.classes = ["A": .init(names: ["a": "b"])] }
    archive.expectFailure("gets the field `$c` twice") { ($0.classes, $0.classKey) = (["A": .init()], "$c") }
  }

  /// Lists of lists, object by object.
  private func nested(_ count: Int, _ elements: (Int) -> [PropertyListValue]) -> Archive {
    var objects: [PropertyListValue] = []
    for number in 1...count {
      objects.append(.dictionary(["$class": Self.uid(count + 1), "NS.objects": .array(elements(number))]))
    }
    return Archive(objects + [Archive.type("NSArray"), .string("end")])
  }

  @Test func depth() throws {
    func chain(_ count: Int) -> Archive { nested(count) { [Self.uid($0 == count ? count + 2 : $0 + 1)] } }
    _ = try chain(90).read()
    chain(200_000).expectFailure("nested more than 100 deep")
    // The deep ones were read before they are put deeper: 60 lists, put into 60.
    let joined = nested(120) { number in
      switch number {
      case 1: [Self.uid(61), Self.uid(2)]
      case 60: [Self.uid(61)]
      case 120: []
      default: [Self.uid(number + 1)]
      }
    }
    joined.expectFailure("nested more than 100 deep")
    // Without an object for each level.
    let plain = Archive([(0..<150).reduce(.integer(1)) { value, _ in .array([value]) }])
    plain.expectFailure("nested more than 100 deep")
  }

  @Test func bombs() {
    // Each list holds the next one twice: 2^60 elements.
    let doubling = nested(60) { $0 == 60 ? [] : [Self.uid($0 + 1), Self.uid($0 + 1)] }
    doubling.expectFailure("more than 64 MiB of values")
    // A million references to lists of a million references each.
    let wide = nested(3) { $0 == 3 ? [Self.uid(5)] : Array(repeating: Self.uid($0 + 1), count: 1_000_000) }
    wide.expectFailure("more than 64 MiB of values")
    // One large text, many times.
    let text = PropertyListValue.string(String(repeating: "x", count: 1 << 20))
    let large = Archive([.array(Array(repeating: Self.uid(2), count: 100)), text])
    large.expectFailure("more than 64 MiB of values")
  }

  @Test(
    arguments: [
      ("0", [], 0, false), ("-12", [12], 0, true), ("12.34", [1234], -2, false), ("0.001", [1], -3, false),
      ("-0.5", [5], -1, true), ("100.1", [10010], -2, false), ("9223372036854775807", nil, 0, false),
      ("1000000000000000000000", [1], 21, false), ("5", [500], -2, false),
    ] as [(String, [UInt16]?, Int, Bool)])
  func decimals(_ text: String, _ digits: [UInt16]?, _ exponent: Int, _ isNegative: Bool) throws {
    for order in [1, 2] as [Int64] {
      let digits = digits ?? [0xFFFF, 0xFFFF, 0xFFFF, 0x7FFF]
      let bytes = digits.flatMap {
        order == 1 ? [UInt8($0 & 255), UInt8($0 >> 8)] : [UInt8($0 >> 8), UInt8($0 & 255)]
      }
      let archive = Archive.instance(
        of: "NSDecimalNumberPlaceholder",
        [
          "NS.length": .integer(Int64(digits.count)), "NS.exponent": .integer(Int64(exponent)),
          "NS.negative": .boolean(isNegative), "NS.compact": .boolean(true),
          "NS.mantissa.bo": .integer(order),
          "NS.mantissa": .data(bytes + [UInt8](repeating: 0, count: 16 - bytes.count)),
        ])
      #expect(try archive.read { $0.decimals = .text } == .string(text))
      let number = try archive.read()
      if let integer = Int64(text) {
        #expect(number == .integer(integer))
      } else {
        #expect(try number == .real(#require(Double(text))))
      }
    }
  }

  @Test func decimalsBeyondReals() throws {
    func decimal(_ length: Int, _ isNegative: Bool) -> Archive {
      .instance(
        of: "NSDecimalNumber",
        [
          "NS.length": .integer(Int64(length)), "NS.exponent": .integer(-9),
          "NS.negative": .boolean(isNegative),
          "NS.mantissa.bo": .integer(1), "NS.mantissa": .data([UInt8](repeating: 0xFF, count: 16)),
        ])
    }
    decimal(8, false).expectFailure("more digits than a real has: use `decimals: text`")
    let text = PropertyListValue.string("340282366920938463463374607431.768211455")
    #expect(try decimal(8, false).read { $0.decimals = .text } == text)
    decimal(0, true).expectFailure("NaN") { $0.decimals = .text }
  }

  @Test func cutsAndFlippedBytesNeverCrash() throws {
    let good = Archive([
      .dictionary(["$class": Self.uid(2), "NS.objects": .array([Self.uid(3), Self.uid(5), Self.uid(6)])]),
      Archive.type("NSArray"),
      .dictionary([
        "$class": Self.uid(4), "NS.keys": .array([Self.uid(5)]), "NS.objects": .array([Self.uid(6)]),
      ]),
      Archive.type("NSDictionary"), .string("key"),
      .dictionary(["$class": Self.uid(7), "NS.time": .real(5)]),
      Archive.type("NSDate"),
    ])
    var random = SeededRandom(seed: 7)
    var survived = 0
    for format in [PropertyListFile.Format.binary, .xml] {
      let bytes = try good.bytes(format)
      for round in 0..<2000 {
        var damaged = bytes
        if round % 4 == 0 { damaged.removeLast(Int.random(in: 1..<bytes.count, using: &random)) }
        for _ in 0..<Int.random(in: 1...3, using: &random) where !damaged.isEmpty {
          damaged[Int.random(in: 0..<damaged.count, using: &random)] = UInt8.random(
            in: 0...255, using: &random)
        }
        do {
          _ = try JSONValue(keyedArchive: KeyedArchiveReader.read(damaged, .init()), dates: .iso8601)
          survived += 1
        } catch let error as DrydockError {
          #expect([.malformed, .unsupported].contains(error.code))
        }
      }
    }
    #expect(survived > 0)
  }

  private func written(_ value: PropertyListValue, _ dates: KeyedArchiveDates = .iso8601) throws -> String {
    JSONDocument(try JSONValue(keyedArchive: value, dates: dates), isIndented: false).text
  }

  @Test(
    arguments: [
      (.real(1), "1.0"), (.single(0.1), "0.1"), (.real(1e300), "1e+300"),
      (.integer(.min), "-9223372036854775808"),
      (.unsigned(.max), "18446744073709551615"), (.boolean(false), "false"), (.null, "null"),
      (.data([255, 0]), "\"/wA=\""), (.string("a\"\\\n\u{1}/é"), #""a\"\\\n\u0001/é""#),
      (.dictionary(["b": .array([]), "a": .dictionary([:])]), #"{"a":{},"b":[]}"#),
    ] as [(PropertyListValue, String)])
  func json(_ value: PropertyListValue, _ text: String) throws {
    #expect(try written(value) == text)
  }

  @Test(
    arguments: [
      (.iso8601, "\"2001-01-01T00:00:01.75Z\""), (.iso8601Seconds, "\"2001-01-01T00:00:01Z\""),
      (.since2001, "1.75"), (.since1970, "978307201.75"), (.milliseconds, "978307201750.0"),
    ] as [(KeyedArchiveDates, String)])
  func dates(_ dates: KeyedArchiveDates, _ text: String) throws {
    let date = PropertyListValue.date(Date(timeIntervalSinceReferenceDate: 1.75))
    #expect(try written(date, dates) == text)
  }

  @Test func valuesThatJSONCannotRepresent() {
    for value in [
      PropertyListValue.real(.infinity), .single(.nan), .date(.init(timeIntervalSinceReferenceDate: 1e300)),
      .unknown(PropertyListValue.Opaque(marker: 0x0F, payload: [])),
    ] {
      #expect(throws: DrydockError.self) { try written(value) }
    }
  }
}
