import AppContainer
import DrydockErrors
import Formats
import Testing

@testable import MigrationEngine

@Suite struct RegisteredDefaultsTests {
  private let lab: Lab

  init() throws {
    lab = try Lab()
    lab.configuration.defaults = ["group": Lab.group]
    lab.configuration.registeredDefaults = RegisteredDefaults([
      "standard": ["dark_mode": false, "zoom": 1], "group": ["dark_mode": true],
    ])
  }

  @Test(
    arguments: [
      ("{key: dark_mode, to: theme, map: {true: dark, false: light}}", [:], ["theme": "light"]),
      (
        "{key: dark_mode, to: theme, map: {true: dark, false: light}}", ["dark_mode": true], ["theme": "dark"]
      ),
      (
        "{key: dark_mode, to: theme, map: {true: dark, false: light}, if-missing: fail}", [:],
        ["theme": "light"]
      ),
      ("{key: zoom, type: string}", [:], ["zoom": "1"]),
      // What stays as it is need not be stored.
      ("{key: zoom, type: integer}", [:], [:]), ("{key: zoom, map: {7: 8}, unmapped: keep}", [:], [:]),
      ("{key: zoom, map: {7: 8}, unmapped: delete}", [:], [:]), ("{key: other, type: string}", [:], [:]),
      ("{key: dark_mode, type: string, suite: group}", [:], [:]),
      ("{key: dark_mode, type: string, file: \(Lab.settings)}", [:], [:]),
    ] as [(String, PropertyListDictionary, PropertyListDictionary)])
  func convert(
    _ arguments: String, _ before: PropertyListDictionary, _ after: PropertyListDictionary
  ) throws {
    try lab.set(before)
    try lab.tried("defaults.convert: \(arguments)") { stage, _ throws in
      let group: PropertyListDictionary? = arguments.contains("suite") ? ["dark_mode": "true"] : nil
      #expect(try stage.settings() == after)
      #expect(try stage.settings(Lab.group) == group)
    }
  }

  @Test(
    arguments: [
      ("{key: zoom, equals: 1}", true), ("{key: zoom, equals: 2}", false),
      ("{key: zoom, one-of: [1, 2]}", true),
      // These are about what is stored.
      ("{key: zoom, exists: false}", true), ("{key: zoom, exists: true}", false),
      ("{key: zoom, exists: integer}", false),
      ("{key: dark_mode, equals: true, suite: group}", true), ("{key: zoom, equals: 1, suite: group}", false),
      ("{key: zoom, equals: 1, file: \(Lab.settings)}", false),
    ])
  func assertions(_ assertion: String, _ holds: Bool) throws {
    try lab.set([:])
    for section in ["check", "verify"] {
      let error = lab.failing("  - defaults.set: {values: {x: 1}}\n\(section):\n  - defaults: \(assertion)\n")
      #expect((error == "no error") == holds)
      #expect(holds || error.contains("0001_test.yaml:4:5: \(section): the setting"), "\(error)")
    }
  }

  @Test func beforeIsWhatAReaderSaw() throws {
    try lab.set(["zoom": 1])
    let steps =
      "  - defaults.delete: {keys: zoom, destructive: x}\nverify:\n  - defaults: {key: zoom, equals: before}\n"
    try lab.tried(steps) { stage, _ throws in #expect(try stage.settings() == [:]) }
  }

  @Test func readFromFiles() throws {
    func configuration(_ text: String) throws -> ContainerConfiguration {
      try lab.migration("drydock.yaml", text)
      return try ContainerConfiguration(
        file: lab.directory("migrations/drydock.yaml"), sections: [.registeredDefaults])
    }
    try lab.migration("defaults.yaml", "zoom: 1\nwhen: !date 2026-11-21\n")
    try lab.migration("group.plist", "<plist version=\"1.0\"><dict><key>a</key><true/></dict></plist>")
    #expect(try configuration("app: a").registeredDefaults == RegisteredDefaults())
    #expect(
      try configuration("registered-defaults: defaults.yaml").registeredDefaults["standard"]["zoom"] == 1)
    let both = try configuration("registered-defaults: {standard: defaults.yaml, group: group.plist}")
      .registeredDefaults
    #expect(both["group"] == ["a": true] && both["standard"].count == 2 && both["other"] == [:])
    try lab.migration("bad.yaml", "zoom: 1\nzoom: 2\n")
    try lab.migration("list.yaml", "- 1\n")
    try lab.migration("bad.plist", "<plist>")
    for (text, place, message) in [
      ("none.yaml", "drydock.yaml:1:22", "`none.yaml`"),
      ("bad.yaml", "bad.yaml:1:1", "duplicate key `zoom`"),
      ("list.yaml", "list.yaml:1:1", "a mapping"), ("bad.plist", "drydock.yaml:1:22", "is corrupt"),
      ("[a]", "drydock.yaml:1:22", "is a text"),
    ] {
      #expect("\(text)") { try configuration("registered-defaults: \(text)") } throws: {
        let error = $0 as? DrydockError
        return error?.code == .badConfiguration && "\($0)".contains(place) && "\($0)".contains(message)
      }
    }
  }
}
