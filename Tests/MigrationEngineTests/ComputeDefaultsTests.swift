import AppContainer
import AppStores
import ContainerTransaction
import Formats
import Foundation
import TestSupport
import Testing

@testable import MigrationEngine

/// Settings that SQLite computes.
@Suite("defaults.compute") struct ComputeDefaultsTests {
  private let lab: Lab

  init() throws { lab = try Lab() }

  struct Case: CustomTestStringConvertible, Sendable {
    let step: String
    let before: PropertyListDictionary
    /// Nil when the step fails.
    let after: PropertyListDictionary?
    /// A part of the error, or of the notes.
    var says = ""

    var testDescription: String { step }
  }

  @Test(
    arguments: [
      Case(
        step: "{key: full_name, value: \":first || ' ' || :last\"}",
        before: ["first": "Ada", "last": "Byron"],
        after: ["first": "Ada", "last": "Byron", "full_name": "Ada Byron"]),
      Case(step: "{key: n, value: ':n + 1'}", before: ["n": 41], after: ["n": 42]),
      Case(step: "{key: n, value: ':n'}", before: ["n": 41], after: ["n": 41]),
      Case(
        step: "{key: m, value: ':n * 60', type: real}", before: ["n": 2], after: ["n": 2, "m": 120.0]),
      Case(
        step: "{values: {a: ':b', b: ':a'}}", before: ["a": 1, "b": "x"], after: ["a": "x", "b": 1]),
      Case(
        step: "{values: {first: \"substr(:name, 1, instr(:name, ' ') - 1)\", "
          + "last: {value: \"substr(:name, instr(:name, ' ') + 1)\", type: text}}}",
        before: ["name": "Ada King"], after: ["name": "Ada King", "first": "Ada", "last": "King"]),
      Case(
        step: "{key: big, value: ':n > 10', type: boolean}", before: ["n": 11], after: ["n": 11, "big": true]),
      Case(
        step: "{key: s, value: \"iif(:on, 'dark', 'light')\"}", before: ["on": true],
        after: ["on": true, "s": "dark"]),
      Case(
        step: "{key: sum, value: ':x + :y', parameters: {x: two words, y: a.b}}",
        before: ["two words": 1, "a.b": 2], after: ["two words": 1, "a.b": 2, "sum": 3]),
      Case(
        step: "{key: tags, value: \"json_insert(:tags, '$[#]', 'new')\", type: array}",
        before: ["tags": ["a", 2]], after: ["tags": ["a", 2, "new"]]),
      Case(
        step: "{key: zoom, value: \"json_extract(:window, '$.zoom')\"}", before: ["window": ["zoom": 1.5]],
        after: ["window": ["zoom": 1.5], "zoom": 1.5]),
      Case(
        step: "{key: d, value: \"json_object('a', :n)\", type: dictionary}", before: ["n": 1],
        after: ["n": 1, "d": ["a": 1]]),
      Case(
        step: "{key: at, value: \":apple + 978307200\", type: date}", before: ["apple": 0],
        after: ["apple": 0, "at": .date(Date(timeIntervalSinceReferenceDate: 0))]),
      Case(
        step: "{key: unix, value: 'unixepoch(:at)'}",
        before: ["at": .date(Date(timeIntervalSinceReferenceDate: 1.5))],
        after: ["at": .date(Date(timeIntervalSinceReferenceDate: 1.5)), "unix": 978_307_201]),
      Case(
        step: "{key: at, value: \"datetime(:at, '+1 day')\", type: date}",
        before: ["at": .date(Date(timeIntervalSinceReferenceDate: 0))],
        after: ["at": .date(Date(timeIntervalSinceReferenceDate: 86_400))]),
      // Android's types, which property lists do not keep.
      Case(step: "{key: n, value: ':n + 1', type: int}", before: ["n": 1], after: ["n": 2]),
      Case(
        step: "{key: n, value: '2147483648', type: int, if-exists: replace}", before: ["n": 1], after: nil,
        says: "an integer of more than 32 bits"),
      Case(
        step: "{key: n, value: '1.5', type: long}", before: [:], after: nil,
        says: "a real, not an integer"),
      Case(step: "{key: x, value: '0.1', type: float}", before: [:], after: ["x": .single(0.1)]),
      Case(
        step: "{key: x, value: '0.123456789', type: float}", before: [:], after: nil,
        says: "a real that no float represents"),
      Case(
        step: "{key: s, value: \"'[\\\"b\\\", \\\"a\\\"]'\", type: set}", before: [:],
        after: ["s": ["a", "b"]], says: "the string set becomes an array"),
      Case(
        step: "{key: s, value: \"'[1]'\", type: set}", before: [:], after: nil,
        says: "JSON that is not an array of different texts"),
      // Without `type`, a setting keeps a type that SQLite does not have.
      Case(step: "{key: b, value: 'NOT :b'}", before: ["b": true], after: ["b": false]),
      Case(
        step: "{key: b, value: ':b + 1'}", before: ["b": true], after: nil,
        says: "the setting is a boolean: say `type`"),
      Case(step: "{key: b, value: ':b + 1', type: integer}", before: ["b": true], after: ["b": 2]),
      Case(
        step: "{key: tags, value: \"json_insert(:tags, '$[#]', 'new')\"}", before: ["tags": ["a", 2]],
        after: ["tags": ["a", 2, "new"]]),
      Case(
        step: "{key: at, value: 'unixepoch(:at)'}",
        before: ["at": .date(Date(timeIntervalSinceReferenceDate: 0))], after: nil,
        says: "an integer, not a date"),
      Case(step: "{key: n, value: ':n / 2.0'}", before: ["n": 1], after: ["n": 0.5]),
      Case(
        step: "{key: b, value: \"'x'\", if-exists: keep}", before: ["b": true], after: ["b": true],
        says: "kept"),
      // What is missing.
      Case(
        step: "{key: a, value: ':b'}", before: ["c": 1], after: ["c": 1], says: "`b` does not exist: skipped"),
      Case(
        step: "{key: a, value: ':b', if-missing: fail}", before: ["c": 1], after: nil,
        says: "the setting `b` does not exist"),
      Case(
        step: "{key: a, value: \"coalesce(:b, 'none')\", if-missing: null}", before: ["c": 1],
        after: ["c": 1, "a": "none"]),
      Case(
        step: "{values: {a: ':b', d: ':c'}}", before: ["c": 1], after: ["c": 1, "d": 1],
        says: "`b` does not exist: skipped"),
      // What exists.
      Case(
        step: "{key: a, value: '2'}", before: ["a": 1], after: nil, says: "the setting `a` exists already"),
      Case(step: "{key: a, value: '1'}", before: ["a": 1], after: ["a": 1]),
      Case(step: "{key: a, value: '2', if-exists: keep}", before: ["a": 1], after: ["a": 1], says: "kept"),
      Case(step: "{key: a, value: '2', if-exists: replace}", before: ["a": 1], after: ["a": 2]),
      // NULL.
      Case(
        step: "{key: a, value: 'NULL'}", before: ["a": 1], after: nil, says: "gives NULL: say `if-null: keep`"
      ),
      Case(
        step: "{key: a, value: 'nullif(:a, 1)', if-null: delete}", before: ["a": 1, "b": 2], after: ["b": 2],
        says: "gives NULL: deleted"),
      Case(
        step: "{key: a, value: 'nullif(:a, 1)', if-null: keep}", before: ["a": 1], after: ["a": 1],
        says: "gives NULL: left unchanged"),
      // Types.
      Case(
        step: "{key: a, value: '1.0', type: integer}", before: [:], after: nil,
        says: "gives a real, not an integer: write CAST(… AS INTEGER)"),
      Case(
        step: "{key: a, value: '9223372036854775807 + :n', type: integer}", before: ["n": 1], after: nil,
        says: "gives a real, not an integer"),
      Case(
        step: "{key: a, value: '9223372036854775807', type: real}", before: [:], after: nil,
        says: "an integer that no real represents exactly"),
      Case(
        step: "{key: a, value: '2', type: boolean}", before: [:], after: nil,
        says: "an integer other than 0 and 1"),
      Case(
        step: "{key: a, value: \"'true'\", type: boolean}", before: [:], after: nil,
        says: "gives text, not a boolean"),
      Case(
        step: "{key: a, value: '1', type: text}", before: [:], after: nil,
        says: "an integer, not text: write CAST"),
      Case(
        step: "{key: a, value: \"x'00'\", type: text}", before: [:], after: nil, says: "gives data, not text"),
      Case(
        step: "{key: a, value: \"CAST(x'ff' AS TEXT)\"}", before: [:], after: nil,
        says: "text that is not UTF-8"),
      Case(
        step: "{key: a, value: \"'a' || char(0)\"}", before: [:], after: nil,
        says: "text with a NUL character"),
      Case(
        step: "{key: a, value: \"'x'\", type: data}", before: [:], after: nil, says: "write CAST(… AS BLOB)"),
      Case(
        step: "{key: a, value: \"'soon'\", type: date}", before: [:], after: nil,
        says: "text that is not a date"),
      Case(
        step: "{key: a, value: \"x'00'\", type: date}", before: [:], after: nil,
        says: "gives data, not a date"),
      Case(
        step: "{key: a, value: \"'[1'\", type: array}", before: [:], after: nil, says: "text that is not JSON"
      ),
      Case(
        step: "{key: a, value: \"'[null]'\", type: array}", before: [:], after: nil, says: "JSON with a null"),
      Case(
        step: "{key: a, value: \"'{}'\", type: array}", before: [:], after: nil,
        says: "JSON that is not an array"),
      // Settings that SQLite does not have.
      Case(
        step: "{key: a, value: ':b'}", before: ["b": .unsigned(.max)], after: nil,
        says: "the setting `b` is an integer above 9223372036854775807"),
      Case(step: "{key: a, value: ':b'}", before: ["b": .real(.nan)], after: nil, says: "is NaN"),
      Case(
        step: "{key: a, value: ':b'}", before: ["b": "x\0y"], after: nil, says: "is text with a NUL character"
      ),
      Case(
        step: "{key: a, value: ':b'}", before: ["b": ["d": .data([1])]], after: nil,
        says: "is a dictionary with a date, data or another value that JSON does not have"),
      Case(
        step: "{key: a, value: ':b'}", before: ["b": .date(Date(timeIntervalSinceReferenceDate: 1e13))],
        after: nil, says: "a date outside of the years 1 to 9999"),
      Case(step: "{key: a, value: \"json(:b)\"}", before: ["b": "no"], after: nil, says: "malformed JSON"),
    ])
  func steps(_ test: Case) throws {
    try lab.set(test.before)
    var notes: [String] = []
    let result = failure { notes = try lab.run("defaults.compute: \(test.step)") }
    #expect(try lab.settings() ?? [:] == test.after ?? test.before, "\(result.text)")
    #expect((test.after == nil) == (result.text != "no error"), "\(result.text)")
    let said = test.after == nil ? result.text : notes.joined(separator: "\n")
    #expect(test.says.isEmpty ? said.isEmpty : said.contains(test.says), "\(said)")
    if test.after == nil { #expect(said.hasPrefix("0001_test.yaml:2:5: defaults.compute: "), "\(said)") }
  }

  @Test("Notes say what was skipped, kept and deleted")
  func notes() throws {
    try lab.set(["a": 1, "b": 2])
    let notes = try lab.tried(
      """
        - defaults.compute: {key: x, value: ':gone'}
        - defaults.compute: {key: a, value: '3', if-exists: keep}
        - defaults.compute: {key: b, value: 'nullif(:b, 2)', if-null: delete}

      """
    ) { $1 }
    #expect(
      notes.map { $0.replacing(#/^\S+ /#, with: "") } == [
        "defaults.compute: `gone` does not exist: skipped", "defaults.compute: `a` exists already: kept",
        "defaults.compute: the expression for `b` gives NULL: deleted",
      ])
  }

  @Test("Types of Android's settings stay, in an expression and in the table")
  func android() throws {
    lab.configuration.defaults["android"] = "shared_prefs/notes.xml"
    let before: PropertyListDictionary = [
      "i": .int(1), "l": .long(1), "f": .single(0.5), "s": .set(["b", "a"]), "t": "x", "b": true,
    ]
    try FileManager.default.createDirectory(
      atPath: lab.path("shared_prefs"), withIntermediateDirectories: true)
    try Data(SettingsFile(format: .sharedPreferences, root: before).encoded()).write(
      to: URL(fileURLWithPath: lab.path("shared_prefs/notes.xml")))
    try lab.database(Lab.oldDatabase, "CREATE TABLE t (a);")
    let after = try lab.tried(
      """
        - defaults.compute: {key: i, value: ':i + 1', suite: android}
        - defaults.compute: {key: l, value: ':l + 1', suite: android}
        - defaults.compute: {key: f, value: ':f * 3', suite: android}
        - defaults.compute: {key: s, value: "json_insert(:s, '$[#]', 'c')", suite: android}
        - defaults.compute: {key: b, value: 'NOT :b', suite: android}
        - sql: {database: notes, defaults: {suite: android}, up: "UPDATE defaults SET value = value + 1 WHERE type IN ('int', 'long', 'float'); INSERT INTO defaults VALUES ('new', 'long', 1)", down: SELECT 1}

      """
    ) { stage, _ in try stage.settings("shared_prefs/notes.xml") }
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
  @Test("An expression that only names a setting does not change it", arguments: 0..<40 as Range<UInt64>)
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
        try StepLab.with(lab, "defaults.compute: \(step)") { test in
          _ = try test.apply()
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
  }

  @Test("Down steps of the author replace the recorded values")
  func explicitDown() throws {
    try lab.set(["n": 10])
    try lab.baseline(0)
    try lab.migration(
      "0001_a.yaml",
      "steps:\n  - defaults.compute: {key: n, value: ':n * 2'}\ndown:\n  - defaults.compute: {key: n, value: ':n / 2'}\n"
    )
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
      ("{key: a, value: '1 +'}", "0001_a.yaml:2:39:", "near \")\": syntax error"),
      ("{key: a, value: 'b'}", "0001_a.yaml:2:39:", "no such column: b; a parameter starts with a colon"),
      ("{key: a, value: '?'}", "0001_a.yaml:2:39:", "has no name"),
      ("{key: a, value: \"datetime('now')\"}", "0001_a.yaml:2:39:", "depends on the current time"),
      ("{key: a, value: 'unixepoch()'}", "0001_a.yaml:2:39:", "depends on the current time"),
      ("{key: a, value: \"strftime('%s')\"}", "0001_a.yaml:2:39:", "depends on the current time"),
      ("{key: a, value: \"time(:t, 'LocalTime')\"}", "0001_a.yaml:2:39:", "the machine's time zone"),
      ("{key: a, value: 'random()'}", "0001_a.yaml:2:39:", "random gives another value in each run"),
      (
        "{key: a, value: ':b', parameters: {c: d}}", "0001_a.yaml:2:58:",
        "no expression has the parameter `:c`"
      ),
      ("{key: a, value: ':b', type: number}", "0001_a.yaml:2:51:", "is one of string, integer"),
      ("{values: {a: {valu: '1'}}}", "0001_a.yaml:2:37:", "did you mean `value`"),
      ("{values: {a: '1'}, type: text}", "0001_a.yaml:2:48:", "write `type` there"),
      ("{values: {}}", "0001_a.yaml:2:32:", "`values` is empty"),
    ])
  func validation(_ step: String, _ place: String, _ words: String) throws {
    try lab.migration("0001_a.yaml", "steps:\n  - defaults.compute: \(step)\n")
    let texts = try lab.problems()
    #expect(texts.count == 1 && texts[0].hasPrefix(place) && texts[0].contains(words), "\(texts)")
  }

  @Test("A text that is only like a time is no time")
  func words() throws {
    try lab.migration(
      "0001_a.yaml",
      "steps:\n  - defaults.compute: {key: a, value: \"CASE :a WHEN 'now' THEN date(:b, 'start of month') END\"}\n"
    )
    #expect(try lab.problems().isEmpty)
  }
}
