import AgeEncryption
import AppContainer
import DrydockErrors
import FileSystem
import Formats
import GRDB

/// A container as it will be after the commit: reads fall through to the live one, writes go to the stage.
///
/// The first change of anything about a path gives it an inode of its own in the stage, so that nothing live is
/// ever changed through a link.
package final class StagedContainer {
  package let container: Container
  /// The transaction's name, for records; empty in a dry run.
  package internal(set) var transaction = ""
  /// The live root, open and locked.
  package let live: Directory
  /// The private directory with the staged inodes.
  let area: StageArea
  var stage: Directory { area.directory }
  /// Locks on the live databases, held until after the commit; none in a dry run.
  let locks: [ContainerPath: DatabaseLock]
  /// Whether databases keep a copy of what they were, for a difference of rows.
  let keepsBefore: Bool
  /// Seconds to wait for a database that is locked.
  let busyTimeout: Double
  /// What opens the vault, when it is at hand.
  package let deviceKeys: DeviceKeys?
  /// Hides secrets in all output about this run.
  package private(set) var redactor: Redactor

  /// What differs from the live container.
  var overlay = Overlay()
  /// Copies of databases in the stage.
  var copies = DatabaseCopies()
  var settingsCache = SettingsCache()
  /// What goes into the undo log besides the changes.
  var undoNotes = UndoNotes()
  /// Whether the result is checked, whatever the options say: when a rollback writes more than what was there before.
  var requiresCheck = false
  /// What the undo log still holds of the transaction whose steps are reverted: nil when it is gone, or none is.
  package internal(set) var kept: RevertSource?
  /// In the planning phase: what it has read of the live container.
  var reads: LiveReads?

  init(
    _ container: Container, live: Directory, stage: Directory, locks: [ContainerPath: DatabaseLock],
    keepsBefore: Bool, options: TransactionOptions
  ) {
    self.container = container
    self.live = live
    area = StageArea(stage)
    self.locks = locks
    self.keepsBefore = keepsBefore
    (busyTimeout, redactor) = (options.busyTimeout, options.redactor)
    deviceKeys = options.deviceKeys
  }

  /// Says that a setting's value was moved into the vault: no undo entry then stores it unencrypted, neither this
  /// transaction's nor an earlier one's.
  ///
  /// - Parameter recipients: to whose keys the undos are sealed: the vault's.
  package func keepSealed(_ secret: MovedSecret, to recipients: some Sequence<AgeRecipient>) {
    undoNotes.movedSecrets.append(secret)
    undoNotes.recipients.formUnion(recipients)
    // Hidden under any name from now on.
    redactor = secret.known(to: redactor)
  }

  /// Settings whose values a step has moved into the vault.
  package var movedSecrets: [MovedSecret] { undoNotes.movedSecrets }

  // MARK: Looking

  /// The status of a path as it will be; nil when nothing will be there.
  package func status(of path: ContainerPath) throws -> FileStatus? {
    switch overlay[path] {
    case .removed: nil
    case .inode(let inode): try stage.status(inode.name)
    case .directory(let metadata): FileStatus(directory: metadata)
    case nil: try liveStatus(path)
    }
  }

  private func liveStatus(_ path: ContainerPath) throws -> FileStatus? {
    let status = try live.status(path)
    reads?.note(status, of: path)
    return status
  }

  /// A path's metadata as it will be; nil when nothing will be there.
  package func metadata(of path: ContainerPath) throws -> FileMetadata? {
    switch overlay[path] {
    case .removed: nil
    case .inode(let inode): try stage.metadata(inode.name)
    case .directory(let metadata): metadata
    case nil: try live.metadata(path)
    }
  }

  /// What is directly in a directory, sorted; nothing for a path that is not a directory.
  package func children(of path: ContainerPath) throws -> [ContainerPath] {
    guard try status(of: path)?.type == .directory else { return [] }
    var names: Set<ContainerPath> = []
    if try live.status(path)?.type == .directory {
      names = Set(try live.directory(path).names().map { path.appending(name: $0) })
      names = names.filter { !live.isState($0) }
    }
    for child in overlay.children(of: path) {
      if case .removed = overlay[child] { names.remove(child) } else { names.insert(child) }
    }
    return names.sorted()
  }

  /// Everything below a directory, sorted, parents first.
  package func descendants(of path: ContainerPath) throws -> [ContainerPath] {
    try children(of: path).flatMap { (live.isGroupList($0) ? [] : [$0]) + (try descendants(of: $0)) }
  }

  /// Where a path's content is now: the stage or the live container.
  func place(of path: ContainerPath) -> (directory: Directory, path: ContainerPath) {
    if case .inode(let inode) = overlay[path] { return (stage, inode.name) }
    return (live, path)
  }

  /// The content of a regular file, up to 64 MiB.
  ///
  /// - Throws: ``DrydockError`` `missing`; `DrydockError` when it cannot be read or is not a file.
  package func read(_ path: ContainerPath) throws -> [UInt8] {
    guard let status = try status(of: path) else { throw missing(path) }
    guard status.type == .file else {
      throw DrydockError(.unsupported, "not a regular file; links are not followed", path: path.description)
    }
    let place = place(of: path)
    return try place.directory.contents(place.path)
  }

  /// What a symbolic link points to.
  package func linkTarget(_ path: ContainerPath) throws -> [UInt8] {
    let place = place(of: path)
    return try place.directory.linkTarget(place.path)
  }

  func missing(_ path: ContainerPath) -> DrydockError {
    let reason = container.reason(againstGroupOf: path)
    return DrydockError(.missing, reason ?? "not in the container", path: path.description)
  }
}

