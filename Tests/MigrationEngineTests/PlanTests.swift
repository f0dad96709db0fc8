import ContainerTransaction
import Foundation
import MigrationEngine
import Testing

@Suite struct PlanTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  private func states(_ lab: Lab) throws -> [MigrationStatus.State] { try lab.plan().entries.map(\.state) }

  @Test func pendingAndApplied() throws {
    try lab.migrations(3)
    #expect(try states(lab) == [.pending, .pending, .pending])
    let report = try lab.migrate(to: 2)
    #expect(report.from == 0 && report.to == 2 && report.migrations.map(\.number) == [1, 2])
    #expect(try states(lab) == [.applied, .applied, .pending])
    #expect(try lab.settings() == ["m1": true, "m2": true])
    try lab.migrate()
    let history = try #require(try lab.history())
    #expect(history.version == 3 && history.records.map(\.origin) == [.applied, .applied, .applied])
    #expect(history.records[0].tool == "test" && history.records[0].transaction.hasPrefix("20"))
    #expect(try lab.migrate().changedAnything == false)
    #expect(try lab.history() == history)
  }

  @Test func edited() throws {
    try Lab.with { lab in
      try lab.migrations(3)
      try lab.migrate(to: 2)
      try lab.migration("0001_m.yaml", "steps: []\n")
      #expect(try states(lab) == [.edited, .applied, .pending])
      expectFailure("migration 0001_m was modified after it was applied", code: .edited) { try lab.migrate() }
      #expect(try lab.settings()?["m3"] == nil)
    }
    try Lab.with { lab in
      try lab.migrations(3)
      try lab.migrate(to: 1)
      try lab.removeMigration("0001_m.yaml")
      try lab.migration("0001_other.yaml", step: "defaults.set: {values: {m1: true}}")
      expectFailure("(it was named m)") { try lab.migrate() }
    }
  }

  @Test func missing() throws {
    try lab.migrations(3)
    try lab.migrate()
    try lab.removeMigration("0003_m.yaml")
    #expect(try states(lab) == [.applied, .applied, .missing])
    #expect(try lab.plan().problems.map(\.code) == [.newer])
    #expect(failure { try lab.migrate() }.code == .newer)
    #expect(failure { try lab.rollback(to: 1, down: true) }.code == .newer)
    // However many are beyond the last one, it is one release.
    try lab.removeMigration("0002_m.yaml")
    #expect(try lab.plan().problems.map(\.code) == [.newer])
  }

  @Test func outOfOrder() throws {
    try lab.migrations(3)
    try lab.migrate()
    let path = lab.directory("container/\(try lab.container.historyPath)")
    let object = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: path)))
    var file = try #require(object as? [String: Any])
    var records = try #require(file["migrations"] as? [[String: Any]])
    records.remove(at: 1)
    file["migrations"] = records
    try JSONSerialization.data(withJSONObject: file).write(to: URL(fileURLWithPath: path))
    #expect(try states(lab) == [.applied, .outOfOrder, .applied])
    #expect(failure { try lab.migrate() }.code == .outOfOrder)
  }

  @Test func theHistoryFile() throws {
    try lab.migrations(1)
    try lab.migrate()
    let history = try #require(try lab.history())
    let text = String(decoding: try history.encoded(), as: UTF8.self)
    let lines = text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
    #expect(lines.first == "{" && lines.contains("\"format\" : 1,") && lines.contains("\"number\" : 1,"))
    #expect(lines.contains { $0.hasPrefix("\"time\" : \"20") && $0.hasSuffix("Z\",") })
    #expect(try MigrationHistory(bytes: Array(text.utf8), path: "h") == history)
    let damage: [(String, String)] = [
      ("\"format\" : 1", "\"format\" : 2"), ("\"number\" : 1", #""number" : "1""#),
      ("\"number\" : 1", "\"number\" : 0"), (#""origin" : "applied""#, #""origin" : "magic""#),
      ("\"name\"", "\"nam\""), ("\"checksum\" : \"", "\"checksum\" : \"x"),
      ("\"time\" : \"", "\"time\" : \"x"),
      ("{", ""),
    ]
    for (old, new) in damage {
      let broken = text.replacingOccurrences(of: old, with: new)
      #expect(broken != text)
      let error = failure { try MigrationHistory(bytes: Array(broken.utf8), path: "h") }
      #expect(error.code == .damagedHistory, "\(new): \(error.text)")
    }
  }

  private func repair(_ lab: Lab, _ repair: Repair) throws -> [String] {
    let catalog = try lab.catalog()
    return try Transaction.run(on: try lab.container, .repair, summary: "test") {
      try repair.run(catalog, on: $0)
    }.value
  }

  @Test func acceptsWhatWasEdited() throws {
    try lab.migrations(3)
    try lab.migrate()
    try lab.migration("0002_m.yaml", "steps: []\n")
    #expect(try lab.plan().problems.map(\.code) == [.edited])
    #expect(try lab.plan().problems[0].message.contains("accept number 2"))
    for (wrong, word) in [
      (Repair(accept: [1]), "0001_m is applied"), (Repair(remove: [2]), "is edited"),
      (Repair(accept: [9]), "migration 9 is neither in the files nor in the history"),
    ] {
      expectFailure(word, code: .usage) { try repair(lab, wrong) }
    }
    let before = try #require(try lab.history()).records
    _ = try repair(lab, Repair(accept: [2]))
    let after = try #require(try lab.history()).records
    #expect(try lab.plan().problems.isEmpty && lab.plan().pending.isEmpty)
    #expect(after[1].checksum != before[1].checksum && after[1].time == before[1].time)
    #expect([after[0], after[2]] == [before[0], before[2]])
    #expect(try lab.migrate().changedAnything == false)
  }

  @Test("Another name is accepted and mentioned, another migration is not")
  func acceptsNames() throws {
    try lab.migrations(3)
    try lab.migrate()
    let step = "steps:\n  - defaults.set: {values: {m2: true}}\n"
    try lab.removeMigration("0002_m.yaml")
    try lab.migration("0002_other.yaml", "steps: []\n")
    #expect(
      try lab.plan().problems.map(\.message) == [
        "migration 0002_other has the number of m, which was applied to this container: give it the next free "
          + "number, and restore the files of the other one"
      ])
    expectFailure("0002_other is another migration than m", code: .usage) {
      try repair(lab, Repair(accept: [2]))
    }
    try lab.migration("0002_other.yaml", step)
    #expect(
      try repair(lab, Repair(accept: [2])) == [
        "0002_other: its present files are recorded as applied (it was named m)"
      ])
    #expect(try lab.plan().problems.isEmpty)
  }

  private func step(_ key: String) -> String { "steps:\n  - defaults.set: {values: {\(key): true}}\n" }

  @Test("After a merge, what got the next number is recognised, and keeps its record")
  func renumbers() throws {
    lab.configuration.versionMarkers = [.init(place: .defaults(key: "v"))]
    try lab.migration("0001_first.yaml", step("first"))
    try lab.migration("0002_mine.yaml", step("mine"))
    try lab.baseline(0)
    try lab.migrate()
    try lab.removeMigration("0002_mine.yaml")
    try lab.migration("0002_theirs.yaml", step("theirs"))
    try lab.migration("0003_mine.yaml", step("mine"))
    let plan = try lab.plan()
    #expect(plan.entries.map(\.state) == [.applied, .renumbered, .pending])
    #expect(plan.entries[1].identifier == "0002_mine")
    #expect(
      plan.problems.map(\.message) == [
        "migration 0002_mine was applied to this container, and is 0003_mine now: renumber it in the history"
      ])
    #expect(failure { try lab.migrate() }.code == .edited)
    expectFailure("0002_mine is renumbered", code: .usage) { try repair(lab, Repair(accept: [2])) }
    #expect(try repair(lab, Repair(renumber: true)) == ["0002_mine: recorded as 0003_mine"])
    #expect(try lab.history()?.records.map(\.number) == [1, 3])
    #expect(try lab.settings()?["v"] == 3)
    // The other one was never run here, and is not skipped silently.
    #expect(try lab.plan().entries.map(\.state) == [.applied, .outOfOrder, .applied])
    #expect(failure { try repair(lab, Repair(renumber: true)) }.code == .usage)
  }

  @Test(
    "Any form of a migration, and two that changed places",
    arguments: [
      ("0001_a.yaml", "0002_b.yaml"), ("0001_a.up.sql", "0002_b.up.sql"),
      ("0001_a/migration.yaml", "0002_b/migration.yaml"),
    ])
  func swapped(_ first: String, _ second: String) throws {
    try lab.database("CREATE TABLE t (x)")
    try lab.set(["a": "before"])
    let texts = ["a", "b"].map { key in
      first.hasSuffix(".sql")
        ? "-- drydock: database notes\n-- drydock: irreversible\nUPDATE t SET x = '\(key)' WHERE x = 1;\n"
        : "steps:\n  - defaults.set: {values: {\(key): \(key == "a" ? 1 : 2)}, if-exists: replace}\n"
    }
    try lab.files([first: texts[0], second: texts[1]])
    try lab.baseline(0)
    try lab.migrate()
    let before = try #require(try lab.history()).records
    for name in [first, second] { try lab.removeMigration(String(name.prefix { $0 != "/" })) }
    try lab.files([
      first.replacing("0001_a", with: "0001_b"): texts[1],
      second.replacing("0002_b", with: "0002_a"): texts[0],
    ])
    #expect(try lab.plan().entries.map(\.state) == [.renumbered, .renumbered])
    _ = try repair(lab, Repair(renumber: true))
    let after = try #require(try lab.history()).records
    #expect(after.map(\.name) == ["b", "a"] && after.map(\.time) == before.reversed().map(\.time))
    #expect(try lab.plan().problems.isEmpty && lab.plan().pending.isEmpty)
    if first.hasSuffix(".sql") { return }
    #expect(try lab.rollback(to: 0).to == 0 && lab.settings()?["a"] == "before")
    try lab.rollback(redoing: true)
    // The undo log has the values of their steps under the old numbers.
    #expect(try lab.settings()?["a"] == 1 && lab.settings()?["b"] == 2)
    try lab.rollback(to: 1, down: true)
    #expect(try lab.settings()?["a"] == "before" && lab.settings()?["b"] == 2)
    try lab.rollback(to: 0, down: true)
    #expect(try lab.settings()?["b"] == nil)
  }

  @Test func removesWhatIsGone() throws {
    try lab.migrations(3)
    lab.configuration.versionMarkers = [.init(place: .defaults(key: "v"))]
    try lab.baseline(0)
    try lab.migrate()
    try lab.removeMigration("0003_m.yaml")
    #expect(try lab.plan().problems.map(\.code) == [.newer])
    _ = try repair(lab, Repair(remove: [3]))
    let plan = try lab.plan()
    #expect(plan.problems.isEmpty && plan.detected.version == 2)
    #expect(try lab.settings()?["v"] == 2, "the marker would make it version 3 again")
    #expect(try lab.settings()?["m3"] == true, "nothing else is touched")
  }

  @Test func acceptsADownFileAddedLater() throws {
    try lab.migration("0001_a.up.sql", "-- drydock: database notes\nCREATE TABLE a (x);\n")
    try lab.database("CREATE TABLE t (x)")
    try lab.baseline(0)
    try lab.migrate()
    try lab.release()
    try lab.migration("0001_a.down.sql", "-- drydock: database notes\nDROP TABLE a;\n")
    #expect(try lab.plan().problems.isEmpty && lab.plan().notes.count == 1)
    let found = try lab.problems()
    #expect(found.isEmpty, "what was released is as it was: \(found)")
    _ = try repair(lab, Repair(accept: [1]))
    #expect(try lab.plan().notes.isEmpty)
  }
}
