import AppStores
import Foundation
import Testing

@testable import ContainerDiff
@testable import Formats

@Suite struct DecodedDocumentTests {
  private static let secret = "q7Zk3VwX9pLm-decoded-q7Zk3VwX9pLm"

  /// A keyed archive, whose objects refer to each other by number.
  private static func archive(_ objects: [PropertyListValue], root: UInt32 = 1) throws -> [UInt8] {
    try PropertyListFile(root: [
      "$version": 100_000, "$archiver": "NSKeyedArchiver", "$top": .dictionary(["root": reference(root)]),
      "$objects": .array(["$null"] + objects),
    ]).encoded()
  }

  private static func reference(_ number: UInt32) -> PropertyListValue {
    .unknown(.init(keyedArchiveReference: number))
  }

  private static func classNamed(_ name: String) -> PropertyListValue {
    .dictionary(["$classname": .string(name), "$classes": .array([.string(name)])])
  }

  private func shown(_ bytes: [UInt8], key: String = "state") -> String {
    Redactor().shownDecoded(.data(bytes), named: SecretName(key))
  }

  @Test func propertyListsAndJSON() throws {
    let plist = try PropertyListFile(root: ["theme": "dark", "size": 3]).encoded()
    #expect(shown(plist) == #"property list {size: 3, theme: "dark"}"#)
    let xml = try PropertyListFile(format: .xml, root: ["on": true]).encoded()
    #expect(shown(xml) == "property list {on: true}")
    #expect(shown(Array(#" {"a": [1, null, 0.5]}"#.utf8)) == "JSON {a: [1, null, 0.5]}")
  }

  @Test(arguments: [
    "", "text", "{", "[1,", "{\"a\": }", "<html></html>", "bplist00", "bplist00garbage", "{\"a\":1} x", "12",
  ])
  func undecodable(_ text: String) {
    #expect(shown(Array(text.utf8)) == "data (\(text.utf8.count) bytes)")
  }

  /// Foundation's own archiver is the independent writer.
  @Test func archivesOfFoundation() throws {
    let object: NSDictionary = [
      "theme": "dark", "sizes": [1.5, 2.5], "url": NSURL(string: "https://example.com/a") as Any,
    ]
    let data = try NSKeyedArchiver.archivedData(withRootObject: object, requiringSecureCoding: false)
    let text = shown([UInt8](data))
    #expect(text.hasPrefix("keyed archive {sizes: [1.5, 2.5], theme: \"dark\""), "\(text)")
  }

