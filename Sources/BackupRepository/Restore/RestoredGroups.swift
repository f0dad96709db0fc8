import AppContainer
import FileSystem

/// Which groups a restore acts in: those that both the archive and the container have.
struct RestoredGroups {
  /// Of the archive, and of the container.
  private let stored, present: Set<String>
  private let hasGroups: Bool

  init(_ header: ArchiveHeader, _ container: Container) {
    stored = Set(header.groups ?? [])
    present = Set(container.groups.map(\.id))
    hasGroups = !container.configuration.groups.isEmpty
  }

  /// Why a live path stays: the archive was made without its group, and says nothing of it.
  func sparing(_ path: ContainerPath) -> String? {
    guard let id = path.inGroup?.id, present.contains(id), !stored.contains(id) else { return nil }
    return "the archive was made without the group \(id)"
  }

  /// The group of an entry that has no place in the container: its id, or `.groups` for a directory of that name that the
  /// container had when it had no groups. Nil for all other entries.
  func missing(_ path: ContainerPath) -> String? {
    guard path == .groups || path.isInside(.groups) else { return nil }
    guard let id = path.inGroup?.id, stored.contains(id) else {
      return hasGroups ? ContainerPath.groups.description : nil
    }
    return present.contains(id) ? nil : id
  }
}
