import DrydockErrors
import FileSystem
import Formats
import Foundation

/// An app group: a directory that an app shares with its extensions and other apps of its maker. In the container's
/// namespace its root is `.groups/<id>`.
package struct ContainerGroup: Sendable, Equatable {
  /// Such as `group.com.example.notes`.
  package let id: String
  /// The absolute path of its root, symbolic links resolved where it exists.
  package let root: String

  /// Its root in the container's namespace.
  package var path: ContainerPath { .group(id) }

  /// The groups of a configuration by the paths they are named by, whether they exist or not.
  static func configured(_ configuration: Configuration, root: String) -> [ContainerGroup] {
    configuration.groups.sorted { $0.key < $1.key }.map { id, path in
      ContainerGroup(id: id, root: path.hasPrefix("/") ? path : root + "/" + path)
    }
  }

  /// As ``resolve(_:root:anchor:)``, for a container whose root does not exist yet.
  static func planned(
    _ configuration: Configuration, root: String
  ) -> (found: [ContainerGroup], missing: [ContainerGroup]) {
    var found: [ContainerGroup] = []
    var missing: [ContainerGroup] = []
    for group in configured(configuration, root: root) {
      // No link can be on the way through what is not there. Through another user's link nothing is found.
      let path = standardized(group.root)
      if let resolved = (try? ownRealPath(path)) ?? nil, (try? Directory(resolved)) != nil,
        !isInside(root, resolved)
      {
        found.append(ContainerGroup(id: group.id, root: resolved))
      } else {
        missing.append(ContainerGroup(id: group.id, root: path))
      }
    }
    return (found, missing)
  }

  /// Without `.` and `..`, which is the same path where no link is on the way.
  private static func standardized(_ path: String) -> String {
    URL(filePath: path, directoryHint: .notDirectory).standardized.path(percentEncoded: false)
  }

  /// The groups whose directories exist, and the others.
  ///
  /// - Throws: ``DrydockError`` with code `badConfiguration` when two roots overlap, or when the container has a
  ///   directory of its own where groups are shown.
  static func resolve(
    _ configuration: Configuration, root: String, anchor: String
  ) throws -> (found: [ContainerGroup], missing: [ContainerGroup]) {
    let named = configured(configuration, root: root)
    if named.isEmpty { return ([], []) }
    guard try Directory(root).status(.groups) == nil else {
      throw DrydockError(
        .badConfiguration,
        "the container has a `.groups` of its own, which is where Drydock shows the groups of drydock.yaml; rename it, "
          + "or take `groups:` out", path: root)
    }
    var found: [ContainerGroup] = []
    var missing: [ContainerGroup] = []
    for group in named {
      guard let resolved = try ownRealPath(group.root) else {
        missing.append(ContainerGroup(id: group.id, root: standardized(group.root)))
        continue
      }
      do {
        _ = try Directory(resolved)
      } catch let error as DrydockError where error.code == .notAContainer {
        throw DrydockError(
          .badConfiguration, "the group \(group.id) is a file, and must be a directory", path: resolved)
      }
      found.append(ContainerGroup(id: group.id, root: resolved))
    }
    try requireApart([("the container", root), ("the container's bundle", anchor)], found)
    return (found, missing)
  }

  /// Two roots of which one is in the other would be changed twice.
  private static func requireApart(_ own: [(String, String)], _ groups: [ContainerGroup]) throws {
    var known = own
    for group in groups {
      for (name, other) in known {
        // A directory that is mounted at two paths is one.
        let isSame = FollowedStatus.identity(group.root) == FollowedStatus.identity(other)
        guard !isSame, !isInside(group.root, other) || name == "the container's bundle",
          !isInside(other, group.root)
        else {
          throw DrydockError(
            .badConfiguration,
            "the roots of the group \(group.id) and of \(name) (\(other)) overlap; "
              + "correct `groups:` in drydock.yaml", path: group.root)
        }
      }
      known.append(("the group \(group.id)", group.root))
    }
  }

  private static func isInside(_ path: String, _ other: String) -> Bool {
    path.hasPrefix(other == "/" ? "/" : other + "/")
  }
}

extension Container {
  /// Whether a group of this id is there.
  package func hasGroup(_ id: String) -> Bool { groups.contains { $0.id == id } }

  /// The settings file of a group of the configuration, which need not be there; nil for another suite.
  package func groupDefaults(_ id: String) -> ContainerPath? {
    guard configuration.groups[id] != nil else { return nil }
    return try? ContainerPath.group(id).appending("Library").appending("Preferences").appending(id + ".plist")
  }

  /// Opens the root, with the groups' roots in it as `.groups/<id>`.
  package func open() throws -> Directory {
    var opened: [String: Directory] = [:]
    for group in groups { opened[group.id] = try Directory(group.root) }
    return try Directory(root).showing(groups: opened).naming(databases: configuration.databasePaths)
  }

  /// Why nothing can be put at a path of `.groups`: its group is not known, or not there. Nil for other paths.
  package func reason(againstGroupOf path: ContainerPath) -> String? {
    guard path == .groups || path.isInside(.groups), !configuration.groups.isEmpty else { return nil }
    guard let id = path.inGroup?.id else { return "this is the list of groups; name a path in one of them" }
    if hasGroup(id) { return nil }
    if let missing = missingGroups.first(where: { $0.id == id }) {
      return
        "the group \(id) is to be at \(missing.root), where no directory is; make it, or correct `groups:` in "
        + "drydock.yaml"
    }
    return "no group is named \(id); \(NearestWord.hint(for: id, among: configuration.groups.keys.sorted()))"
  }
}