  @Test func classesAndCycles() throws {
    let bytes = try Self.archive([
      .dictionary([
        "$class": Self.reference(2), "title": "one", "owner": Self.reference(3), "self": Self.reference(1),
      ]),
      Self.classNamed("Note"),
      .dictionary(["$class": Self.reference(4), "note": Self.reference(1)]), Self.classNamed("Owner"),
    ])
    #expect(
      shown(bytes)
        == #"keyed archive {$class: "Note", owner: {$class: "Owner", note: "(object 1, which contains this)"}, self: "(object 1, which contains this)", title: "one"}"#
    )
  }

  @Test("Each level holds the next one ten times: the values are bounded")
  func expansion() throws {
    var objects: [PropertyListValue] = []
    for level in 0..<30 {
      let next = Self.reference(UInt32(level + 2))
      objects.append(
        .dictionary(["$class": Self.reference(32), "NS.objects": .array(Array(repeating: next, count: 10))]))
    }
    objects += ["end", Self.classNamed("NSArray")]
    #expect(DecodedDocument(bytes: try Self.archive(objects)) == nil)
  }

  @Test func depth() throws {
    var objects: [PropertyListValue] = []
    for level in 0..<300 {
      objects.append(.dictionary(["$class": Self.reference(302), "a": Self.reference(UInt32(level + 2))]))
    }
    objects += ["end", Self.classNamed("Node")]
    let document = try #require(DecodedDocument(bytes: try Self.archive(objects)))
    #expect("\(document.value)".contains("…"))
    let deep = String(repeating: "[", count: 5000) + String(repeating: "]", count: 5000)
    #expect(DecodedDocument(bytes: Array(deep.utf8)) == nil)
  }

  @Test("A long document is cut, a large one is not decoded")
  func lengths() throws {
    let long = try PropertyListFile(root: ["a": .string(String(repeating: "x", count: 5000))]).encoded()
    let text = shown(long)
    #expect(text.hasSuffix("x…") && text.count < 330)
    let large = try PropertyListFile(root: ["a": .string(String(repeating: "x", count: 1 << 20))]).encoded()
    #expect(shown(large) == "data (\(large.count) bytes)")
  }

  @Test(
    "Secrets in a document are hidden, wherever they are", arguments: ["state", "auth_token", "credentials"])
  func secrets(_ key: String) throws {
    let secret = PropertyListValue.string(Self.secret)
    let values: [PropertyListValue] = [
      .dictionary(["authToken": secret]), .dictionary(["credentials": .dictionary(["user": secret])]),
      .dictionary(["items": .array([.dictionary(["name": "password", "value": secret])])]),
      .dictionary(["json": .string(#"{"access_token": "\#(Self.secret)"}"#)]),
      .dictionary(["header": .string("Bearer \(Self.secret)")]),
      .dictionary(["key": .string("gh" + "p_\(Self.secret.filter(\.isLetter))aaaaaaaaaaaaaaaaaaaaaaaaaaaa")]),
    ]
    for value in values {
      guard case .dictionary(let root) = value else { continue }
      let json = JSONValue(value).map { JSONDocument($0, isIndented: false).bytes } ?? []
      let forms = try [PropertyListFile(root: root).encoded(), json]
      for bytes in forms {
        let text = shown(bytes, key: key)
        #expect(!text.contains("q7Zk3VwX9pLm") && text.contains("secret"), "\(text)")
        let other = try PropertyListFile(root: ["theme": "dark"]).encoded()
        let difference = Redactor().difference(from: .data(bytes), to: .data(other), named: SecretName(key))
        #expect(!"\(String(describing: difference))".contains("q7Zk3VwX9pLm"))
      }
    }
    // A secret is one under any name in the same document.
    let twice = Array(#"{"version": "\#(Self.secret)", "token": "\#(Self.secret)"}"#.utf8)
    #expect(!shown(twice, key: key).contains("q7Zk3VwX9pLm"))
    let none = Data("{}".utf8)
    let found = Redactor().difference(from: .data(twice), to: .data([UInt8](none)), named: .plain)
    #expect(found?.fields.count == 2 && !"\(String(describing: found))".contains("q7Zk3VwX9pLm"))
    // The class of an object names its fields.
    let archive = try Self.archive([
      .dictionary(["$class": Self.reference(2), "content": secret]), Self.classNamed("AuthToken"),
    ])
    #expect(!shown(archive, key: key).contains("q7Zk3VwX9pLm"))
    let dictionary = try Self.archive([
      .dictionary([
        "$class": Self.reference(2), "NS.keys": .array([Self.reference(3)]),
        "NS.objects": .array([Self.reference(4)]),
      ]),
      Self.classNamed("NSDictionary"), "refreshToken", secret,
    ])
    #expect(!shown(dictionary, key: key).contains("q7Zk3VwX9pLm"))
  }

  @Test func differences() throws {
    let old = try PropertyListFile(root: [
      "profile": .dictionary(["theme": "dark", "name": "Ada"]), "list": .array([1, 2, 3]), "gone": true,
    ]).encoded()
    let new = Array(#"{"profile": {"theme": "light", "name": "Ada"}, "list": [1, 5], "new": null}"#.utf8)
    let found = try #require(Redactor().difference(from: .data(old), to: .data(new), named: .plain))
    #expect(
      found.fields == [
        .init(name: "gone", before: "true", after: nil), .init(name: "list[1]", before: "2", after: "5"),
        .init(name: "list[2]", before: "3", after: nil), .init(name: "new", before: nil, after: "null"),
        .init(name: "profile.theme", before: "\"dark\"", after: "\"light\""),
      ])
    #expect(found.more == 0)
    // The same document in another form, and what is no document.
    #expect(Redactor().difference(from: .data(old), to: .data(old), named: .plain) == nil)
    #expect(Redactor().difference(from: .data(old), to: .string("text"), named: .plain) == nil)
    #expect(Redactor().difference(from: .data(old), to: .data(new), named: SecretName("auth_token")) == nil)
  }

  @Test func manyDifferences() throws {
    let values = PropertyListDictionary((0..<500).map { ("key\($0)", .integer(Int64($0))) })
    let old = try PropertyListFile(root: values).encoded()
    let new = try PropertyListFile(root: values.mapValues { _ in "x" }).encoded()
    let found = try #require(Redactor().difference(from: .data(old), to: .data(new), named: .plain))
    #expect(found.fields.count == 20 && found.more == 480)
  }

  @Test("Damaged documents give no document, or another one, but no error")
  func damage() throws {
    let object: NSDictionary = [
      "theme": "dark", "sizes": [1, 2.5], "when": NSDate(timeIntervalSinceReferenceDate: 5),
    ]
    let archive = [UInt8](
      try NSKeyedArchiver.archivedData(withRootObject: object, requiringSecureCoding: false))
    for length in 0..<archive.count { _ = shown(Array(archive.prefix(length))) }
    for index in archive.indices {
      for change: UInt8 in [0x01, 0x80, 0xFF] {
        var bytes = archive
        bytes[index] ^= change
        _ = shown(bytes)
      }
    }
  }
}
