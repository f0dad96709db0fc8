import AgeEncryption
import AppStores
import ArchiveFile
import ArchiveSigning
import Cryptography
import DrydockErrors
import FileSystem
import Storage
import SystemPackage

extension Repository {
  /// In the private directory.
  private static let file: ContainerPath = "archive"

  /// Encrypts an archive to other recipients: the same archive, byte for byte, with a new file key (`EncryptedCopy`).
  /// Kept copies of the old file still open with the old keys.
  ///
  /// The copy is on disk and read back, and never replaces another archive. When it takes the place of the old one,
  /// one of the two is there at any moment, also after a kill, whole and with its signatures. It takes the old one's
  /// name in one step; one that was plain, that is signed or at a remote place gets another name, and then the old one
  /// is removed.
  ///
  /// - Parameters:
  ///   - path: the archive's file; of a link, the file behind it.
  ///   - keys: what opens it.
  ///   - target: where the copy goes; nil for the old one's place.
  ///   - encryption: to whom.
  ///   - signing: how the copy is signed; a signed archive is not replaced by one without signature.
  ///   - lockTimeout: seconds to wait for the repository's lock: to replace an archive, at the end.
  ///   - progress: counts what is copied.
  /// - Throws: `DrydockError`: `notFound`, `damaged`, `untrusted`, `locked`, `overlap` when other files have all new names,
  ///   `conflict` when the archive was replaced meanwhile. Nothing has changed then. `io` when the new one is in place, but could
  ///   not be synced.
  package static func rekey(
    _ path: String, keys: AgeKeys, limit: ExpansionLimit = .standard, to target: ArchiveTarget?,
    encryption: AgeTarget, signing: CopySigning = CopySigning(), lockTimeout: Double = 0,
    progress: WorkProgress? = nil
  ) throws -> CopyReport {
    let (folder, old) = try Places.ofFile(path)
    guard let before = try folder.file(old), before.isFile else {
      throw DrydockError(.notFound, "no such archive; check the path", path: path)
    }
    let isSigned = try SignaturePayload.hasFiles(of: old, at: folder)
    guard target != nil || !isSigned || !signing.keys.isEmpty else {
      throw DrydockError(
        .untrusted,
        "it is signed, and its replacement would not be, so nothing was changed; give the signing key, or remove the "
          + "files of its signature", path: path)
    }
    let archive = try ArchivePart(path: path, keys: keys, limit: limit, trusted: signing.sources)
    let destination =
      try target.map { try ArchiveDestination($0, signing: signing.keys, lockTimeout: lockTimeout) }
      ?? ArchiveDestination(locked: folder, signing: signing.keys)
    let scratch = try destination.makeScratch()
    do {
      let output = try scratch.directory.createFile(file, mode: 0o644)
      defer { try? output.close() }
      progress?.begin(.rekey, totalBytes: archive.reader.contentSize)
      let copy = try EncryptedCopy(
        of: archive.reader, into: output, encryption: encryption, isSigned: !signing.keys.isEmpty
      ) { progress?.set(bytes: $0) }
      if target == nil, let status = before.status { try scratch.directory.makeLike(status, file) }
      progress?.begin(.check)
      try scratch.directory.syncFile(output, file)
      try copy.verify()
      let signed = try copy.signed(header: archive.json).map { try SignaturePayload(archive.header, $0) }
      var report = CopyReport(path: "", header: archive.header, archiveBytes: copy.fileSize)
      report.losesSignature = isSigned && signed == nil
      guard target == nil else {
        report.path = try destination.publish(
          destination.upload(file, in: scratch.directory, as: archive.names), size: copy.fileSize, signed)
        return report
      }
      // Exclusive, as for a removal.
      let place = try Repository(folder.path).locked(exclusive: true, timeout: lockTimeout)
      guard let now = try place.file(old), now.isSame(as: before) else {
        throw DrydockError(
          .conflict,
          "changed or replaced by another program meanwhile; nothing was changed, check it and run it again",
          path: path)
      }
      report.path = try replace(
        old, of: archive, in: ArchiveDestination(locked: place, signing: signing.keys), place,
        scratch.directory,
        copy.fileSize, signed)
      return report
    } catch let error as DrydockError {
      throw destination.located(error)
    }
  }

