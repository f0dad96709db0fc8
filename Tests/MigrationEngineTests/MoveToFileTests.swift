import FileSystem
import Formats
import Foundation
import Testing

@testable import MigrationEngine

@Suite struct MoveToFileTests {
  private let lab: Lab

  init() throws { lab = try Lab() }

  private static let file: ContainerPath = "Documents/state"

  @Test(
    arguments: [
      ("", "héllo", "héllo"), (", format: raw", .data([104, 105]), "hi"), (", format: raw", "", ""),
      (
        ", format: json", ["b": 1, "a": [true, 1.5, "x"]],
        "{\n  \"a\": [\n    true,\n    1.5,\n    \"x\"\n  ],\n  \"b\": 1\n}\n"
      ),
      (", format: json", "text", "\"text\"\n"), (", format: json", 1.0, "1.0\n"),
    ] as [(String, PropertyListValue, String)])
  func becomesAFileAndComesBack(_ arguments: String, _ value: PropertyListValue, _ text: String) throws {
    let before: PropertyListDictionary = ["s": value, "x": 1]
    try lab.set(before)
    let step = "defaults.move-to-file: {key: s, to: \(Self.file), reference: !date 2026-11-21\(arguments)}"
    var stepLab = try StepLab(lab, step)
    #expect(try stepLab.apply() == [])
    #expect(throws: StepFailure.self) { try stepLab.revert(withPriorValues: false) }
    #expect(try stepLab.stage.text(Self.file) == text)
    #expect(try stepLab.stage.settings()?["s"]?.typeName == "date")
    #expect(try stepLab.revert() == [])
    #expect(try stepLab.stage.settings() == before)
    #expect(try stepLab.stage.text(Self.file) == nil)
  }

  @Test func propertyListsKeepEveryType() throws {
    let values: PropertyListDictionary = [
      "d": .date(Date(timeIntervalSinceReferenceDate: 0.25)), "b": .data([1]), "s": .single(0.5), "i": 1,
    ]
    try lab.set(["s": .dictionary(values)])
    let settings = lab.path(Lab.settings)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: settings)
    let file: ContainerPath = "Documents/deep/s.plist"
    try lab.tried("defaults.move-to-file: {key: s, to: \(file), format: plist}") { stage, _ throws in
      #expect(try stage.settings() == [:])
      #expect(try stage.settings(file) == values)
      // Users who may read the settings may read the file.
      #expect(try stage.metadata(of: file)?.mode == 0o600)
    }
  }

  @Test(
    arguments: [
      ("", ["a": 1], "the setting `s` is a dictionary, neither text nor data: say `format: json`"),
      (", format: raw", 1, "neither text nor data"),
      (", format: json", ["a": .data([1])], "contains a value that JSON cannot represent"),
      (", format: json", .date(Date()), "say `format: plist`"),
      (", format: xml", 1, "one of json, plist, raw"),
      (", reference: null", "x", "a setting cannot be null"),
    ] as [(String, PropertyListValue, String)])
  func refused(_ arguments: String, _ value: PropertyListValue, _ message: String) throws {
    try lab.set(["s": value])
    lab.expectFailing(
      "defaults.move-to-file: {key: s, to: \(Self.file)\(arguments)}", message, start: "0001_test.yaml:2:")
  }

  @Test func somethingIsThere() throws {
    let step = "  - defaults.move-to-file: {key: s, to: \(Self.file)"
    try lab.set(["s": "new"])
    try lab.write(Self.file, "old")
    lab.expectFailing(step + "}\n", "the file `Documents/state` of the setting `s` exists already")
    try lab.tried(step + ", if-exists: keep}\n") { stage, notes throws in
      #expect(notes.count == 1)
      #expect(try stage.settings() == ["s": "new"])
      #expect(try stage.text(Self.file) == "old")
    }
    try lab.tried(step + ", if-exists: replace}\n") { stage, _ throws in
      #expect(try stage.settings() == [:])
      #expect(try stage.text(Self.file) == "new")
    }
    let absent = "  - defaults.move-to-file: {key: t, to: \(Self.file)"
    lab.expectFailing(absent + ", if-missing: fail}\n", "the setting `t` does not exist")
    try lab.tried(absent + "}\n") { _, notes throws in #expect(notes.count == 1) }
    let own = "Library/Application Support/.drydock/x"
    lab.expectFailing("defaults.move-to-file: {key: s, to: \(own)}", "is where Drydock keeps its history")
  }

  @Test func newerDataComesBack() throws {
    try lab.set(["s": ["a": 1]])
    for (text, after, message) in [
      (#"{"a": 2, "b": [1.0]}"#, ["a": 2, "b": [1.0]], nil),
      ("[null]", [:], "cannot become a setting"),
      ("{", [:], "not valid JSON"),
    ] as [(String, PropertyListValue, String?)] {
      var stepLab = try StepLab(lab, "defaults.move-to-file: {key: s, to: \(Self.file), format: json}")
      _ = try stepLab.apply()
      try stepLab.write(Self.file, text)
      if let message {
        #expect { try stepLab.revert() } throws: { "\($0)".contains(message) }
        #expect(try stepLab.stage.text(Self.file) == text)
      } else {
        #expect(try stepLab.revert() == [])
        #expect(try stepLab.stage.settings() == ["s": after])
      }
    }
    var stepLab = try StepLab(lab, "defaults.move-to-file: {key: s, to: \(Self.file), format: json}")
    _ = try stepLab.apply()
    try stepLab.set(["s": "the app's"])
    #expect(try stepLab.revert() == ["`s` was changed since: kept, and `Documents/state` too"])
    #expect(try stepLab.stage.text(Self.file) != nil)
  }

  @Test func aFileWithoutASettingIsNoted() throws {
    for isThere in [false, true] {
      if isThere { try lab.write(Self.file, "{}") }
      var stepLab = try StepLab(lab, "defaults.move-to-file: {key: s, to: \(Self.file)}")
      _ = try stepLab.apply()
      if !isThere { try stepLab.write(Self.file, "of the app") }
      #expect(
        try stepLab.revert()
          == (isThere ? [] : ["`\(Self.file)` was written since: left unchanged, and `s` too"]))
    }
  }
}
