import ContainerTransaction
import Formats
import Foundation
import MigrationEngine
import Testing

@Suite("Settings in stages") struct StageSettingsTests {
  private let lab: Lab

  init() throws { lab = try Lab() }

  private enum Theme: String, SettingValue { case dark, light }

  private struct Window: Codable, Equatable {
    var width = 640
    var title: String?
  }

  private struct Settings: SettingGroup {
    @Setting("theme") var theme = Theme.light
    @Setting("last") var last: Date?
    @Setting("count") var count: Int
    @Setting("window", as: .json) var window = Window()
    @Setting("text", as: .jsonText) var text: Window?
    @Setting("list", as: .propertyList) var list: [Window]?
    @Setting("color", suite: "group") var color = "red"
  }

  private func run(_ lab: Lab, _ change: @escaping PlannedMigration.Change) throws -> PropertyListDictionary?
  {
    if try lab.history() == nil { try lab.baseline(0) }
    try lab.migrate(MigrationCatalog(migrations: [.custom(version: 1, "stage", up: change)]))
    return try lab.settings()
  }

  @Test("Properties read what is stored, and store what is assigned, with its type")
  func properties() throws {
    lab.configuration.defaults["group"] = "Library/Preferences/group.plist"
    let date = Date(timeIntervalSinceReferenceDate: 0.125)
    try lab.set([
      "theme": "dark", "last": .date(date), "count": 3, "window": .data(Array(#"{"width": 800}"#.utf8)),
      "else": 1,
    ])
    let result = try run(lab) { context in
      let settings = try context.settings(Settings.self)
      let read = settings.theme == .dark && settings.last == date && settings.count == 3
      let decoded = settings.window == Window(width: 800) && settings.text == nil && settings.color == "red"
      guard read && decoded && settings.$theme.isStored && !settings.$color.isStored else {
        throw StageProblem("\(settings)")
      }
      settings.theme = .light
      settings.last = nil
      settings.count += 1
      settings.window.title = "a/b"
      settings.text = Window()
      settings.list = [Window(width: 1), Window(width: 2, title: "x")]
      settings.color = "blue"
      // Whoever looks by the key sees it already.
      guard try context.settings.value(for: SettingKey<Int>("count")) == 4 else {
        throw StageProblem("count")
      }
    }
    #expect(
      result == [
        "theme": "light", "count": 4, "window": .data(Array(#"{"title":"a/b","width":800}"#.utf8)),
        "text": #"{"width":640}"#, "list": [["width": 1], ["width": 2, "title": "x"]], "else": 1,
      ])
    let group = try lab.look {
      try $0.defaults("Library/Preferences/group.plist")?.root
    }
    #expect(group == ["color": "blue"])
  }

  @Test("Reading stores nothing; a default and nil remove nothing and add nothing")
  func reading() throws {
    lab.configuration.defaults["group"] = "Library/Preferences/group.plist"
    try lab.set(["count": 3], format: .xml)
    let before = try Data(contentsOf: URL(fileURLWithPath: lab.path(Lab.settings)))
    _ = try run(lab) { context in
      let settings = try context.settings(Settings.self)
      guard settings.theme == .light, settings.window == Window(), settings.last == nil else {
        throw StageProblem("defaults")
      }
      settings.last = nil
      settings.$theme.remove()
    }
    let after = try Data(contentsOf: URL(fileURLWithPath: lab.path(Lab.settings)))
    #expect(before == after)
    #expect(try !lab.exists("Library/Preferences/group.plist"))
  }

  @Test(
    "What does not fit fails the stage",
    arguments: [
      (["count": "3"], "the setting `count` is the text `3`, not of type Int"),
      ([:], "the setting `count` does not exist, and its property has no default"),
      (["count": 3, "theme": true], "the setting `theme` is the Bool true, not of type Theme"),
      (["count": 3, "theme": "blue"], "the setting `theme` is the text `blue`, not of type Theme"),
      (["count": 3, "window": "x"], "the setting `window` is the text `x`, not of type Window"),
      (["count": 3, "window": .data([0x7B])], "the setting `window` is a data, not of type Window"),
      (["count": 3, "last": 1], "the setting `last` is the integer 1, not of type Date"),
    ] as [(PropertyListDictionary, String)])
  func unfit(_ stored: PropertyListDictionary, _ message: String) throws {
    lab.configuration.defaults["group"] = "Library/Preferences/group.plist"
    try lab.set(stored)
    let error = failure { try run(lab) { _ = try $0.settings(Settings.self) } as Any }
    #expect(error.code == .stepFailed && error.text.hasSuffix(": stage: \(message)"), "\(error.text)")
    #expect(try lab.settings() == stored)
  }

  @Test("What a property cannot throw ends the stage after its closure")
  func late() throws {
    struct Numbers: SettingGroup {
      @Setting("number", as: .json) var number = 1.0
      @Setting("count") var count = 0
    }
    let changes: [(String, PlannedMigration.Change)] = [
      ("the setting `number` cannot be written", { try $0.settings(Numbers.self).number = .nan }),
      (
        "the setting `count` is the text `x`, not of type Int",
        { context in
          let numbers = try context.settings(Numbers.self)
          try context.settings.set("x", for: SettingKey<String>("count"))
          _ = numbers.count
        }
      ),
    ]
    for (message, change) in changes {
      try Lab.with { lab in
        try lab.set(["k": 1])
        expectFailure(": stage: \(message)", code: .stepFailed) { try run(lab, change) as Any }
        #expect(try lab.settings() == ["k": 1])
      }
    }
  }

  @Test("A stage's writes reach the file once, at its end")
  func batched() throws {
    try lab.set(["k": 0])
    try lab.baseline(0)
    nonisolated(unsafe) var staged: StagedContainer?
    nonisolated(unsafe) var meanwhile: [SettingsFile?] = []
    let first = PlannedMigration.custom(version: 1, "first") { context in
      for number in 1...50 {
        try context.settings.set(number, for: SettingKey<Int>("k\(number)"))
        meanwhile.append(try staged?.defaults(Lab.settings))
      }
    }
    let second = PlannedMigration.custom(version: 2, "second") { _ in
      meanwhile.append(try staged?.defaults(Lab.settings))
    }
    let catalog = try MigrationCatalog(migrations: [first, second])
    _ = try Transaction.dryRun(on: try lab.container) { stage in
      staged = stage
      let plan = MigrationStatus(catalog: catalog, detected: try DetectedVersion.detect(in: stage))
      _ = try Migrator.run(plan, on: stage, stamp: lab.stamp)
    }
    #expect(meanwhile.count == 51)
    #expect(meanwhile.prefix(50).allSatisfy { $0?.root == ["k": 0] })
    #expect(meanwhile.last??.root.count == 51)
  }

  @Test("Operations and files in a closure see what was written before them, and are seen after")
  func order() throws {
    try lab.set(["a": 1])
    let result = try run(lab) { context in
      try context.settings.set(2, for: SettingKey<Int>("a"))
      try context.run(.step("defaults.rename", ["keys": ["a": "b"]]))
      let renamed = try context.settings.value(for: SettingKey<Int>("b"))
      try context.settings.set((renamed ?? 0) + 1, for: SettingKey<Int>("c"))
      let file = try PropertyListFile(bytes: context.files.read(Lab.settings))
      guard file.root["c"] == 3 else { throw StageProblem("\(file.root)") }
      try context.files.copy(Lab.settings, to: "Documents/copy.plist")
      try context.settings.remove("b")
    }
    #expect(result == ["c": 3])
    let copy = try lab.look { try $0.defaults("Documents/copy.plist")?.root }
    #expect(copy == ["b": 2, "c": 3])
  }
}
