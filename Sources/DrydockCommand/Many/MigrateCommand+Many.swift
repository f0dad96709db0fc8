import Drydock
import Synchronization

extension MigrateCommand {
  /// Migrates many containers, each in a transaction of its own.
  func run(_ many: ManyContainers) throws {
    let catalog = try migrations.catalog(many.configuration)
    var options = options(transaction: try container.transaction().with(deviceKeys).with(use))
    if !dryRun {
      options.backup = try MigrationBackup(self, many.configuration, options.transaction).options
    }
    let moved = Mutex<[String: [MovedSecret]]>([:])
    var summary = many.run { [to, each, dryRun, exitCode, options] container in
      do {
        if dryRun { return try Self.show(container, catalog, options, exitCode: exitCode) }
        return try Self.migrate(container, catalog, options, each: each) { outcome in
          moved.withLock { $0[container.app, default: []] += outcome.value.moved }
        }
      } catch let error as DrydockError where error.code == .usage && to ?? 0 <= catalog.latest {
        // It is further than others.
        return ManyResult(state: .unchanged, text: error.message)
      }
    }
    // One search for all: each would read the whole repository.
    if let repository = repository.path(many.configuration) {
      for (app, moved) in moved.withLock({ $0 }).sorted(by: { $0.key < $1.key }) where !moved.isEmpty {
        let found = Repository(repository).search(
          for: moved, of: app, configuration: many.configuration, redactor: options.transaction.redactor)
        summary.exposed += found.exposed
        summary.notSearched += found.notSearched
      }
    }
    MigrationText.warn(exposed: summary.exposed, notSearched: summary.notSearched)
    try many.finish(summary)
  }

  private static func migrate(
    _ container: Container, _ catalog: MigrationCatalog, _ options: MigrationOptions, each: Bool,
    committed: (TransactionOutcome<MigrationResult>) -> Void
  ) throws -> ManyResult {
    guard each else {
      let outcome = try container.migrate(catalog, options: options)
      committed(outcome)
      return result([outcome], Result(outcome), nil)
    }
    var outcomes: [TransactionOutcome<MigrationResult>] = []
    var document = EachResult()
    do {
      try container.migrateEach(catalog, options: options) { outcome in
        committed(outcome)
        outcomes.append(outcome)
        document.runs.append(Result(outcome))
      }
    } catch {
      guard outcomes.contains(where: { $0.transaction != nil }) else { throw error }
      let failure = Failure(error) ?? Failure(unforeseen: error)
      document.error = failure.detail(status: .incomplete)
      return result(outcomes, document, failure)
    }
    return result(outcomes, document, nil)
  }

  /// What one or more transactions did, and what ended them.
  private static func result(
    _ outcomes: [TransactionOutcome<MigrationResult>], _ document: some Encodable & Sendable,
    _ failure: Failure?
  ) -> ManyResult {
    let versions = outcomes.map(\.value.report)
    var result = ManyResult(
      state: outcomes.allSatisfy { $0.transaction == nil } ? .unchanged : .changed,
      text: text(versions.first?.from ?? 0, versions.last?.to ?? 0), document: document,
      exit: outcomes.lazy.compactMap(\.exit).first, notes: outcomes.flatMap(\.remarks),
      unseen: outcomes.lazy.compactMap(\.unseen).first)
    if let failure {
      result.exit = .incomplete
      result.text += ", then: \(failure.text)"
    }
    if let exit = result.exit { result.text += ", exit \(exit.rawValue)" }
    return result
  }

  private static func show(
    _ container: Container, _ catalog: MigrationCatalog, _ options: MigrationOptions, exitCode: Bool
  ) throws -> ManyResult {
    let outcome = try container.dryRun(catalog, options: options)
    let (report, document) = (
      outcome.value, Result(report: outcome.value, difference: outcome.difference)
    )
    guard report.changedAnything else {
      return ManyResult(state: .unchanged, text: text(report.from, report.to), document: document)
    }
    return ManyResult(
      state: .pending, text: "\(text(report.from, report.to)): \(ManyResult.text(outcome.difference))",
      document: document, exit: exitCode ? .pending : nil)
  }

  private static func text(_ from: Int, _ to: Int) -> String {
    from == to ? "version \(to)" : "version \(from) → \(to)"
  }
}

extension ManyResult {
  /// What would change, counted.
  static func text(_ difference: ContainerDifference) -> String {
    let counts = [
      (difference.settings.count, "setting"), (difference.vault.count, "vault"),
      (difference.databases.count, "database"), (difference.files.count, "file"),
    ]
    return counts.filter { $0.0 > 0 }.map { Output.count($0.0, $0.1) }.joined(separator: ", ")
  }
}
