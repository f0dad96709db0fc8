import FileSystem
import Formats
import Foundation
import Testing

@testable import MigrationEngine

@Suite struct DefaultsTransferTests {
  typealias Values = PropertyListDictionary

  private let lab: Lab
  init() throws { lab = try Lab() }

  private func prepare(_ own: Values?, _ group: Values?) throws {
    lab.configuration.defaults = ["group.notes": Lab.group]
    if let own { try lab.set(own) }
    if let group { try lab.write(Lab.group, settings: group) }
  }

  private static let to = "to: {suite: group.notes}"

  @Test(
    arguments: [
      ("move: {\(to), keys: [a]}", ["a": 1, "b": 2], nil, ["b": 2], ["a": 1], nil),
      ("move: {\(to), keys: a}", ["a": 1], ["b": 2], [:], ["a": 1, "b": 2], nil),
      ("move: {\(to), keys: {a: x, b: a}}", ["a": 1, "b": 2], nil, [:], ["x": 1, "a": 2], nil),
      (
        "move: {\(to), prefix: w.}", ["w.x": 1, "w.y": 2, "wz": 3], nil, ["wz": 3], ["w.x": 1, "w.y": 2], nil
      ),
      ("move: {\(to), all: true}", ["a": 1, "b": 2], nil, [:], ["a": 1, "b": 2], nil),
      ("move: {from: {suite: group.notes}, keys: [a]}", nil, ["a": 1], ["a": 1], [:], nil),
      ("move: {from: {file: \(Lab.group)}, keys: [a]}", nil, ["a": 1], ["a": 1], [:], nil),
      // Both have it: the same value is no conflict, 1 and 1.0 are not the same.
      ("move: {\(to), keys: [a]}", ["a": 1], ["a": 1], [:], ["a": 1], nil),
      ("move: {\(to), keys: [a]}", ["a": 1], ["a": 1.0], nil, nil, "the setting `a` exists already"),
      (
        "move: {\(to), keys: [a, b], if-exists: keep}", ["a": 1, "b": 2], ["a": 9], ["a": 1],
        ["a": 9, "b": 2], nil
      ),
      ("move: {\(to), keys: [a], if-exists: replace}", ["a": 1], ["a": 9], [:], ["a": 1], nil),
      // All or nothing: `b` could go, and does not.
      ("move: {\(to), keys: [b, a]}", ["a": 1, "b": 2], ["a": 9], nil, nil, "exists already"),
      ("move: {\(to), keys: [a]}", ["b": 2], nil, ["b": 2], nil, nil),
      ("move: {\(to), keys: [a], if-missing: fail}", ["b": 2], nil, nil, nil, "`a` does not exist"),
      ("move: {\(to), prefix: z, if-missing: fail}", ["b": 2], nil, nil, nil, "no setting starts with `z`"),
      ("move: {\(to), all: true}", nil, nil, nil, nil, nil),
      ("move: {to: {file: \(Lab.settings)}, keys: {a: b}}", ["a": 1], nil, nil, nil, "the same settings"),
      ("copy: {\(to), keys: [a]}", ["a": 1, "b": 2], nil, ["a": 1, "b": 2], ["a": 1], nil),
      (
        "copy: {to: {file: \(Lab.settings)}, keys: {a: c, b: a}, if-exists: replace}", ["a": 1, "b": 2], nil,
        ["a": 2, "b": 2, "c": 1], nil, nil
      ),
      ("copy: {\(to), keys: [a]}", ["a": 1], ["a": 2], nil, nil, "exists already"),
      ("copy: {\(to), keys: [a], if-exists: keep}", ["a": 1], ["a": 2], ["a": 1], ["a": 2], nil),
    ] as [(String, Values?, Values?, Values?, Values?, String?)])
  func matrix(
    _ step: String, _ own: Values?, _ group: Values?, _ ownAfter: Values?, _ groupAfter: Values?,
    _ message: String?
  ) throws {
    try prepare(own, group)
    let steps = "  - defaults.\(step)\n"
    if let message {
      lab.expectFailing(steps, message, start: "0001_test.yaml:2:5: defaults.")
    } else {
      let after = try lab.tried(steps) { stage, _ throws in
        (try stage.settings(), try stage.settings(Lab.group))
      }
      #expect(after.0 == ownAfter && after.1 == groupAfter)
    }
  }

