import ContainerTransaction
import DrydockErrors
import MigrationEngine
import TestSupport
import Testing

@Suite("A run of migrations can be watched") struct WatchTests {
  /// What each step of the only migration changed, by its operation.
  private func changes(_ steps: String) throws -> [[String]] {
    try Lab.with { lab in
      try lab.set(["theme": "dark", "size": 12])
      try lab.busyDatabase(Lab.oldDatabase)
      try lab.write("Documents/note.md", "x")
      try lab.migration("0001_test.yaml", "steps:\n" + steps)
      try lab.baseline(0)
      return try Transaction.run(on: lab.container, .migrate, summary: "test", options: lab.options) {
        stage in
        var told: [[String]] = []
        var watch = try StageWatch(stage)
        _ = try Migrator.run(MigrationStatus(lab.catalog(), of: stage), on: stage, stamp: lab.stamp) {
          #expect($0.index == told.count && $0.migration == 1)
          told.append([$0.operation] + (try watch.changes(on: $1).map(\.description)))
        }
        return told
      }.value
    }
  }

  @Test("It tells what each step changed, and only that")
  func effects() throws {
    let database = "\(Lab.oldDatabase)"
    let told = try changes(
      """
        - sql: {database: notes, up: SELECT 1}
        - defaults.set: {values: {size: 13}, if-exists: replace}
        - defaults.set-default: {values: {size: 1, theme: light}}
        - sql: {database: notes, up: UPDATE t SET a = a + 1 WHERE a = 2}
        - sql: {database: notes, up: UPDATE t SET a = a WHERE a > 0}
        - files.move: {from: \(database), to: Documents/b.sqlite}
        - files.move: {from: nothing, to: anything}
        - files.set-backup-exclusion: {path: [Documents/note.md], excluded: true}
        - files.create-directory: {path: Documents/New}
      """)
    #expect(
      told == [
        ["sql"], ["defaults.set", "\(Lab.settings)"], ["defaults.set-default"], ["sql", database], ["sql"],
        ["files.move", "Documents/b.sqlite", database], ["files.move"],
        ["files.set-backup-exclusion", "Documents/note.md"], ["files.create-directory", "Documents/New"],
      ])
  }

  @Test("Steps that destroy data say so")
  func destructive() throws {
    try Lab.with { lab in
      try lab.migration(
        "0001_test.yaml",
        """
        steps:
          - files.delete: {path: [a], destructive: why}
          - sql: {database: notes, up: DELETE FROM t, destructive: why}
          - sql: {database: notes, up: DELETE FROM t WHERE a = 1}
          - files.copy: {from: a, to: b}
        """)
      let outline = try lab.catalog().migrations[0].outline
      #expect(outline.map { $0.announcedLoss != .nothing } == [true, true, false, false])
      #expect(outline.map(\.position.line) == [2, 3, 4, 5])
    }
  }

  @Test("A container that is thrown away may be open elsewhere; any other may not")
  func scratch() throws {
    try Lab.with { lab in
      try lab.write("Documents/note.md", "x")
      try lab.baseline(0)
      try lab.migration("0001_test.yaml", step: "files.write: {path: Documents/new, text: a}")
      let reader = try Command.spawn(
        "/bin/sh",
        ["-c", "exec 9<\"$0\"; echo ready; read line", lab.path("Documents/note.md")])
      try reader.waitForLine("ready")
      defer {
        reader.closeInput()
        _ = try? reader.wait()
      }
      lab.isScratch = false
      #expect(throws: DrydockError.self) { try lab.migrate() }
      lab.isScratch = true
      let outcome = try Transaction.run(on: lab.container, .migrate, summary: "test") { stage in
        try Migrator.run(MigrationStatus(lab.catalog(), of: stage), on: stage, stamp: lab.stamp)
      }
      #expect(outcome.transaction != nil)
      #expect(try lab.exists("Documents/new"))
    }
  }
}
