import DrydockErrors
import Formats
import Foundation
import TestSupport
import Testing

/// SharedPreferences and DataStore files of an independent writer, `AndroidSettings/make_samples.py`.
@Suite struct AndroidSettingsTests {
  static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "AndroidSettings")

  static func sample(_ name: String) throws -> [UInt8] {
    Array(try Data(contentsOf: folder.appending(path: name)))
  }

  /// A file, at the place that the app would read it from.
  static func read(_ name: String) throws -> SettingsFile {
    try SettingsFile(bytes: sample(name), path: place(name))
  }

  static func place(_ name: String) -> String {
    name.hasSuffix(".xml") ? "shared_prefs/\(name)" : "files/datastore/\(name)"
  }

  @Test func sharedPreferences() throws {
    let file = try Self.read("sample.xml")
    #expect(file.format == .sharedPreferences)
    var root = file.root
    #expect(root["none"]?.typeName == "unknown")
    root["none"] = nil
    #expect(
      root == [
        "blue \"&\" <red>": "in a name", "empty": "", "int": .int(.min), "large": .single(1e10),
        "long": .long(9_007_199_254_740_993), "long_small": .long(5),
        "lines": .string("one\ntwo\tthree\r\u{1} <&>\"' Jörg 😀"), "no_tags": .set([]), "off": false,
        "on": true, "ratio": .single(0.1), "small": .single(1e-5), "tags": .set(["red", "", "blue & green"]),
        "whole": .single(16777),
      ])
    #expect(try Self.read("unordered.xml").root == file.root)
  }

  @Test func dataStore() throws {
    let file = try Self.read("sample.preferences_pb")
    #expect(file.format == .dataStore)
    #expect(
      file.root == [
        "on": true, "off": false, "ratio": .single(0.1), "int": .int(.min), "zero": .int(0),
        "long": .long(9_007_199_254_740_993), "long_small": .long(5),
        "name": .string("Jörg <a> & \"b\"\n😀"), "empty": "", "tags": .set(["blue", "red", ""]),
        "no_tags": .set([]), "exact": .real(0.1), "blob": .data([0, 255, 128]),
      ])
    #expect(try SettingsFile(bytes: [], path: "x.preferences_pb").root.isEmpty)
  }

  @Test(arguments: ["sample.xml"])
  func `What is not changed is written byte for byte as the other writer wrote it`(_ name: String) throws {
    #expect(try Self.read(name).encoded() == Self.sample(name))
  }

  @Test(arguments: ["xml", "preferences_pb"])
  func `The independent reader finds the settings that were written`(_ ending: String) throws {
    var file = try Self.read("sample.\(ending)")
    try file.set("<a>&\"b\"\n", for: "added")
    try file.set(7, for: "long_small")
    try file.set(8, for: "int")
    try file.set(3_000_000_000, for: "wide")
    try file.set(["b", "a"], for: "list")
    try file.set(nil, for: "empty")
    let directory = try TemporaryDirectory()
    let path = directory("again.\(ending)")
    try Data(file.encoded()).write(to: URL(filePath: path))
    let run = try Command.succeed(
      "/usr/bin/python3", [Self.folder.appending(path: "make_samples.py").path, "read", path])
    let decoded = try JSONSerialization.jsonObject(with: Data(run.outputBytes)) as? [String: [Any]] ?? [:]
    let names = ["int": ending == "xml" ? "int" : "integer", "set": ending == "xml" ? "set" : "string_set"]
    func kind(_ key: String) -> String? { decoded[key]?.first as? String }
    func value(_ key: String) -> String { decoded[key].map { "\($0[1])" } ?? "absent" }
    #expect(decoded["empty"] == nil && kind("added") == "string" && value("added") == "<a>&\"b\"\n")
    #expect(kind("long_small") == "long" && value("long_small") == "7")
    #expect(kind("int") == names["int"] && value("int") == "8")
    #expect(kind("wide") == "long" && value("wide") == "3000000000")
    #expect(kind("list") == names["set"] && decoded["list"]?[1] as? [String] == ["a", "b"])
    #expect(kind("ratio") == "float" && value("ratio") == "3dcccccd")
    #expect(value("long") == "9007199254740993")
    #expect(decoded.count == file.root.count)
  }

  @Test func `Fields of later versions are preserved, also beside a value that changes`() throws {
    let bytes = try Self.sample("future.preferences_pb")
    var file = try Self.read("future.preferences_pb")
    #expect(file.root["theme"] == "dark" && file.root["place"]?.typeName == "unknown" && file.hasUnknownParts)
    #expect(try file.encoded() == bytes)
    try file.set("blue", for: "theme")
    let changed = try file.encoded()
    let other = Array("dark".utf8)
    let start = try #require(bytes.firstRange(of: other)).lowerBound
    #expect(changed == Array(bytes[..<start]) + Array("blue".utf8) + Array(bytes[(start + 4)...]))
    // Its note would be lost.
    try file.set(nil, for: "theme")
    #expect(file.loss?.key == "theme")
    expectError(.unsupported) { try file.encoded() }
  }

  @Test func `Elements that no app stores are preserved; of two entries the last counts`() throws {
    let elements = [
      "<null name=\"a\" />", "<double name=\"b\" value=\"1.5\" />",
      "<byte-array name=\"c\" num=\"2\">00ff</byte-array>",
      "<int-array name=\"d\" num=\"1\">\n        <item value=\"1\" />\n    </int-array>",
      "<list name=\"e\"><string>x</string><!-- y --></list>", "<later name=\"f\"><![CDATA[<]]></later>",
      "<set name=\"g\"><int value=\"1\" /></set>",
    ]
    let text = "<map>\n" + elements.map { "    \($0)\n" }.joined() + "</map>\n"
    var file = try SettingsFile(bytes: Array(text.utf8), path: "a.xml")
    try file.set(true, for: "z")
    let written = String(decoding: try file.encoded(), as: UTF8.self)
    for element in elements { #expect(written.contains("    \(element)\n"), "\(element)") }
    #expect(try SettingsFile(bytes: Array(written.utf8), path: "a.xml") == file)

    // An element contains its name.
    for key in ["a", "b", "c", "d", "e", "f", "g"] {
      var renamed = file
      (renamed.root["new"], renamed.root[key]) = (file.root[key], nil)
      #expect(renamed.loss?.key == "new")
      expectError(.unsupported) { try renamed.encoded() }
    }

    let twice = "<map><int name=\"a\" value=\"1\"/><int name=\"a\" value=\"2\"></int></map>"
    #expect(try SettingsFile(bytes: Array(twice.utf8), path: "a.xml").root == ["a": .int(2)])
  }

  @Test(arguments: [
    "<map><!-- c --></map>", "<map><string name=\"a\" b=\"c\">d</string></map>", "<map a=\"b\" />",
    "<map><string name=\"a\">b<!-- c --></string></map>", "<map /><!-- c -->", "<map><?a b?></map>",
    "<map><set name=\"a\"><string x=\"y\">b</string></set></map>",
  ])
  func notRewritten(_ text: String) throws {
    let file = try SettingsFile(bytes: Array(text.utf8), path: "a.xml")
    expectError(.unsupported, "would lose") { try file.encoded() }
  }

  @Test func `A character of more than 16 bits may be escaped as two surrogates`() throws {
    let map = "<map><string name=\"&#xD83D;&#xDE00;\">a&#55357;&#56832;b&#128512;</string></map>"
    #expect(try SettingsFile(bytes: Array(map.utf8), path: "a.xml").root == ["😀": "a😀b😀"])
    let list =
      "<?xml version=\"1.0\"?><plist><dict><key>&#xd83d;&#xde00;</key><string>&#55357;&#56832;</string></dict></plist>"
    #expect(try SettingsFile(bytes: Array(list.utf8), path: "a.plist").root == ["😀": "😀"])
    for half in [
      "&#55357;", "&#56832;", "&#55357;x&#56832;", "&#55357;&#55357;", "&#56832;&#55357;", "&#55357;&amp;",
    ] {
      for text in [
        "<map><string name=\"a\">\(half)</string></map>", "<plist><string>\(half)</string></plist>",
      ] {
        expectError(.malformed, "surrogate") { try SettingsFile(bytes: Array(text.utf8), path: "a.xml") }
      }
    }
  }

  @Test func `An export names the setting that the format cannot hold`() throws {
    let element = try SettingsFile(
      bytes: Array("<map><int name=\"a\" value=\"1\"/><later name=\"odd\"/></map>".utf8), path: "a.xml")
    let cases: [(ExchangeFormat, PropertyListValue, String)] = [
      (
        .xml, ["a": 1, "odd": ["x", "\u{1}"]], "a text with the character U+0001, at /odd/1; choose another"
      ),
      (.json, ["a": 1, "odd": .real(.nan)], "of the type real, at /odd; choose XML or binary"),
      (.openstep, ["a": "1", "odd": true], "of the type Bool, at /odd; choose XML or binary"),
      (.xml, .dictionary(element.root), "the setting `odd` has a type that only Android's files have"),
      (.json, .dictionary(element.root), "the setting `odd` has a type that only Android's files have"),
    ]
    for (format, value, message) in cases {
      expectError(.unsupported, message) { try format.encode(value) }
    }
  }

  @Test func `EncryptedSharedPreferences are recognized, and not read`() throws {
    expectError(.unsupported, "keystore") { try Self.read("encrypted.xml") }
    let path = Self.place("encrypted.xml")
    #expect(try SettingsFile.settings(in: Self.sample("encrypted.xml"), path: path) == nil)
  }

  @Test func `A file's format comes from its content, else from its path`() throws {
    let list = try PropertyListFile(format: .xml, root: ["a": 1]).encoded()
    #expect(try SettingsFile(bytes: list, path: "shared_prefs/a.xml").format == .propertyList(.xml))
    let map = Array("\u{FEFF}<?xml version='1.0'?>\n<map></map>".utf8)
    #expect(try SettingsFile(bytes: map, path: "Library/Preferences/a.plist").format == .sharedPreferences)
    #expect(SettingsFile(newAt: "shared_prefs/a.xml").format == .sharedPreferences)
    #expect(SettingsFile(newAt: "files/datastore/a.preferences_pb").format == .dataStore)
    #expect(SettingsFile(newAt: "Library/Preferences/a.plist").format == .propertyList(.binary))
    #expect(SettingsFile(newAt: "Documents/a.xml").format == .propertyList(.binary))
  }

  @Test(
    arguments: [
      (1, "1.0"), (0.1, "0.1"), (1.5e-5, "1.5E-5"), (0.001, "0.001"), (0.00099, "9.9E-4"),
      (9_999_999, "9999999.0"), (1e7, "1.0E7"), (123.25, "123.25"), (-0.0, "-0.0"), (.infinity, "Infinity"),
      (-.infinity, "-Infinity"), (3.4028235e38, "3.4028235E38"), (.leastNonzeroMagnitude, "1.0E-45"),
      (16_777_216, "1.6777216E7"), (100, "100.0"),
    ] as [(Float, String)])
  func floats(_ number: Float, _ text: String) throws {
    let written = try SettingsFile(format: .sharedPreferences, root: ["a": .single(number)]).encoded()
    #expect(String(decoding: written, as: UTF8.self).contains("value=\"\(text)\""))
    #expect(try SettingsFile(bytes: written, path: "").root == ["a": .single(number)])
  }
}

