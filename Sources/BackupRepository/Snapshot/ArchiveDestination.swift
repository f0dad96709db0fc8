import AppContainer
import ArchiveFile
import ArchiveSigning
import DrydockErrors
import FileSystem
import Foundation
import Storage

/// Where a new archive is to be.
package enum ArchiveTarget: Sendable {
  /// A directory of archives, or a remote place; the name is made.
  case repository(String)
  /// A file that must not exist.
  case file(String)
}

/// Where a new archive is published: in a repository, under a name that is made, or as a file that must not exist. It is
/// written in a private directory and published in one step: renamed, or sent to a remote place.
package struct ArchiveDestination: Sendable {
  /// It is locked, so that nothing is removed from it.
  private let folder: any Place
  private let fileName: ContainerPath?
  /// The keys that sign the archive.
  let signing: [SigningKey]

  /// The repository's path; nil for a file.
  var repository: String? { fileName == nil ? folder.path : nil }

  /// - Parameters:
  ///   - container: the source of the archive; neither may contain the other.
  ///   - lockTimeout: seconds to wait for the lock of a repository.
  /// - Throws: `DrydockError`: `overlap` when the file exists, or the container and the destination contain each other;
  ///   `notFound`; `locked` while something is removed from the repository.
  package init(
    _ target: ArchiveTarget, outside container: Container? = nil, signing: [SigningKey] = [],
    lockTimeout: Double
  ) throws {
    self.signing = signing
    switch target {
    case .repository(let path):
      var place = path
      if !Places.isRemote(path) {
        place = try Self.open(path, "the repository").path
        if let container { try Self.refuseOverlap(place, isRepository: true, container) }
      }
      folder = try Repository(place).locked(exclusive: false, timeout: lockTimeout)
      fileName = nil
    case .file(let path) where Places.isRemote(path):
      throw DrydockError(
        .usage, "a single archive is written to a file of this machine; a remote place is a repository",
        path: path)
    case .file(let path):
      let (parent, name) = try ContainerPath.split(path)
      guard !name.isRoot else {
        throw DrydockError(.notFound, "name the archive's file, not a directory", path: path)
      }
      let directory = try Self.open(parent, "the archive's directory")
      guard try directory.status(name) == nil else {
        throw DrydockError(
          .overlap, "already exists; an archive never replaces a file, choose another name", path: path)
      }
      if let container { try Self.refuseOverlap(directory.path, isRepository: false, container) }
      // Nobody removes what is beside it, such as signatures whose archive is not there yet.
      folder = try Repository(directory.path).locked(exclusive: false, timeout: lockTimeout)
      fileName = name
    }
  }

  /// A repository that the caller has locked.
  init(locked repository: any Place, signing: [SigningKey]) {
    (folder, fileName, self.signing) = (repository, nil, signing)
  }

  private static func open(_ path: String, _ what: String) throws -> Directory {
    do {
      return try Directory(ownRealPath(path) ?? path)
    } catch let error as DrydockError {
      throw DrydockError.unusable(what, path: path, error)
    }
  }

  private static func refuseOverlap(_ folder: String, isRepository: Bool, _ container: Container) throws {
    for root in [container.anchor] + container.groups.map(\.root) {
      guard folder != root, !folder.hasPrefix(root + "/") else {
        throw DrydockError(
          .overlap,
          "an archive inside its own container, or a group of it, would contain itself; choose a place outside",
          path: folder)
      }
      guard !isRepository || !root.hasPrefix(folder == "/" ? "/" : folder + "/") else {
        throw DrydockError(
          .overlap,
          "the container, or a group of it, is inside the repository; choose a repository elsewhere",
          path: folder)
      }
    }
  }

  /// A private directory for the file; those of killed runs are removed.
  func makeScratch() throws -> ScratchDirectory {
    do {
      return try folder.makeScratch()
    } catch let error as DrydockError {
      if error.code == .io || folder.isRemote { throw located(error) }
      throw DrydockError.unusable(
        fileName == nil ? "the repository" : "the directory", path: folder.path, error)
    }
  }

  /// An error of writing the archive, with the path of the directory that it is written to. What is sent to a remote place is
  /// in the one for temporary files.
  func located(_ error: DrydockError) -> DrydockError {
    guard error.code == .io, error.path == nil else { return error }
    if !folder.isRemote { return error.at(folder.path) }
    return DrydockError(
      .io, "\(error.message); archives are prepared here: set TMPDIR to a directory with more space",
      path: NSTemporaryDirectory(), cause: error)
  }

  /// What is in a repository; nil for a file.
  func present() throws -> PlaceListing? { fileName == nil ? try folder.list() : nil }

  /// In a repository, the archives of an app and instance, the one of the latest time first. File names show it, so that no
  /// archive is opened.
  func archives(of app: String, _ instance: String, among present: PlaceListing) -> [(
    label: ArchiveLabel, path: String
  )] {
    let owner = ArchiveLabel.nameKey(app, instance)
    return present.archives.compactMap { name, label in label.map { ($0, folder.full(name)) } }
      .filter { (label: ArchiveLabel, _) in label.nameKey == owner }
      .sorted { ($0.label.time, $0.path) > ($1.label.time, $1.path) }
  }

  /// Writes the tags of an archive that is about to be published into the repository; nothing else is a place for them.
  func write(tags: [String], of id: Archive.ID) throws {
    guard !tags.isEmpty else { return }
    guard fileName == nil else {
      throw DrydockError(.usage, "tags are kept in a repository, not with a single file", path: folder.path)
    }
    try ArchiveTags.write(Set(tags).sorted(), of: id.description, in: folder)
  }

  /// Removes the tags of an archive that was not published.
  func removeTags(of id: Archive.ID) {
    if fileName == nil { try? ArchiveTags.remove(of: id.description, in: folder) }
  }

  /// Begins an archive's file, which is written into a directory of ``makeScratch()``.
  ///
  /// - Parameter names: for a repository; the first free one is used. One alone has a random id, so that it is free.
  func upload(
    _ file: ContainerPath, in scratch: Directory, as names: [String]
  ) throws -> any PlaceUpload {
    let paths = try fileName.map { [$0] } ?? names.map { try ContainerPath($0) }
    guard let name = try paths.count == 1 ? paths[0] : paths.first(where: { try folder.file($0) == nil })
    else { throw Self.nameIsTaken(folder.full(paths.first ?? file)) }
    return try folder.upload(file, in: scratch, as: name)
  }

  /// Gives the written file its final name, never replacing one; synced when this returns. Returns the path.
  ///
  /// - Parameters:
  ///   - upload: of ``upload(_:in:as:)``.
  ///   - signed: what is signed of it; nil for an archive without signature.
  ///   - isAlone: whether nobody else writes under this name in a repository, because the id is new, or the lock exclusive: then
  ///     signatures are on disk before their archive. At a remote place they always are.
  /// - Throws: `DrydockError`: `overlap` when the name is taken.
  func publish(
    _ upload: any PlaceUpload, size: UInt64, _ signed: SignaturePayload?, isAlone: Bool = false
  ) throws -> String {
    let (name, path) = (upload.name, folder.full(upload.name))
    // The signatures of an archive that is there are its own.
    guard try signed == nil || folder.file(name) == nil else { throw Self.nameIsTaken(path) }
    func unsigned() { if signed != nil { try? SignaturePayload.removeFiles(of: name, at: folder) } }
    // Of two who write under one name in a directory, the one who has it signs.
    let signsFirst = (isAlone || folder.isRemote) && fileName == nil
    do {
      if signsFirst { try signed?.sign(name, at: folder, with: signing, isNew: folder.isRemote) }
      try folder.requireLocked()
      guard try upload.publish(size: size) != nil else { throw Self.nameIsTaken(path) }
    } catch {
      upload.cancel()
      // At a server, what failed may have been done all the same.
      if signsFirst, !folder.isRemote { unsigned() }
      throw error
    }
    if !signsFirst {
      do { try signed?.sign(name, at: folder, with: signing) } catch {
        try? folder.remove(name)
        unsigned()
        throw error
      }
    }
    do { try folder.sync() } catch let error as DrydockError {
      throw DrydockError(
        .io, "the archive is here, but \(error.reason); check the disk, then verify it",
        path: path, cause: error)
    }
    return path
  }

  /// Throws if an archive is gone that a published one needs: at a remote place, another machine may remove it that did not see
  /// the lock in time. The new one is removed then.
  func requirePresent(_ parents: [Archive.ID], neededBy path: String) throws {
    guard folder.isRemote, !parents.isEmpty else { return }
    let ids = try folder.list().archives.compactMap { $0.label?.id }
    guard let missing = parents.first(where: { id in !ids.contains { id.description.hasPrefix($0) } })
    else { return }
    let name = try ContainerPath(lastName(path))
    try folder.remove(name)
    try SignaturePayload.removeFiles(of: name, at: folder)
    throw DrydockError(
      .changedMeanwhile,
      "an archive that the new one needs (\(missing.short)) was removed meanwhile, so the new one was removed, too; run it "
        + "again", path: folder.path)
  }

  private static func nameIsTaken(_ path: String) -> DrydockError {
    DrydockError(
      .overlap,
      "an archive of that name was written meanwhile; an archive never replaces a file, run it again",
      path: path)
  }
}
