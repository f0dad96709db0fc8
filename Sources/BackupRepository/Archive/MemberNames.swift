import ArchiveFile
import FileSystem

/// How paths of a container are named in an archive: `container/<path>`, and of its groups `groups/<id>/<path>`.
struct MemberNames {
  static let manifest = "manifest.sqlite"
  static let vault = "vault.json"
  private static let root = "container"
  private static let groupRoot = "groups/"

  /// The ids of the groups that the archive holds.
  let groups: Set<String>

  /// The name of a path's member; `container` for the root, `groups/<id>` for a group's.
  func name(of path: ContainerPath) -> [UInt8] {
    if path.isRoot { return Array(Self.root.utf8) }
    if let group = path.inGroup, groups.contains(group.id) {
      return Array(Self.groupRoot.utf8) + path.bytes.dropFirst(ContainerPath.groups.bytes.count + 1)
    }
    return Array((Self.root + "/").utf8) + path.bytes
  }

  /// The path that a member stands for; nil for one that is no path's.
  func path(of name: [UInt8]) -> ContainerPath? {
    if name.elementsEqual(Self.root.utf8) { return .root }
    let path: ContainerPath?
    if name.starts(with: Self.groupRoot.utf8) {
      path = try? ContainerPath(
        bytes: ContainerPath.groups.bytes + [0x2f] + name.dropFirst(Self.groupRoot.utf8.count))
    } else if name.starts(with: (Self.root + "/").utf8) {
      path = try? ContainerPath(bytes: name.dropFirst(Self.root.utf8.count + 1))
    } else {
      return nil
    }
    // Each path has one name.
    guard let path, self.name(of: path) == name else { return nil }
    return path
  }

  /// The member that stands for an entry of the manifest.
  func member(_ entry: ManifestEntry, _ kind: ArchiveMember.Kind) -> ArchiveMember {
    ArchiveMember(
      name: name(of: entry.path), kind: kind, mode: entry.metadata.mode,
      modified: entry.metadata.modified, userID: entry.metadata.user, groupID: entry.metadata.group,
      attributes: entry.metadata.attributes.map { .init(name: Array($0.name.utf8), value: $0.value) },
      isNoDump: entry.metadata.isNoDump)
  }
}

extension ArchiveHeader {
  /// How the archive's members are named.
  var memberNames: MemberNames { MemberNames(groups: Set(groups ?? [])) }
}
