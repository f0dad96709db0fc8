import DrydockErrors
import Formats
import TestSupport
import Testing

@Suite struct JSONDamageTests {
  @Test(arguments: [
    ("", "line 1, column 1: unexpected end of input"), ("{", "unexpected end of input"),
    ("[1,", "unexpected end of input"), ("[1,]", "line 1, column 4: a value is expected"),
    ("{\"a\":1,}", "column 8: a key in quotes"), ("{a:1}", "a key in quotes"),
    ("{\"a\" 1}", "a colon is expected"), ("[1 2]", "a comma or the closing"),
    ("[1}", "a comma or the closing"), ("nul", "a value is expected"), ("'a'", "a value is expected"),
    ("01", "not a valid JSON number"), ("-", "not a valid JSON number"),
    ("1.", "digits are expected after the decimal point"), ("1e", "digits are expected in the exponent"),
    ("+1", "a value is expected"), (".5", "a value is expected"), ("NaN", "a value is expected"),
    ("1 2", "data follows the value"), ("{} x", "data follows the value"), ("\"a", "the string has no end"),
    ("\"a\n\"", "an unescaped control character"), ("\"\\x\"", "unknown escape"),
    ("\"\\u12\"", "four hexadecimal digits"), ("\"\\u+123\"", "four hexadecimal digits"),
    ("\"\\", "unknown escape"), ("// a\n1", "a value is expected"),
    ("{\n \"a\": 1,\n  \"\\u0061\": 2}", "line 3, column 3: duplicate key"),
    ("[\"äö\", x]", "line 1, column 8"),
  ])
  func refused(_ text: String, _ message: String) {
    expectError(.malformed, message) { try JSONDocument(bytes: Array(text.utf8)) }
  }

  @Test func nothingOfTheTextIsInTheMessage() {
    for text in ["{\"hunter2\":1,\"hunter2\":2}", "[hunter2]", "\"hunter2\n\"", "{\"a\":hunter2}"] {
      #expect { try JSONDocument(bytes: Array(text.utf8)) } throws: { !"\($0)".contains("hunter2") }
    }
  }

  @Test func notUTF8() {
    for bytes in [[0x22, 0xFF, 0x22], [0x22, 0xC0, 0xAF, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22]] as [[UInt8]] {
      expectError(nil, "line 1, column 2: this byte is not UTF-8") { try JSONDocument(bytes: bytes) }
    }
    // UTF-16, with and without a mark.
    #expect(throws: DrydockError.self) { try JSONDocument(bytes: [0xFF, 0xFE, 0x7B, 0, 0x7D, 0]) }
    #expect(throws: DrydockError.self) { try JSONDocument(bytes: [0x7B, 0, 0x7D, 0]) }
  }

  @Test func depth() throws {
    func nested(_ depth: Int) -> [UInt8] {
      Array((String(repeating: "[", count: depth) + String(repeating: "]", count: depth)).utf8)
    }
    #expect(try JSONDocument(bytes: nested(201)).bytes == nested(201))
    for depth in [202, 100_000] {
      expectError(nil, "deeper than 200") { try JSONDocument(bytes: nested(depth)) }
    }
    #expect(throws: DrydockError.self) {
      try JSONDocument(bytes: [UInt8](repeating: 0x5B, count: 100_000))
    }
    let objects = String(repeating: "{\"a\":", count: 50_000)
    #expect(throws: DrydockError.self) { try JSONDocument(bytes: Array(objects.utf8)) }
  }

  @Test func cutsAndFlippedBytesNeverCrash() throws {
    let text = "{\"a\": [1.5e3, true, null, \"\\u00e9\\n\"],\n \"b\": {\"c\": -0, \"d\": [{}, []]}} "
    let bytes = Array(text.utf8)
    for cut in 0..<bytes.count - 1 {
      #expect(throws: DrydockError.self) { try JSONDocument(bytes: Array(bytes.prefix(cut))) }
    }
    var numbers = SeededRandom(seed: 20_261_121)
    func random(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &numbers) }
    var survived = 0
    for _ in 0..<3000 {
      var damaged = bytes
      damaged[random(damaged.count)] = UInt8(random(256))
      guard let document = try? JSONDocument(bytes: damaged) else { continue }
      survived += 1
      #expect(document.bytes == damaged)
      _ = document.value.propertyListValue
    }
    #expect(survived > 100)
  }
}

@Suite struct JSONPointerTests {
  @Test(
    arguments: [
      ("", []), ("/", [""]), ("/a/0/b", ["a", "0", "b"]), ("/a~1b/c~0d", ["a/b", "c~d"]), ("/~01", ["~1"]),
      ("//", ["", ""]), ("/ /\"", [" ", "\""]), ("/-", ["-"]), ("/é/\u{301}x", ["é", "\u{301}x"]),
      ("/~0\u{301}", ["~\u{301}"]),
    ] as [(String, [String])])
  func tokens(_ text: String, _ tokens: [String]) throws {
    let pointer = try JSONPointer(text)
    #expect(pointer.tokens.map { Array($0.utf8) } == tokens.map { Array($0.utf8) })
    #expect(Array(pointer.description.utf8) == Array(text.utf8))
  }

  @Test(arguments: ["a", "a/b", "#/a", "/~", "/~2", "/a~", "/~~0"])
  func refused(_ text: String) {
    #expect(throws: DrydockError.self) { try JSONPointer(text) }
  }

  @Test(
    arguments: [
      ("0", 0), ("12", 12), ("01", nil), ("-", nil), ("-1", nil), ("+1", nil), ("1.0", nil), ("", nil),
      ("١", nil), ("99999999999999999999", nil),
    ] as [(String, Int?)])
  func indexes(_ token: String, _ index: Int?) { #expect(JSONPointer.index(token) == index) }
}
