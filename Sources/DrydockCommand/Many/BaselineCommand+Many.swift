import Drydock

extension BaselineCommand {
  /// Sets the version of those containers of many of which nothing else says it: another one would lose its history.
  func run(_ many: ManyContainers) throws {
    let catalog = try migrations.catalog(many.configuration)
    let options = try container.transaction().with(use)
    try many.finish(
      many.run { [to] container in
        if let detected = try Self.known(container, catalog, options) {
          return ManyResult(
            state: .unchanged, text: "version \(detected.version) already, by \(detected.source)")
        }
        let outcome = try container.baseline(catalog, version: to, options: options)
        let result = Result(
          transaction: outcome.transaction?.description, version: to, notes: outcome.value + outcome.notes,
          unseenProcesses: outcome.unseen)
        return ManyResult(
          state: .changed, text: "version \(to)", document: result, notes: outcome.value + outcome.remarks,
          unseen: outcome.unseen)
      })
  }

  /// The version that something says; nil when nothing does, or only a marker that nobody has vouched for.
  private static func known(
    _ container: Container, _ catalog: MigrationCatalog, _ options: TransactionOptions
  ) throws -> DetectedVersion? {
    do {
      let plan = try container.status(catalog, options: options)
      return plan.problems.contains { $0.code == .firstContact } ? nil : plan.detected
    } catch let error as DrydockError where error.code == .unknownVersion {
      return nil
    }
  }
}