/// Values that go from one format to another.
@Suite struct FittingSettingsTests {
  private static let formats: [SettingsFile.Format] = [
    .propertyList(.binary), .sharedPreferences, .dataStore,
  ]

  private func fit(
    _ value: PropertyListValue, _ format: SettingsFile.Format, _ old: PropertyListValue? = nil
  ) throws -> PropertyListValue {
    try format.fitting(value, replacing: old)
  }

  @Test func integers() throws {
    for format in [SettingsFile.Format.sharedPreferences, .dataStore] {
      #expect(try fit(5, format) == .int(5))
      #expect(try fit(5, format, .long(1)) == .long(5))
      #expect(try fit(5, format, .int(1)) == .int(5))
      #expect(try fit(5, format, "text") == .int(5))
      #expect(try fit(.integer(1 << 40), format, .int(1)) == .long(1 << 40))
      #expect(try fit(.long(5), format, .int(1)) == .long(5))
      #expect(try fit(.int(5), format, .long(1)) == .int(5))
      #expect(throws: UnfitSetting.self) { try fit(.unsigned(.max), format) }
    }
    #expect(try fit(.int(5), .propertyList(.xml)) == 5)
    #expect(try fit([.long(5), .set(["b", "a"])], .propertyList(.binary)) == [5, ["a", "b"]])
  }

