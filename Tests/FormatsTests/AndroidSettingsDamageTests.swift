import DrydockErrors
import Formats
import Foundation
import TestSupport
import Testing

@Suite struct AndroidSettingsDamageTests {
  private func read(_ text: String) throws -> SettingsFile {
    try SettingsFile(bytes: Array(text.utf8), path: "shared_prefs/a.xml")
  }

  @Test(arguments: [
    ("", "empty"), ("hello", "text where an element"), ("<maps/>", "no <map>"), ("ABX\0\0", "binary XML"),
    ("<!DOCTYPE map [<!ENTITY a \"b\">]><map/>", "document types"),
    ("<map><string name=\"a\">&b;</string></map>", "entity"),
    ("<map><string name='a'>&#xD800;</string></map>", "entity"),
    ("<map><int name=\"a\" value=\"x\"/></map>", "its type"),
    ("<map><int name=\"a\" value=\"2147483648\"/></map>", "its type"),
    ("<map><int name=\"a\"/></map>", "its type"),
    ("<map><long name=\"a\" value=\"9223372036854775808\"/></map>", "its type"),
    ("<map><boolean name=\"a\" value=\"1\"/></map>", "its type"),
    ("<map><float name='a' value='0x1'/></map>", "its type"),
    ("<map><string>a</string></map>", "without a name"),
    ("<map><string name=\"a\"><b/></string></map>", "end where"),
    ("<map><string name=\"a\" name=\"b\"/></map>", "twice"), ("<map><string name=a/></map>", "quotes"),
    ("<map><string name='a'>b<?c?></string></map>", "declaration"),
    ("<map><!a name='b'/></map>", "declaration"), ("<map></map><map/>", "more than one"),
    ("<map></set>", "end without"), ("<map>text</map>", "text where"),
    ("<map><int name=\"a\" value=\"1\">2</int></map>", "text where"),
    ("<map><string name='<'/></map>", "attribute"),
    ("<?xml version='1.0' encoding='utf-16'?><map/>", "not UTF-8"),
    ("<?xml encoding='utf-16'" + String(repeating: " ", count: 200) + "?><map/>", "not UTF-8"),
    ("<map><later name='a'><b></later></b></map>", "end"),
    ("<map><later name='a'>" + String(repeating: "<b>", count: 1000), "too deeply"),
    ("<map><x name='a' " + (0..<99).map { "b\($0)='' " }.joined() + "/></map>", "too many attributes"),
  ])
  func refused(_ text: String, _ message: String) {
    expectError(.malformed, message) { try read(text) }
  }

  @Test func `A value's text is never in a message`() {
    for text in [
      "<map><int name=\"hunter2\" value=\"hunter2\"/></map>", "<map><hunter2",
      "<map><string name='a'>hunter2",
    ] {
      #expect { try read(text) } throws: { !"\($0)".contains("hunter2") }
    }
  }

  @Test(
    arguments: [
      ([0x0A], "unexpected end"), ([0x0A, 5, 1], "unexpected end"),
      ([0x0A] + [UInt8](repeating: 0xFF, count: 9) + [1], "end"),
      ([UInt8](repeating: 0x80, count: 11), "64 bits"), ([0x0B], "invalid type"),
      ([0x00, 0x00], "field number"), ([0x0A, 3, 0x0A, 1, 0xFF], "not UTF-8"),
      ([0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0], "unexpected end"), ([0x0D, 1, 2], "unexpected end"),
      ([0x09, 1, 2, 3], "unexpected end"), ([0x0A, 8, 0x0A, 1, 0x61, 0x12, 3, 0x2A, 1, 0xC0], "not UTF-8"),
    ] as [([UInt8], String)])
  func refusedDataStores(_ bytes: [UInt8], _ message: String) {
    expectError(.malformed, message) { try SettingsFile(bytes: bytes, path: "a.preferences_pb") }
  }

  @Test func `A message inside of a value has no depth: a set in a set is text`() throws {
    // An entry without key and value, as protocol buffers define it.
    let file = try SettingsFile(bytes: [0x0A, 0], path: "a.preferences_pb")
    #expect(file.root[""]?.typeName == "unknown")
    #expect(try SettingsFile(bytes: file.encoded(), path: "a.preferences_pb") == file)
  }

  @Test(arguments: ["sample.xml", "sample.preferences_pb", "future.preferences_pb"])
  func `Each prefix and flipped bit: settings that can be written, or an error`(_ name: String) throws {
    let bytes = try AndroidSettingsTests.sample(name)
    let place = AndroidSettingsTests.place(name)
    var errors = 0
    func check(_ damaged: [UInt8]) throws {
      do {
        let file = try SettingsFile(bytes: damaged, path: place)
        guard let written = try? file.encoded() else { return }
        let again = try SettingsFile(bytes: written, path: place)
        #expect(try again.encoded() == written)
      } catch let error as DrydockError {
        errors += 1
        #expect([.malformed, .unsupported].contains(error.code))
      }
    }
    for cut in 0..<bytes.count { try check(Array(bytes.prefix(cut))) }
    if name == "sample.xml" { #expect(errors >= bytes.count - 1) }
    let cuts = errors
    for index in bytes.indices {
      for bit in TestExtent.isFull ? Array(0..<8) : [index % 8, (index + 3) % 8] {
        var damaged = bytes
        damaged[index] ^= 1 << UInt8(bit)
        try check(damaged)
      }
    }
    #expect(errors > cuts && errors > bytes.count / 2)
  }

  @Test func `A large file is read once from its beginning to its end`() throws {
    let root = PropertyListDictionary(
      (0..<40_000).map { ("key\($0)", .string(String(repeating: "<&>", count: 8))) })
    for (format, path) in [
      (SettingsFile.Format.sharedPreferences, "a.xml"), (.dataStore, "a.preferences_pb"),
    ] {
      let bytes = try SettingsFile(format: format, root: root).encoded()
      #expect(bytes.count > 1 << 20)
      #expect(try SettingsFile(bytes: bytes, path: path).root == root)
    }
  }
}
