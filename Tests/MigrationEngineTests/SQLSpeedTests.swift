@testable import MigrationEngine
import Formats
import TestSupport
import Testing

/// Long SQL files take time in proportion to their length.
@Suite(.serialized) struct SQLSpeedTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  private func write(_ lab: Lab, _ count: Int) throws {
    let rows = (1...count).map { "INSERT INTO t VALUES (\($0), 'the name of row \($0)');" }
    try lab.migration(
      "0001_rows.sql",
      "-- drydock: database notes\n-- migrate:up\nCREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT);\n"
        + rows.joined(separator: "\n") + "\n-- migrate:down\nDROP TABLE t;\n")
  }

  /// The shortest of three runs, in milliseconds.
  private func time(_ body: () throws -> Void) rethrows -> Double {
    var shortest = Double.infinity
    for _ in 0..<3 {
      shortest = min(shortest, try processorTime(body) / .milliseconds(1))
    }
    return shortest
  }

  @Test func validatingIsLinear() throws {
    func seconds(_ count: Int) throws -> Double {
      try write(lab, count)
      return try time {
        let found = try lab.problems()
        #expect(found.isEmpty)
      }
    }
    let (short, long) = (try seconds(2_000), try seconds(16_000))
    #expect(long < short * 24 + 200, "2,000 statements: \(short) ms, 16,000: \(long) ms")
  }

  @Test func migratingIsLinear() throws {
    func run(_ count: Int) throws -> Double {
      try Lab.with { lab in
        try write(lab, count)
        let time = try processorTime { try lab.migrate() } / .milliseconds(1)
        #expect(try lab.query(Lab.newDatabase, "SELECT count(*) AS n FROM t") == [["n": count]])
        return time
      }
    }
    let (short, long) = (try run(2_000), try run(16_000))
    #expect(long < short * 24 + 500, "2,000 statements: \(short) ms, 16,000: \(long) ms")
  }

  /// A migration does not take longer because many were there before.
  @Test func manyMigrationsTakeTimeInProportion() throws {
    func time(_ count: Int, _ body: (Lab) throws -> Void) throws -> Double {
      try Lab.with { lab in
        let views = "CREATE VIEW all_1 AS SELECT id FROM t1;"
        for number in 1...count {
          let digits = String(number)
          let name = String(repeating: "0", count: 4 - digits.count) + digits + "_t.sql"
          try lab.migration(
            name,
            "-- drydock: database notes\n-- migrate:up\nCREATE TABLE t\(number) (id INTEGER PRIMARY KEY, "
              + "t1 INTEGER REFERENCES t1, name TEXT NOT NULL DEFAULT '', UNIQUE (name));\n"
              + (number == 1 ? views : "") + "\n-- migrate:down\n" + (number == 1 ? "DROP VIEW all_1;" : "")
              + "DROP TABLE t\(number);\n")
        }
        return try processorTime { try body(lab) } / .milliseconds(1)
      }
    }
    let bodies: [(Lab) throws -> Void] = [
      { lab in
        let problems = try lab.problems()
        #expect(problems.isEmpty)
      },
      { lab in try lab.migrate() },
    ]
    for body in bodies {
      let (few, many) = (try time(30, body), try time(150, body))
      #expect(many < few * 9 + 300, "30 migrations: \(few) ms, 150: \(many) ms")
    }
  }

  /// Each place is found from the one before.
  @Test func manyProblemsAreToldInLinearTime() throws {
    let lines = (1...16_000).map { "DELETE FROM t WHERE \($0);" }
    try lab.migration(
      "0001_rows.sql",
      "-- drydock: database notes\n-- drydock: irreversible\n-- migrate:up\nCREATE TABLE t (id);\n"
        + lines.joined(separator: "\n"))
    let time = try processorTime { () throws in
      let problems = try lab.problems()
      #expect(problems.count == 16_000)
      #expect(problems.last?.contains("0001_rows.sql:16004:1: ") == true)
    }
    #expect(time < .seconds(30))
  }

  @Test func placesInAnyOrder() {
    let script = SQLScript(text: "SELECT 1;\n\n  SELECT 2;\nä SELECT 3;\n", file: "a.sql", firstLine: 3)
    var places = SQLPlaces(script)
    let offsets = [0, 10, 24, 0, 22]
    let found = offsets.map { places.position(at: $0).description }
    #expect(
      found == ["a.sql:3:1", "a.sql:5:3", "a.sql:6:2", "a.sql:3:1", "a.sql:6:1"].map { $0 }, "\(found)")
  }

  @Test func aNULCharacterIsRefused() throws {
    try lab.database(Lab.oldDatabase, "CREATE TABLE t (a)")
    try lab.baseline(0)
    try lab.migration("0001_a.sql", sqlFile("INSERT INTO t VALUES (1)\0; INSERT INTO t VALUES (2);"))
    expectFailure("a NUL character is not SQL") { try lab.migrate() }
  }
}
