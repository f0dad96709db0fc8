import Drydock

extension StatusCommand {
  /// The status of many containers.
  func run(_ many: ManyContainers) throws {
    let catalog = try migrations.catalog(many.configuration)
    let (options, exitCode) = (try container.transaction(), exitCode)
    try many.finish(
      many.run { container in
        let plan = try container.status(catalog, options: options)
        let version = "version \(plan.detected.version) of \(plan.catalog.latest)"
        if let problem = plan.problems.first {
          let more = plan.problems.count > 1 ? " (and \(plan.problems.count - 1) more)" : ""
          return ManyResult(
            state: .failed, text: "\(version), exit \(ExitStatus.validation.rawValue): \(problem)\(more)",
            document: Result(plan), exit: .validation)
        }
        if plan.pending.isEmpty {
          return ManyResult(state: .unchanged, text: version, document: Result(plan))
        }
        return ManyResult(
          state: .pending,
          text: "\(version), by \(plan.detected.source); \(plan.pending.count) pending",
          document: Result(plan), exit: exitCode ? .pending : nil)
      })
  }
}
