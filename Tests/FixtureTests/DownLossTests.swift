import DrydockErrors
import Foundation
import Testing

@Suite("Down migrations that cannot restore values") struct DownLossTests {
  /// The findings of `down` and the notes, with a migration 3 and a fixture with a vault.
  private func run(
    _ steps: String, down: String, losses: String?
  ) throws -> (found: [String], notes: [String]) {
    try SuiteSandbox.with { sandbox in
      try sandbox.makeSound(recorded: false)
      let vault = "[{service: s, account: first, accessible: whenUnlocked, value: made up}]"
      try sandbox.fixture("one", more: "container: {vault: \(vault)}")
      try sandbox.migration(
        "0003_notes", steps, more: "down:\n\(down)\n" + (losses.map { "down-loses: {\($0)}\n" } ?? ""))
      try sandbox.record()
      let report = try sandbox.run()
      let findings = report.fixtures.flatMap(\.findings) + report.findings
      return (findings.map { "\($0.check.rawValue) \($0.place ?? ""): \($0.message)" }.sorted(), report.notes)
    }
  }

  private static let drop = """
      - sql: {database: notes, up: ALTER TABLE task DROP COLUMN title, down: SELECT 1, destructive: {task: unused}}
    """
  private static func add(_ sql: String) -> String {
    "  - sql: {database: notes, up: \"ALTER TABLE task ADD COLUMN title \(sql)\", destructive: x}"
  }

  @Test("Values at the named column are not compared, and all else is")
  func columns() throws {
    let lost = try run(Self.drop, down: Self.add("TEXT"), losses: nil)
    // With other values in version 2 and in version 1.
    #expect(lost.found.count { $0.hasPrefix("down Documents/notes.sqlite: task, id 1: title") } == 4)
    for name in ["task.title", "Task.TITLE", "task", "Documents/notes.sqlite", "Documents"] {
      let result = try run(Self.drop, down: Self.add("TEXT"), losses: "\(name): unused")
      #expect(result.found == [] && result.notes == [], "\(name): \(result)")
    }
    let more = try run(
      Self.drop, down: Self.add("TEXT; UPDATE task SET done = 7 WHERE id = 3"), losses: "task.title: unused")
    func twice(_ text: String) -> [String] {
      Array(repeating: "down Documents/notes.sqlite: \(text)", count: 2)
    }
    #expect(more.found == twice("task, id 3: done: the column has another value"))
    let other = try run(Self.drop, down: Self.add("TEXT"), losses: "task.done: x, other: y")
    #expect(other.found.count == lost.found.count)
    let definition = try run(Self.drop, down: Self.add("INTEGER"), losses: "task.title: unused, task: x")
    #expect(definition.found == twice("table task, column title: the column definition differs"))
  }

  @Test("Settings, vault items, files and directories are named as they are")
  func others() throws {
    let steps = """
        - defaults.delete: {keys: [size], destructive: x}
        - vault.delete: {service: s, account: first, destructive: x}
        - files.delete: {path: Documents/note.md, destructive: x}
      """
    let down = "  - sql: {database: notes, up: SELECT 1}"
    let lost = try run(steps, down: down, losses: nil).found
    #expect(lost.count == 5, "\(lost)")
    for name in ["size", "s/first", "Documents/note.md"] {
      let rest = try run(steps, down: down, losses: "\(name): x").found
      #expect(rest == lost.filter { !$0.contains(": \(name):") && !$0.contains(" \(name):") }, "\(name)")
      #expect(rest.count < lost.count)
    }
    let all = try run(steps, down: down, losses: "size: x, s/first: x, Documents/note.md: x")
    #expect(all.found == [] && all.notes == [], "\(all)")
  }

  @Test("A value that was lost stays lost for older versions")
  func older() throws {
    try SuiteSandbox.with { sandbox in
      try sandbox.makeSound(recorded: false)
      try sandbox.write(
        "Migrations/0003_notes.sql",
        """
        -- drydock: database notes
        -- drydock: destructive {task: unused}
        -- drydock: down-loses {task.title: "the column was dropped"}
        -- migrate:up
        ALTER TABLE task DROP COLUMN title;
        -- migrate:down
        ALTER TABLE task ADD COLUMN title TEXT;
        """)
      try FileManager.default.removeItem(atPath: sandbox.directory("Migrations/0003_notes.yaml"))
      try sandbox.record()
      let found = try sandbox.found()
      #expect(found == [])
    }
  }

  @Test("What no fixture needs is a note; what names nothing is refused")
  func unneeded() throws {
    let result = try run(Self.drop, down: Self.add("TEXT"), losses: "task.title: x, task.titel: y")
    #expect(
      result.notes == [
        "0003_notes: no fixture needs `down-loses` of `task.titel`: correct the name, or remove it"
      ])
    for losses in ["down-loses: x", "down-loses: {}", "down-loses: {task.title: ''}", "down-lose: {a: b}"] {
      try SuiteSandbox.with { sandbox in
        try sandbox.makeSound(recorded: false)
        try sandbox.migration("0003_notes", Self.drop, more: losses)
        let error = #expect(throws: DrydockError.self) { try sandbox.catalog() }
        let words = ["name columns", "give a reason for `task.title`", "unknown key `down-lose`"]
        #expect(words.contains { error?.message.contains($0) == true }, "\(error as Any)")
      }
    }
  }
}
