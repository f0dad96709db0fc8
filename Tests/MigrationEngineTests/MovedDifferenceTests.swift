import ContainerDiff
import ContainerTransaction
import FileSystem
import Foundation
import Testing

@testable import MigrationEngine

/// What a dry run reports of paths that move in the same run in which they change.
@Suite struct MovedDifferenceTests {
  private func difference(_ steps: String, _ prepare: (Lab) throws -> Void) throws -> ContainerDifference {
    try Lab.with { lab in
      try prepare(lab)
      try lab.baseline(0)
      try lab.migration("0001_a.yaml", "irreversible: true\nsteps:\n" + steps)
      let stage = try DiscardedStage(on: lab.container, options: lab.options)
      let status = MigrationStatus(
        catalog: try lab.catalog(), detected: try DetectedVersion.detect(in: stage))
      return try stage.outcome(Migrator.run(status, on: stage, stamp: lab.stamp), rowLimit: 5).difference
    }
  }

  private static let sql =
    "  - sql: {database: notes, up: ALTER TABLE t ADD COLUMN b; UPDATE t SET a = 2 WHERE a = 1}\n"
  private static let move = "  - files.move: {from: \(Lab.oldDatabase), to: \(Lab.newDatabase)}\n"

  @Test(
    "The rows and the schema of a database that moves, whichever comes first",
    arguments: [sql + move, move + sql])
  func database(_ steps: String) throws {
    let found = try difference(steps) {
      try $0.database(Lab.oldDatabase, "CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    }
    #expect(found.databases.count == 1)
    let database = try #require(found.databases.first)
    #expect(database.path == Lab.newDatabase && database.movedFrom == Lab.oldDatabase)
    #expect(database.schema.contains { $0.name == "t" } && database.tables.contains { $0.name == "t" })
  }

  @Test("Files of a directory that moves, twice")
  func nested() throws {
    let found = try difference("  - files.move: {from: d, to: e}\n  - files.move: {from: e/s, to: f}\n") {
      lab in
      for path in ["d/1", "d/s/2"] as [ContainerPath] { try lab.write(path, path.description) }
    }
    let moved = found.files.filter { $0.type == .file && !$0.path.isInside("Library") }.map {
      "\($0.movedFrom?.description ?? "") \($0.path)"
    }
    #expect(Set(moved) == ["d/1 e/1", "d/s/2 f/2"])
    #expect(!found.files.contains { $0.type == .file && $0.change == .removed })
  }

  @Test("A file that moves onto one with equal content, and one that is removed after it moved, are reported")
  func removals() throws {
    let found = try difference(
      "  - files.move: {from: a, to: b, if-exists: replace}\n  - files.move: {from: c, to: d}\n"
        + "  - files.delete: {path: 'd*', destructive: x}\n"
    ) { lab in
      for path in ["a", "b"] as [ContainerPath] { try lab.write(path, "same") }
      try lab.write("c", "other")
    }
    let gone = found.files.compactMap { $0.change == .removed ? $0.path : $0.movedFrom }
    #expect(Set(gone.map(\.description)) == ["a", "c"])
  }

  @Test("A directory with Drydock's history does not move, also where there is none yet")
  func history() throws {
    try Lab.with { lab in
      try lab.write("Library/Application Support/x", "x")
      var step = try StepLab(lab, "files.move: {from: Library/Application Support, to: Data}")
      let error = failure { try step.apply() }
      #expect(error.text.contains("contains Drydock"), "\(error.text)")
    }
  }

  @Test("A symbolic link among the matches of a pattern is skipped with a note")
  func links() throws {
    try Lab.with { lab in
      try lab.write("d/a", "a")
      try FileManager.default.createSymbolicLink(atPath: lab.path("d/b"), withDestinationPath: "a")
      try lab.tried("files.set-protection: {path: 'd/*', class: complete}") { _, notes in
        #expect(notes.count == 1 && notes[0].contains("`d/b` is a symbolic link"), "\(notes)")
      }
      expectFailure("name what it points to") {
        try lab.tried("files.set-protection: {path: d/b, class: complete}") { _, _ in }
      }
    }
  }
}