  @Test func reals() throws {
    #expect(try fit(0.1, .sharedPreferences) == .single(0.1))
    #expect(try fit(.real(.nan), .sharedPreferences).typeName == "real")
    #expect(try fit(0.1, .dataStore) == 0.1)
    #expect(try fit(0.1, .dataStore, .single(2)) == .single(0.1))
    #expect(try fit(0.123456789, .dataStore, .single(2)) == 0.123456789)
    #expect(throws: UnfitSetting.self) { try fit(0.123456789, .sharedPreferences) }
    #expect(throws: UnfitSetting.self) { try fit(1e300, .sharedPreferences) }
  }

  @Test(
    "What a format cannot hold is named, with what to do",
    arguments: [
      (.data([1]), .sharedPreferences, "data, which SharedPreferences cannot hold: convert it to text"),
      (["a", "a"], .dataStore, "different texts, which DataStore cannot hold"),
      ([1], .sharedPreferences, "array of other values"),
      (["a": 1], .dataStore, "dictionary, which DataStore cannot hold: store it as JSON"),
      (.date(.init(timeIntervalSinceReferenceDate: 0)), .dataStore, "date"),
    ] as [(PropertyListValue, SettingsFile.Format, String)])
  func unfit(_ value: PropertyListValue, _ format: SettingsFile.Format, _ message: String) {
    #expect { try fit(value, format) } throws: { ($0 as? UnfitSetting)?.problem.contains(message) == true }
    expectError(.unsupported, message) { try SettingsFile(format: format, root: ["k": value]).encoded() }
  }

