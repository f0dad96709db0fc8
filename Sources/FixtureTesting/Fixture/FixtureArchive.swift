import AppContainer
import BackupRepository
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats

/// A fixture's container as an archive of drydock's.
struct FixtureArchive {
  let path: String

  /// Makes the container of it, and its groups. What the restore itself noted beside them is removed: the container's log
  /// begins with what is checked.
  ///
  /// - Parameter replacesVault: whether another vault takes the place of the one in the archive.
  /// - Throws: `DrydockError` with code `malformed` for an archive that cannot be a fixture; `DrydockError`,
  ///   `DrydockError` or `DrydockError` for one that is damaged.
  func restore(to place: FixturePlace, _ configuration: Configuration, replacesVault: Bool) throws {
    let archive = try Archive(path: path)
    let header = archive.header
    for id in header.groups ?? [] {
      guard let group = place.groups[id] else {
        throw DrydockError(
          .badFixture,
          "the archive has the group \(ContainerPath.printable(Array(id.utf8))), and drydock.yaml does not; "
            + NearestWord.hint(for: id, among: place.groups.keys.sorted()), path: path)
      }
      try place.work.makeDirectories(group)
    }
    let container = Container(
      planned: place.work.full(place.root), layout: configuration.layout ?? header.layout,
      app: configuration.app ?? header.app, instance: header.instance, configuration: configuration)
    var options = RestoreOptions()
    options.includeExcluded = true
    _ = try Restore.run(archive, .absent(container), options.forCopy())
    for state in try StateDirectory.all(of: container) {
      guard let name = state.directory.path.split(separator: "/").last else { continue }
      try state.parent.removeTree(ContainerPath(String(name)))
    }
    let root = try place.work.directory(place.root)
    guard try root.status(container.vaultPath) != nil else { return }
    guard replacesVault else {
      throw DrydockError(
        .badFixture,
        "the archive has a vault, which only its own device can open; say what is in it, with made-up values, in "
          + "fixture.yaml (`container: {vault: …}`)", path: path)
    }
    try root.removeFile(container.vaultPath)
  }
}
