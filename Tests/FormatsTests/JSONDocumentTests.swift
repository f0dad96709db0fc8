import Foundation
import TestSupport
import Testing

@testable import Formats

@Suite struct JSONDocumentTests {
  private func document(_ text: String) throws -> JSONDocument { try JSONDocument(bytes: Array(text.utf8)) }

  /// Texts that must come back byte by byte: order of keys, digits, escapes, white space of every kind.
  @Test(arguments: [
    "null", " true\n", "\u{FEFF}{}", "[ ]", "{ }", "[1,2,  3]", "{\"b\":1,\"a\":2}",
    "{\n  \"b\" : 1.50,\r\n\t\"a\":[ ]\n}\n",
    "[1e999999999999999999999,-0,-0.0,1E+2,123456789012345678901234567890.10]",
    "[\"\\u00e9é\\/\\ud800\",\"2026-11-21T10:00:00Z\",\"AAEC\"]", "{\"\":{\"\":[[],[{}]]},\"a/b~c\":null}",
  ])
  func whatIsReadIsWritten(_ text: String) throws {
    #expect(try document(text).bytes == Array(text.utf8))
  }

  @Test func partsFollowTheirNeighbours() throws {
    var indented = try document("{\n    \"b\" : 1,\n    \"a\" : []\n}\n")
    guard case .object(var object) = indented.value else { return }
    object.set("new", to: .array(JSONArray([.boolean(true), .null])))
    object.set("b", to: .object(JSONObject([("x", .string(JSONString("\"\n\u{1}")))])))
    indented.value = .object(object)
    let text = """
      {
          "b" : {
              "x" : "\\"\\n\\u0001"
          },
          "a" : [],
          "new" : [
              true,
              null
          ]
      }

      """
    #expect(indented.text == text)

    for (before, after) in [
      ("[1, 2]", "[1, 2, 9]"), ("[1,2]", "[1,2,9]"), ("[1]", "[1,9]"), ("[]", "[9]"),
      ("[\n 1\n]", "[\n 1,\n 9\n]"), ("{\"a\": [], \"b\": 1}", "{\"a\": [9], \"b\": 1}"),
    ] {
      var changed = try document(before)
      switch changed.value {
      case .array(var array):
        array.insert(.number(JSONNumber(9)), at: array.elements.count)
        changed.value = .array(array)
      case .object(var object):
        object.set("a", to: .array(JSONArray([.number(JSONNumber(9))])))
        changed.value = .object(object)
      default: break
      }
      #expect(changed.text == after)
    }
  }

  @Test func removingPartsPreservesTheRest() throws {
    for (before, index, after) in [
      ("[1, 2,3]", 0, "[2,3]"), ("[1, 2,3]", 1, "[1,3]"), ("[1, 2,3]", 2, "[1, 2]"), ("[ 1 ]", 0, "[]"),
      ("[\n  1,\n  2\n]", 1, "[\n  1\n]"),
    ] {
      var changed = try document(before)
      guard case .array(var array) = changed.value else { continue }
      array.remove(at: index)
      changed.value = .array(array)
      #expect(changed.text == after)
    }
  }

  @Test(arguments: [
    ("1", "1.0", true), ("10", "1e1", true), ("0", "-0.00e5", true), ("0.1", "1E-1", true),
    ("1", "-1", false), ("12345678901234567890123", "12345678901234567890124", false),
    ("1e999999999999", "1e999999999999", true), ("\"\\ud800\"", "\"\\uD800\"", true),
    ("\"\\ud800\"", "\"\\ud801\"", false), ("\"\\ud800\"", "\"\\ufffd\"", false),
    ("\"\\ud83d\\ude00\"", "\"😀\"", true), ("\"\\u0041\"", "\"A\"", true), ("\"é\"", "\"e\u{301}\"", false),
    ("{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", true), ("{\"a\":1}", "{\"a\":1,\"b\":null}", false),
    ("[1,2]", "[2,1]", false), ("\"1\"", "1", false), ("null", "false", false),
  ])
  func sameness(_ left: String, _ right: String, _ isSame: Bool) throws {
    #expect(try document(left).value.matches(document(right).value) == isSame)
    #expect(try document(right).value.matches(document(left).value) == isSame)
  }

  @Test(
    arguments: [
      ("1", 1), ("-9223372036854775808", .min), ("9223372036854775807", .max), ("9223372036854775808", nil),
      ("1.0", 1), ("1e3", 1000), ("1.5", nil), ("1e400", nil), ("0e400", 0), ("1e99999999999999999999", nil),
    ] as [(String, Int64?)])
  func wholeNumbers(_ text: String, _ number: Int64?) throws {
    guard case .number(let parsed) = try document(text).value else { return }
    #expect(parsed.integer == number)
  }

  @Test func settingsBecomeJSONAndComeBack() throws {
    let value: PropertyListValue = .dictionary([
      "text": .string("ä\n"), "list": .array([.integer(-1), .unsigned(.max), .real(1.5), .boolean(false)]),
      "single": .single(0.1),
    ])
    let json = try #require(JSONValue(value))
    let text = JSONDocument(json, isIndented: false).text
    #expect(text == "{\"list\":[-1,18446744073709551615,1.5,false],\"single\":0.1,\"text\":\"ä\\n\"}")
    #expect(
      json.propertyListValue
        == .dictionary([
          "text": .string("ä\n"),
          "list": .array([.integer(-1), .unsigned(.max), .real(1.5), .boolean(false)]),
          "single": .real(0.1),
        ]))
    for value in [.array([.date(Date())]), .data([1]), .real(.nan), .single(.infinity)] as [PropertyListValue]
    {
      #expect(JSONValue(value) == nil)
    }
    #expect(try document("[null]").value.propertyListValue == nil)
    #expect(try document("1e400").value.propertyListValue == nil)
  }

  @Test func `32-bit reals read back exactly, as a Float and through a Double`() throws {
    var random = SeededRandom(seed: 17)
    let special: [Float] = [
      0, -0, .leastNonzeroMagnitude, .leastNormalMagnitude, .greatestFiniteMagnitude, 0.1, 16_777_216, 1e10,
    ]
    let values =
      special + (0..<20_000).map { _ in Float(bitPattern: UInt32(truncatingIfNeeded: random.next())) }
    var tried = 0
    for value in values where value.isFinite {
      tried += 1
      let json = try #require(JSONValue(.single(value)))
      let text = JSONDocument(json, isIndented: false).text
      guard case .number(let number) = try document(text).value,
        Float(number.text)?.bitPattern == value.bitPattern,
        Double(number.text).map({ Float($0).bitPattern }) == value.bitPattern
      else {
        Issue.record("\(value.bitPattern) is \(text)")
        continue
      }
    }
    #expect(tried > 19_000)
    // Swift's own reader, which apps use.
    for value in values.prefix(1000) where value.isFinite {
      let text = JSONDocument(try #require(JSONValue(.array([.single(value)]))), isIndented: false).text
      #expect(try JSONDecoder().decode([Float].self, from: Data(text.utf8))[0].bitPattern == value.bitPattern)
    }
    #expect(JSONValue(.single(.nan)) == nil && JSONValue(.single(.infinity)) == nil)
  }
}
