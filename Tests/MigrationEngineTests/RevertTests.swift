import Formats
import Foundation
import GRDB
import Testing

@testable import MigrationEngine

/// Each operation is taken back by itself: what it wrote, and what it replaced.
@Suite("Reverting single steps") struct RevertTests {
  private let lab: Lab

  init() throws { lab = try Lab() }

  /// Runs steps up and down again, with a change by the app in between.
  private func upAndDown(
    _ steps: String, _ lab: Lab, app: (Lab) throws -> Void = { _ in }
  ) throws -> [String] {
    try lab.migration("0001_test.yaml", "steps:\n" + steps)
    if try lab.history() == nil { try lab.baseline(0) }
    try lab.migrate()
    try app(lab)
    return try lab.revert()
  }

  @Test(
    "Settings come back as they were",
    arguments: [
      "  - defaults.set: {values: {theme: dark, new: 1}, if-exists: replace}\n",
      "  - defaults.set-default: {values: {theme: dark, new: 1}}\n",
      "  - defaults.rename: {keys: {theme: look, size: theme}}\n",
      "  - defaults.rename: {keys: {theme: size, size: theme}}\n",
      "  - defaults.rename: {keys: {theme: size}, if-exists: replace}\n",
      "  - defaults.rename: {keys: {theme: size, absent: other}, if-exists: keep}\n",
      "  - defaults.delete: {keys: theme, prefix: si, destructive: not needed}\n",
      "  - defaults.convert: {key: size, type: string}\n",
      "  - defaults.convert: {key: size, to: theme, map: {14: medium}, if-exists: replace}\n",
      "  - defaults.convert: {key: size, to: other, map: {18: large}, unmapped: delete}\n",
      "  - defaults.convert: {key: size, to: other, map: {18: large}, unmapped: keep}\n",
      "  - defaults.set: {file: Library/Preferences/sub/other.plist, values: {a: 1}}\n",
    ])
  func settings(steps: String) throws {
    try lab.set(["theme": "light", "size": 14, "on": true])
    try lab.expectComesBack(steps)
    #expect(try lab.history()?.records == [])
  }

