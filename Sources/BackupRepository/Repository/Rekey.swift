import AgeEncryption
import AppContainer
import ArchiveFile
import ArchiveSigning
import DrydockErrors
import FileSystem
import RemoteStorage
import SystemPackage

package struct RekeyReport: Sendable {
  /// The archive that was read, and the re-encrypted one: the same path when it was replaced.
  package var source: String, path: String
  package var header: Archive.Header
  package var archiveBytes: UInt64
  /// Whether the archive that was read has a signature, and the new one has none.
  package var losesSignature = false
}

/// Encrypts an archive to other recipients: the same archive, byte for byte, under a new file key (see `SealedCopy`).
/// Kept copies of the old file still open with the old keys.
package enum Rekey {
  /// Writes the archive as another file, never replacing one. The old one stays.
  ///
  /// - Parameters:
  ///   - encryption: to whom.
  ///   - signing: how the copy is signed.
  ///   - lockTimeout: seconds to wait while something is removed from the repository.
  ///   - progress: counts what is copied.
  /// - Throws: `DrydockError`: `overlap`, `notFound`, `locked`, `damaged`, `untrusted`.
  package static func copy(
    path: String, keys: AgeKeys, limit: ExpansionLimit = .standard, to target: SnapshotRequest.Target,
    encryption: AgeTarget, signing: CopySigning = CopySigning(), lockTimeout: Double = 0,
    progress: WorkProgress? = nil
  ) throws -> RekeyReport {
    let archive = try ArchivePart(path: path, keys: keys, limit: limit, trusted: signing.sources)
    return try publish(
      archive, to: ArchiveDestination(target, lockTimeout: lockTimeout), as: archive.names, encryption,
      signing.keys,
      progress)
  }

  static let file: ContainerPath = "archive"

  /// Writes the copy into a private directory: synced, read back and compared when this returns.
  static func write(
    _ archive: ArchivePart, into scratch: Directory, _ encryption: AgeTarget, _ keys: [SigningKey],
    _ progress: WorkProgress?
  ) throws -> (size: UInt64, statement: StatementDraft?) {
    let output = try scratch.createFile(file, mode: 0o644)
    defer { try? output.close() }
    progress?.begin(.rekey, totalBytes: archive.reader.contentSize)
    let copy = try SealedCopy(
      of: archive.reader, into: output, encryption: encryption, isSigned: !keys.isEmpty
    ) { progress?.set(bytes: $0) }
    progress?.begin(.check)
    try scratch.syncFile(output, file)
    try copy.verify()
    return (
      copy.fileSize,
      try copy.signed(header: archive.json).map {
        StatementDraft(header: archive.header, bytes: $0, keys: keys)
      }
    )
  }
}

/// Two archives of a chain that were not both encrypted to the new keys.
package struct SeparatedArchives: Sendable, Hashable, CustomStringConvertible {
  /// The names of an incremental archive's file and of its parent's; nil if that is not in its directory.
  package var archive: String, parent: String?

  package var description: String {
    guard let parent else {
      return
        "\(archive) is incremental, and its parent is not beside it: copy the whole chain, or write a full copy "
        + "with `drydock export`"
    }
    return
      "\(archive) needs \(parent), and only one of them was encrypted to the new keys: reading it takes the keys of "
      + "both; rekey the other one, too"
  }
}

extension Rekey {
  /// The incremental archives in the directories of re-encrypted ones that now need other keys than their parents, or have no
  /// parent there. An archive that can be read needs all archives of its chain, with their keys.
  package static func separated(by reports: [RekeyReport], keys: AgeKeys) throws -> [SeparatedArchives] {
    let rekeyed = Set(reports.map { realPath($0.path) ?? $0.path })
    let folders = Dictionary(grouping: reports) { report in
      let path = realPath(report.path) ?? report.path
      return String(path.dropLast(lastName(path).count))
    }
    return try folders.sorted { $0.key < $1.key }.flatMap { folder, reports in
      let archives = try Repository(folder).list(keys: keys).stored
      let alone = reports.filter { report in
        guard let parent = report.header.parent?.description else { return false }
        return !archives.contains { parent.hasPrefix($0.label.id) }
      }
      let isNew = archives.map { archive in archive.paths.contains { rekeyed.contains(realPath($0) ?? $0) } }
      let divided = zip(archives.indices, archives.parents).compactMap {
        child, parents -> SeparatedArchives? in
        guard let parent = parents.first, isNew[child] != isNew[parent],
          let path = archives[child].paths.first
        else { return nil }
        return SeparatedArchives(archive: lastName(path), parent: archives[parent].paths.first.map(lastName))
      }
      return alone.map { SeparatedArchives(archive: lastName($0.path), parent: nil) } + divided
    }
  }
}

extension Archive.Header {
  /// The time as names have it: `20261120T101500Z`.
  var compactTime: String { time.filter { $0 != "-" && $0 != ":" } }
}

