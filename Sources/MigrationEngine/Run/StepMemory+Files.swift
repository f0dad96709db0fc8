import ContainerTransaction
import FileSystem

extension StepMemory {
  /// Notes a path that is about to be made, with the directories above it that are missing.
  mutating func noteMade(_ path: ContainerPath, on stage: StagedContainer) throws {
    for missing in (path.ancestors + [path]).sorted()
    where try !missing.isRoot && stage.status(of: missing) == nil {
      if !made.contains(missing) { made.append(missing) }
    }
  }

  /// Notes a path that is about to be removed: whether the transaction's undo will have it as it is now.
  mutating func noteRemoved(_ path: ContainerPath, on stage: StagedContainer) throws {
    if try stage.isUntouched(path) { removed.append(path) } else { lost.append(path) }
  }

  /// Puts back what the step removed as a whole.
  ///
  /// - Returns: remarks on what is there now, and stays.
  /// - Throws: ``StepFailure`` when it is kept nowhere.
  func putBackRemoved(on stage: StagedContainer) throws -> [String] {
    if let path = lost.first {
      throw StepFailure(
        message:
          "`\(path)` was changed by a step before it, in the same run, and is kept nowhere as it was: roll the whole "
          + "transaction back", path: path.description)
    }
    return try removed.sorted().compactMap { path in
      if try stage.status(of: path) != nil { return "`\(path)` is there now: left as it is" }
      guard try stage.kept?.putBack(path) == true else {
        throw StepFailure(
          message: "`\(path)` is not kept any more: the transaction's undo is gone", path: path.description)
      }
      return nil
    }
  }

  /// Removes the directories that the step made and that are empty now.
  func removeEmptyDirectories(on stage: StagedContainer) throws {
    for path in made.reversed() where try stage.status(of: path)?.type == .directory {
      if try stage.children(of: path).isEmpty { try stage.remove(path) }
    }
  }
}
