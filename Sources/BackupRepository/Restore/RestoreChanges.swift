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
  var report = RestoreReport()
  /// Nil when nothing is to be decided about the vault.
  var vault: VaultPlan?
  /// What the tar of each archive of the chain must have.
  var members: [ExpectedMembers]
  /// The vault's file in the archive, with its content, when the container has another one.
  var vaultEntry: ManifestEntry?

  /// Whether every content of an archive of the chain is read.
  func readsAll(of part: Int, _ archive: Archive) throws -> Bool {
    let (members, id) = (members[part], archive.parts[part].header.archive)
    var isRead = Array(repeating: false, count: members.contents)
    let mark = { (offset: UInt64) in
      if let content = members.content(at: offset) { isRead[content] = true }
    }
    for place in contents.places where place.size > 0 && Int(place.archive) == part { mark(place.offset) }
    for piece in contents.pieces where Int(piece.archive) == part { mark(piece.offset) }
    guard let vaultEntry else { return isRead.allSatisfy { $0 } }
    for extent in vaultEntry.extents where extent.archive == id { mark(extent.offset) }
    return isRead.allSatisfy { $0 }
  }
}
