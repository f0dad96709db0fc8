import AgeEncryption
import AppContainer

/// Drydock's own directory of a container, open to its owner only: `.drydock-<hash of the name>/` beside it, or
/// `.drydock-state/` in it where changes are made in place. A container has both when it was once changed in one way
/// and once in the other.
///
/// It holds `journal` (one record a line), `stage/<transaction>/` (what is being prepared),
/// `undo/<transaction>/` (what the last transactions replaced) and `conflict/<transaction>/` (what an app wrote
/// at the very moment of a commit and could not be carried over).
public struct StateDirectory: Sendable {
  /// Where it is.
  public enum Place: Sendable, CaseIterable {
    /// In the directory that the container is in: for a commit by exchange.
    case beside
    /// In the container's root: for a commit in place.
    case inside
  }

  /// The open directory.
  public let directory: Directory
  /// The open directory that it is in: the one that the container is in, or the container's root.
  public let parent: Directory
  /// The name of the container's root as seen from ``parent``: one component, two inside a bundle, none (the root) for a
  /// state inside.
  public let rootName: ContainerPath
  /// Where it is.
  public let place: Place

  static let journal: ContainerPath = "journal"
  static let stage: ContainerPath = "stage"
  static let undo: ContainerPath = "undo"
  static let conflict: ContainerPath = "conflict"

  /// Where the state of a container is, and how its root is reached from there.
  private struct Location {
    let parent: String
    let name: ContainerPath
    let rootName: ContainerPath

    init(_ container: Container, _ place: Place) throws {
      if place == .inside {
        (parent, name, rootName) = (container.root, ExclusionRules.stateDirectory, .root)
        return
      }
      let slash = container.anchor.lastIndex(of: "/") ?? container.anchor.startIndex
      let anchorName = String(container.anchor[container.anchor.index(after: slash)...])
      parent = slash == container.anchor.startIndex ? "/" : String(container.anchor[..<slash])
      // A name may have 255 bytes, so the sibling carries a hash of it rather than the name itself.
      name = try StateDirectory.name(beside: anchorName)
      rootName = try ContainerPath(anchorName + container.root.dropFirst(container.anchor.count))
    }
  }

  /// The name of the state of something of this name, beside it.
  static func name(beside name: String) throws -> ContainerPath {
    try ContainerPath(".drydock-" + SHA256.hash(Array(name.utf8)).hex.prefix(16))
  }

  private init(_ location: Location, parent: Directory, place: Place) throws {
    self.parent = parent
    self.place = place
    directory = try parent.directory(location.name)
    rootName = location.rootName
  }

  /// Opens the state of a container, making the directory when there is none. One that is made inside leaves the root's
  /// time as it was.
  ///
  /// - Throws: `ContainerError` with code `permission` when its place cannot be written.
  public static func create(for container: Container, _ place: Place = .beside) throws -> StateDirectory {
    let location = try Location(container, place)
    let parent = try Directory(location.parent, isScratch: container.isScratch)
    let time = try parent.status().modified
    if try parent.status(location.name) == nil {
      try parent.createDirectories(location.name)
      if place == .inside { try? parent.setModified(time, of: .root) }
    }
    let state = try StateDirectory(location, parent: parent, place: place)
    for folder in [stage, undo, conflict] { try state.directory.createDirectories(folder) }
    return state
  }

  /// Opens the state of a container in one place, nil when there is none.
  public static func existing(for container: Container, _ place: Place = .beside) throws -> StateDirectory? {
    let location = try Location(container, place)
    // Where the container itself is not there yet, nothing is in it.
    if place == .inside, FollowedStatus.identity(location.parent) == nil { return nil }
    let parent = try Directory(location.parent, isScratch: container.isScratch)
    guard try parent.status(location.name)?.type == .directory else { return nil }
    return try StateDirectory(location, parent: parent, place: place)
  }

  /// All there is of a container's state. What is beside it and may not be opened counts as absent: an exchange
  /// that was interrupted leaves the container whole.
  public static func all(of container: Container) throws -> [StateDirectory] {
    var found: [StateDirectory] = []
    do {
      if let beside = try existing(for: container, .beside) { found.append(beside) }
    } catch let error as ContainerError where error.code == .permission {}
    if let inside = try existing(for: container, .inside) { found.append(inside) }
    return found
  }

  /// The directory that the container's root is a name in.
  func rootParent() throws -> Directory {
    rootName.parent.isRoot ? parent : try parent.directory(rootName.parent)
  }

  /// Removes the directory when no transaction was ever begun, so that a refusal leaves nothing behind.
  func removeIfUnused() {
    guard (try? directory.status(Self.journal)) == nil else { return }
    for folder in [Self.stage, Self.undo, Self.conflict] { try? directory.removeDirectory(folder) }
    let slash = directory.path.lastIndex(of: "/") ?? directory.path.startIndex
    let name = directory.path[directory.path.index(after: slash)...]
    let time = try? parent.status().modified
    if let path = try? ContainerPath(String(name)) { try? parent.removeDirectory(path) }
    if place == .inside, let time { try? parent.setModified(time, of: .root) }
  }

  /// The path of a transaction's undo, stage or conflict folder.
  static func folder(_ kind: ContainerPath, _ transaction: TransactionID) throws -> ContainerPath {
    try kind.appending(transaction.description)
  }
}