  @Test func whatTheAppWroteSinceStays() throws {
    try lab.set(["theme": .string("light"), "user": .string("Ada"), "mode": .boolean(true)])
    let notes = try upAndDown(
      """
        - defaults.set: {values: {theme: dark}, if-exists: replace}
        - defaults.rename: {keys: {user: name}}
        - defaults.convert: {key: mode, to: look, map: {true: dark, false: light}}
      """, lab
    ) { lab in
      try lab.app(sets: "theme", .string("sepia"))
      try lab.app(sets: "name", .string("Grace"))
      try lab.app(sets: "look", .string("light"))
      try lab.app(sets: "own", .integer(1))
    }
    #expect(
      try lab.settings() == [
        "theme": .string("sepia"), "user": .string("Grace"), "mode": .boolean(false), "own": .integer(1),
      ])
    #expect(notes.count == 1 && notes[0].hasSuffix("defaults.set: `theme` was changed since: left unchanged"))
    #expect(notes[0].contains("0001_test.yaml:2:"), "\(notes)")
  }

  @Test func whatIsNewIsConvertedBack() throws {
    try lab.set(["same": .string("1"), "there": .string("dark")])
    let notes = try upAndDown(
      """
        - defaults.convert: {key: mode, to: look, map: {true: dark, false: light}}
        - defaults.convert: {key: old, to: there, map: {true: dark, false: light}}
        - defaults.convert: {key: same, type: string}
        - defaults.convert: {key: size, to: width, type: integer}
      """, lab
    ) { lab in
      try lab.app(sets: "look", .string("light"))
      try lab.app(sets: "width", .integer(1))
    }
    #expect(
      try lab.settings() == [
        "mode": .boolean(false), "width": .integer(1), "same": .string("1"), "there": .string("dark"),
      ])
    #expect(notes.count == 1 && notes[0].hasSuffix("`width` was written since: left unchanged"), "\(notes)")
  }

  @Test func filesAndDatabases() throws {
    try lab.database(
      Lab.oldDatabase, "CREATE TABLE task(id INTEGER PRIMARY KEY, title); INSERT INTO task VALUES (1, 'a')")
    try lab.write("Documents/a.txt", "a")
    try lab.write("Documents/b.txt", "b")
    try lab.write("Documents/Photos/1.jpg", "1")
    try lab.write("Documents/Photos/deep/2.jpg", "2")
    try lab.baseline(0)
    let before = try lab.tree().without("Library/Application Support")
    let notes = try upAndDown(
      """
        - files.move: {from: Documents/database.sqlite, to: Library/Application Support/database.sqlite}
        - sql: {database: notes, up: ALTER TABLE task ADD COLUMN colour TEXT, down: ALTER TABLE task DROP COLUMN colour}
        - files.move: {from: Documents/a.txt, to: Documents/b.txt, if-exists: replace}
        - files.move: {from: Documents/b.txt, to: Documents/new/deep/c.txt}
        - files.move: {from: Documents/absent, to: Documents/d.txt}
        - files.delete: {path: Documents/Photos, destructive: gone}
      """, lab
    ) { lab in
      try lab.change("INSERT INTO task(id, title) VALUES (2, 'newer')")
    }
    #expect(notes == [])
    let now = try lab.tree().without("Library/Application Support")
    let changes = now.differences(from: before, comparing: [.type, .mode, .content])
    #expect(changes.map { $0.split(separator: ":")[0] } == ["Documents/database.sqlite"], "\(changes)")
    let rows = try lab.query(Lab.oldDatabase, "SELECT * FROM task ORDER BY id")
    #expect(rows.map { Array($0.columnNames) } == [["id", "title"], ["id", "title"]])
    #expect(rows.map { $0["title"] as String } == ["a", "newer"])
    #expect(try lab.exists("Documents/b.txt") && !lab.exists("Documents/new"))
  }

  @Test func whatAnEarlierStepHadChangedIsKeptNowhere() throws {
    try lab.write("Documents/a.txt", "a")
    try lab.baseline(0)
    let steps = """
        - files.move: {from: Documents/a.txt, to: Documents/b.txt}
        - files.delete: {path: Documents/b.txt, destructive: gone}
      """
    let (code, text) = failure { try upAndDown(steps, lab) }
    #expect(code == .stepFailed && text.contains("0001_test.yaml:3:5: reverting files.delete"), "\(text)")
    #expect(try lab.history()?.version == 1)
    // The transaction as a whole can be undone.
    try lab.rollback()
    #expect(try lab.exists("Documents/a.txt") && !lab.exists("Documents/b.txt"))
  }

  @Test func downStepsRunInsteadOfTheSteps() throws {
    try lab.set(["a": .integer(1)])
    try lab.baseline(0)
    try lab.migration(
      "0001_down.yaml",
      "steps:\n  - defaults.set: {values: {b: 1}}\ndown:\n  - defaults.set: {values: {c: 3}}\n")
    try lab.migration("0002_gone.yaml", "irreversible: true\nsteps:\n  - defaults.set: {values: {d: 1}}\n")
    try lab.migrate(to: 1)
    let report = try lab.rollback(down: true)
    #expect((report.from, report.to) == (1, 0) && report.migrations.map(\.number) == [1])
    #expect(try lab.settings() == ["a": .integer(1), "b": .integer(1), "c": .integer(3)])
  }

  @Test func whatHasNoWayBackIsRefusedWithItsPlace() throws {
    try lab.database(Lab.newDatabase, "CREATE TABLE task(id INTEGER PRIMARY KEY)")
    try lab.baseline(0)
    try lab.migration("0001_a.yaml", step: "sql: {database: notes, up: CREATE TABLE t(x)}")
    try lab.migration("0002_b.yaml", "irreversible: true\nsteps:\n  - defaults.set: {values: {d: 1}}\n")
    #expect(try lab.catalog().migrations.map { $0.irreversibleSteps.count } == [1, 0])
    #expect(try lab.catalog().migrations.map(\.isReversible) == [false, false])
    try lab.migrate()
    let before = try lab.tree()
    let (code, text) = failure { try lab.rollback(down: true) }
    #expect(code == .irreversible)
    #expect(text.contains("0001_a.yaml:2:5: sql has no inverse"), "\(text)")
    #expect(text.contains("0002_b") && text.contains("irreversible"), "\(text)")
    #expect(try lab.tree().differences(from: before) == [])
    #expect(try lab.rollback().to == 0)
  }

  @Test func markersThatWereMadeGo() throws {
    lab.configuration.versionMarkers = [.init(place: .defaults(key: "schema"))]
    try lab.set(["a": .integer(1)])
    try lab.baseline(0)
    try lab.app(sets: "schema", nil)
    for number in 1...3 {
      try lab.migration("000\(number)_m.yaml", step: "defaults.set: {values: {s\(number): 1}}")
    }
    try lab.migrate()
    #expect(try lab.settings()?["schema"] == .integer(3))
    try lab.rollback(to: 1, down: true)
    #expect(try lab.settings() == ["a": .integer(1), "s1": .integer(1), "schema": .integer(1)])
    try lab.rollback(to: 0, down: true)
    #expect(try lab.settings() == ["a": .integer(1)])
  }
}
