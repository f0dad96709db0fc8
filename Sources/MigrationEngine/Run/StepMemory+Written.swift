import AppContainer
import ContainerTransaction

extension StepMemory {
  /// What the step put at a path.
  struct Written: Sendable, Codable, Equatable {
    var path: ContainerPath
    /// SHA-256 of what it put there, in hexadecimal digits; of a directory's whole content.
    var digest: String
  }

  /// Puts something at a path, and notes what: with `replace`, what is there goes first.
  ///
  /// - Throws: ``StepFailure`` when something is there that must not be replaced, or the path is Drydock's own.
  mutating func write(
    _ path: ContainerPath, on stage: StagedContainer, _ ifExists: IfExists, by body: () throws -> Void
  ) throws {
    try stage.requireNotHistory(path)
    var missing: [ContainerPath] = []
    var parent = path.parent
    while try !parent.isRoot && stage.status(of: parent) == nil {
      missing.append(parent)
      parent = parent.parent
    }
    if try stage.status(of: path) != nil {
      guard ifExists == .replace else {
        throw StepFailure(
          message: "`\(path)` is there already: say `if-exists: keep` or `if-exists: replace`",
          path: path.description)
      }
      try stage.requireNoHistory(in: path)
      removed.append(path)
      try stage.remove(path)
    }
    try body()
    made += missing.reversed()
    written.append(Written(path: path, digest: try stage.digest(of: path).hex))
  }

  /// Takes away what the step put somewhere, where it still is that, and puts back what was there before.
  ///
  /// - Returns: remarks on what was changed since, and stays, and on what is kept no more.
  func revertWritten(on stage: StagedContainer) throws -> [String] {
    var notes: [String] = []
    for entry in written.reversed() {
      guard try stage.status(of: entry.path) != nil else {
        notes.append("`\(entry.path)` is gone: nothing to take back")
        continue
      }
      guard try stage.digest(of: entry.path).hex == entry.digest else {
        notes.append("`\(entry.path)` was changed since: left as it is")
        continue
      }
      try stage.remove(entry.path)
      if removed.contains(entry.path) {
        notes.append("what was at `\(entry.path)` before is not kept any more: nothing is there now")
      }
    }
    for directory in made.reversed() where try stage.status(of: directory)?.type == .directory {
      if try stage.children(of: directory).isEmpty { try stage.remove(directory) }
    }
    return notes
  }
}

extension StepMemory? {
  /// - Throws: ``StepFailure`` when what the step wrote down is gone.
  func known(_ operation: String) throws -> StepMemory {
    if let self { return self }
    throw StepFailure(
      message:
        "what \(operation) wrote down for its way back is gone with the transaction's undo: the migration needs "
        + "`down` steps")
  }
}
