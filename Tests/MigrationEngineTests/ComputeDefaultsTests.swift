import AppStores
import Formats
import Foundation
import TestSupport
import Testing

@testable import MigrationEngine

@Suite("defaults.compute") struct ComputeDefaultsTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  @Test(
    arguments: [
      .gives(
        "{key: full_name, value: \":first || ' ' || :last\"}", ["first": "Ada", "last": "Byron"],
        ["first": "Ada", "last": "Byron", "full_name": "Ada Byron"]),
      .gives("{key: n, value: ':n + 1'}", ["n": 41], ["n": 42]),
      .gives("{key: n, value: ':n'}", ["n": 41], ["n": 41]),
      .gives("{key: m, value: ':n * 60', type: real}", ["n": 2], ["n": 2, "m": 120.0]),
      .gives("{values: {a: ':b', b: ':a'}}", ["a": 1, "b": "x"], ["a": "x", "b": 1]),
      .gives(
        "{values: {first: \"substr(:name, 1, instr(:name, ' ') - 1)\", "
          + "last: {value: \"substr(:name, instr(:name, ' ') + 1)\", type: text}}}", ["name": "Ada King"],
        ["name": "Ada King", "first": "Ada", "last": "King"]),
      .gives("{key: big, value: ':n > 10', type: boolean}", ["n": 11], ["n": 11, "big": true]),
      .gives("{key: s, value: \"iif(:on, 'dark', 'light')\"}", ["on": true], ["on": true, "s": "dark"]),
      .gives(
        "{key: sum, value: ':x + :y', parameters: {x: two words, y: a.b}}", ["two words": 1, "a.b": 2],
        ["two words": 1, "a.b": 2, "sum": 3]),
      .gives(
        "{key: tags, value: \"json_insert(:tags, '$[#]', 'new')\", type: array}", ["tags": ["a", 2]],
        ["tags": ["a", 2, "new"]]),
      .gives(
        "{key: zoom, value: \"json_extract(:window, '$.zoom')\"}", ["window": ["zoom": 1.5]],
        ["window": ["zoom": 1.5], "zoom": 1.5]),
      .gives(
        "{key: d, value: \"json_object('a', :n)\", type: dictionary}", ["n": 1], ["n": 1, "d": ["a": 1]]),
      .gives(
        "{key: at, value: \":apple + 978307200\", type: date}", ["apple": 0],
        ["apple": 0, "at": .date(Date(timeIntervalSinceReferenceDate: 0))]),
      .gives(
        "{key: unix, value: 'unixepoch(:at)'}", ["at": .date(Date(timeIntervalSinceReferenceDate: 1.5))],
        ["at": .date(Date(timeIntervalSinceReferenceDate: 1.5)), "unix": 978_307_201]),
      .gives(
        "{key: at, value: \"datetime(:at, '+1 day')\", type: date}",
        ["at": .date(Date(timeIntervalSinceReferenceDate: 0))],
        ["at": .date(Date(timeIntervalSinceReferenceDate: 86_400))]),
      // Android's types, which property lists do not keep.
      .gives("{key: n, value: ':n + 1', type: int}", ["n": 1], ["n": 2]),
      .fails(
        "{key: n, value: '2147483648', type: int, if-exists: replace}", ["n": 1],
        "an integer of more than 32 bits"),
      .fails("{key: n, value: '1.5', type: long}", [:], "a real, not an integer"),
      .gives("{key: x, value: '0.1', type: float}", [:], ["x": .single(0.1)]),
      .fails("{key: x, value: '0.123456789', type: float}", [:], "a real that no float represents"),
      .gives(
        "{key: s, value: \"'[\\\"b\\\", \\\"a\\\"]'\", type: set}", [:], ["s": ["a", "b"]],
        "the string set becomes an array"),
      .fails("{key: s, value: \"'[1]'\", type: set}", [:], "JSON that is not an array of different texts"),
      // Without `type`, a setting keeps a type that SQLite does not have.
      .gives("{key: b, value: 'NOT :b'}", ["b": true], ["b": false]),
      .fails("{key: b, value: ':b + 1'}", ["b": true], "the setting is a boolean: say `type`"),
      .gives("{key: b, value: ':b + 1', type: integer}", ["b": true], ["b": 2]),
      .gives(
        "{key: tags, value: \"json_insert(:tags, '$[#]', 'new')\"}", ["tags": ["a", 2]],
        ["tags": ["a", 2, "new"]]),
      .fails(
        "{key: at, value: 'unixepoch(:at)'}", ["at": .date(Date(timeIntervalSinceReferenceDate: 0))],
        "an integer, not a date"),
      .gives("{key: n, value: ':n / 2.0'}", ["n": 1], ["n": 0.5]),
      .gives("{key: b, value: \"'x'\", if-exists: keep}", ["b": true], ["b": true], "kept"),
      .gives("{key: a, value: ':b'}", ["c": 1], ["c": 1], "`b` does not exist: skipped"),
      .fails("{key: a, value: ':b', if-missing: fail}", ["c": 1], "the setting `b` does not exist"),
      .gives("{key: a, value: \"coalesce(:b, 'none')\", if-missing: null}", ["c": 1], ["c": 1, "a": "none"]),
      .gives("{values: {a: ':b', d: ':c'}}", ["c": 1], ["c": 1, "d": 1], "`b` does not exist: skipped"),
      .fails("{key: a, value: '2'}", ["a": 1], "the setting `a` exists already"),
      .gives("{key: a, value: '1'}", ["a": 1], ["a": 1]),
      .gives("{key: a, value: '2', if-exists: keep}", ["a": 1], ["a": 1], "kept"),
      .gives("{key: a, value: '2', if-exists: replace}", ["a": 1], ["a": 2]),
      .fails("{key: a, value: 'NULL'}", ["a": 1], "gives NULL: say `if-null: keep`"),
      .gives(
        "{key: a, value: 'nullif(:a, 1)', if-null: delete}", ["a": 1, "b": 2], ["b": 2], "gives NULL: deleted"
      ),
      .gives(
        "{key: a, value: 'nullif(:a, 1)', if-null: keep}", ["a": 1], ["a": 1], "gives NULL: left unchanged"),
      .fails(
        "{key: a, value: '1.0', type: integer}", [:], "gives a real, not an integer: write CAST(… AS INTEGER)"
      ),
      .fails(
        "{key: a, value: '9223372036854775807 + :n', type: integer}", ["n": 1], "gives a real, not an integer"
      ),
      .fails(
        "{key: a, value: '9223372036854775807', type: real}", [:],
        "an integer that no real represents exactly"),
      .fails("{key: a, value: '2', type: boolean}", [:], "an integer other than 0 and 1"),
      .fails("{key: a, value: \"'true'\", type: boolean}", [:], "gives text, not a boolean"),
      .fails("{key: a, value: '1', type: text}", [:], "an integer, not text: write CAST"),
      .fails("{key: a, value: \"x'00'\", type: text}", [:], "gives data, not text"),
      .fails("{key: a, value: \"CAST(x'ff' AS TEXT)\"}", [:], "text that is not UTF-8"),
      .fails("{key: a, value: \"'a' || char(0)\"}", [:], "text with a NUL character"),
      .fails("{key: a, value: \"'x'\", type: data}", [:], "write CAST(… AS BLOB)"),
      .fails("{key: a, value: \"'soon'\", type: date}", [:], "text that is not a date"),
      .fails("{key: a, value: \"x'00'\", type: date}", [:], "gives data, not a date"),
      .fails("{key: a, value: \"'[1'\", type: array}", [:], "text that is not JSON"),
      .fails("{key: a, value: \"'[null]'\", type: array}", [:], "JSON with a null"),
      .fails("{key: a, value: \"'{}'\", type: array}", [:], "JSON that is not an array"),
      // Settings that SQLite does not have.
      .fails(
        "{key: a, value: ':b'}", ["b": .unsigned(.max)],
        "the setting `b` is an integer above 9223372036854775807"),
      .fails("{key: a, value: ':b'}", ["b": .real(.nan)], "is NaN"),
      .fails("{key: a, value: ':b'}", ["b": "x\0y"], "is text with a NUL character"),
      .fails(
        "{key: a, value: ':b'}", ["b": ["d": .data([1])]],
        "is a dictionary with a date, data or another value that JSON does not have"),
      .fails(
        "{key: a, value: ':b'}", ["b": .date(Date(timeIntervalSinceReferenceDate: 1e13))],
        "a date outside of the years 1 to 9999"),
      .fails("{key: a, value: \"json(:b)\"}", ["b": "no"], "malformed JSON"),
    ] as [StepCase<PropertyListDictionary>])
  func steps(_ test: StepCase<PropertyListDictionary>) throws {
    try lab.set(test.before)
    var (after, notes) = (test.before, [String]())
    let result = failure {
      try lab.tried("defaults.compute: \(test.step)") { (after, notes) = (try $0.settings() ?? [:], $1) }
    }
    #expect(after == test.after ?? test.before, "\(result.text)")
    #expect((test.after == nil) == (result.text != "no error"), "\(result.text)")
    let said = test.after == nil ? result.text : notes.joined(separator: "\n")
    #expect(test.says.isEmpty ? said.isEmpty : said.contains(test.says), "\(said)")
    if test.after == nil { #expect(said.hasPrefix("0001_test.yaml:2:5: defaults.compute: "), "\(said)") }
  }

  @Test("Types of Android's settings stay, in an expression and in the table")
  func android() throws {
    lab.configuration.defaults["android"] = "shared_prefs/notes.xml"
    let before: PropertyListDictionary = [
      "i": .int(1), "l": .long(1), "f": .single(0.5), "s": .set(["b", "a"]), "t": "x", "b": true,
    ]
    try lab.write("shared_prefs/notes.xml", SettingsFile(format: .sharedPreferences, root: before).encoded())
    try lab.database(Lab.oldDatabase, "CREATE TABLE t (a);")
    let after = try lab.settings(
      "shared_prefs/notes.xml",
      after: """
          - defaults.compute: {key: i, value: ':i + 1', suite: android}
          - defaults.compute: {key: l, value: ':l + 1', suite: android}
          - defaults.compute: {key: f, value: ':f * 3', suite: android}
          - defaults.compute: {key: s, value: "json_insert(:s, '$[#]', 'c')", suite: android}
          - defaults.compute: {key: b, value: 'NOT :b', suite: android}
          - sql: {database: notes, defaults: {suite: android}, up: "UPDATE defaults SET value = value + 1 WHERE type IN ('int', 'long', 'float'); INSERT INTO defaults VALUES ('new', 'long', 1)", down: SELECT 1}
        """)
    #expect(
      after == [
        "i": .int(3), "l": .long(3), "f": .single(2.5), "s": .set(["a", "b", "c"]), "t": "x", "b": false,
        "new": .long(1),
      ])
    for (key, value, reason) in [
      ("l", "9223372036854775807 + :l", "a real, not an integer"), ("i", ":i + 2147483647", "32 bits"),
      ("s", "'x'", "not JSON"),
    ] {
      let error = lab.failing(
        "  - defaults.compute: {key: \(key), value: \"\(value)\", if-exists: replace, suite: android}\n")
      #expect(error.contains(reason) && error.contains("say `type` to change that"), "\(error)")
    }
  }

  @Test("A registered default is what the expression reads")
  func registered() throws {
    lab.configuration.registeredDefaults = RegisteredDefaults(["standard": ["size": 12]])
    try lab.run("defaults.compute: {key: double, value: ':size * 2'}")
    #expect(try lab.settings() == ["double": 24])
  }

  /// Every setting that SQLite has comes back from an expression as it was, in its type.
  @Test(
    "An expression that only names a setting does not change it",
    arguments: 0..<(TestExtent.isFull ? 40 : 8) as Range<UInt64>)
  func identity(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var tried = 0
    for number in 0..<50 {
      let value =
        number % 5 == 0
        ? .date(Date(timeIntervalSinceReferenceDate: Double.random(in: -2e9...2e9, using: &random)))
        : RandomContainer.value(&random, format: .binary)
      guard let type = SettingType(of: value), let bound = try? SQLiteValue(value) else { continue }
      tried += 1
      let result = try type.setting(bound)
      #expect(result.matches(value), "\(value) \(result)")
    }
    #expect(tried > 30)
  }

  @Test(
    "The revert restores what was there, and leaves what the app wrote since",
    arguments: [
      "{key: n, value: ':n + 1'}", "{key: new, value: ':n'}",
      "{key: n, value: 'NULL', if-null: delete, if-exists: replace}",
      "{values: {a: ':n', b: ':s'}, if-exists: replace}",
    ])
  func revert(step: String) throws {
    let before: PropertyListDictionary = ["n": 1, "s": "x", "a": 1.5]
    for changes in [false, true] {
      try Lab.with { lab in
        try lab.set(before)
        let test = try lab.applied("defaults.compute: \(step)")
        let after = try test.stage.settings() ?? [:]
        #expect(after != before)
        if changes {
          let all = before.merging(after) { $1 }
          try test.set(all.mapValues { _ in "newer" })
          let notes = try test.revert()
          #expect(!notes.isEmpty)
          let now = try #require(try test.stage.settings())
          #expect(all.allSatisfy { now[$0.key] == "newer" }, "\(now)")
        } else {
          #expect(try test.revert() == [])
          #expect(try test.stage.settings() == before)
        }
      }
    }
  }

  @Test("Down steps of the author replace the recorded values")
  func explicitDown() throws {
    try lab.set(["n": 10])
    try lab.baseline(0)
    try lab.migration(
      "0001_a.yaml", steps: ["defaults.compute: {key: n, value: ':n * 2'}"],
      ["down": ["defaults.compute: {key: n, value: ':n / 2'}"]])
    try lab.migrate()
    try lab.app(sets: "n", 50)
    try lab.rollback(down: true)
    #expect(try lab.settings()?["n"] == 25)
  }

  @Test(
    "Errors in arguments and expressions have their place, without a container",
    arguments: [
      ("{key: a}", "0001_a.yaml:2:23:", "needs the key `value`"),
      ("{value: '1'}", "0001_a.yaml:2:23:", "needs `key` and `value`"),
      ("{key: a, value: ''}", "0001_a.yaml:2:39:", "is empty: write a SQL expression"),
      ("{key: a, value: 1}", "0001_a.yaml:2:39:", "is a text"),
      ("{key: a, value: '?'}", "0001_a.yaml:2:39:", "has no name"),
      ("{key: a, value: 'unixepoch()'}", "0001_a.yaml:2:39:", "depends on the current time"),
      ("{key: a, value: \"strftime('%s')\"}", "0001_a.yaml:2:39:", "depends on the current time"),
      ("{key: a, value: \"time(:t, 'LocalTime')\"}", "0001_a.yaml:2:39:", "the machine's time zone"),
      ("{key: a, value: ':b', type: number}", "0001_a.yaml:2:51:", "is one of string, integer"),
      ("{values: {a: {valu: '1'}}}", "0001_a.yaml:2:37:", "did you mean `value`"),
      ("{values: {a: '1'}, type: text}", "0001_a.yaml:2:48:", "write `type` there"),
      ("{values: {}}", "0001_a.yaml:2:32:", "`values` is empty"),
    ])
  func validation(_ step: String, _ place: String, _ words: String) throws {
    try lab.migration("0001_a.yaml", step: "defaults.compute: \(step)")
    expectOne(try lab.problems(), words, start: place)
  }

  @Test("A text that is only like a time is no time")
  func words() throws {
    try lab.migration(
      "0001_a.yaml",
      step: "defaults.compute: {key: a, value: \"CASE :a WHEN 'now' THEN date(:b, 'start of month') END\"}")
    #expect(try lab.problems().isEmpty)
  }
}
