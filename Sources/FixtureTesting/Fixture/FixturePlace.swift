import AppContainer
import DrydockErrors
import FileSystem

/// Where a fixture's container and its groups are in a directory that nothing else is in.
///
/// `drydock.yaml` names groups by paths from the container's root, such as `../Shared/notes`: the container is nested so
/// deep that all of them stay inside of the directory, and the same `drydock.yaml` serves.
struct FixturePlace {
  /// The directory that all is in.
  let work: Directory
  /// The container's root in it.
  let root: ContainerPath
  /// The groups' roots in it, by id.
  let groups: [String: ContainerPath]

  /// Makes the directory.
  ///
  /// - Parameter path: must not exist; its parent must.
  /// - Throws: `DrydockError` with code `notBuilt` when it exists, `malformed` for a group at an absolute path.
  init(making path: String, _ configuration: Configuration) throws {
    let names = try configuration.groups.sorted { $0.key < $1.key }.map { id, path in
      (id: id, names: try Self.names(id, path, configuration))
    }
    let depth = names.map { $0.names.count { $0.elementsEqual("..".utf8) } }.max() ?? 0
    let nest = (0..<max(0, depth - 1)).map { _ in Array("nest".utf8) } + [Array("container".utf8)]
    work = try Self.make(path)
    root = nest.reduce(.root) { $0.appending(name: $1) }
    var groups: [String: ContainerPath] = [:]
    for (id, names) in names {
      let path = names.reduce(root) { $1.elementsEqual("..".utf8) ? $0.parent : $0.appending(name: $1) }
      // In the container a link could lead out.
      guard path != root, !path.isInside(root), !root.isInside(path) else {
        throw DrydockError(
          .badFixture, "the roots of the group \(id) and of the container overlap; correct `groups:`",
          path: configuration.file)
      }
      groups[id] = path
    }
    self.groups = groups
    try work.makeDirectories(root.parent)
  }

  private static func make(_ path: String) throws -> Directory {
    let slash = path.lastIndex(of: "/")
    let parent = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    let name = try ContainerPath(slash.map { String(path[path.index(after: $0)...]) } ?? path)
    let directory = try Directory(parent)
    guard try directory.status(name) == nil else {
      throw DrydockError(.notBuilt, "this exists; name a directory that does not", path: path)
    }
    try directory.createDirectory(name)
    return try Directory(path)
  }

  /// The names in a group's path from the container's root; `..` among them.
  private static func names(
    _ id: String, _ path: String, _ configuration: Configuration
  ) throws -> [[UInt8]] {
    guard !path.hasPrefix("/") else {
      throw DrydockError(
        .badFixture,
        "the group \(id) is at an absolute path, and a check of a fixture would change what is really there; write it "
          + "relative to the container's root (`../…`), or check with another drydock.yaml",
        path: configuration.file)
    }
    let names = path.utf8.split(separator: UInt8(ascii: "/")).map(Array.init)
      .filter { !$0.elementsEqual(".".utf8) }
    let up = Array("..".utf8)
    guard !names.drop(while: { $0 == up }).contains(up) else {
      throw DrydockError(
        .badFixture, "the group \(id) is at \(path), which is not plain: write `..` only at its beginning",
        path: configuration.file)
    }
    return names
  }
}

extension Directory {
  /// Makes directories as apps do, whatever this process's umask takes away.
  func makeDirectories(_ path: ContainerPath) throws {
    for path in (path.isRoot ? [] : [path] + path.ancestors.dropLast()).reversed()
    where try status(path)?.type != .directory {
      try createDirectory(path)
      try setMode(0o755, of: path)
    }
  }
}
