import ContainerTransaction
import Formats
import Foundation
import MigrationEngine
import Testing

@Suite struct SwiftPlanTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  @Test("Operations in Swift do what they do in a file")
  func sameAsFile() throws {
    let results = try [false, true].map { isSwift in
      try Lab.with { lab -> (MigrationReport.Outcome, PropertyListDictionary?, [String]) in
        try lab.set(["a": 1, "dark": true])
        try lab.database(Lab.oldDatabase, "CREATE TABLE t (a); INSERT INTO t VALUES (1), (2);")
        try lab.write("Documents/a.txt", "a")
        try lab.baseline(0)
        let steps = Self.operations.map { "  - \($0.0)\n" }.joined()
        try lab.migration("0001_test.yaml", "steps:\n" + steps)
        let catalog =
          isSwift
          ? try MigrationCatalog(migrations: [.lightweight(version: 1, "test", Self.operations.map(\.1))])
          : try lab.catalog()
        let outcome = try #require(try lab.migrate(catalog).migrations.first)
        let rows = try lab.query(Lab.oldDatabase, "SELECT * FROM t").map { "\($0)" }
        let paths = try lab.look { stage in
          try stage.descendants(of: "Documents").map { path in
            let isFile = try stage.status(of: path)?.type == .file && !stage.isDatabase(path)
            return "\(path) \(isFile ? try stage.read(path) : [])"
          }
        }
        return (outcome, try lab.settings(), rows + paths)
      }
    }
    #expect(results[0].1 == results[1].1 && results[0].2 == results[1].2)
    let notes = results.map { $0.0.notes.map { $0.replacing(#/^\S+ /#, with: "") } }
    #expect(notes[0] == notes[1])
  }

  /// Values of each kind: the arguments of the other operations are written in the same way.
  private static let operations: [(String, PlannedMigration.Operation)] = [
    (
      "defaults.set: {values: {c: [1, 1.5, yes], d: {e: !data AAEC}}, if-exists: replace}",
      .step(
        "defaults.set",
        ["values": ["c": [1, 1.5, "yes"], "d": ["e": .value(.data([0, 1, 2]))]], "if-exists": "replace"])
    ),
    (
      "defaults.convert: {key: dark, to: theme, map: {true: dark, false: light}, unmapped: keep}",
      .step(
        "defaults.convert",
        ["key": "dark", "to": "theme", "map": [true: "dark", false: "light"], "unmapped": "keep"])
    ),
    (
      "sql: {database: notes, up: DELETE FROM t WHERE a = 1, down: SELECT 1, destructive: {t: test}}",
      .step(
        "sql",
        [
          "database": "notes", "up": "DELETE FROM t WHERE a = 1", "down": "SELECT 1",
          "destructive": ["t": "test"],
        ])
    ),
    (
      "files.copy: {from: [Documents/a.txt, none], to: Documents/New}",
      .step("files.copy", ["from": [.path("Documents/a.txt"), "none"], "to": "Documents/New"])
    ),
  ]

  @Test("An invalid plan is refused with its place in the code")
  func refused() throws {
    let rename = PlannedMigration.Operation.step("defaults.rename", ["keys": ["a": "b"]])
    func one(_ operation: PlannedMigration.Operation) -> [PlannedMigration] {
      [.lightweight(version: 1, "a", [operation])]
    }
    let wrong: [([PlannedMigration], String)] = [
      ([.lightweight(version: 2, "a", [rename])], "the migration `a` has the version 2 where 1 is expected"),
      ([.lightweight(version: 1, "a b", [rename])], "`a b` is not a migration's name"),
      (one(.step("defaults.rename", ["keys": ["a": "a"]])), "`a` is the old and the new name"),
      (one(.step("defaults.renam", [:])), "did you mean `defaults.rename`?"),
      (one(.step("defaults.set", ["values": ["a": 1, "b": 2, "a": 3]])), "is given twice"),
      (one(.step("defaults.set", ["value": [:]])), "unknown key `value`"),
      (one(.step("sql", ["database": "notes", "up": ""])), "no statement to run"),
      ([.lightweight(version: 1, "a", [rename], check: [.defaults("a", .unchanged)])], "use `verify`"),
      ([.lightweight(version: 1, "a", [rename], verify: [.files("a", .equals(1))])], "unknown key `equals`"),
    ]
    for (stages, message) in wrong {
      let error = failure { try MigrationCatalog(migrations: stages) }
      #expect(error.code == .catalog && error.text.contains(message), "\(error.text)")
      #expect(error.text.contains(#/^MigrationEngineTests/SwiftPlanTests\.swift:\d+:\d+: /#), "\(error.text)")
    }
  }

  @Test("The checksum covers what a stage does, and not where it stands")
  func checksum() throws {
    func checksum(_ stage: PlannedMigration) throws -> String {
      try #require(try MigrationCatalog(migrations: [stage]).migrations.first).checksum.hex
    }
    func step(_ value: PropertyListValue) -> PlannedMigration.Operation {
      .step("defaults.set", ["values": ["k": .value(value)], "if-exists": "fail"])
    }
    func set(_ value: PropertyListValue) -> PlannedMigration { .lightweight(version: 1, "a", [step(value)]) }
    #expect(try checksum(set(1)) == checksum(set(1)))
    // Histories contain these: they must never change.
    #expect(try checksum(set(1)) == "430838900dee238a6756f20c19e45f9431fad638f33d34c4e1a3c3c753204bb6")
    let sql = PlannedMigration.Operation.step(
      "sql",
      [
        "database": "notes", "up": "DELETE FROM t", "down": "SELECT 1", "destructive": ["t": "test"],
        "if-missing": "skip",
      ])
    #expect(
      try checksum(.lightweight(version: 1, "a", [sql]))
        == "e12773b6dbbcd2aefbdf741f81fbb2f56da203a764c7e40dd7f3fef45864c951")
    let values: [PropertyListValue] = [
      1, 1.0, "1", true, "true", [1], ["1"], [[1]], ["k": 1], .data([1]),
      .date(Date(timeIntervalSince1970: 1)), "integer 1",
    ]
    let stages =
      values.map(set) + [
        .lightweight(version: 1, "a", [step(1)], down: [step(1)]),
        .lightweight(version: 1, "a", [step(1)], verify: [.defaults("k", .exists)]),
        .lightweight(version: 1, "a", [step(1)], check: [.defaults("k", .exists)]),
        .lightweight(version: 1, "a", [step(1)], isIrreversible: true),
        .custom(version: 1, "a") { _ in }, .custom(version: 1, "a", revision: 2) { _ in },
        .custom(version: 1, "a", up: { _ in }, down: { _ in }),
      ]
    #expect(try Set(stages.map(checksum)).count == stages.count)
  }

  @Test("A stage whose revision was raised is told to be edited where it was applied")
  func edited() throws {
    try lab.baseline(0)
    try lab.migrate(MigrationCatalog(migrations: [.custom(version: 1, "a") { _ in }]))
    let changed = try MigrationCatalog(migrations: [.custom(version: 1, "a", revision: 2) { _ in }])
    expectFailure("0001_a was modified", code: .edited) { try lab.migrate(changed) }
  }

  @Test("Stages check and verify like files")
  func assertions() throws {
    try lab.set(["k": 1])
    try lab.database(Lab.oldDatabase, "CREATE TABLE t (a); INSERT INTO t VALUES (1), (2);")
    try lab.baseline(0)
    let good = PlannedMigration.lightweight(
      version: 1, "a", [.step("defaults.set", ["values": ["new": "x"]])],
      check: [.defaults("k", .equals(1)), .files("Documents/none", .absent)],
      verify: [
        .defaults("new", .oneOf(["x", "y"])), .defaults("k", .unchanged), .files("Documents/*", .unchanged),
        .files("Documents/*", .count(1)),
        .sql(database: "notes", "SELECT count(*) FROM t", .unchanged),
      ])
    let bad = PlannedMigration.custom(version: 2, "b", verify: [.defaults("k", .unchanged)]) { context in
      try context.settings.set(2, for: SettingKey<Int>("k"))
    }
    expectFailure("the setting `k` is the integer 2, not what it was", code: .verifyFailed) {
      try lab.migrate(MigrationCatalog(migrations: [good, bad]))
    }
    #expect(try lab.settings() == ["k": 1])
    try lab.migrate(MigrationCatalog(migrations: [good]))
    #expect(try lab.settings() == ["k": 1, "new": "x"])
  }

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
  func readingStoresNothing() throws {
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
