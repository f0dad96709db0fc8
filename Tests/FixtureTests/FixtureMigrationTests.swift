import AppContainer
import DrydockTesting
import Foundation
import MigrationEngine
import TestSupport
import Testing

@Suite("Every fixture of the sample app is taken to the latest version") struct FixtureMigrationTests {
  @Test("All of them pass all checks")
  func suite() throws {
    let result = try FixtureSuite(
      MigrationCatalog.load(Sample.migrations), fixtures: Sample.fixtures, configuration: Sample.configuration
    ).run()
    for fixture in result.fixtures where fixture.state != .knownFailure {
      #expect(fixture.findings == [], "\(fixture.name)")
    }
    #expect(result.findings == [])
  }

  @Test("What the app itself makes migrates too, to the schema of the app's newest version", arguments: 0...6)
  func realContainers(_ version: Int) throws {
    try TemporaryDirectory.with { directory in
      let app = try Tools.notesApp()
      for (name, number) in [("old", version), ("new", 7)] {
        let group = name == "old" ? ["--group", directory("Shared/AppGroup/notes")] : []
        #expect(
          try Command.run(app, ["create", directory(name), "--version", "\(number)"] + group).succeeded)
      }
      let runner = try Sample.runner()
      _ = try runner.migrate(Container(at: directory("old"), configuration: runner.configuration))
      let place = "Library/Application Support/database.sqlite"
      let check = try Command.run(app, ["check", directory("old/\(place)")])
      #expect(check.succeeded && check.output.contains("200 tasks"), "\(check)")
      let columns = """
        SELECT m.name, c.cid, c.name, c.type, c."notnull", c.dflt_value, c.pk
        FROM sqlite_schema m, pragma_table_info(m.name) c ORDER BY 1, 2;
        SELECT name, sql FROM sqlite_schema WHERE type = 'index' ORDER BY 1;
        """
      let schemas = try ["old", "new"].map { name in
        try Command.run(Tools.system("sqlite3"), [directory("\(name)/\(place)"), columns]).output
      }
      #expect(schemas[0].contains("isCompleted"))
      #expect(schemas[0].replacing("\"", with: "") == schemas[1].replacing("\"", with: ""))
    }
  }

  /// The fixtures of the sample app are worth something: whatever is broken in one of its migrations, the one that is
  /// there for it fails, and says in which migration and where.
  @Test(arguments: Mutation.all) func isCaught(_ mutation: Mutation) throws {
    let findings = try findings(mutation)
    #expect(
      findings.contains { finding in
        finding.migration?.contains(mutation.migration) == true
          && (finding.place ?? finding.message).contains(mutation.place)
      }, "\(findings)")
  }

  /// The step that would lose the rows in the log is refused.
  @Test func aSidecarCannotBeForgotten() throws {
    let mutation = Mutation(
      "0003_move_database", "the sidecar forgotten",
      [
        (
          "steps:\n",
          "steps:\n  - files.delete: {path: Documents/database.sqlite-wal, destructive: it looks left over}\n"
        ), ("verify:\n  - sql: {database: notes, query: SELECT count(*) FROM task, equals: before}\n", ""),
      ], finds: "database.sqlite", by: "rows-only-in-wal")
    let found = try findings(mutation).filter { $0.message.contains("belongs to the database") }
    #expect(found.map(\.migration) == ["0003_move_database"], "\(found)")
  }

  /// A migration without a mutation would look safe and be unproven.
  @Test func everyMigrationIsBroken() throws {
    let catalog = try MigrationCatalog.load(Sample.migrations)
    #expect(Set(Mutation.all.map(\.migration)) == Set(catalog.migrations.map(\.identifier)))
  }

  /// What is found when a mistake is in the migrations.
  private func findings(_ mutation: Mutation) throws -> [FixtureResult.Finding] {
    try TemporaryDirectory.with { directory in
      let migrations = directory("Migrations")
      try FileManager.default.copyItem(atPath: Sample.migrations, toPath: migrations)
      try mutation.apply(to: migrations)
      let result = try FixtureSuite(
        MigrationCatalog.load(migrations), fixtures: [Sample.fixture(mutation.fixture)],
        configuration: Sample.configuration
      ).run()
      return result.fixtures.filter { $0.state == .failed }.flatMap(\.findings)
    }
  }
}
