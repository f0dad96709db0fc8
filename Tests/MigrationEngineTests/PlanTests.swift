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
    #expect(try lab.settings() == ["m1": .boolean(true), "m2": .boolean(true)])
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
}
