import DrydockErrors
import FileSystem

/// A directory whose children are containers: one for each user, customer or device.
package struct ContainerDirectory: Sendable {
  /// One of its containers.
  package struct Child: Sendable, Hashable {
    /// Its name in the directory.
    package let name: String
    /// Its path: the directory's and the name.
    package let path: String
  }

  /// The directory as it was named.
  package let path: String
  /// The containers in it by the bytes of their names. A container that two names lead to is there once.
  package let containers: [Child]
  /// What else is in it, sorted: files, and directories in which nothing shows that they are containers. Names that
  /// start with a dot are not told: Drydock's own state is among them.
  package let passedOver: [String]

  /// Looks through a directory; not into the directories of its containers.
  ///
  /// - Parameter configuration: whose stores show that a directory is a container.
  /// - Throws: ``DrydockError``: `notFound` (the directory, or any container in it), `notAContainer` (a file, or a
  ///   container itself), `unreadable`.
  package init(_ path: String, configuration: ContainerConfiguration = ContainerConfiguration()) throws {
    guard let resolved = try ownRealPath(path) else {
      throw DrydockError.lastCall("cannot find the directory of containers", path)
    }
    let directory = try Directory(resolved)
    // Whether their groups are in order is seen when they are worked on.
    var alone = configuration
    alone.groups = [:]
    if resolved != "/", try Container(at: resolved, configuration: alone).isRecognizable {
      throw DrydockError(
        .notAContainer,
        "is a container itself; --all takes the directory that it is in, and the container is "
          + "given without --all", path: path)
    }
    self.path = path
    var (children, others): ([Child], [String]) = ([], [])
    var roots: Set<String> = []
    let entries = try directory.names().filter { $0.first != UInt8(ascii: ".") }.map { bytes in
      (bytes: bytes, type: try directory.status(ContainerPath(name: bytes))?.type)
    }
    // A link beside the container that it leads to is not what the container is called.
    for entry in entries.filter({ $0.type != .symbolicLink }) + entries.filter({ $0.type == .symbolicLink }) {
      guard let name = String(validating: entry.bytes, as: UTF8.self) else {
        others.append(String(decoding: entry.bytes, as: UTF8.self))
        continue
      }
      let child = Child(name: name, path: resolved + "/" + name)
      guard let root = realPath(child.path), Self.isContainer(root, entry.type, alone) else {
        others.append(name)
        continue
      }
      if roots.insert(root).inserted { children.append(Child(name: name, path: path + "/" + name)) }
    }
    // A group beside the containers that share it looks like one of them.
    let groups = Set(
      roots.flatMap { root in
        ContainerGroup.configured(configuration, root: root).compactMap { realPath($0.root) }
      })
    others += children.filter { groups.contains(realPath($0.path) ?? "") }.map(\.name)
    children.removeAll { groups.contains(realPath($0.path) ?? "") }
    guard !children.isEmpty else {
      throw DrydockError(
        .notFound,
        "holds no container: nothing in it has what shows one, a layout of iOS or Android, a store that drydock.yaml "
          + "names, or a history of migrations", path: path)
    }
    containers = children.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    passedOver = others.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  /// What cannot be looked into is left to whoever works on it, who says why.
  private static func isContainer(_ root: String, _ type: FileType?, _ configuration: ContainerConfiguration) -> Bool {
    guard type == .directory || type == .symbolicLink else { return false }
    do {
      return try Container(at: root, configuration: configuration).isRecognizable
    } catch let error as DrydockError where error.code == .notAContainer {
      return false
    } catch {
      return true
    }
  }
}

extension Container {
  /// Whether the directory is recognized as a container: by its layout, a store of `drydock.yaml`, or Drydock's files. A
  /// directory that the user names is always a container.
  fileprivate var isRecognizable: Bool {
    get throws {
      if anchor != root { return true }
      let directory = try Directory(root)
      if try ContainerLayout.detect(in: directory) != .generic { return true }
      var places = ContainerLayout.allCases.map(\.historyPath) + [ContainerPath.stateDirectory]
      places += configuration.defaults.values
      places += configuration.databases.values.joined()
      places += configuration.versionMarkers.compactMap {
        if case .json(let path, _) = $0.place { path } else { nil }
      }
      places += [standardDefaults, configuration.vault].compactMap { $0 }
      if let layout = configuration.layout { places += layout.ownDirectories }
      return try places.contains { try directory.status($0) != nil }
    }
  }
}

extension ContainerLayout {
  /// Directories that the system creates in every container.
  fileprivate var ownDirectories: [ContainerPath] {
    switch self {
    case .ios: ["Documents", "Library"]
    case .android: ["shared_prefs", "databases", "files"]
    case .generic: []
    }
  }
}
