import FileSystem
import Formats
import Foundation
import Testing

@Suite struct DefaultsOperationTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  /// The settings after one step, or the error's text.
  private func outcome(
    _ before: PropertyListDictionary?, _ step: String
  ) throws -> (after: PropertyListDictionary?, notes: [String], error: String) {
    try Lab.with { lab in
      if let before { try lab.set(before) }
      var (after, notes) = (before, [String]())
      let error = failure { try lab.tried(step) { (after, notes) = (try $0.settings(), $1) } }
      return (after, notes, error.text)
    }
  }

  @Test(
    arguments: [
      ("defaults.set: {values: {a: 1}}", [:], ["a": 1], ""),
      ("defaults.set: {values: {a: 1}}", ["a": 1], ["a": 1], ""),
      ("defaults.set: {values: {a: 1}}", ["a": 1.0], nil, "the setting `a` exists already"),
      ("defaults.set: {values: {a: 1}, if-exists: keep}", ["a": 2], ["a": 2], ""),
      ("defaults.set: {values: {a: 1}, if-exists: replace}", ["a": 2], ["a": 1], ""),
      ("defaults.set-default: {values: {a: 1, b: x}}", ["a": "y"], ["a": "y", "b": "x"], ""),
      ("defaults.rename: {keys: {a: b}}", ["a": 1], ["b": 1], ""),
      ("defaults.rename: {keys: {a: b}}", ["c": 1], ["c": 1], ""),
      ("defaults.rename: {keys: {a: b}, if-missing: fail}", ["c": 1], nil, "the setting `a` does not exist"),
      ("defaults.rename: {keys: {a: b}}", ["a": 1, "b": 2], nil, "the setting `b` exists already"),
      ("defaults.rename: {keys: {a: b}, if-exists: keep}", ["a": 1, "b": 2], ["a": 1, "b": 2], ""),
      ("defaults.rename: {keys: {a: b}, if-exists: replace}", ["a": 1, "b": 2], ["b": 1], ""),
      ("defaults.rename: {keys: {a: b, b: a}}", ["a": 1, "b": 2], ["a": 2, "b": 1], ""),
      ("defaults.rename: {keys: {a.b: c}}", ["a.b": 1], ["c": 1], ""),
      ("defaults.delete: {keys: [a, z], destructive: old}", ["a": 1, "b": 2], ["b": 2], ""),
      ("defaults.delete: {keys: z, destructive: old, if-missing: fail}", ["a": 1], nil, "`z` does not exist"),
      ("defaults.delete: {prefix: a, destructive: old}", ["a": 1, "ab": 1, "b": 2], ["b": 2], ""),
      (
        "defaults.delete: {prefix: z, destructive: old, if-missing: fail}", ["a": 1], nil,
        "no setting starts with `z`"
      ),
    ] as [(String, PropertyListDictionary, PropertyListDictionary?, String)])
  func matrix(
    _ step: String, _ before: PropertyListDictionary, _ after: PropertyListDictionary?,
    _ message: String
  ) throws {
    let result = try outcome(before, step)
    #expect(result.after == after ?? before)
    #expect(after == nil ? result.error.contains(message) : result.error == "no error", "\(result.error)")
    if after == nil {
      #expect(result.error.hasPrefix("0001_test.yaml:2:5: defaults."))
    }
  }

  @Test func withoutSettingsFile() throws {
    let set = try outcome(nil, "defaults.set: {values: {a: 1}}")
    #expect(set.after == ["a": 1])
    let rename = try outcome(nil, "defaults.rename: {keys: {a: b}}")
    #expect(rename.after == nil)
    expectOne(rename.notes, end: "defaults.rename: `a` does not exist (no settings file): skipped")
    #expect(try outcome(nil, "defaults.delete: {keys: a, destructive: x}").after == nil)
    let convert = try outcome(nil, "defaults.convert: {key: a, type: string, if-missing: fail}")
    #expect(convert.error.contains("the setting `a` does not exist (no settings file)"))
  }

  @Test(
    arguments: [
      (true, "map: {true: dark, false: light}", "dark", ""),
      (false, "map: {true: dark, false: light}", "light", ""),
      ("true", "map: {true: dark}", nil, "the map has no entry for the text `true`"),
      ("true", "map: {'true': dark}", "dark", ""),
      (1, "map: {true: dark}", nil, "the value has the type integer, and the map's `true` the type Bool"),
      (true, "map: {yes: dark, no: light}", nil, "and the map has the text `yes`: write true"),
      (1.0, "map: {1: x}", nil, "the value has the type real, and the map's `1` the type integer"),
      (1, "map: {1: [a, 2]}", ["a", 2], ""),
      (3, "map: {1: x}, unmapped: keep", 3, ""),
      ("12", "type: integer", 12, ""),
      ("12x", "type: integer", nil, "its value (the text `12x`) does not fit the type integer"),
      (2.0, "type: integer", 2, ""), (2.5, "type: integer", nil, "does not fit"),
      (true, "type: integer", 1, ""),
      (12, "type: string", "12", ""),
      (true, "type: string", "true", ""),
      (1.5, "type: string", "1.5", ""),
      ("YES", "type: boolean", true, ""),
      (0, "type: boolean", false, ""),
      (2, "type: boolean", nil, "does not fit"), ("1.25", "type: real", 1.25, ""),
      (3, "type: real", 3.0, ""),
      ("2001-01-01T00:00:01Z", "type: date", .date(Date(timeIntervalSinceReferenceDate: 1)), ""),
      (978_307_201, "type: date", .date(Date(timeIntervalSinceReferenceDate: 1)), ""),
      ("hi", "type: data", .data([104, 105]), ""),
      (.data([104, 105]), "type: string", "hi", ""),
      ([], "type: string, unmapped: keep", [], ""),
    ] as [(PropertyListValue, String, PropertyListValue?, String)])
  func conversions(
    _ value: PropertyListValue, _ rule: String, _ expected: PropertyListValue?, _ message: String
  ) throws {
    for (to, name) in [("", "k"), ("to: n, ", "n")] {
      let result = try outcome(["k": value], "defaults.convert: {key: k, \(to)\(rule)}")
      if let expected {
        #expect(result.error == "no error")
        #expect(result.after == [name: expected])
      } else {
        #expect(result.after == ["k": value])
        #expect(result.error.contains(message), "\(result.error)")
      }
    }
  }

  @Test func convertOntoAnExistingSetting() throws {
    let before: PropertyListDictionary = ["d": true, "t": "light"]
    let step = "defaults.convert: {key: d, to: t, map: {true: dark, false: light}"
    #expect(try outcome(before, step + "}").error.contains("the setting `t` exists already"))
    #expect(try outcome(before, step + ", if-exists: replace}").after == ["t": "dark"])
    #expect(try outcome(before, step + ", if-exists: keep}").after == before)
    #expect(try outcome(["d": 9], step + ", unmapped: delete}").after == [:])
    #expect(try outcome(["x": 9], step + "}").notes.count == 1)
  }

  @Test func secretsStayOutOfMessages() throws {
    let result = try outcome(["authToken": "hunter2"], "defaults.convert: {key: authToken, type: integer}")
    #expect(!result.error.contains("hunter2") && result.error.contains("a string (secret, 7 characters, #"))
  }

  @Test func otherFilesAndSuites() throws {
    lab.configuration.defaults = ["group": "Library/Preferences/group.x.plist"]
    try lab.run(
      "defaults.set: {values: {a: 1}, suite: group}",
      "defaults.set: {values: {b: 2}, file: Documents/other.plist}",
      "defaults.rename: {keys: {b: c}, file: Documents/other.plist}")
    #expect(try lab.settings() == nil && lab.exists("Library/Preferences/group.x.plist"))
    #expect(try lab.exists("Documents/other.plist"))
    try lab.migration("0002_b.yaml", step: "defaults.set: {values: {a: 1}, suite: grup}")
    expectFailure("0002_b.yaml:2:43: drydock.yaml has no settings file `grup`", "did you mean `group`?") {
      try lab.migrate()
    }
  }

  private static let vault: ContainerPath = "Library/Vault/vault.age"
  private static let refusal = "this file is Drydock's own, and not a settings file"

  @Test(arguments: [vault, "Library/Application Support/.drydock/history.json"])
  func noStepTakesAFileOfDrydockForSettings(_ path: ContainerPath) {
    lab.expectFailing(
      "defaults.set: {values: {a: 1}, file: \(path)}", "\(Self.refusal) (\(path))",
      start: "0001_test.yaml:2:42: ")
  }

  @Test func aNameForTheVaultDoesNotMakeItASettingsFile() {
    lab.configuration.defaults = ["own": Self.vault]
    lab.expectFailing(
      "defaults.set: {values: {a: 1}, suite: own}", "\(Self.refusal) (\(Self.vault))",
      start: "0001_test.yaml:2:43: ")
    lab.configuration.defaults = ["standard": Self.vault]
    lab.expectFailing(
      "defaults.set: {values: {a: 1}}", "\(Self.vault): \(Self.refusal)", start: "0001_test.yaml:2:5: ")
  }

  @Test func xmlStaysXMLAndRoundsWithARemark() throws {
    try lab.set(["x": 1], format: .xml)
    expectOne(
      try lab.run("defaults.set: {values: {d: !date 2026-11-20T10:15:00.5Z}}"),
      end: "which keeps whole seconds only")
    #expect(try lab.text(Lab.settings).hasPrefix("<?xml"))
  }

  @Test func malformedSettings() throws {
    try lab.write(Lab.settings, "bplist00 nonsense")
    expectFailure(
      "0001_test.yaml:2:5: defaults.set: \(Lab.settings): the binary property list", code: .stepFailed
    ) { try lab.run("defaults.set: {values: {a: 1}}") }
  }
}
