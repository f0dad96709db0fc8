import Drydock
import TestSupport
import Testing

@Suite("Plans that change the history alone, in Swift")
struct HistoryPlanTests {
  private func container(_ sandbox: Sandbox) throws -> Container {
    try Container(
      at: sandbox("Notes"), configuration: ContainerConfiguration(file: sandbox("drydock.yaml")))
  }

  /// What a dry run returns; it shows the history as changed, and changes nothing.
  private func dryRun(
    _ change: ContainerChange<[String]>, _ sandbox: Sandbox
  ) throws -> DryRunOutcome<[String]> {
    let before = try sandbox.tree()
    let outcome = try container(sandbox).plan(change).dryRun()
    let files = outcome.difference.files.map(\.path.description)
    #expect(files.contains { $0.hasSuffix(".drydock/history.json") }, "\(outcome.difference)")
    #expect(files.allSatisfy { $0.contains("/.drydock") } && outcome.difference.settings.isEmpty)
    try sandbox.tree().expectSame(as: before, comparing: TreeListing.untouched)
    return outcome
  }

  @Test("A dry run of a baseline and of a repair shows the history, changes nothing, and returns the same")
  func dryRuns() throws {
    try Sandbox.with { sandbox in
      try sandbox.create()
      // Nothing says the version.
      try sandbox.edit("drydock.yaml") { $0.replacing(/(?m)^version-markers.*\n/, with: "") }
      let catalog = try MigrationCatalog.load(sandbox("Migrations"))
      let baseline = ContainerChange.baseline(catalog, version: 1)
      let planned = try dryRun(baseline, sandbox)
      #expect(try container(sandbox).apply(baseline).value == planned.value)
      #expect(try container(sandbox).status(catalog).version == 1)
    }
    try Sandbox.with { sandbox in
      try sandbox.create()
      try sandbox.succeed("migrate Notes --to 1 --no-snapshot")
      try sandbox.edit("Migrations/0001_default_settings.yaml") { $0 + "# Edited.\n" }
      let catalog = try MigrationCatalog.load(sandbox("Migrations"))
      #expect(try container(sandbox).status(catalog).problems.map(\.code) == [.edited])
      let repair = ContainerChange.repair(catalog, accept: [1])
      let repaired = try dryRun(repair, sandbox)
      #expect(try container(sandbox).status(catalog).problems.map(\.code) == [.edited])
      #expect(throws: DrydockError.self) {
        try container(sandbox).plan(.repair(catalog, remove: [1])).dryRun()
      }
      #expect(try container(sandbox).apply(repair).value == repaired.value)
      #expect(try container(sandbox).status(catalog).problems.isEmpty)
    }
  }
}