  /// Gives the new archive its name, and removes the old one. Gives the new path.
  private static func replace(
    _ old: ContainerPath, of archive: ArchivePart, in destination: ArchiveDestination, _ place: any Place,
    _ scratch: Directory, _ size: UInt64, _ signed: SignaturePayload?
  ) throws -> String {
    func afterwards(_ path: String, _ body: () throws -> Void) throws -> String {
      do { try body() } catch let error as DrydockError {
        throw DrydockError(
          .io,
          "it is encrypted to the new keys, but \(error.reason); check the disk, then verify it",
          path: path, cause: error)
      }
      return path
    }
    // A signature and its archive cannot be replaced in one step.
    if archive.reader.encryption != nil, signed == nil, try place.replace(old, with: file, in: scratch) {
      return try afterwards(place.full(old), place.sync)
    }
    let present = Set(try place.list().names.map { String(decoding: $0, as: UTF8.self) })
    let appended = archive.reader.encryption == nil ? ["\(old)" + ArchiveLabel.encryptedSuffix] : []
    let names = (appended + archive.names).filter { !present.contains($0) }
    guard !names.isEmpty else {
      throw DrydockError(
        .overlap, "the repository has copies of it under all names that the new one could have; remove them",
        path: place.full(old))
    }
    let path = try destination.publish(
      destination.upload(file, in: scratch, as: names), size: size, signed, isAlone: true)
    return try afterwards(path) {
      try place.remove(old)
      try SignaturePayload.removeFiles(of: old, at: place)
      try place.sync()
    }
  }

  /// Warnings about incremental archives in the directories of re-encrypted ones that now need other keys than their
  /// parents, or have no parent there. An archive that can be read needs all archives of its chain, with their keys.
  package static func rekeyWarnings(about reports: [CopyReport], keys: AgeKeys) throws -> [String] {
    let rekeyed = Set(reports.map { realPath($0.path) ?? $0.path })
    let folders = Dictionary(grouping: reports) { report in
      let path = realPath(report.path) ?? report.path
      return String(path.dropLast(lastName(path).count))
    }
    return try folders.sorted { $0.key < $1.key }.flatMap { folder, reports in
      let archives = try Repository(folder).list(keys: keys).withCopies
      let alone = reports.filter { report in
        guard let parent = report.header.parent?.description else { return false }
        return !archives.contains { parent.hasPrefix($0.id) }
      }
      let isNew = archives.map { archive in archive.paths.contains { rekeyed.contains(realPath($0) ?? $0) } }
      let divided = zip(archives.indices, archives.parents).compactMap { child, parents in
        parents.first.flatMap { isNew[child] == isNew[$0] ? nil : (archives[child], parent: archives[$0]) }
      }
      return alone.map {
        "\(lastName($0.path)) is incremental, and its parent is not beside it: copy the whole chain, or write a full copy"
      }
        + divided.map {
          "\($0.fileName) needs \($1.fileName), and only one of them was encrypted to the new keys: reading it takes the "
            + "keys of both; rekey the other one, too"
        }
    }
  }
}

extension ArchivePart {
  /// The names that an encrypted copy of it may have.
  fileprivate var names: [String] { ArchiveLabel(header).fileNames(isEncrypted: true) }
}

extension Directory {
  /// Gives a new archive the owner, mode and time of the one in whose place it is: it is readable to the same users,
  /// and the order of archives takes times into account.
  func makeLike(_ status: FileStatus, _ file: ContainerPath) throws {
    // Only the owner or root can change the owner.
    do { try setOwner(user: status.user, group: status.group, of: file) } catch let error as DrydockError
      where error.code == .permission
    {}
    try setMode(status.mode, of: file)
    try setModified(status.modified, of: file)
  }
}
