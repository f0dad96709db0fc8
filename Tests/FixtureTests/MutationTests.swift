import AppContainer
import FixtureTesting
import Foundation
import MigrationEngine
import TestSupport
import Testing

/// The fixtures of the sample app are worth something: whatever is broken in one of its migrations, they notice, and say
/// in which one and where.
@Suite struct MutationTests {
  @Test(arguments: Mutation.all) func isCaught(_ mutation: Mutation) throws {
    try TemporaryDirectory.with { directory in
      let migrations = directory("Migrations")
      try FileManager.default.copyItem(atPath: Sample.migrations, toPath: migrations)
      try mutation.apply(to: migrations)
      var options = SuiteOptions()
      options.failsFast = true
      let result = try FixtureSuite(
        catalog: MigrationCatalog.load(migrations), releases: Releases.read(migrations),
        configuration: Sample.configuration, directory: Sample.fixtures, options: options
      ).run()
      let findings = result.fixtures.filter { $0.state == .failed }.flatMap(\.findings)
      #expect(
        findings.contains { finding in
          finding.migration?.contains(mutation.migration) == true
            && (finding.place ?? finding.message).contains(mutation.place)
        }, "\(findings)")
    }
  }

  /// A migration without a mutation would look safe and be unproven.
  @Test func everyMigrationIsBroken() throws {
    let catalog = try MigrationCatalog.load(Sample.migrations)
    #expect(Set(Mutation.all.map(\.migration)) == Set(catalog.migrations.map(\.identifier)))
  }
}
