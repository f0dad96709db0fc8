import DrydockErrors
import FileSystem

/// A directory of containers, such as one for each user, customer or device.
package struct ContainerDirectory: Sendable {
  package struct Child: Sendable, Hashable {
    package let name: String
    package let path: String
  }

  package let path: String
  /// The containers, sorted by the bytes of their names. A container with two names is listed once.
  package let containers: [Child]
  /// The other names, sorted: files, and directories that are not recognized as containers. Without names that start with a
  /// dot, such as Drydock's state.
  package let skipped: [String]

  /// Searches a directory for containers, not recursively.
  ///
  /// - Parameter configuration: its stores identify containers.
  /// - Throws: ``DrydockError``: `notFound` (the directory, or any container in it), `notAContainer` (a file, or a
  ///   container itself), `unreadable`.
  package init(_ path: String, configuration: ContainerConfiguration = ContainerConfiguration()) throws {
    guard let resolved = try ownRealPath(path) else {
      throw DrydockError.lastCall("cannot find the directory of containers", path)
    }
    let directory = try Directory(resolved)
    // Groups are checked when a container is opened.
    var alone = configuration
    alone.groups = [:]
    if resolved != "/", try Container(at: resolved, configuration: alone).isRecognizable {
      throw DrydockError(
        .notAContainer,
        "a container itself, not a directory of containers; name its parent directory", path: path)
    }
    self.path = path
    var (children, others): ([Child], [String]) = ([], [])
    var roots: Set<String> = []
    let entries = try directory.names().filter { $0.first != UInt8(ascii: ".") }.map { bytes in
      (bytes: bytes, type: try directory.status(ContainerPath(name: bytes))?.type)
    }
    // The name of a directory takes precedence over that of a link to it.
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
    // A group beside its containers may look like a container.
    let groups = Set(
      roots.flatMap { root in
        ContainerGroup.configured(configuration, root: root).compactMap { realPath($0.root) }
      })
    others += children.filter { groups.contains(realPath($0.path) ?? "") }.map(\.name)
    children.removeAll { groups.contains(realPath($0.path) ?? "") }
    guard !children.isEmpty else {
      throw DrydockError(
        .notFound,
        "no containers found: no entry has an iOS or Android layout, a store of drydock.yaml, or a history of "
          + "migrations", path: path)
    }
    containers = children.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    skipped = others.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  /// An unreadable directory counts as a container, so that its error is reported.
  private static func isContainer(_ root: String, _ type: FileType?, _ configuration: ContainerConfiguration)
    -> Bool
  {
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