extension Rekey {
  /// Replaces the archive by the re-encrypted one: at any moment, also after a kill, one of the two is there, whole. The
  /// new one, on disk and read back, takes the old one's name in one step. A plain one's name then gets `.age` appended.
  ///
  /// - Parameters:
  ///   - path: the archive's file; of a link, the file behind it.
  ///   - keys: what opens it, and the encrypted copy of it that may be beside it.
  ///   - encryption: to whom.
  ///   - signing: how the new one is signed; a signed archive is not replaced by one without signature.
  ///   - lockTimeout: seconds to wait for the repository's lock, at the end.
  ///   - progress: counts what is copied.
  /// - Throws: `DrydockError`: `locked`, `overlap` when another file has the new name, `conflict` when the archive was
  ///   replaced meanwhile. Nothing has changed then. `io` when the new one is in place, but could not be synced.
  package static func replace(
    path: String, keys: AgeKeys, limit: ExpansionLimit = .standard, encryption: AgeTarget,
    signing: CopySigning = CopySigning(), lockTimeout: Double = 0, progress: WorkProgress? = nil
  ) throws -> RekeyReport {
    if RemoteStores.isRemote(path) {
      return try replaceRemote(path, keys, limit, encryption, signing, lockTimeout, progress)
    }
    var old = try ReplacedArchive(path)
    guard try !signing.keys.isEmpty || !old.isSigned() else { throw losesSignature(path) }
    let archive = try old.open(path, keys, limit, signing.sources)
    try old.check()
    try old.requireFreeName(beside: archive, keys, limit)
    let scratch = try ScratchDirectory(ArchiveDestination.scratchPrefix, in: old.folder)
    let (size, statement): (UInt64, StatementDraft?)
    do {
      (size, statement) = try write(archive, into: scratch.directory, encryption, signing.keys, progress)
    } catch let error as DrydockError {
      throw error.code == .io ? error.at(old.folder.path) : error
    }
    // The new file is readable to the same users; only the owner or root can change the owner.
    do {
      try scratch.directory.setOwner(user: old.status.user, group: old.status.group, of: file)
    } catch let error as DrydockError where error.code == .permission {}
    try scratch.directory.setMode(old.status.mode, of: file)
    // The order of archives takes the times of their files into account.
    try scratch.directory.setModified(old.status.modified, of: file)
    // Exclusive, as for a removal.
    let lock = try RepositoryLock(old.folder.path, exclusive: true, timeout: lockTimeout)
    try old.check()
    // For a moment the archive has no signature: an old one beside new bytes would look forged.
    try old.removeSignatures()
    let name = try old.put(scratch.directory)
    try old.afterwards("it is encrypted to the new keys", name) {
      try statement?.write(name, at: LocalPlace(old.folder))
    }
    try old.afterwards("it is encrypted to the new keys", name) { try lock.place.sync() }
    return RekeyReport(
      source: path, path: old.folder.full(name), header: archive.header, archiveBytes: size)
  }
}

extension Rekey {
  /// At a remote place the new archive gets another name, and then the old one is removed: killed in between, both are there.
  private static func replaceRemote(
    _ path: String, _ keys: AgeKeys, _ limit: ExpansionLimit, _ encryption: AgeTarget, _ signing: CopySigning,
    _ lockTimeout: Double, _ progress: WorkProgress?
  ) throws -> RekeyReport {
    let repository = Repository.ofArchive(path)
    let place = try RepositoryLock(repository.path, exclusive: true, timeout: lockTimeout).place
    let archive = try ArchivePart(path: path, keys: keys, limit: limit, trusted: signing.sources)
    let old = try ContainerPath(lastName(path))
    guard try !signing.keys.isEmpty || !SignatureFiles.anyPresent(of: old, at: place) else {
      throw losesSignature(path)
    }
    let present = Set(try place.list().names.map { String(decoding: $0, as: UTF8.self) })
    let names = archive.names.filter { !present.contains($0) }
    guard !names.isEmpty else {
      throw DrydockError(
        .overlap, "the repository has copies of it under all names that the new one could have; remove them",
        path: path)
    }
    let report = try publish(
      archive, to: ArchiveDestination(locked: place), as: names, encryption, signing.keys, progress)
    try place.remove(old)
    try SignatureFiles.remove(of: old, at: place)
    return report
  }

  private static func losesSignature(_ path: String) -> DrydockError {
    DrydockError(
      .untrusted,
      "it is signed, and its replacement would not be, so nothing was changed; give the signing key, or remove the "
        + "files of its signature", path: path)
  }

  private static func publish(
    _ archive: ArchivePart, to destination: ArchiveDestination, as names: [String], _ encryption: AgeTarget,
    _ keys: [SigningKey], _ progress: WorkProgress?
  ) throws -> RekeyReport {
    let (place, name) = try Places.ofFile(archive.path)
    let isSigned = try SignatureFiles.anyPresent(of: name, at: place)
    let scratch = try destination.makeScratch()
    do {
      let (size, statement) = try write(archive, into: scratch.directory, encryption, keys, progress)
      let copy = try scratch.directory.open(file, .readOnly)
      defer { try? copy.close() }
      let path = try destination.publish(
        file, in: scratch.directory, as: names, destination.upload(copy, as: names), statement)
      return RekeyReport(
        source: archive.path, path: path, header: archive.header, archiveBytes: size,
        losesSignature: isSigned && statement == nil)
    } catch let error as DrydockError {
      throw destination.located(error)
    }
  }
}

