import AppContainer
import ContainerTransaction
import MigrationEngine
import Testing

@Suite struct RepairTests {
  private func prepared(_ lab: Lab) throws {
    for number in 1...3 {
      try lab.migration("000\(number)_m.yaml", "steps:\n  - defaults.set: {values: {m\(number): true}}\n")
    }
  }

  private func repair(_ lab: Lab, _ repair: Repair) throws -> [String] {
    let catalog = try lab.catalog()
    return try Transaction.run(on: try lab.container, .repair, summary: "test") {
      try repair.run(catalog, on: $0)
    }.value
  }

  @Test func acceptsWhatWasEdited() throws {
    try Lab.with { lab in
      try prepared(lab)
      try lab.migrate()
      try lab.removeMigration("0002_m.yaml")
      try lab.migration("0002_other.yaml", "steps: []\n")
      #expect(try lab.plan().problems.map(\.code) == [.edited])
      #expect(try lab.plan().problems[0].message.contains("accept number 2"))
      for (wrong, word) in [
        (Repair(accept: [1]), "0001_m is applied"), (Repair(remove: [2]), "is edited"),
        (Repair(accept: [9]), "there is no migration 9"),
      ] {
        let error = failure { try repair(lab, wrong) }
        #expect(error.code == .usage && error.text.contains(word), "\(error.text)")
      }
      let before = try #require(try lab.history()).records
      _ = try repair(lab, Repair(accept: [2]))
      let after = try #require(try lab.history()).records
      #expect(try lab.plan().problems.isEmpty && lab.plan().pending.isEmpty)
      #expect(after[1].name == "other" && after[1].time == before[1].time)
      #expect([after[0], after[2]] == [before[0], before[2]])
      #expect(try lab.migrate().changedAnything == false)
    }
  }

  @Test func removesWhatIsGone() throws {
    try Lab.with { lab in
      try prepared(lab)
      lab.configuration.versionMarkers = [.init(place: .defaults(key: "v"))]
      _ = try lab.baseline(0)
      try lab.migrate()
      try lab.removeMigration("0003_m.yaml")
      #expect(try lab.plan().problems.map(\.code) == [.newer])
      _ = try repair(lab, Repair(remove: [3]))
      let plan = try lab.plan()
      #expect(plan.problems.isEmpty && plan.detected.version == 2)
      #expect(try lab.settings()?["v"] == .integer(2), "the marker would make it version 3 again")
      #expect(try lab.settings()?["m3"] == .boolean(true), "nothing else is touched")
    }
  }

  @Test func acceptsADownFileAddedLater() throws {
    try Lab.with { lab in
      try lab.migration("0001_a.up.sql", "-- drydock: database notes\nCREATE TABLE a (x);\n")
      try lab.database(Lab.place, "CREATE TABLE t (x)")
      _ = try lab.baseline(0)
      try lab.migrate()
      try lab.release()
      try lab.migration("0001_a.down.sql", "-- drydock: database notes\nDROP TABLE a;\n")
      #expect(try lab.plan().problems.isEmpty && lab.plan().notes.count == 1)
      let found = try MigrationValidation.run(lab.directory("migrations"), lab.configuration).problems
      #expect(found.isEmpty, "what was released is as it was: \(found)")
      _ = try repair(lab, Repair(accept: [1]))
      #expect(try lab.plan().notes.isEmpty)
    }
  }
}
