import Drydock

extension RepairCommand {
  /// Repairs those containers of many that need it.
  func run(_ many: ManyContainers) throws {
    let catalog = try migrations.catalog(many.configuration)
    if let unknown = accept.first(where: { catalog.migration($0) == nil }) {
      throw UsageError(message: "--accept \(unknown): there is no migration of that number")
    }
    let options = try container.transaction().with(use)
    try many.finish(
      many.run { [accept, remove] container in
        do {
          let outcome = try container.repair(catalog, accept: accept, remove: remove, options: options)
          let result = Result(
            transaction: outcome.transaction?.description, notes: outcome.value,
            unseenProcesses: outcome.unseen)
          return ManyResult(
            state: .changed, text: outcome.value.joined(separator: "; "), document: result,
            exit: outcome.exit, notes: outcome.remarks, unseen: outcome.unseen)
        } catch let error as DrydockError where error.code == .usage {
          // It is not in the state that others are in.
          return ManyResult(state: .unchanged, text: error.message)
        }
      })
  }
}
