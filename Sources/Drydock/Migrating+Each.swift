import AppContainer
import ContainerTransaction
import MigrationEngine

extension Migrating {
  /// Migrates one migration after the other, each in a transaction of its own: what was done before a failure stays, and a
  /// rollback can stop between any two.
  ///
  /// - Parameters:
  ///   - backup: takes a snapshot before the first of them.
  ///   - starting: called before the first transaction with the number of them.
  ///   - committed: called after each transaction; once, with none, when there is nothing to do.
  /// - Throws: as ``run(_:_:to:repository:backup:allowingOutOfOrder:options:backedUp:)``; what was given to `committed` before that is done.
  package static func runEach(
    _ container: Container, _ catalog: MigrationCatalog, to version: Int? = nil, repository: String? = nil,
    backup: SnapshotOptions? = nil, allowingOutOfOrder: Bool = false,
    options: TransactionOptions = TransactionOptions(),
    backedUp: @escaping @Sendable (SnapshotReport) -> Void = { _ in },
    starting: (Int) -> Void = { _ in }, committed: (TransactionOutcome<Report>) throws -> Void
  ) throws {
    // What keeps a later one from being run is known before the first one runs.
    let pending = try Transaction.inspect(container, options: options) {
      let plan = try MigrationStatus(catalog, of: $0, allowingOutOfOrder: allowingOutOfOrder)
      try plan.requireKeys(to: version, for: $0)
      return try plan.pending(to: version)
    }
    starting(pending.count)
    var backup = backup
    for target in pending.isEmpty ? [version] : pending.map({ $0.number }) {
      try committed(
        run(
          container, catalog, to: target, repository: repository, backup: backup,
          allowingOutOfOrder: allowingOutOfOrder, options: options, backedUp: backedUp))
      backup = nil
    }
  }
}
