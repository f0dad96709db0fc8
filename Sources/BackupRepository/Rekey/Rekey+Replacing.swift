import AgeEncryption
import AppContainer
import ArchiveFile
import DrydockErrors
import FileSystem
import SystemPackage

extension Rekey {
  /// Encrypts the archive to others in its own place: at any moment, after a kill too, one of the two is there, whole.
  /// The old file goes in the very step in which the new one, which is on disk and was read back, takes its name. One that
  /// was not encrypted then gets `.age` behind its name.
  ///
  /// - Parameters:
  ///   - path: the archive's file; of a link, the file behind it.
  ///   - keys: what opens it, and the encrypted copy of it that may be beside it.
  ///   - encryption: to whom.
  ///   - lockTimeout: seconds to wait for those who write into the repository, at the end.
  ///   - progress: called now and then with the bytes that were copied so far.
  /// - Throws: `DrydockError`, `DrydockError`, ``DrydockError``: `locked`, `overlap` when there is another file of the
  ///   new name, `conflict` when the archive was replaced by somebody else meanwhile. Nothing has changed then. `io` when
  ///   the new one is in its place, and the disk does not say that it stays there.
  package static func replace(
    path: String, keys: AgeKeys, limit: ExpansionLimit = .standard, encryption: AgeLock,
    lockTimeout: Double = 0, progress: (UInt64) -> Void = { _ in }
  ) throws -> RekeyReport {
    var place = try Place(path)
    let archive = try place.open(path, keys, limit)
    try place.check()
    try place.requireFreeName(beside: archive, keys, limit)
    return try ScratchDirectory.with(Publication.prefix, in: place.folder) { scratch in
      let size: UInt64
      do { size = try write(archive, into: scratch, encryption, progress) } catch let error as DrydockError {
        throw error.code == .io ? error.at(place.folder.path) : error
      }
      // Whoever could read the old file can read the new one; only its owner or root can give it to somebody.
      do {
        try scratch.setOwner(user: place.status.user, group: place.status.group, of: file)
      } catch let error as DrydockError where error.code == .permission {}
      try scratch.setMode(place.status.mode, of: file)
      // Alone, as who removes: nobody writes into the repository while a file of it goes.
      let lock = try RepositoryLock(place.folder.path, exclusive: true, timeout: lockTimeout)
      try place.check()
      let name = try place.put(scratch)
      try place.afterwards("it is encrypted to the new keys", name) { try lock.directory.sync() }
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
  /// The name with `.age`, for a plain archive's; nil for other names.
  private let encryptedName: ContainerPath?
  /// What is there by that name: the same archive, encrypted.
  private var copy: FileStatus?

  init(_ path: String) throws {
    guard let real = realPath(path), let slash = real.lastIndex(of: "/") else {
      throw DrydockError(.notFound, "no such archive; check the path", path: path)
    }
    do {
      folder = try Directory(slash == real.startIndex ? "/" : String(real[..<slash]))
    } catch let error as DrydockError {
      throw DrydockError.place(error, "the archive's directory", path: path)
    }
    name = try ContainerPath(String(real[real.index(after: slash)...]))
    guard let status = try folder.status(name), status.type == .file else {
      throw DrydockError(.notFound, "no archive is there; give its file", path: path)
    }
    self.status = status
    let isEncrypted = try ArchiveEncryption.of(path: path) != nil
    // An encrypted one has a plain one's name where a replacement was interrupted before the last step.
    encryptedName =
      !isEncrypted || real.hasSuffix(ArchiveName.suffix)
      ? ContainerPath(name: name.bytes + Array(ArchiveName.encryptedSuffix.utf8)) : nil
  }

  func open(_ path: String, _ keys: AgeKeys, _ limit: ExpansionLimit) throws -> Archive {
    do {
      return try Archive(path: path, keys: keys, limit: limit)
    } catch let error as DrydockError where error.code == .noIdentity && encryptedName != nil {
      throw DrydockError(
        error.code,
        "\(error.message). It is encrypted already, only its name lacks \(ArchiveName.encryptedSuffix): "
          + "an interrupted rekey may have left it; add that to the name, or give --identity to encrypt it again",
        path: error.path, cause: error)
    }
  }

  /// That the file is still the one that it was, and so is its copy.
  func check() throws {
    guard let now = try folder.status(name), now.identity == status.identity, now.size == status.size,
      now.modified == status.modified
    else {
      throw DrydockError(
        .conflict,
        "somebody else changed or replaced it meanwhile; nothing was changed, look at it and run it again",
        path: folder.full(name))
    }
    guard let encryptedName else { return }
    let beside = try folder.status(encryptedName)
    guard copy == nil || (beside?.identity == copy?.identity && beside?.modified == copy?.modified) else {
      throw DrydockError(
        .conflict, "somebody else changed or replaced it meanwhile; nothing was changed, run it again",
        path: folder.full(encryptedName))
    }
  }

  /// The name with `.age` must be free, or that of the same archive, byte for byte: a pair that an earlier rekey has left,
  /// or a person. Then one file will be there in place of both.
  mutating func requireFreeName(beside archive: Archive, _ keys: AgeKeys, _ limit: ExpansionLimit) throws {
    guard let encryptedName, let status = try folder.status(encryptedName) else { return }
    let path = folder.full(encryptedName)
    func refusal(_ why: String, _ cause: (any Error)? = nil) -> DrydockError {
      DrydockError(
        .overlap, "is there already, and an archive never replaces another one: \(why)", path: path,
        cause: cause)
    }
    let other: Archive
    do {
      other = try Archive(path: path, keys: keys, limit: limit)
    } catch let error as DrydockError where error.code == .noIdentity {
      throw refusal("when it is the same one, encrypted before, give --identity to have them compared", error)
    } catch {
      throw refusal("it cannot be compared (\(error)); look at it, and move it away", error)
    }
    guard
      try other.header.archive == archive.header.archive && SealedCopy.areSame(other.reader, archive.reader)
    else { throw refusal("it is another one; look at it, and move it away") }
    copy = status
  }

  /// Puts the new file in place of the old one; gives its name.
  func put(_ scratch: Directory) throws -> ContainerPath {
    if let encryptedName, copy != nil {
      // The two are the same: that with the right name is on disk before the other goes.
      try folder.syncFile(encryptedName)
      try folder.removeFile(name)
      try afterwards("the plain archive is removed, and this is encrypted to the old keys", encryptedName) {
        try scratch.rename(Rekey.file, in: folder, to: encryptedName)
      }
      return encryptedName
    }
    try scratch.rename(Rekey.file, in: folder, to: name)
    return try afterwards("it is encrypted to the new keys", name, rename)
  }

  /// Runs what follows once the old file is gone: a failure must not sound as if nothing had happened.
  func afterwards<T>(_ what: String, _ name: ContainerPath, _ body: () throws -> T) throws -> T {
    do { return try body() } catch let error as DrydockError {
      throw DrydockError(
        .io, "\(what), but \(error.reason); check the disk, then run `drydock verify` on it",
        path: folder.full(name), cause: error)
    }
  }

  /// Gives the new file the name with `.age` where it has to have one; gives its name.
  private func rename() throws -> ContainerPath {
    guard let encryptedName else { return name }
    do {
      try folder.renameNew(name, in: folder, to: encryptedName)
    } catch let error as DrydockError where error.cause as? Errno == .fileExists {
      // Somebody has just taken the name: the archive keeps the one that it has.
      return name
    } catch let error as DrydockError where error.cause as? Errno == .invalidArgument {
      // Network file systems know no such rename; a further name for the file replaces nothing either.
      try folder.link(name, in: folder, to: encryptedName)
      try folder.removeFile(name)
    }
    return encryptedName
  }
}
