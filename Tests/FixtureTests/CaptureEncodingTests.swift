import Foundation
import TestSupport
import Testing

/// How a file may write a text. Written apart from the program's own list on purpose.
private struct Spelling: Sendable, CustomTestStringConvertible {
  let testDescription: String
  /// A text as it stands inside of something longer in this spelling.
  let spelled: @Sendable (String) -> String
  /// What may be between any two characters, and is removed before the search.
  var fillers: [String] = []
  /// The parts of a text of which none may stay, in the spelling.
  var parts: @Sendable (String) -> [String]

  init(
    _ name: String, fillers: [String] = [], parts: (@Sendable (String) -> [String])? = nil,
    _ spelled: @escaping @Sendable (String) -> String
  ) {
    (testDescription, self.fillers, self.spelled) = (name, fillers, spelled)
    self.parts = parts ?? { [spelled($0)] }
  }

  private static func each(_ format: String) -> @Sendable (String) -> String {
    { $0.utf8.map { String(format: format, $0) }.joined() }
  }

  private static func escaped(_ characters: String, _ escape: @escaping @Sendable (Character) -> String)
    -> @Sendable (String) -> String
  {
    { $0.map { characters.contains($0) ? escape($0) : String($0) }.joined() }
  }

  private static func base64(_ text: String, in encoding: String.Encoding = .utf8) -> String {
    "before it \(text) after it".data(using: encoding)?.base64EncodedString() ?? ""
  }

  /// Hexadecimal with something between the bytes.
  private static func separated(_ name: String, _ format: String, by separator: String) -> Spelling {
    Spelling(name, fillers: [separator], parts: { [each(format)($0)] }) {
      $0.utf8.map { String(format: format, $0) }.joined(separator: separator)
    }
  }

  /// The digits of which all bits belong to the text, for each place in a group.
  private static func digits(_ text: String) -> [String] { encodedDigits(text, in: .utf8) }

  private static func encodedDigits(_ text: String, in encoding: String.Encoding) -> [String] {
    let bytes = text.data(using: encoding).map { Array($0) } ?? []
    return (0..<3).map { offset in
      let all = Data([UInt8](repeating: 0, count: offset) + bytes).base64EncodedString()
      return String(all.prefix((offset + bytes.count) * 8 / 6).dropFirst((offset * 8 + 5) / 6))
    }
  }

  private static func lines(_ text: String, of width: Int, _ end: String) -> String {
    var (rest, lines) = (text[...], [String]())
    while !rest.isEmpty {
      lines.append(String(rest.prefix(width)))
      rest = rest.dropFirst(width)
    }
    return lines.joined(separator: end)
  }

