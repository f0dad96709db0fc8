import ArchiveManifest
import FileSystem

/// What a restore does to the container; decided by a ``RestorePlan``.
struct RestoreChanges {
  /// Files whose content comes from the archive.
  var contents: RestoredContents
  var symbolicLinks: [ManifestEntry] = []
  /// Hard links to their first name, once its content is in place.
  var links: [ManifestEntry] = []
  var attributes: [ManifestEntry] = []
  /// Directories of the archive, parents first.
  var directories: [ManifestEntry] = []
  /// Live paths that are removed, the deepest first.
  var removals: [ContainerPath] = []
  /// Sorted, the paths that come back without being among the contents.
  var others = PathList()
  /// Without the paths that come back: see ``finished()``.
  var report = RestoreReport()
  /// Nil when nothing is to be decided about the vault.
  var vault: VaultPlan?
  /// What the tar of each archive of the chain must have.
  var members: [ExpectedMembers]
  /// The vault's file in the archive, with its content, when the container has another one.
  var vaultEntry: ManifestEntry?

  /// The report. Only at the end: until then, a second list of all contents would take as much as the first one.
  func finished() -> RestoreReport {
    var report = report
    report.restored = contents.paths
    report.restored.sort()
    report.restored.merge(others)
    return report
  }

  /// Whether every content of an archive of the chain is read.
  func readsAll(of part: Int, _ archive: Archive) -> Bool {
    let id = archive.parts[part].header.archive
    var read = ReadContents(of: members[part])
    for place in contents.places where place.size > 0 && Int(place.archive) == part {
      read.add(at: place.offset)
    }
    for piece in contents.pieces where Int(piece.archive) == part { read.add(at: piece.offset) }
    for extent in vaultEntry?.extents ?? Extents() where extent.archive == id { read.add(at: extent.offset) }
    return read.isComplete
  }
}
