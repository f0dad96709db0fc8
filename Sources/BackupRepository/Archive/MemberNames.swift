import AppContainer
import ArchiveFile

/// How paths of a container are named in an archive.
enum MemberNames {
  static let manifest = "manifest.sqlite"
  static let vault = "vault.json"
  private static let root = "container"

  /// `container/<path>`; `container` for the root.
  static func name(of path: ContainerPath) -> [UInt8] {
    path.isRoot ? Array(root.utf8) : Array((root + "/").utf8) + path.bytes
  }

  /// The path that a member stands for; nil for one that is not below `container`.
  static func path(of name: [UInt8]) -> ContainerPath? {
    if name.elementsEqual(root.utf8) { return .root }
    let prefix = Array((root + "/").utf8)
    guard name.starts(with: prefix) else { return nil }
    return try? ContainerPath(bytes: name.dropFirst(prefix.count))
  }
}

extension ArchiveMember {
  /// The member that stands for an entry of the manifest.
  init(_ entry: ManifestEntry, _ kind: Kind) {
    self.init(
      name: MemberNames.name(of: entry.path), kind: kind, mode: entry.metadata.mode,
      modified: entry.metadata.modified, userID: entry.metadata.user, groupID: entry.metadata.group,
      attributes: entry.metadata.attributes.map { .init(name: Array($0.name.utf8), value: $0.value) },
      isNoDump: entry.metadata.isNoDump)
  }
}
