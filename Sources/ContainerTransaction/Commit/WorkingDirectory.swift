import FileSystem
import Foundation

/// The working directory of this process by its path. One that lies in a container is another directory after an exchange,
/// and what was named from it would not be found any more.
struct WorkingDirectory {
  private let path = FileManager.default.currentDirectoryPath

  /// Enters it again, when another directory is at its path now.
  func enterAgain() {
    guard !path.isEmpty, FollowedStatus.identity(path) != FollowedStatus.identity(".") else { return }
    _ = FileManager.default.changeCurrentDirectoryPath(path)
  }
}
