import RemoteStorage
import TestSupport

@testable import BackupRepository

/// The kinds of places that repositories are tested at.
enum PlaceKind: Sendable {
  case directory, s3, sftp

  /// Puts the repository of a lab to a place of this kind, and gives the environment variables that the program needs there.
  func use(for lab: Lab) throws -> [String: String] {
    let place =
      switch self {
      case .directory: nil as TestSupport.RemotePlace?
      case .s3: try RemoteServers.s3()
      case .sftp: try RemoteServers.sftp()
      }
    guard let place else { return [:] }
    try use(place, for: lab)
    return place.environment
  }

  /// Uses a place for this process, with short pauses.
  func use(_ place: TestSupport.RemotePlace, for lab: Lab) throws {
    lab.repository = "\(place.url)/backups"
    var options = RemoteOptions(variables: place.environment)
    (options.firstPause, options.noProgressLimit, options.attempts) = (0.01, 3, 40)
    try RemoteConnections.shared.use(options, for: lab.repository)
    try Repository(lab.repository).createRemoteIfNeeded()
  }
}