/// A staged inode: a file or link in the stage's directory that represents a path.
struct StagedInode: Sendable {
  /// Its name in the stage.
  var name: ContainerPath
  /// A file or a link.
  var type: FileType
  /// Its content's digest, when it is known.
  var digest: SHA256.Digest?
  /// Its metadata and size, and whether it is a database, when these are known.
  var made: (metadata: FileMetadata, size: UInt64, isDatabase: Bool)?
  /// Whether an undo holds the same inode: it must not be written to.
  var isShared = false
}

/// What differs from the live container, path by path. It is flat: removing a directory removes each path below
/// by itself, so that what a path is never depends on what is above it.
struct Overlay: Sendable {
  enum Node: Sendable {
    case removed
    case inode(StagedInode)
    /// A directory that is new, or whose metadata changes; what is below a live one falls through.
    case directory(FileMetadata)
  }

  private(set) var nodes: [ContainerPath: Node] = [:]
  /// Where paths that were moved came from, for the difference.
  var origins: [ContainerPath: ContainerPath] = [:]
  /// Of directories that a rollback brings back: what `chattr` had set on them.
  var directoryFlags: [ContainerPath: InodeFlags] = [:]
  private var children: [ContainerPath: Set<ContainerPath>] = [:]

  subscript(path: ContainerPath) -> Node? { nodes[path] }

  mutating func set(_ node: Node?, at path: ContainerPath) {
    nodes[path] = node
    if path.isRoot { return }
    if node == nil {
      children[path.parent]?.remove(path)
    } else {
      children[path.parent, default: []].insert(path)
    }
  }

  func children(of path: ContainerPath) -> Set<ContainerPath> { children[path] ?? [] }
}

extension StagedContainer {
  /// SHA-256 over what is at a path, whatever its metadata: a file's content, a database's captured content
  /// (``ContentDigest``), a link's target, and of a directory the names, types and contents of all below it.
  ///
  /// - Throws: ``DrydockError`` `missing` when nothing is there.
  package func digest(of path: ContainerPath) throws -> SHA256.Digest {
    guard let status = try status(of: path) else { throw missing(path) }
    switch status.type {
    case .symbolicLink: return try SHA256.hash(linkTarget(path))
    case .other: return try SHA256.hash(Array(FileType.other.rawValue.utf8))
    case .directory:
      let hash = try SHA256()
      for below in try descendants(of: path) where try !isSidecar(below) {
        guard let type = try self.status(of: below)?.type else { continue }
        // Paths have no NUL, so that no two trees give the same bytes.
        let name = below.rebased(from: path, to: .root)
        let content = type == .directory ? [] : Array(try digest(of: below).hex.utf8)
        for part in [Array(type.rawValue.utf8), name.bytes, content] {
          (part + [0]).withUnsafeBytes(hash.update)
        }
      }
      return try hash.finalize()
    case .file:
      if try isDatabase(path) { return try databaseDigest(path) }
      let place = place(of: path)
      return try ContentDigest.of(place.path, in: place.directory, isDatabase: false)
    }
  }
}

/// What a restore asks of a stage beyond reading and writing.
extension StagedContainer {
  /// Whether the stage changes anything directly in a directory.
  package func changesNames(in directory: ContainerPath) -> Bool { !overlay.children(of: directory).isEmpty }

  /// What a path has once this metadata has been put on it.
  package func attainable(_ metadata: FileMetadata, for type: FileType) throws -> FileMetadata {
    try area.attainable(metadata, for: type)
  }

  /// The digest of a live file or database as a manifest records it; a database's of its captured content.
  package func liveDigest(of path: ContainerPath) throws -> SHA256.Digest {
    if try isDatabase(path) { return try databaseDigest(path) }
    return try ContentDigest.of(path, in: live, isDatabase: false)
  }
}
