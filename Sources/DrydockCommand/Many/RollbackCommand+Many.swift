import Drydock

extension RollbackCommand {
  /// Rolls many containers back, each in a transaction of its own.
  func run(_ many: ManyContainers) throws {
    try refuseMixture(many)
    let options = try container.transaction().with(deviceKeys)
    try many.finish(
      many.run { [discardNewer, redo] container in
        let outcome = try Transaction.rollback(
          container, discardingNewer: discardNewer, redoing: redo, options: options)
        var text = outcome.value.undone.map { "\($0.transaction), which \($0.summary)" }.joined(
          separator: "; ")
        text = "\(redo ? "redone" : "rolled back"): \(text)"
        if let exit = outcome.exit { text += ", exit \(exit.rawValue)" }
        return ManyResult(
          state: .changed, text: text, document: Result(outcome), exit: outcome.exit, notes: outcome.remarks)
      })
  }

  /// What a run over all containers did in most of them it may have failed to do in one: there, the last transaction is
  /// an older one, which nobody means to undo.
  private func refuseMixture(_ many: ManyContainers) throws {
    var containers: [String: [String]] = [:]
    for child in many.directory.containers {
      // What goes wrong here goes wrong in the container's turn too, and is told there.
      guard let container = try? Container(at: child.path, configuration: many.configuration),
        (try? ContainerOptions.recovering(container)) != nil, let log = try? Transaction.log(container),
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
    throw TransactionError(
      .ambiguous,
      "the last transaction is not the same in all containers, so that it is not clear what is to be undone; nothing "
        + "was changed: \(shown.joined(separator: "; "))\(containers.count > 5 ? "; and others" : ""). Roll "
        + "them back one by one", path: many.directory.path)
  }
}
