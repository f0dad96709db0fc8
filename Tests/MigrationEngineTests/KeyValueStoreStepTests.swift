import FileSystem
import Formats
import Foundation
import Testing

/// The iCloud key-value store is a suite like any other, with limits.
@Suite struct KeyValueStoreStepTests {
  private static let cloud: ContainerPath = "Library/SyncedPreferences/com.example.lab.plist"
  private static let records: PropertyListDictionary = [
    "version": 1, "values": ["theme": ["value": "dark", "timestamp": 1]],
  ]

  private let lab: Lab

  init() throws { lab = try Lab() }

  private func prepare(_ cloud: PropertyListDictionary?) throws {
    lab.configuration.defaults["icloud"] = Self.cloud
    try lab.set(["color": "red", "n": 1])
    if let cloud { try lab.write(Self.cloud, settings: cloud) }
  }

  @Test func settingsMoveThereAndBack() throws {
    try prepare(nil)
    try lab.tried(
      """
        - defaults.move: {keys: [color], to: {suite: icloud}}
        - defaults.copy: {keys: {color: cloudColor}, from: {suite: icloud}}

      """
    ) { stage, _ in
      #expect(try stage.settings(Self.cloud) == ["color": "red"])
      let own = try #require(try stage.settings())
      #expect(own["cloudColor"] == "red" && own["color"] == nil && own["n"] == 1)
    }
  }

  @Test func aStepThatExceedsTheLimitsFails() throws {
    try prepare(PropertyListDictionary((0..<1024).map { ("key\($0)", .boolean(true)) }))
    lab.expectFailing("defaults.move: {keys: [color], to: {suite: icloud}}", "beyond its limits: 1025 keys")
    // Replacing a value, and deleting one, is within them.
    try lab.tried(
      """
        - defaults.set: {suite: icloud, values: {key1: x}, if-exists: replace}
        - defaults.delete: {suite: icloud, keys: [key2], destructive: "made up"}
        - defaults.move: {keys: [color], to: {suite: icloud}}

      """
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
}