extension ArchivePart {
  /// The names that an encrypted copy of it may have.
  fileprivate var names: [String] {
    ArchiveName.candidates(
      app: header.app, instance: header.instance, time: header.compactTime, id: header.archive,
      parent: header.parent, isEncrypted: true)
  }
}

private struct ReplacedArchive {
  let folder: Directory
  let name: ContainerPath
  let status: FileStatus
  /// The name with `.age`, for a plain archive's; nil for other names.
  private let encryptedName: ContainerPath?
  /// The file of that name: the same archive, encrypted.
  private var copy: FileStatus?

  init(_ path: String) throws {
    guard let real = realPath(path), let slash = real.lastIndex(of: "/") else {
      throw DrydockError(.notFound, "no such archive; check the path", path: path)
    }
    do {
      folder = try Directory(slash == real.startIndex ? "/" : String(real[..<slash]))
    } catch let error as DrydockError {
      throw DrydockError.unusable("the archive's directory", path: path, error)
    }
    name = try ContainerPath(String(real[real.index(after: slash)...]))
    guard let status = try folder.status(name), status.type == .file else {
      throw DrydockError(.notFound, "no archive is there; give its file", path: path)
    }
    self.status = status
    let isEncrypted = try ArchiveEncryption.of(ArchiveSource(path: path)) != nil
    // An encrypted one has a plain name after a replacement that was interrupted before the last step.
    encryptedName =
      !isEncrypted || real.hasSuffix(ArchiveName.suffix)
      ? ContainerPath(name: name.bytes + Array(ArchiveName.encryptedSuffix.utf8)) : nil
  }

  /// The names that the archive, or a copy of it, has now.
  private var names: [ContainerPath] { [name] + (copy == nil ? [] : encryptedName.map { [$0] } ?? []) }

  func isSigned() throws -> Bool {
    try ([name] + (encryptedName.map { [$0] } ?? [])).contains {
      try SignatureFiles.anyPresent(of: $0, at: LocalPlace(folder))
    }
  }

  func removeSignatures() throws {
    for name in names { try SignatureFiles.remove(of: name, at: LocalPlace(folder)) }
  }

  func open(
    _ path: String, _ keys: AgeKeys, _ limit: ExpansionLimit, _ trusted: TrustedKeys?
  ) throws -> ArchivePart {
    do {
      return try ArchivePart(path: path, keys: keys, limit: limit, trusted: trusted)
    } catch let error as DrydockError where error.code == .noIdentity && encryptedName != nil {
      throw DrydockError(
        error.code,
        "\(error.message). It is already encrypted, but its name lacks \(ArchiveName.encryptedSuffix), perhaps after an "
          + "interrupted rekey: rename it, or give its identity to encrypt it again",
        path: error.path, cause: error)
    }
  }

  func check() throws {
    guard let now = try folder.status(name), now.identity == status.identity, now.size == status.size,
      now.modified == status.modified
    else {
      throw DrydockError(
        .conflict,
        "changed or replaced by another program meanwhile; nothing was changed, check it and run it again",
        path: folder.full(name))
    }
    guard let encryptedName else { return }
    let beside = try folder.status(encryptedName)
    guard copy == nil || (beside?.identity == copy?.identity && beside?.modified == copy?.modified) else {
      throw DrydockError(
        .conflict, "changed or replaced by another program meanwhile; nothing was changed, run it again",
        path: folder.full(encryptedName))
    }
  }

  /// The name with `.age` must be free, or that of the same archive, byte for byte: a pair that an earlier rekey has left,
  /// or a person. Then one file will be there in place of both.
  mutating func requireFreeName(beside archive: ArchivePart, _ keys: AgeKeys, _ limit: ExpansionLimit) throws
  {
    guard let encryptedName, let status = try folder.status(encryptedName) else { return }
    let path = folder.full(encryptedName)
    func refusal(_ why: String, _ cause: (any Error)? = nil) -> DrydockError {
      DrydockError(
        .overlap, "already exists, and an archive never replaces another one: \(why)", path: path,
        cause: cause)
    }
    let other: ArchivePart
    do {
      other = try ArchivePart(path: path, keys: keys, limit: limit)
    } catch let error as DrydockError where error.code == .noIdentity {
      throw refusal("to have it compared, give the identity that opens it", error)
    } catch {
      throw refusal("it cannot be compared (\(error)); check it, and move it away", error)
    }
    guard
      try other.header.archive == archive.header.archive && SealedCopy.areSame(other.reader, archive.reader)
    else { throw refusal("it is a different archive; check it, and move it away") }
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

  /// Runs a step after the old file is gone, whose failure must say what has changed.
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
    // When the name was just taken, the archive keeps its own.
    return try folder.moveNew(name, in: folder, to: encryptedName) ? encryptedName : name
  }
}
