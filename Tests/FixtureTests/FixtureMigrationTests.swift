import AppContainer
import ContainerTransaction
import FixtureTesting
import Foundation
import MigrationEngine
import TestSupport
import Testing

@Suite("Every fixture is taken to the latest version")
struct FixtureMigrationTests {
  @Test("It is as expected afterwards, and migrating again changes nothing", arguments: try names())
  func migrates(_ name: String) throws {
    try TemporaryDirectory.with { directory in
      let fixture = try Sample.fixture(name)
      let runner = try Sample.runner()
      #expect(try runner.findings(fixture, in: directory("work")) == [])
      // Not a byte, a time or an inode, when there is nothing to do.
      guard fixture.expectsSuccess else { return }
      let container = try Container(at: directory("work/container"), configuration: runner.configuration)
      let before = try TreeListing(container.root)
      #expect(try runner.migrate(container).transaction == nil)
      let after = try TreeListing(container.root)
      #expect(after.differences(from: before, comparing: TreeListing.untouched) == [])
    }
  }

  @Test("What cannot be migrated is left untouched", arguments: try names(failing: true))
  func refuses(_ name: String) throws {
    try TemporaryDirectory.with { directory in
      let runner = try Sample.runner()
      let container = try runner.build(Sample.fixture(name), in: directory("work"))
      let before = try TreeListing(container.root)
      #expect(throws: (any Error).self) { try runner.migrate(container) }
      let after = try TreeListing(container.root)
      #expect(after.differences(from: before, comparing: TreeListing.untouched) == [])
    }
  }

  @Test("A rollback gives back exactly what was", arguments: try names(failing: false))
  func rollsBack(_ name: String) throws {
    try TemporaryDirectory.with { directory in
      let runner = try Sample.runner()
      let container = try runner.build(Sample.fixture(name), in: directory("work"))
      let before = try TreeListing(container.root)
      let outcome = try runner.migrate(container)
      if outcome.transaction == nil { return }
      var options = TransactionOptions()
      options.deviceKeys = runner.deviceKeys
      _ = try Transaction.rollback(container, options: options)
      let after = try TreeListing(container.root)
      #expect(after.differences(from: before) == [])
    }
  }

  @Test("What the app itself makes migrates too, to the schema of the app's newest version", arguments: 0...5)
  func realContainers(_ version: Int) throws {
    try TemporaryDirectory.with { directory in
      let app = try Tools.notesApp()
      for (name, number) in [("old", version), ("new", 6)] {
        #expect(try Command.run(app, ["create", directory(name), "--version", "\(number)"]).succeeded)
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

  private static func names(failing: Bool? = nil) throws -> [String] {
    try Fixture.all(in: Sample.fixtures)
      .filter { failing == nil || failing != $0.expectsSuccess }.map(\.name)
  }
}
