import ContainerTransaction
import FileSystem

extension StepMemory {
  /// What the step put at a path.
  struct Written: Sendable, Codable, Equatable {
    var path: ContainerPath
    /// SHA-256 of what it put there, in hexadecimal digits; of a directory's whole content.
    var digest: String
    /// Whether something else was there before.
    var replaced: Bool
  }

  /// Puts something at a path, and notes what: with `replace`, what is there goes first.
  ///
  /// - Throws: ``StepFailure`` when something is there that must not be replaced, or the path is Drydock's own.
  mutating func write(
    _ path: ContainerPath, on stage: StagedContainer, _ ifExists: IfExists, by body: () throws -> Void
  ) throws {
    try stage.requireNotHistory(path)
    try noteMade(path.parent, on: stage)
    let replaced = try stage.status(of: path) != nil
    if replaced {
      guard ifExists == .replace else {
        throw StepFailure(
          message: "`\(path)` is there already: say `if-exists: keep` or `if-exists: replace`",
          path: path.description)
      }
      try stage.requireNoHistory(in: path)
      try noteRemoved(path, on: stage)
      try stage.remove(path)
    }
    try body()
    written.append(Written(path: path, digest: try stage.digest(of: path).hex, replaced: replaced))
  }

  /// Takes away what the step put somewhere, where it still is that, and puts back what was there before.
  ///
  /// - Returns: remarks on what was changed since, and stays.
  /// - Throws: ``StepFailure`` when what was there before is not kept.
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
      if entry.replaced { notes += try putBackRemoved(on: stage) }
    }
    try removeEmptyDirectories(on: stage)
    return notes
  }
}
