/// How the paths below a directory map to the disk: a container's root shows the roots of its groups, which are elsewhere,
/// as `.groups/<id>`. Only the code that opens descriptors knows this.
enum DirectoryNamespace: Sendable {
  /// The open roots of a container's groups, by id.
  typealias Groups = [[UInt8]: Directory]

  case plain
  case container(Groups)
  /// The list of groups, which is not on disk.
  case list(Groups)

  enum Location {
    case here, nowhere
    case list(Groups)
    case elsewhere(Directory, ContainerPath)
  }

  func location(of path: ContainerPath) -> Location {
    switch self {
    case .plain: return .here
    case .list(let groups): return path.isRoot ? .list(groups) : location(in: groups, path.bytes[...])
    case .container(let groups):
      if path == .groups { return .list(groups) }
      guard path.isInside(.groups) else { return .here }
      return location(in: groups, path.bytes[(ContainerPath.groups.bytes.count + 1)...])
    }
  }

  /// - Parameter path: starts with a group's id.
  private func location(in groups: Groups, _ path: ArraySlice<UInt8>) -> Location {
    let id = path.prefix { $0 != UInt8(ascii: "/") }
    guard let group = groups[Array(id)] else { return .nowhere }
    return .elsewhere(group, ContainerPath(unchecked: Array(path[id.endIndex...].dropFirst())))
  }

  var isPlain: Bool { if case .plain = self { true } else { false } }
}

extension ContainerPath {
  /// The directory of a container's namespace that shows the roots of its groups.
  package static let groups: ContainerPath = ".groups"

  /// The directory in a container's root where a journaled replacement keeps its state.
  package static let stateDirectory: ContainerPath = ".drydock-state"

  /// The root of a group in a container's namespace.
  package static func group(_ id: String) -> ContainerPath { groups.appending(unchecked: Array(id.utf8)) }

  /// The path's group and its path in that group's root; nil for a path outside all groups. Meaningful only in a container
  /// that has groups.
  package var inGroup: (id: String, path: ContainerPath)? {
    guard isInside(.groups) else { return nil }
    let rest = bytes[(Self.groups.bytes.count + 1)...]
    let id = rest.prefix { $0 != UInt8(ascii: "/") }
    return (
      String(decoding: id, as: UTF8.self), ContainerPath(unchecked: Array(rest[id.endIndex...].dropFirst()))
    )
  }
}

extension Directory {
  /// This directory as a container's root that shows these open directories as `.groups/<id>`.
  package func showing(groups: [String: Directory]) -> Directory {
    let byID = Dictionary(
      groups.map { (Array($0.utf8), $1) }, uniquingKeysWith: { first, _ in first })
    return Directory(self, groups.isEmpty ? .plain : .container(byID))
  }

  /// This directory as the root of a container whose configuration names these databases.
  package func naming(databases: Set<ContainerPath>) -> Directory {
    databases.isEmpty ? self : Directory(self, namespace, databases: databases)
  }

  /// The roots of its groups, in the order of their ids' bytes.
  package var groups: [(id: String, root: Directory)] {
    guard case .container(let groups) = namespace else { return [] }
    return groups.sorted { $0.key.lexicographicallyPrecedes($1.key) }
      .map { (String(decoding: $0, as: UTF8.self), $1) }
  }

  /// Whether a path is the list of groups, which is not on disk.
  package func isGroupList(_ path: ContainerPath) -> Bool {
    if case .list = namespace.location(of: path) { true } else { false }
  }

  /// Whether a path is this directory or a group's root.
  package func isRoot(_ path: ContainerPath) -> Bool {
    if path.isRoot { return true }
    if case .elsewhere(_, let rest) = namespace.location(of: path) { return rest.isRoot }
    return false
  }

  /// Whether a path is the state directory in this directory or in a group's root.
  package func isState(_ path: ContainerPath) -> Bool {
    if namespace.isPlain { return path == ContainerPath.stateDirectory }
    return path.name == ContainerPath.stateDirectory.bytes && isRoot(path.parent)
  }

  /// The status of the list of groups: a directory with this one's owner.
  func listStatus() throws -> FileStatus {
    let root = try Directory(self, .plain).status()
    var status = FileStatus(
      directory: FileMetadata(mode: 0o755, user: root.user, group: root.group, modified: 0, attributes: []))
    (status.device, status.mount) = (root.device, root.mount)
    return status
  }
}
