import FileSystem
import Storage
import TestSupport

@testable import BackupRepository

/// The kinds of places that repositories are tested at.
enum PlaceKind: CaseIterable, Sendable {
  case directory, s3, sftp

  /// Where a new lab has its repository; see ``EveryPlace``.
  @TaskLocal static var current = PlaceKind.directory

  /// An empty place on a real server.
  func make() throws -> TestSupport.RemotePlace {
    switch self {
    case .directory: throw SystemFailure("a directory has no server")
    case .s3: try RemoteServers.s3()
    case .sftp: try RemoteServers.sftp()
    }
  }

  /// Puts the repository of a lab to an empty place of this kind.
  func use(for lab: Lab) throws {
    if case .directory = self { return }
    try use(make(), for: lab)
  }

  /// Puts the repository of a lab to a place.
  func use(_ place: TestSupport.RemotePlace, for lab: Lab) throws {
    (lab.place, lab.repository) = (place, "\(place.url)/backups")
    Places.use(try Places.connect(lab.repository, place.options), for: lab.repository)
    try Repository(lab.repository).createIfNeeded()
  }
}

extension TestSupport.RemotePlace {
  /// With short pauses. A server that nothing disturbs may be slow beside other tests.
  var options: RemoteOptions {
    var options = RemoteOptions(variables: environment)
    (options.firstPause, options.noProgressLimit, options.attempts) = (0.01, isDisturbed ? 3 : 30, 40)
    return options
  }

  /// A store of this place, or of a folder of it.
  func store(_ folder: String = "") throws -> any Place {
    try Places.connect(folder.isEmpty ? url : "\(url)/\(folder)", options)
  }
}

extension Place {
  /// The files in a folder.
  func files(_ folder: ContainerPath) throws -> [PlaceFile] {
    let listing = try list(folder)
    return try listing.names.compactMap { try listing.file(folder.appending(name: $0)) }
  }
}
