import AppStores
import Cryptography
import Formats
import Foundation
import Testing

@Suite("Redaction") struct RedactorTests {
  private let redactor = Redactor()

  @Test func `Length and a fingerprint in place of the secret`() throws {
    let shown = redactor.shown(.string("hunter2-hunter2-hunter2!"), key: "auth_token")
    #expect(shown.wholeMatch(of: #/\(secret, 24 characters, #[0-9a-f]{8}\)/#) != nil, "\(shown)")
    #expect(redactor.shown(.string("é"), key: "password").hasPrefix("(secret, 1 character, #"))
    #expect(redactor.shown(.data([1, 2, 3]), key: "apiKey").hasPrefix("(secret, 3 bytes, #"))
    #expect(redactor.shown(.integer(4821), key: "pin").hasPrefix("(secret, 4 digits, #"))
    #expect(redactor.shown(.string("dark"), key: "theme") == "\"dark\"")
    #expect(redactor.shown(.boolean(true), key: "showPassword") == "true")
    #expect(redactor.shown(.boolean(true), key: "password") == "true")
  }

  @Test func `Equal secrets have equal fingerprints in one run, and in no other run`() {
    func mark(_ redactor: Redactor, _ value: PropertyListValue) -> Substring {
      redactor.shown(value, key: "token").split(separator: " ").last ?? ""
    }
    #expect(mark(redactor, .string("hunter22")) == mark(redactor, .string("hunter22")))
    #expect(mark(redactor, .string("hunter22")) == mark(redactor, .data(Array("hunter22".utf8))))
    #expect(mark(redactor, .string("hunter22")) != mark(redactor, .string("hunter23")))
    #expect(mark(redactor, .string("hunter22")) != mark(Redactor(), .string("hunter22")))
    let bytes = Array("hunter22".utf8)
    #expect(
      redactor.shown(secret: SecretBytes(bytes)) == redactor.shown(.string("hunter22"), key: "password"))
    #expect(bytes.withUnsafeBytes { redactor.shown(secret: $0) }.hasPrefix("(secret, 8 characters, #"))
    #expect(
      [UInt8]([0xff, 0]).withUnsafeBytes { redactor.shown(secret: $0) }.hasPrefix("(secret, 2 bytes, #"))
  }

  @Test func `Inside of lists and dictionaries only the secrets go`() {
    let value = PropertyListValue.dictionary([
      "user": .string("ada"), "password": .string("hunter2"), "age": .integer(36),
      "list": .array([.string("milk"), .string("Bearer abc123def456")]),
      "credentials": .dictionary([
        "login": .string("ada"), "x": .string("hunter2"), "expiry": .string("soon"),
      ]),
    ])
    let shown = redactor.shown(value, key: "account")
    #expect(!shown.contains("hunter2") && !shown.contains("abc123"))
    #expect(
      shown.contains("user: \"ada\"") && shown.contains("age: 36") && shown.contains("[\"milk\", (secret, "))
    #expect(shown.contains("expiry: \"soon\"") && shown.contains("login: (secret, 3 characters"))
  }

  @Test func `Names beside values count: cookies, headers, tables of settings`() {
    let cookie = PropertyListValue.dictionary([
      "Name": .string("session"), "Value": .string("hunter2"), "Domain": .string("example.com"),
    ])
    #expect(!redactor.shown(.array([cookie]), key: "list").contains("hunter2"))
    #expect(redactor.shown(.array([cookie]), key: "list").contains("example.com"))
    let plain = PropertyListValue.dictionary(["name": .string("theme"), "value": .string("dark")])
    #expect(redactor.shown(plain, key: "setting") == "{name: \"theme\", value: \"dark\"}")
  }

  @Test func `JSON in a text is shown without its secrets; a damaged one not at all`() {
    let text = #"{"user": "ada", "n": null, "t": true, "token": "hunter2", "deep": ["{\"pin\": \"4821\"}"]}"#
    let shown = redactor.shown(.string(text), key: "state")
    // The digits may be in a fingerprint, by chance.
    let values = shown.replacing(/#[0-9a-f]{8}/, with: "#")
    #expect(!values.contains("hunter2") && !values.contains("4821"))
    #expect(
      shown.hasPrefix("{deep: [{pin: (secret, 4 characters, #")
        && shown.contains("n: null, t: true, token: ("))
    #expect(redactor.shown(.string(String(text.dropLast(5))), key: "state").hasPrefix("(secret, "))
    let lenient = #"{"n": 1, "n": 2, "token": "hunter2",}"#
    #expect(redactor.shown(.string(lenient), key: "state").hasPrefix("{n: 2, token: (secret, "))
    let plain = #"{"theme": "dark", "sizes": [1, 2.5, null]}"#
    #expect(redactor.shown(.string(plain), key: "state") == "\"\(plain)\"")
    let nested = (0..<30).reduce("\"hunter2\"") { text, _ in
      let escaped = text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
      return text.count > 20_000 ? text : "{\"a\": \"\(escaped)\"}"
    }
    #expect(!redactor.shown(.string(nested), key: "token").contains("hunter2"))
  }

  @Test func `Data is taken apart to know whether it is a secret: JSON, lists, keyed archives`() throws {
    let json = Array(#"{"a": {"password": "hunter2"}}"#.utf8)
    let list = try PropertyListFile(root: ["authToken": .string("hunter2")]).encoded()
    let xml = try PropertyListFile(format: .xml, root: ["a": .dictionary(["pin": .string("4821")])]).encoded()
    let inner = try PropertyListFile(root: ["blob": .data(list)]).encoded()
    let wide: [UInt8] = json.flatMap { [$0, 0] }
    for bytes in [json, wide, list, xml, inner, Array("Bearer abc123def456".utf8)] {
      #expect(isClearlySecret(.data(bytes), key: "state"))
      #expect(redactor.shown(.data(bytes), key: "state").hasPrefix("(secret, \(bytes.count) bytes, #"))
    }
    let plain = try PropertyListFile(root: ["theme": .string("dark")]).encoded()
    for bytes in [plain, Array("{\"theme\": 1}".utf8), [0, 1, 2, 255], Array("bplist00 nonsense".utf8)] {
      #expect(redactor.shown(.data(bytes), key: "state") == "data (\(bytes.count) bytes)")
    }
  }

  @Test func `Keyed archives: a field's name, and a dictionary's keys`() throws {
    // NSKeyedArchiver is not what is tested: a list as it writes one, by hand.
    func archive(_ field: String) throws -> [UInt8] {
      let xml = """
        <plist version="1.0"><dict><key>$version</key><integer>100000</integer>
        <key>$archiver</key><string>NSKeyedArchiver</string>
        <key>$top</key><dict><key>root</key><dict><key>CF$UID</key><integer>1</integer></dict></dict>
        <key>$objects</key><array><string>$null</string>
        <dict><key>\(field)</key><dict><key>CF$UID</key><integer>2</integer></dict></dict>
        <string>hunter2</string></array></dict></plist>
        """
      return Array(xml.utf8)
    }
    #expect(isClearlySecret(.data(try archive("password")), key: "state"))
    #expect(!SecretPattern.isSecret(.data(try archive("nickname")), key: "state"))
  }

  @Test func `A secret that has got another name is one still`() {
    let secret = PropertyListValue.string("correct horse battery")
    let settings: PropertyListDictionary = [
      "password": secret, "theme": .string("dark"),
      "list": .array([.dictionary(["token": .string("hunter2-hunter2")])]),
    ]
    let knowing = redactor.knowing([settings])
    for value in [secret, .array([secret]), .string("hunter2-hunter2"), .data(Array("hunter2-hunter2".utf8))]
    {
      #expect(!redactor.shown(value, key: "note").contains("secret"))
      for knowing in [knowing, redactor.knowing([settings], among: [value])] {
        #expect(knowing.shown(value, key: "note").contains("(secret, "))
      }
    }
    #expect(knowing.shown(.string("dark"), key: "note") == "\"dark\"")
    #expect(!redactor.knowing([settings], among: ["dark mode"]).shown(secret, key: "note").contains("secret"))
    let data: PropertyListDictionary = ["token": .array([.data(Array("hunter2-hunter2".utf8))])]
    let text = PropertyListValue.string("hunter2-hunter2")
    #expect(redactor.knowing([data], among: [text]).shown(text, key: "note").contains("(secret, "))
  }

  @Test func `A key may be a secret itself`() {
    let token = MadeUp.tokens[0]
    #expect(
      !redactor.shown(name: token).contains(token) && redactor.shown(name: "auth_token") == "auth_token")
    let sessions = PropertyListValue.dictionary(["9f86d081884c7d659a2f": .string("ada")])
    #expect(!redactor.shown(sessions, key: "session").contains("9f86d081884c7d659a2f"))
    #expect(!redactor.shown(.dictionary([token: .integer(1)]), key: "x").contains(token))
  }

  @Test func `Nothing of a redactor shows its key`() {
    var text = ""
    dump(redactor, to: &text)
    #expect(!text.contains("[") && text.count < 400, "\(text)")
  }
}
