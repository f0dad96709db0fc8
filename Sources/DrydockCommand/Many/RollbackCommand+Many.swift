import Drydock

extension RollbackCommand {
  /// Rolls many containers back, each in a transaction of its own.
  func run(_ many: ManyContainers, _ request: MigrationRollback.Request, _ catalog: MigrationCatalog?) throws
  {
    if request.version == nil { try refuseMixture(many) }
    let options = try container.transaction().with(deviceKeys).with(use)
    try many.finish(
      many.run { [dryRun] container in
        do {
          return dryRun
            ? try Self.show(container, request, catalog, options)
            : try Self.rollBack(container, request, catalog, options)
        } catch let error as DrydockError where error.code == .usage {
          // It is not as far as others.
          return ManyResult(state: .unchanged, text: error.message)
        }
      })
  }

  private static func rollBack(
    _ container: Container, _ request: MigrationRollback.Request, _ catalog: MigrationCatalog?,
    _ options: TransactionOptions
  ) throws -> ManyResult {
    let outcome = try container.rollback(request, catalog: catalog, options: options)
    let document = Result(outcome)
    var result = ManyResult(
      state: outcome.transaction == nil ? .unchanged : .changed, text: text(outcome.value, request),
      document: document,
      exit: outcome.exit, notes: outcome.remarks, unseen: outcome.unseen)
    if let exit = result.exit { result.text += ", exit \(exit.rawValue)" }
    return result
  }

  private static func show(
    _ container: Container, _ request: MigrationRollback.Request, _ catalog: MigrationCatalog?,
    _ options: TransactionOptions
  ) throws -> ManyResult {
    let outcome = try container.dryRunRollback(request, catalog: catalog, options: options)
    let document = Result(outcome)
    let isThere = outcome.value.undone.isEmpty && outcome.value.reports.isEmpty
    return ManyResult(
      state: isThere ? .unchanged : .pending,
      text: text(outcome.value, request) + (isThere ? "" : ": " + ManyResult.text(outcome.difference)),
      document: document)
  }

  private static func text(_ report: MigrationRollback.Report, _ request: MigrationRollback.Request) -> String
  {
    guard let from = report.from, let to = report.to else {
      let summaries = report.undone.map(\.summary).joined(separator: "; ")
      return "\(request.redoing ? "redone" : "undone"): \(summaries)"
    }
    return from == to ? "version \(to)" : "version \(from) → \(to)"
  }

  /// What a run over all containers did in most of them it may have failed to do in one: there, the last transaction is
  /// an older one, which nobody means to undo.
  private func refuseMixture(_ many: ManyContainers) throws {
    var containers: [String: [String]] = [:]
    for child in many.directory.containers {
      // What goes wrong here goes wrong in the container's turn too, and is told there.
      guard let container = try? Container(at: child.path, configuration: many.configuration),
        (try? ContainerOptions.recovering(container)) != nil, let log = try? container.log(),
        let last = log.last(where: { $0.state == .undoable && ($0.kind == .rollback) == redo })
      else { continue }
      // A rollback is told by what it undid.
      let undone = redo ? log.filter { last.undoes.contains($0.transaction) } : [last]
      let text = undone.map { "\($0.kind.rawValue): \($0.summary)" }.joined(separator: "; ")
      containers[text, default: []].append(child.name)
    }
    guard containers.count > 1 else { return }
    let shown = containers.sorted { ($1.value.count, $0.key) < ($0.value.count, $1.key) }.prefix(5).map {
      text, names in
      "\(Output.count(names.count, "container")) such as \(ManyRows.shown(names[0])) (\(text))"
    }
    throw DrydockError(
      .ambiguous,
      "the last transaction is not the same in all containers, so that it is not clear what is to be undone; nothing "
        + "was changed: \(shown.joined(separator: "; "))\(containers.count > 5 ? "; and others" : ""). "
        + (redo ? "Redo them one by one" : "Say the version to go back to, with --to"),
      path: many.directory.path)
  }
}
