import AppContainer
import ContainerTransaction
import DrydockTesting
import MigrationEngine
import TestSupport
import Testing

@Suite("Every fixture of the sample app is taken to the latest version")
struct FixtureMigrationTests {
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
}
