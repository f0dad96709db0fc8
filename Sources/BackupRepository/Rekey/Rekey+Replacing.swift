import AgeEncryption
import AppContainer
import ArchiveFile
import SystemPackage

extension Rekey {
  /// Encrypts the archive to others in its own place: at any moment, after a kill too, one of the two is there, whole.
  /// The old file goes only when the new one is on disk and was read back. One that was not encrypted gets `.age` behind
  /// its name.
  ///
  /// - Parameters:
  ///   - path: the archive's file; of a link, the file behind it.
  ///   - keys: what opens it.
  ///   - encryption: to whom.
  ///   - lockTimeout: seconds to wait for those who write into the repository, at the end.
  ///   - progress: called now and then with the bytes that were copied so far.
  /// - Throws: `ArchiveError`, `ContainerError`, ``RepositoryError``: `locked`, `overlap` when there is a file of the new
  ///   name, `conflict` when the archive was replaced by somebody else meanwhile. Nothing has changed then.
  public static func replace(
    path: String, keys: AgeKeys, limit: ExpansionLimit = .standard, encryption: AgeLock,
    lockTimeout: Double = 0, progress: (UInt64) -> Void = { _ in }
  ) throws -> RekeyReport {
    let place = try Place(path)
    let archive = try Archive(path: path, keys: keys, limit: limit)
    try place.check()
    return try ScratchDirectory.with(Publication.prefix, in: place.folder) { scratch in
      let size = try write(archive, into: scratch, encryption, progress)
      // Whoever could read the old file can read the new one; only its owner or root can give it to somebody.
      try? scratch.setOwner(user: place.status.user, group: place.status.group, of: file)
      try scratch.setMode(place.status.mode, of: file)
      // Alone, as who removes: nobody writes into the repository while a file of it goes.
      let lock = try RepositoryLock(place.folder.path, exclusive: true, timeout: lockTimeout)
      try place.check()
      let name = try place.put(scratch, isEncrypted: archive.encryption != nil)
      try lock.directory.sync()
      return RekeyReport(
        source: path, path: place.folder.full(name), header: archive.header, archiveBytes: size)
    }
  }
}

/// Where an archive is that is to be replaced.
private struct Place {
  let folder: Directory
  let name: ContainerPath
  let status: FileStatus

  init(_ path: String) throws {
    guard let real = realPath(path), let slash = real.lastIndex(of: "/") else {
      throw RepositoryError(.notFound, "no such archive; check the path", path: path)
    }
    do {
      folder = try Directory(slash == real.startIndex ? "/" : String(real[..<slash]))
      name = try ContainerPath(String(real[real.index(after: slash)...]))
      guard let status = try folder.status(name), status.type == .file else {
        throw RepositoryError(.notFound, "no archive is there; give its file", path: path)
      }
      self.status = status
    } catch let error as ContainerError {
      throw RepositoryError.place(error, "the archive's directory", path: path)
    }
  }

  /// That the file is still the one that it was.
  func check() throws {
    guard let now = try folder.status(name), now.identity == status.identity, now.size == status.size,
      now.modified == status.modified
    else {
      throw RepositoryError(
        .conflict,
        "somebody else changed or replaced it meanwhile; nothing was changed, look at it and run it again",
        path: folder.full(name))
    }
  }

  /// Puts the new file in place of the old one; gives its name.
  func put(_ scratch: Directory, isEncrypted: Bool) throws -> ContainerPath {
    if isEncrypted {
      try exchange(scratch)
      return name
    }
    let named = ContainerPath(name: name.bytes + Array(ArchiveName.encryptedSuffix.utf8))
    do {
      try scratch.renameNew(Rekey.file, in: folder, to: named)
    } catch let error as ContainerError where error.cause as? Errno == .fileExists {
      throw RepositoryError(
        .overlap, "is there already; an archive never replaces another one, look at it",
        path: folder.full(named))
    }
    // On disk under its name before the old one goes.
    try folder.sync()
    try folder.removeFile(name)
    return named
  }

  /// The old file goes with the private directory.
  private func exchange(_ scratch: Directory) throws {
    do {
      try scratch.exchange(Rekey.file, in: folder, with: name)
    } catch let error as ContainerError where [.invalidArgument, .noFunction].contains(error.cause as? Errno)
    {
      // Network file systems cannot; a rename replaces in one step, too.
      try scratch.rename(Rekey.file, in: folder, to: name)
    }
  }
}