  @Test func `A value of an unknown type stays in its format`() throws {
    let future = try #require(try AndroidSettingsTests.read("future.preferences_pb").root["place"])
    let null = try #require(try AndroidSettingsTests.read("sample.xml").root["none"])
    for format in Self.formats {
      for value in [future, null] {
        let isOwn = format == .dataStore && value == future || format == .sharedPreferences && value == null
        if isOwn {
          #expect(try fit(value, format) == value)
        } else {
          #expect(throws: UnfitSetting.self) { try fit(value, format) }
        }
      }
    }
  }

  @Test func matching() {
    #expect(PropertyListValue.int(5).matches(5) && PropertyListValue.integer(5).matches(.long(5)))
    #expect(!PropertyListValue.int(5).matches(.long(5)) && !PropertyListValue.int(5).matches(6))
    #expect(
      PropertyListValue.set(["a", "b"]).matches(["b", "a"])
        && !PropertyListValue.set(["a"]).matches(["a", "a"]))
    #expect(PropertyListValue.set(["b", "a"]) == .set(["a", "b", "a"]))
    #expect(PropertyListValue.set(["\u{e9}"]) != .set(["e\u{301}"]))
  }

  @Test func yaml() throws {
    let text = "a: !int 5\nb: !long 5\nc: !float 0.1\nd: !set [x, y]\ne: !set []\nf: 5"
    let values = try #require(try YAMLDocument(text: text, file: "a").root?.mapping?.propertyListValues())
    #expect(
      values == [
        "a": .int(5), "b": .long(5), "c": .single(0.1), "d": .set(["y", "x"]), "e": .set([]), "f": 5,
      ])
    for bad in [
      "!int 3000000000", "!int x", "!long 1.5", "!float x", "!float 1e300", "!set [a, a]", "!set [1]",
    ] {
      #expect(throws: DrydockError.self, "\(bad)") {
        try YAMLDocument(text: "a: \(bad)", file: "a").root?.mapping?.propertyListValues()
      }
    }
  }
}
