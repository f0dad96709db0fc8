import AppContainer
import DrydockErrors
import FileSystem

/// What an app removes while a transaction is prepared, such as the `-shm` of a database that it closes: not an error
/// of the transaction, which can be run again.
extension TreeIndex {
  /// Gives an error its meaning: a path of the container that was there and is gone now.
  func explained(_ error: any Error, in container: Container) -> any Error {
    guard let error = error as? DrydockError, error.code == .notFound, let path = error.path,
      FollowedStatus.identity(path) == nil,
      isKnown(path, in: container.root, as: .root)
        || container.groups.contains(where: { isKnown(path, in: $0.root, as: $0.path) })
    else { return error }
    return DrydockError(
      .changedMeanwhile, "was removed while the transaction was prepared; nothing was changed, run it again",
      path: path, cause: error)
  }

  func explainingRemovals<T>(in container: Container, _ body: () throws -> T) throws -> T {
    do { return try body() } catch { throw explained(error, in: container) }
  }

  private func isKnown(_ full: String, in root: String, as place: ContainerPath) -> Bool {
    guard full.hasPrefix(root + "/"), let below = try? ContainerPath(String(full.dropFirst(root.count + 1)))
    else { return false }
    return paths[below.rebased(from: .root, to: place)] != nil
  }
}