  @Test func typesArriveExactly() throws {
    let values: Values = [
      "a": .date(.init(timeIntervalSinceReferenceDate: 1.25)), "b": .single(0.1), "c": .unsigned(.max),
      "d": .data([0]), "e": .dictionary(["x": .array([true, 1, .real(1)])]),
    ]
    try prepare(values, nil)
    #expect(try lab.settings(Lab.group, after: "defaults.move: {\(Self.to), all: true}") == values)
  }

  @Test(arguments: [
    ("move: {keys: [a]}", "defaults.move needs `from` or `to`"),
    ("move: {\(to)}", "needs `keys`, a `prefix`, or `all: true`"),
    ("move: {\(to), keys: [a], all: true}", "name either `keys` or `all`, not both"),
    ("move: {\(to), all: false}", "`all` is true, or left out"),
    ("move: {\(to), prefix: ''}", "say `all: true`"),
    ("move: {\(to), keys: {a: b, c: b}}", "two settings become `b`"),
    ("move: {to: {suit: x}, keys: a}", "did you mean `suite`?"),
    ("copy: {to: x, keys: a}", "`to` is a mapping"),
    ("move: {to: {suite: grup.notes}, keys: a}", "did you mean `group.notes`?"),
    ("move: {to: {suite: a, file: b}, keys: a}", "name either `suite` or `file`"),
  ])
  func refused(_ step: String, _ message: String) throws {
    try prepare(["a": 1], nil)
    lab.expectFailing("defaults.\(step)", message, "0001_test.yaml:2:")
  }

  /// The step, both files before it, what the app makes of them since, the notes of the revert, and both files after it.
  /// The app goes on in the new place: what it adds there is the old version's, too, unless it was there before.
  @Test(
    arguments: [
      (
        "move: {\(to), keys: {a: x, b: b, c: c, z: z}, if-exists: replace}", ["a": 1, "b": 2, "c": 3],
        ["c": 9, "b": 2], nil, ["x": 7, "b": 2, "c": 3, "z": 5], [], ["a": 7, "b": 2, "c": 3, "z": 5],
        ["b": 2, "c": 9]
      ),
      (
        "move: {\(to), prefix: w.}", ["w.a": 1], ["w.old": 9, "y": 2], nil,
        ["w.old": 9, "y": 2, "w.a": 2, "w.new": 3], [], ["w.a": 2, "w.new": 3], ["w.old": 9, "y": 2]
      ),
      (
        "move: {\(to), all: true}", ["w.a": 1], nil, nil, ["w.a": 2, "w.new": 3], [],
        ["w.a": 2, "w.new": 3], nil
      ),
      (
        "move: {\(to), all: true}", ["w.a": 1], ["y": 2], nil, ["y": 2, "w.a": 2, "w.new": 3],
        ["`w.new` was written since: left unchanged"], ["w.a": 2], ["y": 2, "w.new": 3]
      ),
      (
        "copy: {\(to), prefix: w.}", ["w.a": 1], ["w.old": 9], nil, ["w.a": 1, "w.old": 9, "w.new": 3],
        ["`w.new` was written since: left unchanged"], ["w.a": 1], ["w.old": 9, "w.new": 3]
      ),
      (
        "move: {\(to), keys: [a, b]}", ["a": 1, "b": 2], nil, ["a": 5], ["a": 1],
        ["`b` does not exist: skipped", "`a` exists already: kept, and `a` too"], ["a": 5], ["a": 1]
      ),
    ] as [(String, Values, Values?, Values?, Values, [String], Values, Values?)])
  func revert(
    _ step: String, _ own: Values, _ group: Values?, _ appOwn: Values?, _ appGroup: Values, _ notes: [String],
    _ ownAfter: Values, _ groupAfter: Values?
  ) throws {
    try prepare(own, group)
    let stepLab = try lab.applied("defaults.\(step)")
    if let appOwn { try stepLab.set(appOwn) }
    try stepLab.set(appGroup, at: Lab.group)
    #expect(try stepLab.revert() == notes)
    #expect(try stepLab.stage.settings() == ownAfter && stepLab.stage.settings(Lab.group) == groupAfter)
  }

  @Test func moveBackWithoutMemory() throws {
    try prepare(["a": 1], nil)
    let keys = try lab.applied("defaults.move: {\(Self.to), keys: {a: x}}")
    #expect(try keys.revert(withPriorValues: false) == [])
    #expect(try keys.stage.settings() == ["a": 1])
    let all = try lab.applied("defaults.move: {\(Self.to), all: true}")
    #expect(throws: StepFailure.self) { try all.revert(withPriorValues: false) }
    #expect(try all.revert() == [])
    #expect(try all.stage.settings() == ["a": 1] && all.stage.settings(Lab.group) == nil)
  }

