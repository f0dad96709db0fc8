import DrydockErrors
import FileSystem
import Formats
import Foundation

/// An app group: a directory that an app shares with its extensions and other apps. In the container's namespace its root is
/// `.groups/<id>`.
package struct ContainerGroup: Sendable, Equatable {
  /// Such as `group.com.example.notes`.
  package let id: String
  /// The absolute path of its root, with links resolved where it exists.
  package let root: String

  /// Whether a text can be the id of a group: one name.
  package static func isID(_ text: String) -> Bool {
    !text.isEmpty && (try? ContainerPath(text))?.name == Array(text.utf8)
  }

  /// Its root in the container's namespace.
  package var path: ContainerPath { .group(id) }

  /// The configured groups, whether they exist or not.
  static func configured(_ configuration: ContainerConfiguration, root: String) -> [ContainerGroup] {
    configuration.groups.sorted { $0.key < $1.key }.map { id, path in
      ContainerGroup(id: id, root: ContainerConfiguration.absolute(path, in: root))
    }
  }

  /// As ``resolve(_:root:anchor:)`` for a container that does not exist yet.
  static func planned(
    _ configuration: ContainerConfiguration, root: String
  ) -> (found: [ContainerGroup], missing: [ContainerGroup]) {
    var found: [ContainerGroup] = []
    var missing: [ContainerGroup] = []
    for group in configured(configuration, root: root) {
      // There are no links below a root that does not exist. A path through another user's link counts as missing.
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

  /// The path without `.` and `..`, for a path without links.
  private static func standardized(_ path: String) -> String {
    URL(filePath: path, directoryHint: .notDirectory).standardized.path(percentEncoded: false)
  }

  /// The groups whose directories exist, and the others. Throws ``DrydockError`` (`badConfiguration`) when two roots overlap,
  /// or when the container has a `.groups` directory.
  static func resolve(
    _ configuration: ContainerConfiguration, root: String, anchor: String
  ) throws -> (found: [ContainerGroup], missing: [ContainerGroup]) {
    let named = configured(configuration, root: root)
    if named.isEmpty { return ([], []) }
    guard try Directory(root).status(.groups) == nil else {
      throw DrydockError(
        .badConfiguration,
        "the container has a `.groups` directory, the place where Drydock shows the groups of drydock.yaml; rename it, "
          + "or remove `groups:`", path: root)
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

  /// Data in two overlapping roots would be changed twice.
  private static func requireApart(_ own: [(String, String)], _ groups: [ContainerGroup]) throws {
    var known = own
    for group in groups {
      for (name, other) in known {
        // A directory may be mounted at two paths.
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
  package func hasGroup(_ id: String) -> Bool { groups.contains { $0.id == id } }

  /// The settings file of a configured group, which may not exist; nil for another suite.
  package func groupDefaults(_ id: String) -> ContainerPath? {
    guard configuration.groups[id] != nil else { return nil }
    return try? ContainerPath.group(id).appending("Library").appending("Preferences").appending(id + ".plist")
  }

  /// Opens the root, which shows the groups' roots as `.groups/<id>`.
  package func open() throws -> Directory {
    var opened: [String: Directory] = [:]
    for group in groups { opened[group.id] = try Directory(group.root) }
    return try Directory(root).showing(groups: opened).naming(databases: configuration.databasePaths)
  }

  /// Why a path in `.groups` cannot be written: its group is unknown or missing. Nil for other paths.
  package func reason(againstGroupOf path: ContainerPath) -> String? {
    guard path == .groups || path.isInside(.groups), !configuration.groups.isEmpty else { return nil }
    guard let id = path.inGroup?.id else { return "this is the list of groups; name a path in one of them" }
    if hasGroup(id) { return nil }
    if let missing = missingGroups.first(where: { $0.id == id }) {
      return
        "the directory of the group \(id), \(missing.root), does not exist; create it, or correct `groups:` in "
        + "drydock.yaml"
    }
    return "unknown group \(id); \(NearestWord.hint(for: id, among: configuration.groups.keys.sorted()))"
  }
}
