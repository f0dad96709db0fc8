import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import Formats

@Suite struct OpenStepTests {
  private func read(_ text: String) throws -> PropertyListFile {
    try PropertyListFile(bytes: Array(text.utf8))
  }

  @Test(
    arguments: [
      ("{}", [:]), ("{ a = b; }", ["a": "b"]), ("// c\n{/* x */a=b /**/;}// end", ["a": "b"]),
      ("{'a b' = \"x\\\"y\"; \"c\" = ();}", ["a b": "x\"y", "c": []]),
      ("{a = <00 0fF f>;}", ["a": .data([0, 0x0F, 0xFF])]),
      ("{a = (1, 2.5, x-y,);}", ["a": ["1", "2.5", "x-y"]]),
      (
        "{a = \"\\a\\b\\f\\n\\r\\t\\v\\\\\\'\\101\\q\\\nz\\é\";}",
        ["a": "\u{7}\u{8}\u{C}\n\r\t\u{B}\\'Aq\nzé"]
      ),
      ("{a = \"\\Ud83d\\UDEA2\\u00e9\";}", ["a": "\u{1F6A2}u00e9"]), ("a = b;\nc;", ["a": "b", "c": "c"]),
      (
        "{a = <*I-5>; b = <*BY>; c = <*R1.5>; d = <*I18446744073709551615>; e = <*I\"7\">; f = <[AAE=]>;}",
        ["a": -5, "b": true, "c": 1.5, "d": .unsigned(.max), "e": 7, "f": .data([0, 1])]
      ),
      ("{d = <*D2026-11-20 12:15:00 +0200>;}", ["d": .date(Date(timeIntervalSince1970: 1_795_169_700))]),
    ] as [(String, PropertyListDictionary)])
  func accepted(_ text: String, _ expected: PropertyListDictionary) throws {
    let file = try read(text)
    #expect(file.root == expected && file.format == .openStep)
    #expect(try PropertyListFile(bytes: file.encoded()).root == expected)
  }

  @Test(arguments: [
    ("{ a = b; a = c; }", "a key twice"), ("{ a = b }", "`;` is missing"), ("{ a = b;", "unexpected end"),
    ("{ a = (b;); }", "`)` is missing"), ("{ a = <0>; }", "not hexadecimal"),
    ("{ a = <0g>; }", "not hexadecimal"),
    ("{ a = <[A]>; }", "not base64"), ("{ a = <*X1>; }", "invalid typed value"),
    ("{ a = <*>; }", "invalid typed value"),
    ("{ a = <*I99999999999999999999>; }", "invalid typed value"),
    ("{ a = <*D2026-11-20>; }", "invalid typed value"),
    ("{ a = é; }", "must be in quotes"), ("{ a = \"\\U12\"; }", "four hexadecimal"),
    ("{ a = \"\\UD83D\"; }", "surrogate"), ("{ a = \"\\351\"; }", "octal"),
    ("{a=b;} {", "more than one value"),
    ("a = b; }", "more than one value"), ("\n\n{ a = \"x", "line 3: unexpected end"),
    ("/* a", "unexpected end"),
    ("hello", "neither binary, XML nor OpenStep text"), ("{", "unexpected end"), ("(a)", "of type array"),
  ])
  func refused(_ text: String, _ message: String) {
    expectError(.malformed, message) { try read(text) }
  }

  // Not arguments: the test runner writes each argument into many events.
  @Test func nestedTooDeeply() {
    for opening in ["(", "{a="] { refused(String(repeating: opening, count: 100_000), "nested too deeply") }
  }

  @Test func whatWouldBeNoPropertyListIsWrittenAsOne() throws {
    for (written, value) in [("\"Done\"", PropertyListValue.string("Done")), ("a = b;", .dictionary([:]))] {
      let form = try #require(try OpenStepReader.read(Array(written.utf8))).form
      #expect(try OpenStepReader.read(OpenStepWriter.write(value, form))?.value == value)
    }
  }

  @Test func formIsKept() throws {
    let file = try read("{ b = \"é\"; \"a c\" = (x, {k = <01>;}); empty = {}; none = (); }")
    #expect(
      String(decoding: try file.encoded(), as: UTF8.self)
        == """
        {
            "a c" = (
                x,
                {
                    k = <01>;
                }
            );
            b = "é";
            empty = {
            };
            none = ();
        }

        """)
    // A file of ASCII characters stays one.
    var ascii = try read("{a = b;}")
    ascii.root["b"] = "é\u{1F6A2}\u{7}"
    #expect(
      String(decoding: try ascii.encoded(), as: UTF8.self)
        == "{\n    a = b;\n    b = \"\\U00e9\\Ud83d\\Udea2\\U0007\";\n}\n")
  }

  @Test func valuesOfOtherTypesAreRefused() throws {
    for value: PropertyListValue in [1, .unsigned(.max), 1.5, .single(1), true, .date(Date()), [["a": 1]]] {
      var file = try read("{a = b;}")
      file.root["c"] = value
      expectError(.unsupported, "OpenStep") { try file.encoded() }
      // GNUstep's form has them.
      if case .array = value { continue }
      var typed = try read("{a = <*I5>;}")
      typed.root["c"] = value
      #expect(try PropertyListFile(bytes: typed.encoded()).root.count == 2)
    }
    var typed = try read("{a = <*I5>;}")
    typed.root["c"] = .real(.nan)
    #expect(throws: DrydockError.self) { try typed.encoded() }
  }

  @Test func utf16ThatIsDamaged() {
    let xml = "<?xml version=\"1.0\" encoding=\"UTF-16\"?><plist><dict/></plist>"
    let good = xml.utf16.flatMap { [UInt8($0 & 255), UInt8($0 >> 8)] }
    #expect(throws: Never.self) { try PropertyListFile(bytes: good) }
    for bad in [
      good + [0], [0xFF, 0xFE], [0xFE, 0xFF] + good, Array(good.dropFirst()), good + [0, 0xD8],
      good + [0, 0],
    ] {
      #expect(throws: DrydockError.self) { try PropertyListFile(bytes: bad) }
    }
  }
}
