import ContainerTransaction
import Formats
import Foundation
import MigrationEngine
import Testing

@Suite struct SwiftPlanTests {
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
    let wrong: [([PlannedMigration], String)] = [
      ([.lightweight(version: 2, "a", [rename])], "the migration `a` has the version 2 where 1 is expected"),
      ([.lightweight(version: 1, "a b", [rename])], "`a b` is not a migration's name"),
      (
        [.lightweight(version: 1, "a", [.step("defaults.rename", ["keys": ["a": "a"]])])],
        "`a` is the old and the new name"
      ),
      ([.lightweight(version: 1, "a", [.step("defaults.renam", [:])])], "did you mean `defaults.rename`?"),
      (
        [.lightweight(version: 1, "a", [.step("defaults.set", ["values": ["a": 1, "b": 2, "a": 3]])])],
        "is given twice"
      ),
      ([.lightweight(version: 1, "a", [.step("defaults.set", ["value": [:]])])], "unknown key `value`"),
      (
        [.lightweight(version: 1, "a", [.step("sql", ["database": "notes", "up": ""])])],
        "no statement to run"
      ),
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
    try Lab.with { lab in
      try lab.baseline(0)
      try lab.migrate(MigrationCatalog(migrations: [.custom(version: 1, "a") { _ in }]))
      let changed = try MigrationCatalog(migrations: [.custom(version: 1, "a", revision: 2) { _ in }])
      expectFailure("0001_a was modified", code: .edited) { try lab.migrate(changed) }
    }
  }

  @Test("Stages check and verify like files")
  func assertions() throws {
    try Lab.with { lab in
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
  }
}
