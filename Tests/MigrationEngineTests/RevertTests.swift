import Foundation
import Testing

@testable import MigrationEngine

/// Each operation is taken back by itself: what it wrote, and what it replaced.
@Suite("Reverting single steps") struct RevertTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  private func upAndDown(
    _ steps: String, _ lab: Lab, app: (Lab) throws -> Void = { _ in }
  ) throws -> [String] {
    try lab.run(steps)
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
    try lab.set(["theme": "light", "user": "Ada", "mode": true])
    let notes = try upAndDown(
      """
        - defaults.set: {values: {theme: dark}, if-exists: replace}
        - defaults.rename: {keys: {user: name}}
        - defaults.convert: {key: mode, to: look, map: {true: dark, false: light}}
      """, lab
    ) { lab in
      try lab.app(sets: "theme", "sepia")
      try lab.app(sets: "name", "Grace")
      try lab.app(sets: "look", "light")
      try lab.app(sets: "own", 1)
    }
    #expect(try lab.settings() == ["theme": "sepia", "user": "Grace", "mode": false, "own": 1])
    expectOne(notes, "0001_test.yaml:2:", end: "defaults.set: `theme` was changed since: left unchanged")
  }

  @Test func whatIsNewIsConvertedBack() throws {
    try lab.set(["same": "1", "there": "dark"])
    let notes = try upAndDown(
      """
        - defaults.convert: {key: mode, to: look, map: {true: dark, false: light}}
        - defaults.convert: {key: old, to: there, map: {true: dark, false: light}}
        - defaults.convert: {key: same, type: string}
        - defaults.convert: {key: size, to: width, type: integer}
      """, lab
    ) { lab in
      try lab.app(sets: "look", "light")
      try lab.app(sets: "width", 1)
    }
    #expect(try lab.settings() == ["mode": false, "width": 1, "same": "1", "there": "dark"])
    expectOne(notes, end: "`width` was written since: left unchanged")
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
    try lab.set(["a": 1])
    try lab.baseline(0)
    try lab.migration(
      "0001_down.yaml", steps: ["defaults.set: {values: {b: 1}}"],
      ["down": ["defaults.set: {values: {c: 3}}"]])
    try lab.migration("0002_gone.yaml", "irreversible: true\nsteps:\n  - defaults.set: {values: {d: 1}}\n")
    try lab.migrate(to: 1)
    let report = try lab.rollback(down: true)
    #expect((report.from, report.to) == (1, 0) && report.migrations.map(\.number) == [1])
    #expect(try lab.settings() == ["a": 1, "b": 1, "c": 3])
  }

  @Test(arguments: [
    ("files.unarchive: {database: notes, table: note, column: body}", "files.unarchive has no inverse"),
    ("script: {program: 'true'}", "script has no inverse"),
  ])
  func whatHasNoInverse(_ step: String, _ message: String) throws {
    try lab.migration("0001_test.yaml", step: step)
    expectOne(try lab.catalog().migrations[0].irreversibleSteps, message)
  }
  @Test func whatHasNoWayBackIsRefusedWithItsPlace() throws {
    try lab.database("CREATE TABLE task(id INTEGER PRIMARY KEY)")
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
    try lab.set(["a": 1])
    try lab.baseline(0)
    try lab.app(sets: "schema", nil)
    try lab.migrations(3)
    try lab.migrate()
    #expect(try lab.settings()?["schema"] == 3)
    try lab.rollback(to: 1, down: true)
    #expect(try lab.settings() == ["a": 1, "m1": true, "schema": 1])
    try lab.rollback(to: 0, down: true)
    #expect(try lab.settings() == ["a": 1])
  }
}
