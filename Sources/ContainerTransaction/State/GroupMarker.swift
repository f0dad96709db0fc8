import AppContainer
import DrydockErrors
import FileSystem

/// A group as a commit's record names it: what a recovery needs to know of its root.
struct CommittedGroup: Codable, Sendable {
  var id: String
  var root: String
  /// The inode there before and after; the same in place.
  var before, after: FileIdentity
  /// The name of the new tree in the transaction's folder.
  var tree: ContainerPath
}

/// Names, beside a group's root, the commit that is changing it. Containers share groups, and each reads only its own
/// journal: the marker warns the others that the group may be half changed.
struct GroupMarker: Codable, Sendable {
  /// The root of the container and its state directory.
  var container, state: String
  var transaction: TransactionID

  private static let file: ContainerPath = "group"

  /// A directory that a marker can be in: beside the group's root, or, where nothing can be written there, in it.
  private typealias Place = (parent: Directory, name: ContainerPath)

  private static func places(_ group: String, isScratch: Bool = false) throws -> [Place] {
    let (above, name) = try ContainerPath.split(group)
    return [
      (try Directory(above, isScratch: isScratch), try StateDirectory.name(beside: name.nameString)),
      (try Directory(group, isScratch: isScratch), ContainerPath.stateDirectory),
    ]
  }

  /// The marker of a group in such a directory, and that directory.
  private static func read(_ place: Place) throws -> (marker: GroupMarker, directory: Directory)? {
    guard try place.parent.status(place.name)?.type == .directory else { return nil }
    let directory = try place.parent.directory(place.name)
    guard try directory.status(file) != nil else { return nil }
    let damaged = "the marker of a group is corrupt; remove it when no command is running"
    return (try directory.record(file, limit: 1 << 16, damaged: damaged), directory)
  }

  /// Runs a change, after which the root's time is what it was.
  private static func keepingTime<T>(_ place: Place, _ body: () throws -> T) throws -> T {
    guard place.name == ContainerPath.stateDirectory else { return try body() }
    let time = try place.parent.status().modified
    defer { try? place.parent.setModified(time, of: .root) }
    return try body()
  }

  /// Writes the marker of a group, on disk when this returns.
  ///
  /// - Parameter isScratch: whether the container is discarded, so that nothing needs to wait for the disk.
  func write(_ group: String, isScratch: Bool) throws {
    var refusal: (any Error)?
    for place in try Self.places(group, isScratch: isScratch) {
      do {
        return try Self.keepingTime(place) {
          try place.parent.createDirectories(place.name)
          try place.parent.stateDirectory(place.name).replaceRecord(Self.file, with: self)
          try place.parent.sync()
        }
      } catch let error as DrydockError where [.permission, .foreignState].contains(error.code) {
        refusal = refusal ?? error
      }
    }
    if let refusal { throw refusal }
  }

  /// Removes the marker of a group when it is of this transaction and its commit is over.
  static func removeEnded(_ group: String, _ transaction: TransactionID, _ state: StateDirectory) {
    // What is left says no more than that; removing it is best effort. The container may have another name since.
    for place in (try? places(group)) ?? [] {
      guard let (marker, directory) = try? read(place), marker.transaction == transaction,
        (try? marker.isUnfinished(in: state.directory)) == false
      else { continue }
      try? keepingTime(place) {
        try directory.removeFile(file, missingIsFine: true)
        // It stays when it is the state of a container that has its root here.
        try? place.parent.removeDirectory(place.name)
      }
    }
  }

  /// Whether the commit was begun and is not over. The caller holds the group's lock, so that it is not running.
  private func isUnfinished(in state: Directory) throws -> Bool {
    let own = try Journal(state: state).records().filter { $0.transaction == transaction }
    return own.contains { $0.step == .commit } && !own.contains(where: \.isWhole)
  }

  /// With the locks held: no commit has left a group of the container half changed.
  ///
  /// - Throws: ``DrydockError`` with code `interrupted`, naming the container whose commit it is.
  static func requireFinished(_ container: Container) throws {
    for group in container.groups {
      for place in try places(group.root) {
        guard let (marker, directory) = try read(place) else { continue }
        let isGone = FollowedStatus.identity(marker.state) == nil
        guard try isGone || marker.isUnfinished(in: Directory(marker.state)) else { continue }
        let advice =
          isGone
          ? "which no longer exists; check the group, and remove \(directory.full(file)) when it is as it should be"
          : "recover the container first"
        throw DrydockError(
          .interrupted,
          "transaction \(marker.transaction) of the container \(marker.container) was interrupted while it changed this "
            + "group, which may be neither old nor new: \(advice)", path: group.root)
      }
    }
  }
}
