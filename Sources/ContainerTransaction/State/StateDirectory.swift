import AgeEncryption
import AppContainer

/// Drydock's own directory beside a container: `.drydock-<hash of the name>/`, open to its owner only.
///
/// It holds `journal` (one record a line), `stage/<transaction>/` (what is being prepared),
/// `undo/<transaction>/` (what the last transactions replaced) and `conflict/<transaction>/` (what an app wrote
/// at the very moment of a commit and could not be carried over).
public struct StateDirectory: Sendable {
  /// The open directory.
  public let directory: Directory
  /// The open directory that it and the container are in.
  public let parent: Directory
  /// The name of the container's root as seen from ``parent``: one component, or two inside a bundle.
  public let rootName: ContainerPath

  static let journal: ContainerPath = "journal"
  static let stage: ContainerPath = "stage"
  static let undo: ContainerPath = "undo"
  static let conflict: ContainerPath = "conflict"

  /// Where the state of a container is, and how its root is reached from there.
  struct Location {
    let parent: String
    let name: String
    let rootName: ContainerPath

    init(_ container: Container) throws {
      let slash = container.anchor.lastIndex(of: "/") ?? container.anchor.startIndex
      let anchorName = String(container.anchor[container.anchor.index(after: slash)...])
      parent = slash == container.anchor.startIndex ? "/" : String(container.anchor[..<slash])
      // A name may have 255 bytes, so the sibling carries a hash of it rather than the name itself.
      name = try ".drydock-" + SHA256.hash(Array(anchorName.utf8)).hex.prefix(16)
      rootName = try ContainerPath(anchorName + container.root.dropFirst(container.anchor.count))
    }
  }

  private init(_ location: Location, parent: Directory, directory: Directory) {
    self.parent = parent
    self.directory = directory
    rootName = location.rootName
  }

  /// Opens the state of a container, making the directory when there is none.
  ///
  /// - Throws: ``TransactionError`` with code `exchangeImpossible` when the parent cannot be written.
  public static func create(for container: Container) throws -> StateDirectory {
    let location = try Location(container)
    let parent = try Directory(location.parent)
    let name = try ContainerPath(location.name)
    do {
      try parent.createDirectories(name)
      let directory = try parent.directory(name)
      for folder in [stage, undo, conflict] { try directory.createDirectories(folder) }
      return StateDirectory(location, parent: parent, directory: directory)
    } catch let error as ContainerError where error.code == .permission {
      throw TransactionError(
        .exchangeImpossible,
        "a transaction keeps its state beside the container, and \(location.parent) cannot be written; "
          + "run it as the directory's owner, or move the container to a directory that can be written",
        path: container.root, cause: error)
    }
  }

  /// Opens the state of a container, nil when it never had a transaction.
  public static func existing(for container: Container) throws -> StateDirectory? {
    let location = try Location(container)
    let parent = try Directory(location.parent)
    guard try parent.status(ContainerPath(location.name)) != nil else { return nil }
    return StateDirectory(
      location, parent: parent, directory: try parent.directory(ContainerPath(location.name)))
  }

  /// Removes the directory when no transaction was ever begun, so that a refusal leaves nothing behind.
  func removeIfUnused() {
    guard (try? directory.status(Self.journal)) == nil else { return }
    for folder in [Self.stage, Self.undo, Self.conflict] { try? directory.removeDirectory(folder) }
    let slash = directory.path.lastIndex(of: "/") ?? directory.path.startIndex
    let name = directory.path[directory.path.index(after: slash)...]
    if let path = try? ContainerPath(String(name)) { try? parent.removeDirectory(path) }
  }

  /// The path of a transaction's undo, stage or conflict folder.
  static func folder(_ kind: ContainerPath, _ transaction: TransactionID) throws -> ContainerPath {
    try kind.appending(transaction.description)
  }
}