  @Test func copiesGoWhereTheyAreWhatWasCopied() throws {
    try prepare(["a": 1, "b": 2], nil)
    let stepLab = try lab.applied("defaults.copy: {\(Self.to), keys: [a, b]}")
    #expect(throws: StepFailure.self) { try stepLab.revert(withPriorValues: false) }
    try stepLab.set(["a": 1, "b": 3], at: Lab.group)
    #expect(try stepLab.revert().count == 1)
    #expect(try stepLab.stage.settings(Lab.group) == ["b": 3])
  }

  /// The iCloud key-value store is a suite like any other, with limits.
  private static let cloud: ContainerPath = "Library/SyncedPreferences/com.example.lab.plist"
  private static let records: PropertyListDictionary = [
    "version": 1, "values": ["theme": ["value": "dark", "timestamp": 1]],
  ]

  private func prepare(_ cloud: PropertyListDictionary?) throws {
    lab.configuration.defaults["icloud"] = Self.cloud
    try lab.set(["color": "red", "n": 1])
    if let cloud { try lab.write(Self.cloud, settings: cloud) }
  }

  @Test func settingsMoveThereAndBack() throws {
    try prepare(nil)
    try lab.tried(
      "defaults.move: {keys: [color], to: {suite: icloud}}",
      "defaults.copy: {keys: {color: cloudColor}, from: {suite: icloud}}"
    ) { stage, _ in
      #expect(try stage.settings(Self.cloud) == ["color": "red"])
      let own = try #require(try stage.settings())
      #expect(own["cloudColor"] == "red" && own["color"] == nil && own["n"] == 1)
    }
  }

  @Test func aStepThatExceedsTheLimitsFails() throws {
    try prepare(PropertyListDictionary((0..<1024).map { ("key\($0)", true) }))
    lab.expectFailing("defaults.move: {keys: [color], to: {suite: icloud}}", "beyond its limits: 1025 keys")
    // Replacing a value, and deleting one, is within them.
    try lab.tried(
      "defaults.set: {suite: icloud, values: {key1: x}, if-exists: replace}",
      "defaults.delete: {suite: icloud, keys: [key2], destructive: made up}",
      "defaults.move: {keys: [color], to: {suite: icloud}}"
    ) { stage, _ throws in #expect(try stage.settings(Self.cloud)?.count == 1024) }
  }

  @Test func recordsOfTheSystemAreReadOnly() throws {
    try prepare(Self.records)
    try lab.tried("defaults.copy: {keys: [theme], from: {suite: icloud}}") { stage, _ throws in
      #expect(try stage.settings()?["theme"] == "dark")
      #expect(try stage.settings(Self.cloud) == Self.records)
    }
    for step in [
      "defaults.move: {keys: [theme], from: {suite: icloud}}",
      "defaults.set: {suite: icloud, values: {a: 1}}",
    ] {
      lab.expectFailing(step, "the form of the system's iCloud daemon")
    }
  }

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
  func fileRefused(_ arguments: String, _ value: PropertyListValue, _ message: String) throws {
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
      let stepLab = try lab.applied("defaults.move-to-file: {key: s, to: \(Self.file), format: json}")
      try stepLab.write(Self.file, text)
      if let message {
        #expect { try stepLab.revert() } throws: { "\($0)".contains(message) }
        #expect(try stepLab.stage.text(Self.file) == text)
      } else {
        #expect(try stepLab.revert() == [])
        #expect(try stepLab.stage.settings() == ["s": after])
      }
    }
    let stepLab = try lab.applied("defaults.move-to-file: {key: s, to: \(Self.file), format: json}")
    try stepLab.set(["s": "the app's"])
    #expect(try stepLab.revert() == ["`s` was changed since: kept, and `Documents/state` too"])
    #expect(try stepLab.stage.text(Self.file) != nil)
  }

  @Test func aFileWithoutASettingIsNoted() throws {
    for isThere in [false, true] {
      if isThere { try lab.write(Self.file, "{}") }
      let stepLab = try lab.applied("defaults.move-to-file: {key: s, to: \(Self.file)}")
      if !isThere { try stepLab.write(Self.file, "of the app") }
      #expect(
        try stepLab.revert()
          == (isThere ? [] : ["`\(Self.file)` was written since: left unchanged, and `s` too"]))
    }
  }
}
