import AppContainer
import ContainerTransaction
import Foundation
import MigrationEngine
import Testing

@Suite struct FilesOperationTests {
  @Test(
    arguments: [
      ("files.move: {from: a, to: x/y/b}", ["a"], ["x/y/b"], ""),
      ("files.move: {from: z, to: b}", ["a"], ["a"], ""),
      (
        "files.move: {from: z, to: b, if-missing: fail}", ["a"], nil,
        "0001_test.yaml:2:5: files.move: `z` is not in the container"
      ),
      ("files.move: {from: a, to: b}", ["a", "b"], nil, "the target `b` of `a` is there already"),
      ("files.move: {from: a, to: b, if-exists: keep}", ["a", "b"], ["a", "b"], ""),
      ("files.move: {from: a, to: b, if-exists: replace}", ["a", "b"], ["b"], ""),
      ("files.move: {from: d, to: e}", ["d/1", "d/s/2"], ["e/1", "e/s/2"], ""),
      ("files.move: {from: Library, to: L}", ["a"], nil, "`Library` holds Drydock's history"),
      (
        "files.patch: {path: Library/Application Support/.drydock/history.json, patch: [{op: remove, path: /format}]}",
        ["a"], nil, "is where Drydock keeps its history"
      ),
      ("files.delete: {paths: a, destructive: x}", ["a", "b"], ["b"], ""),
      ("files.delete: {paths: [d, b], destructive: x}", ["d/1", "d/2", "b", "c"], ["c"], ""),
      ("files.delete: {paths: ['*.log'], destructive: x}", ["a.log", "d/b.log"], ["d/b.log"], ""),
      ("files.delete: {paths: ['**/*.log'], destructive: x}", ["a.log", "d/b.log", "c"], ["c"], ""),
      ("files.delete: {paths: [z], destructive: x}", ["a"], ["a"], ""),
      ("files.delete: {paths: [z], destructive: x, if-missing: fail}", ["a"], nil, "nothing matches `z`"),
      ("files.delete: {paths: [Library], destructive: x}", ["a"], nil, "`Library` holds Drydock's history"),
    ] as [(String, [String], [String]?, String)])
  func matrix(_ step: String, _ before: [String], _ after: [String]?, _ message: String) throws {
    try Lab.with { lab in
      for file in before { try lab.write(try ContainerPath(file), file) }
      let error = failure { try lab.run("  - \(step)\n") }
      let found = try Transaction.inspect(try lab.container) { stage in
        try stage.descendants(of: .root).filter { path in
          try stage.status(of: path)?.type == .file && !path.isInside("Library")
        }
      }
      #expect(found.map(\.description) == (after ?? before).sorted())
      if after == nil {
        #expect(error.text.contains(message), "\(error.text)")
      } else {
        #expect(error.text == "no error")
      }
    }
  }

  @Test func aDatabaseMovesWithItsLog() throws {
    try Lab.with { lab in
      try lab.database(
        Lab.oldDatabase, "PRAGMA journal_mode=WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1), (2);")
      try lab.run("  - files.move: {from: \(Lab.oldDatabase), to: \(Lab.newDatabase)}\n")
      #expect(try lab.query(Lab.newDatabase, "SELECT count(*) AS n FROM t") == [["n": 2]])
      #expect(try !lab.exists(Lab.oldDatabase))
      #expect(try !lab.exists("Documents/database.sqlite-wal"))
    }
  }
}
