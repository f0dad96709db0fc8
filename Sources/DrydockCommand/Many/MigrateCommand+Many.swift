import Drydock
import Synchronization

extension MigrateCommand {
  /// Migrates many containers, each in a transaction of its own.
  func run(_ many: ManyContainers) throws {
    let catalog = try migrations.catalog(many.configuration)
    let options = try container.transaction().with(deviceKeys)
    if dryRun { return try many.finish(many.run(dryRun(catalog, options))) }
    let moved = Mutex<[String: [MovedSecret]]>([:])
    var summary = many.run { [to] container in
      let outcome = try Migrating.run(container, catalog, to: to, options: options)
      moved.withLock { $0[container.app, default: []] += outcome.value.moved }
      var result = ManyResult(
        state: outcome.transaction == nil ? .unchanged : .changed,
        text: Self.text(outcome.value.migration), document: Result(outcome), exit: outcome.exit,
        notes: outcome.remarks)
      if let exit = result.exit { result.text += ", exit \(exit.rawValue)" }
      return result
    }
    // One search for all: each would read the whole repository.
    if let repository = repository.path(many.configuration) {
      for (app, moved) in moved.withLock({ $0 }).sorted(by: { $0.key < $1.key }) where !moved.isEmpty {
        let found = Migrating.search(
          repository, for: moved, app: app, configuration: many.configuration, redactor: options.redactor)
        summary.exposed += found.exposed
        summary.notSearched += found.notSearched
      }
    }
    MigrationText.warn(exposed: summary.exposed, notSearched: summary.notSearched)
    try many.finish(summary)
  }

  private func dryRun(
    _ catalog: MigrationCatalog, _ options: TransactionOptions
  ) -> @Sendable (Container) throws -> ManyResult {
    { [to, exitCode] container in
      let outcome = try Migrating.dryRun(container, catalog, to: to, options: options)
      guard outcome.value.changedAnything else {
        return ManyResult(state: .unchanged, text: Self.text(outcome.value), document: Result(outcome))
      }
      return ManyResult(
        state: .pending, text: "\(Self.text(outcome.value)): \(Self.text(outcome.difference))",
        document: Result(outcome), exit: exitCode ? .pending : nil)
    }
  }

  private static func text(_ report: MigrationReport) -> String {
    guard report.changedAnything else { return "version \(report.to)" }
    return "version \(report.from) → \(report.to)"
  }

  /// What would change, counted.
  private static func text(_ difference: ContainerDifference) -> String {
    let counts = [
      (difference.settings.count, "setting"), (difference.vault.count, "vault"),
      (difference.databases.count, "database"), (difference.files.count, "file"),
    ]
    return counts.filter { $0.0 > 0 }.map { Output.count($0.0, $0.1) }.joined(separator: ", ")
  }
}
