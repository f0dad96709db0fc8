import ContainerTransaction
import FileSystem

extension StagedContainer {
  /// Whether a path is Drydock's own history of this container, or beside it: no step is about that.
  func isHistory(_ path: ContainerPath) -> Bool {
    let directory = container.historyPath.parent
    return path == directory || path.isInside(directory)
  }

  /// - Throws: ``StepFailure`` when a step would write into Drydock's history.
  func requireNotHistory(_ path: ContainerPath) throws {
    guard isHistory(path) else { return }
    throw StepFailure(
      message: "`\(path)` is where Drydock keeps its history: choose another path", path: path.description)
  }

  /// - Throws: ``StepFailure`` when a path is the history, or a directory that holds it.
  func requireNoHistory(in path: ContainerPath) throws {
    try requireNotHistory(path)
    guard container.historyPath.isInside(path), try status(of: container.historyPath) != nil else { return }
    throw StepFailure(
      message: "`\(path)` holds Drydock's history: name what is in it instead", path: path.description)
  }
}