  static let all: [Spelling] = [
    Spelling("as it is") { $0 },
    Spelling("capitals", parts: { [$0, $0.uppercased()] }) { $0.uppercased() },
    Spelling("Base64", parts: digits) { base64($0) },
    Spelling(
      "Base64 for addresses",
      parts: { digits($0).map { $0.replacing("+", with: "-").replacing("/", with: "_") } },
      { base64($0).replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "") }),
    Spelling("Base64 in lines of mail", fillers: ["\r\n"], parts: digits) {
      lines(base64($0), of: 19, "\r\n")
    },
    Spelling("Base64 in PEM", fillers: ["\n"], parts: digits) { lines(base64($0), of: 16, "\n") },
    Spelling("Base64 in XML", fillers: ["\n\t\t"], parts: digits) { lines(base64($0), of: 17, "\n\t\t") },
    Spelling("Base64 in lines in JSON", fillers: ["\\n"], parts: digits) { lines(base64($0), of: 18, "\\n") },
    Spelling("Base64, percent-encoded", parts: digits) {
      base64($0).replacing("+", with: "%2B").replacing("/", with: "%2f").replacing("=", with: "%3D")
    },
    Spelling("Base64 in JSON for HTML", parts: digits) {
      base64($0).replacing("+", with: "\\u002b").replacing("/", with: "\\/").replacing("=", with: "\\u003d")
    },
    Spelling("hexadecimal", each("%02x")),
    Spelling("HEXADECIMAL", each("%02X")),
    Spelling("hexadecimal in lines", fillers: ["\n"], parts: { [each("%02x")($0)] }) {
      lines(each("%02x")($0), of: 15, "\n")
    },
    separated("hexadecimal with colons", "%02x", by: ":"),
    separated("HEXADECIMAL with spaces", "%02X", by: " "),
    separated("hexadecimal with hyphens", "%02x", by: "-"),
    separated("hexadecimal in C", "%02x", by: ", 0x"),
    separated("HEXADECIMAL in C, in lines", "%02X", by: ",\n  0X"),
    Spelling("Base64 of UTF-16", parts: { encodedDigits($0, in: .utf16LittleEndian) }) {
      base64($0, in: .utf16LittleEndian)
    },
    Spelling("Base64 of UTF-16, the other way", parts: { encodedDigits($0, in: .utf16BigEndian) }) {
      base64($0, in: .utf16BigEndian)
    },
    Spelling("JSON", escaped("\"\\/") { "\\\($0)" }),
    Spelling("JSON for HTML", escaped("=<>&'\"+") { String(format: "\\u%04x", $0.utf16.first ?? 0) }),
    Spelling("JavaScript", escaped("'\"\\") { "\\\($0)" }),
    Spelling("\\u of each") { $0.utf16.map { String(format: "\\u%04X", $0) }.joined() },
    Spelling("\\U of each") { $0.unicodeScalars.map { String(format: "\\U%08X", $0.value) }.joined() },
    Spelling("\\x of each", each("\\x%02x")),
    Spelling("octal", each("\\%03o")),
    Spelling("JSON in JSON") {
      $0.map {
        "\"\\".contains($0)
          ? "\\\\\\\($0)" : "=+".contains($0) ? String(format: "\\\\u%04x", $0.utf16.first ?? 0) : String($0)
      }
      .joined()
    },
    Spelling("decimal references") { $0.unicodeScalars.map { "&#\($0.value);" }.joined() },
    Spelling("hexadecimal references") {
      $0.unicodeScalars.map { "&#x\(String($0.value, radix: 16));" }.joined()
    },
    Spelling("references of surrogates") { $0.utf16.map { "&#\($0);" }.joined() },
    Spelling(
      "XML", escaped("&<>\"'") { ["&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;"][$0] ?? "&apos;" }),
    Spelling("percent", each("%%%02X")),
    Spelling("percent in small letters", each("%%%02x")),
    Spelling("percent where necessary") {
      $0.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? $0
    },
    Spelling("percent twice") {
      ($0.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? $0).replacing("%", with: "%25")
    },
    Spelling("form") {
      ($0.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? $0).replacing("%20", with: "+")
    },
    Spelling("quoted-printable", each("=%02X")),
    Spelling("quoted-printable in lines", fillers: ["=\r\n"]) {
      lines(escaped("=") { _ in "=3D" }($0), of: 11, "=\r\n")
    },
    Spelling("CSV", escaped("\"") { _ in "\"\"" }),
    Spelling("SQL", escaped("'") { _ in "''" }),
  ]
}

@Suite("A known secret is found in any spelling") struct CaptureEncodingTests {
  private let sandbox: CaptureSandbox
  init() throws { sandbox = try CaptureSandbox() }

  private static let characters = Array(
    "abcdefghijkmnopqrstuvwxyzABCDEFGHKLMNPQRSTUVWXYZ23456789+/=&<>'\"\\ -_.é😀")

  /// Letters, digits and signs; no signs that would remain as six in a row, since signs stay.
  private static func secret(_ random: inout SeededRandom) -> String {
    let first = (0..<3).map { _ in characters[Int.random(in: 0..<50, using: &random)] }
    let rest = (0..<Int.random(in: 9...30, using: &random)).map { index in
      characters[Int.random(in: 0..<(index.isMultiple(of: 2) ? 50 : characters.count), using: &random)]
    }
    return String(first + rest) + "x"
  }

  @Test(
    "No six characters of a secret stay in a file, in none of all spellings",
    arguments: [1, 2, 3] as [UInt64])
  func property(_ seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let secrets = (0..<4).map { _ in Self.secret(&random) }
    try sandbox.settings([
      "dataSchemaVersion": 3,
      "tokens": Dictionary(uniqueKeysWithValues: secrets.enumerated().map { ("token\($0)", $1) }),
    ])
    for (number, spelling) in Spelling.all.enumerated() {
      // Between letters that no spelling has an escape for.
      let text = secrets.map { "line \(spelling.spelled($0)) and on" }.joined(separator: "\n\n")
      try sandbox.write("Documents/\(number).txt", text)
      try sandbox.write("Documents/\(number).bin.txt", "{not JSON: \(text)")
    }
    try sandbox.capture()
    var remains = try remains(of: secrets, in: "made")
    // Signs stay, and what is made up for three letters may be the same letters, but not again with another key.
    if !remains.isEmpty {
      try sandbox.capture("again")
      remains.formIntersection(try self.remains(of: secrets, in: "again"))
    }
    #expect(remains == [], "seed \(seed)")
  }

