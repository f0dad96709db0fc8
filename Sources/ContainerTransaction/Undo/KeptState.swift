import AppContainer
import FileSystem

/// What a transaction's undo still holds, for steps that are taken back by themselves: what the transaction replaced, as it
/// was before it.
package struct KeptState {
  /// The transaction whose steps are taken back.
  let origin: String
  unowned let staged: StagedContainer
  let record: UndoRecord
  let files: KeptFiles

  /// Whether the undo is that transaction's own alone. That of a redo of several holds what was before all of them.
  private var isExact: Bool { record.steps.count < 2 }

  /// Stages what was at a path before the transaction, with all below it; a database with what belonged to it.
  ///
  /// - Returns: false when something is there now, or when the undo has nothing of that path.
  /// - Throws: ``DrydockError`` with code `conflict` when what is kept was written to since.
  package func putBack(_ path: ContainerPath) throws -> Bool {
    guard isExact, try staged.status(of: path) == nil else { return false }
    let belonging =
      DatabaseFormat.sidecarSuffixes.map(path.withSuffix) + [DatabaseUnit.externalDataPath(of: path)]
    let changes = record.changes.filter { change in
      change.before != nil && ([path] + belonging).contains { $0 == change.path || change.path.isInside($0) }
    }
    guard changes.contains(where: { $0.path == path }) else { return false }
    for change in changes where try staged.status(of: change.path) == nil {
      if let before = change.before, before.type == .directory {
        try staged.putDirectory(at: change.path, metadata: before.metadata, flags: before.flags)
      } else {
        try files.putBack(change, on: staged)
      }
    }
    return true
  }

  /// The vault as it was before the transaction, opened with the device key; nil when the transaction did not change it,
  /// or made it.
  package func vault() throws -> Vault? {
    let path = staged.container.vaultPath
    guard isExact, let name = record.changes.first(where: { $0.path == path })?.kept,
      try files.status(name) != nil
    else { return nil }
    return try Vault(
      opening: files.contents(name), with: staged.requireDeviceKeys("opening the vault"),
      path: path.description)
  }

  /// What the transaction's steps wrote down (``StagedContainer/attach(steps:)``); nil when they wrote nothing.
  ///
  /// - Throws: `DrydockError` with code `vaultLocked` when it is kept sealed and no key at hand opens it.
  package func steps() throws -> [UInt8]? {
    let name = StepFile.name(origin)
    return record.steps.contains(name) ? try files.contents(name) : nil
  }
}

extension StagedContainer {
  /// Whether a path is as it was when the transaction began, with all below it: then its undo keeps what a step takes
  /// away there, and ``KeptState/putBack(_:)`` gives it back. What was changed or moved there before in the same
  /// transaction is kept nowhere.
  package func isUntouched(_ path: ContainerPath) throws -> Bool {
    try live.status(path) != nil && !overlay.nodes.keys.contains { $0 == path || $0.isInside(path) }
  }
}
