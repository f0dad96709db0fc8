import DrydockErrors
import Foundation
import Testing

@testable import Formats

/// Text that Unicode takes for equal, and that is spelled in two ways, is two texts.
@Suite struct ExactTextTests {
  private static let composed = "caf\u{E9}", decomposed = "cafe\u{301}"

  @Test func valuesAndKeysCompareByScalars() throws {
    let (a, b) = (Self.composed, Self.decomposed)
    #expect(a == b && !a.isExactly(b))
    #expect(PropertyListValue.string(a) != .string(b) && !PropertyListValue.string(a).matches(.string(b)))
    let both = PropertyListDictionary([(a, .integer(1)), (b, .integer(2))])
    #expect(both.count == 2 && both[a] == 1 && both[b] == 2)
    #expect(PropertyListValue.dictionary([a: 1]) != .dictionary([b: 1]))
    #expect(Set([PropertyListValue.string(a), .string(b)]).count == 2)
    #expect(both.differingKeys(from: [a: 1]).map { Array($0.text.utf8) } == [Array(b.utf8)])
    #expect(try JSONPointer("/" + a) != JSONPointer("/" + b))
    let document = try JSONDocument(bytes: Array("{\"\(a)\": 1, \"\(b)\": 2}".utf8)).value
    #expect(document.propertyListValue == .dictionary(both))
    let other = try JSONDocument(bytes: Array("{\"\(a)\": 2, \"\(b)\": 1}".utf8)).value
    #expect(!document.matches(other))
  }

  @Test(arguments: [PropertyListFile.Format.binary, .xml])
  func bothSpellingsSurviveAChange(_ format: PropertyListFile.Format) throws {
    let both = PropertyListDictionary([(Self.composed, .string("one")), (Self.decomposed, .string("two"))])
    var file = try PropertyListFile(bytes: PropertyListFile(format: format, root: both).encoded())
    #expect(file.root == both)
    file.root["more"] = true
    let again = try PropertyListFile(bytes: file.encoded())
    #expect(
      again.root.count == 3 && again.root[Self.composed] == "one" && again.root[Self.decomposed] == "two")
    #expect(try again.encoded() == file.encoded())
  }

  @Test func negativeZeroStays() throws {
    let file = PropertyListFile(format: .xml, root: ["a": .real(-0.0), "b": .real(0), "c": .real(.nan)])
    let text = String(decoding: try file.encoded(), as: UTF8.self)
    #expect(text.contains("<real>-0.0</real>") && text.contains("<real>0.0</real>"))
    #expect(try PropertyListFile(bytes: Array(text.utf8)) == file)
    #expect(PropertyListValue.real(-0.0) != .real(0))
  }

  @Test func `XML is written as Foundation writes it, and read as Foundation reads it`() throws {
    let values: [String: Any] = [
      "true": true, "integer": -5, "large": UInt64.max, "real": 0.1, "far": 1e300,
      "infinite": Double.infinity, "date": Date(timeIntervalSinceReferenceDate: 700_000_000), "none": Data(),
      "text": "<a> & \"b\" 'c'\n", "data": Data(repeating: 9, count: 200), "empty": "", "<&>": [] as [Any],
      "dictionary": [:] as [String: Any],
      "deep": [[[[[[[[[["a", Data(repeating: 7, count: 40)] as [Any]]]]]]]]]],
    ]
    let bytes = [UInt8](
      try PropertyListSerialization.data(fromPropertyList: values, format: .xml, options: 0))
    let file = try PropertyListFile(bytes: bytes)
    #expect(file.root.count == values.count)
    #expect(String(decoding: try file.encoded(), as: UTF8.self) == String(decoding: bytes, as: UTF8.self))
    let object = try PropertyListSerialization.propertyList(from: Data(file.encoded()), format: nil)
    #expect((object as? NSDictionary) == values as NSDictionary)
  }

  @Test(arguments: [
    ("<integer>0x1F</integer>", PropertyListValue.integer(31)), ("<integer>+5</integer>", .integer(5)),
    ("<integer>-9223372036854775808</integer>", .integer(.min)), ("<true></true>", .boolean(true)),
    ("<!-- a --><string>a<![CDATA[<b>]]>c&#x41;&#66;&quot;</string>", .string("a<b>cAB\"")),
    ("<data>AQ\n\tID</data>", .data([1, 2, 3])), ("<string/>", .string("")),
    ("<dict foo='1'/>", .dictionary([:])), ("<dict foo=1/>", .dictionary([:])),
    ("<string>a<!-- b -->c</string>", .string("ac")), ("<string>a<?b c?></string>", .string("a")),
    ("<real>+infinity</real>", .real(.infinity)), ("<array> <false/>\n</array>", .array([.boolean(false)])),
  ])
  func read(_ text: String, _ value: PropertyListValue) throws {
    let start = "<?xml version=\"1.0\"?>\n<!DOCTYPE plist PUBLIC \"-//A//B\" \"http://x>y\">\n"
    for text in [text, "<plist version=\"1.0\">\(text)</plist>", start + "<plist>" + text + "</plist>\n"] {
      #expect(try PropertyListDocument(bytes: Array(text.utf8)).value == value)
      let wide = Array((text.data(using: .utf16) ?? Data()))
      #expect(try PropertyListDocument(bytes: wide).value == value)
    }
  }

  @Test(arguments: [
    (
      "<dict><key>s3cret</key><true/><key>s3cret</key><false/></dict>", "line 1: a dictionary has a key twice"
    ),
    ("<array>\n\n<integer>99999999999999999999</integer></array>", "line 3: not a valid integer"),
    ("<real>1.5x</real>", "not a valid real"), ("<date>2001-01-01</date>", "not a valid date"),
    ("<data>A!</data>", "data that is not base64"), ("<array>s3cret</array>", "text where an element"),
    ("<plist></plist>", "it has no value"), ("<plist><true/><false/></plist>", "does not end"),
    ("<array><string>a</array>", "does not end"), ("<s3cret/>", "an unknown element"),
    ("<dict><key>a</key><true<key>s3cret</key></dict>", "an unknown element"),
    ("<string\"s3cret/>", "an unknown element"), ("<true=\"/>", "an unknown element"),
    ("<true<", "an unknown element"), ("<true", "unexpected end"),
    ("<string>&s3cret;</string>", "an unknown entity"), ("<dict><key>s3cret</key></dict>", "without a value"),
    (String(repeating: "<array>", count: 300), "nested too deeply"), ("<string>s3cret", "unexpected end"),
    ("<?xml version=\"1.0\" encoding=\"shift_jis\"?><true/>", "encoding"),
    ("<!DOCTYPE plist [<!ENTITY a \"b\">]><string>&a;</string>", "an unknown entity"),
  ])
  func refused(_ text: String, _ message: String) {
    #expect {
      try PropertyListDocument(bytes: Array(text.utf8))
    } throws: {
      let words = String(describing: $0)
      return ($0 as? DrydockError)?.code == .malformed && words.contains(message)
        && !words.contains("s3cret")
    }
  }
}
