import DrydockTesting
import Foundation
import MigrationEngine
import TestSupport
import Testing

/// The fixtures of the sample app are worth something: whatever is broken in one of its migrations, the one that is
/// there for it fails, and says in which migration and where. That none of them fails otherwise,
/// `FixtureMigrationTests` shows.
@Suite struct MutationTests {
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
