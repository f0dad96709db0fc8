import Cryptography
import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import AppStores

/// The document in a vault: what is written is read again, and what is no document is refused.
@Suite struct VaultDocumentTests {
  private static let device = "00112233445566778899aabbccddeeff"

  private func document(_ items: String, device: String = device) -> String {
    "{\"format\": 1, \"device\": \"\(device)\", \"recipients\": [], \"items\": [\(items)]}"
  }

  private func item(_ fields: String) -> String {
    "{\"class\": \"genericPassword\", \"accessible\": \"whenUnlocked\", \"value\": \"AAE=\"\(fields)}"
  }

  private func read(_ text: String) throws -> Vault {
    try Vault(decoding: SecretBytes(Array(text.utf8)), path: "v.age")
  }

  private func expectComplaint(_ words: String, _ text: String, line: Int = #line) {
    let error = expectError(.badVault, words, line: line) { try read(text) }
    #expect(error?.path == "v.age")
  }

  private func text(_ document: Vault) -> String {
    document.encoded().withBytes { String(decoding: $0, as: UTF8.self) }
  }

  /// The example of the guide.
  @Test func matchesTheDocumentation() throws {
    var item = VaultItem(
      service: "com.example.notes", account: "auth", accessGroup: "group.com.example.notes",
      accessibility: .afterFirstUnlock, value: SecretBytes(Array("made-up-token".utf8)))
    item.label = "Notes"
    (item.created, item.modified) = ("2026-11-20T10:15:00Z", "2026-11-21T08:00:00Z")
    var server = VaultItem(.internetPassword, account: "a", value: SecretBytes([0xff, 0]))
    server[.server] = "mail.example.com"
    server[.port] = "993"
    server.isSynchronizable = true
    server.accessControl = VaultItem.AccessControl([.devicePasscode, .biometryCurrentSet, .or])
    let document = Vault(device: Self.device, items: [server, item])
    #expect(
      text(document) == """
        {
          "format": 1,
          "device": "00112233445566778899aabbccddeeff",
          "items": [
            {
              "class": "genericPassword",
              "service": "com.example.notes",
              "account": "auth",
              "access_group": "group.com.example.notes",
              "label": "Notes",
              "accessible": "afterFirstUnlock",
              "created": "2026-11-20T10:15:00Z",
              "modified": "2026-11-21T08:00:00Z",
              "value": "bWFkZS11cC10b2tlbg=="
            },
            {
              "class": "internetPassword",
              "account": "a",
              "server": "mail.example.com",
              "port": 993,
              "accessible": "whenUnlocked",
              "synchronizable": true,
              "access_control": [
                "biometryCurrentSet",
                "devicePasscode",
                "or"
              ],
              "value": "/wA="
            }
          ]
        }

        """)
    #expect(try read(text(document)) == document)
  }

  @Test func unknownFieldsArePreserved() throws {
    let written = document(item(#", "account": "a", "later": {"x": [1, -2.5e3, null, "é\u00e9\/"]}"#))
      .replacing("\"recipients\": [],", with: "\"recipients\": [], \"tags\": [ true ],")
    let document = try read(written)
    let again = text(document)
    #expect(again.contains(#""later": {"x": [1, -2.5e3, null, "é\u00e9\/"]}"#))
    #expect(again.contains(#""tags": [ true ]"#))
    #expect(try read(again) == document)
    let halves = try ["800", "801"].map { try read(self.document(item(##", "later": "\ud\##($0)""##))) }
    #expect(halves[0] != halves[1])
  }

  @Test func escapesAreDecoded() throws {
    let document = try read(
      document(
        #"{"value":"\/w\u0041=","accessible":"afterFirstUnlock","\u0063lass":"genericPassword","service":null,"account":"\ud83d\ude00\t","port":"0993"}"#
      ))
    let item = try #require(document.sorted.first)
    #expect(item.value == SecretBytes([0xff, 0x00]))
    #expect(item.service == nil && item.account == "😀\t" && item[.port] == "0993")
    #expect(try read(text(document)) == document)
  }

  /// Foundation reads what is written, and this reads what Foundation writes.
  @Test func foundationAgrees() throws {
    var random = SeededRandom(seed: 4)
    for _ in 0..<40 {
      let document = Vault(
        device: Self.device,
        items: try (0..<Int.random(in: 0...6, using: &random)).map { _ in try any(&random) })
      let bytes = document.encoded().withBytes { Data($0) }
      let object = try #require(try JSONSerialization.jsonObject(with: bytes) as? [String: Any])
      let items = try #require(object["items"] as? [[String: Any]])
      #expect(items.count == document.items.count)
      for (item, fields) in zip(document.sorted, items) {
        let value = (fields["value"] as? String).flatMap { Data(base64Encoded: $0) }
        #expect(item.value == value.map { SecretBytes([UInt8]($0)) })
        #expect(fields["account"] as? String == item.account)
      }
      let theirs = try JSONSerialization.data(withJSONObject: object, options: [.prettyPrinted])
      #expect(try Vault(decoding: SecretBytes([UInt8](theirs)), path: nil) == document)
    }
  }

  private func any(_ random: inout SeededRandom) throws -> VaultItem {
    let characters = ["a", "é", "e\u{301}", "\n", "\u{0}", "\"", "\\", "/", "😀", "\u{2028}", " ", "\u{7f}"]
    func text(_ random: inout SeededRandom) -> String? {
      let count = Int.random(in: 0...5, using: &random)
      return count == 0
        ? nil : (0..<count).map { _ in characters.randomElement(using: &random) ?? "" }.joined()
    }
    let value = random.bytes(Int.random(in: 0...70, using: &random))
    var item = VaultItem(
      VaultItem.Class.allCases.randomElement(using: &random) ?? .key, value: SecretBytes(value))
    for attribute in VaultItem.Attribute.allCases where Bool.random(using: &random) {
      item[attribute] = text(&random)
    }
    item[.port] = Bool.random(using: &random) ? "443" : nil
    item.accessibility = VaultItem.Accessibility.allCases.randomElement(using: &random) ?? .always
    item.isSynchronizable = Bool.random(using: &random)
    if Bool.random(using: &random) { item.accessControl = VaultItem.AccessControl([.userPresence]) }
    return item
  }

  @Test func canonicallyEquivalentTextsDiffer() throws {
    let document = try read(
      document(item(", \"account\": \"\u{e9}\"") + "," + item(", \"account\": \"e\u{301}\"")))
    #expect(document.items.count == 2)
    #expect(try read(text(document)) == document)
  }

  @Test func invalidDocumentsAreRejected() {
    expectComplaint("the vault document is not valid JSON: line 1, column 1: unexpected end of input", "")
    expectComplaint("is not an object", "[]")
    expectComplaint("no format", "{}")
    expectComplaint("format 2, and this version supports up to 1; use a newer", "{\"format\": 2, \"x\": 1}")
    expectComplaint("`format` of the document is not an integer", "{\"format\": \"1\"}")
    expectComplaint("no device", "{\"format\": 1}")
    expectComplaint("no device", document("", device: Self.device.uppercased()))
    expectComplaint("no items", document("").replacing("\"items\"", with: "\"itmes\""))
    expectComplaint("data follows the value", document("") + "x")
    expectComplaint("an item is not an object", document("1"))
    expectComplaint("`account` of an item is not text", document(item(", \"account\": 1")))
    expectComplaint("duplicate key", document(item(", \"account\": \"a\", \"account\": \"b\"")))
    expectComplaint("true or false", document(item(", \"synchronizable\": 1")))
    expectComplaint("is not a time", document(item(", \"created\": \"today\"")))
    expectComplaint("is not a list", document(item(", \"access_control\": \"x\"")))
    expectComplaint(
      "`accessible` of an item is `never`", document(item("").replacing("whenUnlocked", with: "never")))
    expectComplaint("no field `accessible`", document("{\"class\": \"genericPassword\"}"))
    expectComplaint("is not base64", document(item("").replacing("AAE=", with: "AAE")))
    expectComplaint("recipients is not valid", document("").replacing("[]", with: "[\"age1x\"]"))
  }

  @Test func duplicateItemsAreRejected() {
    let twice = item(", \"account\": \"a\"") + "," + item(", \"account\": \"a\", \"label\": \"other\"")
    expectComplaint("the vault document has two items /a;", document(twice))
    // None and an empty one are the same to a keychain.
    expectComplaint("(no name)", document(item("") + "," + item(", \"service\": \"\"")))
  }

  @Test func valuesAreCanonicalBase64() throws {
    for text in [
      "A", "AA", "AAA", "AAAAA", "AA=A", "=AAA", "AB==", "AAB=", "A===", "====", "AAAA====", "A A=", "AA-_",
    ] {
      expectComplaint("is not base64", document(item("").replacing("AAE=", with: text)))
    }
    #expect(try read(document(item("").replacing("AAE=", with: ""))).sorted.first?.value.count == 0)
  }

  /// Cut or changed at any byte it is read, or refused with an error; nothing worse.
  @Test func corruptionIsAnError() throws {
    let whole = Array(document(item(#", "later": {"x": ["é", 1.5e-3]}, "account": "a\u00e9""#)).utf8)
    for end in whole.indices {
      #expect(throws: DrydockError.self) {
        _ = try Vault(decoding: SecretBytes(Array(whole[..<end])), path: nil)
      }
    }
    for index in whole.indices {
      for byte: UInt8 in [0, 0x22, 0x5c, 0x7b, 0x80, 0xff] {
        var changed = whole
        changed[index] = byte
        do {
          _ = try Vault(decoding: SecretBytes(changed), path: nil)
        } catch let error as DrydockError {
          #expect(error.code == .badVault)
        }
      }
    }
  }

  @Test func deepNestingIsRejected() {
    let deep = String(repeating: "[", count: 100_000)
    expectComplaint("nested deeper than 32 levels", "{\"format\": 1, \"x\": " + deep)
  }
}