  /// Where six characters of a secret are in a fixture's files, in the spelling of the file.
  private func remains(of secrets: [String], in fixture: String) throws -> Set<String> {
    var remains: Set<String> = []
    for (number, spelling) in Spelling.all.enumerated() {
      for name in ["\(number).txt", "\(number).bin.txt"] {
        var file = try sandbox.text("container/Documents/\(name)", of: fixture)
        #expect(
          file.contains("line ") && file.contains(" and on"), "the rest stays: \(spelling.testDescription)")
        for filler in spelling.fillers { file = file.replacing(filler, with: "") }
        let bytes = Data(file.utf8)
        for secret in secrets {
          let all = Array(secret)
          for start in 0...(all.count - 6) {
            let part = String(all[start..<start + 6])
            for form in spelling.parts(part) where form.utf8.count >= 6 && bytes.holds(Data(form.utf8)) {
              remains.insert("\(spelling.testDescription): `\(part)` of `\(secret)` stays as `\(form)`")
            }
          }
        }
      }
    }
    return remains
  }

  @Test("The replacement is written in the same spelling")
  func spelling() throws {
    try sandbox.settings(["dataSchemaVersion": 3, "auth_token": "abc=é'\"x9/Key"])
    try sandbox.write(
      "Documents/a.txt",
      #"""
      \u0061bc\u003d\u00e9\'\"x9\/Key abc=é'""x9/Key &#97;bc&#x3d;&#xE9;&apos;&quot;x9/Key %61bc%3D%c3%a9'%22x9/Key =61bc=3D=C3=A9'"x9/=
      Key end
      """#)
    try sandbox.capture()
    let text = try sandbox.text("container/Documents/a.txt")
    let parts = text.split(separator: " ")
    try #require(parts.count == 6)
    let made = try #require(
      try sandbox.settings().firstMatch(
        of: #/auth_token: "(?<made>.*)"/#)
    ).made.replacing("\\\"", with: "\"")
    #expect(parts[1].replacing("\"\"", with: "\"") == made)
    let json = parts[0].replacing("\\'", with: "'")
    let read = try JSONDecoder().decode([String].self, from: Data("[\"\(json)\"]".utf8))
    #expect(read == [String(made)])
    #expect(
      parts[0].contains("\\/") && parts[0].contains("\\'"),
      "unchanged signs keep their spelling: \(parts[0])")
    #expect(parts[2].contains("&apos;&quot;") && parts[2].hasPrefix("&#"))
    #expect(parts[3].removingPercentEncoding == String(made))
    let quoted = parts[4].replacing("=\n", with: "").replacing("=", with: "%")
    #expect(quoted.removingPercentEncoding == String(made))
    #expect(parts[4].contains("=\n"))
    #expect(parts[5] == "end")
  }

  @Test("Nothing stays of a known secret that an assignment in the text cuts")
  func cut() throws {
    try sandbox.settings(["dataSchemaVersion": 3, "auth_token": "ca&nary;words, 'and' more"])
    try sandbox.write(
      "Documents/a.log",
      "password=ca&nary;words, 'and' more\npassword=ca&amp;nary;words, &apos;and&apos; more\nkey =ca&nary;words, 'and' more\n"
    )
    try sandbox.capture()
    let log = try sandbox.text("container/Documents/a.log")
    for part in ["nary", "words", "more"] { #expect(!log.contains(part), "\(log)") }
  }

  @Test("A secret that is first seen escaped is found as it is")
  func escapedFirst() throws {
    try sandbox.write("Documents/a.log", "GET /?access_token=canary%2Bfirst%2Fseen-1\n")
    try sandbox.write("Documents/b.txt", "it is canary+first/seen-1, and CANARY%2bFIRST%2fSEEN-1\n")
    try sandbox.capture(hiding: ["canary+first/seen-1", "canary%2Bfirst%2Fseen-1"])
  }

  @Test("The value of a header in a log, and a quoted one with spaces")
  func headers() throws {
    try sandbox.write(
      "Documents/app.log",
      """
      2026-01-02 10:15:00.123 D/OkHttp: X-Api-Key: canary8f3a9b2c (cached)
      [net] > refresh_token: canary1a2b3c4d
      INFO state {"password": "canary horse battery", "theme": "dark"}
      INFO refresh_token: expired
      """)
    try sandbox.capture(hiding: ["canary8f3a9b2c", "canary1a2b3c4d", "canary horse", "horse battery"])
    let log = try sandbox.text("container/Documents/app.log")
    #expect(log.contains(#""theme": "dark""#) && log.contains("refresh_token: expired"))
  }
}
