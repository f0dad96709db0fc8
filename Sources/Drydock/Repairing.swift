import AppContainer
import ContainerTransaction
import MigrationEngine

extension Migrating {
  /// Brings a container's history in line with the migrations, as a person says who has looked.
  ///
  /// - Returns: what was done.
  /// - Throws: `DrydockError` with code `usage` for a migration that is not in the state that is named; nothing has
  ///   changed then.
  package static func repair(
    _ container: Container, _ catalog: MigrationCatalog, _ repair: Repair,
    options: TransactionOptions = TransactionOptions()
  ) throws -> TransactionOutcome<[String]> {
    // What makes no sense is refused before a transaction begins.
    _ = try Transaction.inspect(container, options: options) { try repair.run(catalog, on: $0) }
    let summary = [("accepted", repair.accept), ("removed", repair.remove)].filter { !$0.1.isEmpty }
      .map { "\($0.0) \($0.1.sorted().map(String.init).joined(separator: ", "))" }.joined(separator: "; ")
    return try Transaction.run(on: container, .repair, summary: summary, options: options) {
      try repair.run(catalog, on: $0)
    }
  }
}
