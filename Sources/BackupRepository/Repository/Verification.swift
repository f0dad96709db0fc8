import AgeEncryption
import AppContainer
import ArchiveFile
import ArchiveSigning
import DrydockErrors
import FileSystem

public struct VerificationReport: Sendable {
  public var path: String, header: Archive.Header
  /// Number of stored paths, and bytes of their content.
  public var entries: Int, contentBytes: UInt64
  /// Whether every byte was compared with its hash, or only the structure was checked.
  public var readData: Bool
  /// Who signed it; nil unless it was opened with trusted keys.
  public var signer: Signer?
}

/// Verifies archives one after the other: a content that several snapshots share is read once.
package struct Verification {
  /// The archives that were verified with their data: all own entries of their manifests have the contents that they name,
  /// wherever these are stored.
  private var read: Set<VerifiedFile> = []

  private struct VerifiedFile: Hashable {
    var archive: Archive.ID, file: String
  }

  package init() {}

  /// Verifies one archive; see ``verify(_:data:)``.
  package static func run(
    _ archive: Archive, data: Bool, progress: WorkProgress? = nil
  ) throws -> VerificationReport {
    var verification = Verification()
    return try verification.verify(archive, data: data, progress: progress)
  }

  /// Checks the structure: the seek table, the manifest against its hash, its schema and its entries, the header,
  /// the snapshot id; of an incremental archive also of those that it needs. With `data`, reads every byte of the archive, and
  /// every content that it needs of others: tar and manifest must name the same paths with the same types, sizes, places and
  /// hashes. What other archives hold for it was read already if they were verified before.
  ///
  /// - Throws: `DrydockError` with code `damaged`, and what reading the archive throws; with the archives that cannot be read
  ///   and the paths that need them.
  package mutating func verify(
    _ archive: Archive, data: Bool, progress: WorkProgress? = nil
  ) throws -> VerificationReport {
    // Before anything is read, also to find what is damaged.
    if data { try archive.checkExpansion() }
    try archive.requireComplete(readingData: data)
    do {
      return try check(archive, data: data, progress)
    } catch let error as DrydockError where data && error.meansDamage {
      throw error.naming((try? archive.unreadable(readingData: true)) ?? [])
    }
  }

  private mutating func check(
    _ archive: Archive, data: Bool, _ progress: WorkProgress?
  ) throws -> VerificationReport {
    if data { progress?.begin(.verify, reading: archive) } else { progress?.begin(.verify) }
    let files = archive.parts.map { part in
      part.version.map { VerifiedFile(archive: part.header.archive, file: $0) }
    }
    let isRead = files.map { $0.map(read.contains) ?? false }
    let id = try SnapshotID()
    let tar = data ? try TarVerification(archive.parts[0]) : nil
    var (entries, bytes) = (0, UInt64(0))
    // The path of the last entry of any manifest, and the first manifest that has it: that one counts.
    var newest: (path: ContainerPath, part: Int)?
    try archive.manifest.entries {
      try id.add($0)
      entries += 1
      progress?.add(files: 1)
      if $0.hardLink == nil { bytes &+= $0.size }
      if data, !$0.extents.isEmpty, !$0.isWhole(in: archive.header.archive), !isRead[newest?.part ?? 0] {
        try archive.content(of: $0) { _ in }
      }
    } own: {
      if newest?.path != $1.path { newest = ($1.path, $0) }
      if $0 == 0 { try tar?.expect($1) }
    }
    try archive.expectSnapshot(id.finish().hex)
    // A restore reads them too.
    _ = try archive.manifest.skipped()
    try tar?.expectEnd()
    if data { _ = try archive.vaultExtract() }
    if data, let signature = archive.parts[0].signature {
      try signature.signed.requireAllBytes(archive.parts[0].reader)
    }
    if data, let file = files[0] { read.insert(file) }
    return VerificationReport(
      path: archive.path, header: archive.header, entries: entries, contentBytes: bytes, readData: data,
      signer: archive.signer)
  }
}

/// Compares all members of the tar, with their content, with the manifest's entries: the same ones in the same order.
private final class TarVerification {
  private let archive: ArchivePart
  private let names: MemberNames
  private let walk: MemberWalk
  private var superseded: [UInt64: SupersededMember]
  /// The last member of an entry, or of an earlier version of one.
  private var last: (path: ContainerPath, isDirectory: Bool, isSuperseded: Bool)?

  init(_ archive: ArchivePart) throws {
    self.archive = archive
    names = archive.header.memberNames
    superseded = try archive.manifest.superseded()
    walk = try archive.reader.walkComparingNames()
    // The header, which was read when the archive was opened.
    _ = try walk.next()
  }

  /// Compares the next member. The manifest's entries are in order, so that no name can occur twice.
  func expect(_ entry: ManifestEntry) throws {
    guard entry.hasMember(in: archive.header.archive) else { return }
    while let (member, offset) = try walk.next() {
      if try isSuperseded(member, offset) { continue }
      guard let path = names.path(ofContent: member.name), path == entry.path else {
        throw try wrong("\(member.printableName) is in the tar where the manifest has \(entry.path)", offset)
      }
      guard entry.agrees(with: member, at: offset, in: archive.header.archive, names),
        try hasDigest(of: entry, member, offset),
        follows(path) || (last?.path == path && entry.isFile)
      else { throw try wrong("\(path) in the tar is not what the manifest says", offset) }
      last = (path, entry.kind == .directory, false)
      return
    }
    throw damaged("\(entry.path) is in the manifest and not in the tar")
  }

  private func hasDigest(
    of entry: ManifestEntry, _ member: ArchiveMember, _ offset: UInt64
  ) throws -> Bool {
    // Some blocks are checked with the whole content.
    guard case .file = member.kind, entry.isWhole(in: archive.header.archive) else { return true }
    var hash = try ContentHash(isDatabase: entry.kind == .database, size: entry.size)
    try archive.reader.read(offset: offset, length: member.contentSize) { try hash.update($0) }
    return try hash.finish().digest == entry.digest
  }

  /// After the last entry: the vault's items where there are any, the manifest, and nothing else.
  func expectEnd() throws {
    var vault = archive.vault
    var hasManifest = false
    while let (member, offset) = try walk.next() {
      if !hasManifest, try isSuperseded(member, offset) { continue }
      if !hasManifest, vault?.agrees(with: member, at: offset) ?? false {
        vault = nil
      } else if !hasManifest, member.name == Array(MemberNames.manifest.utf8),
        offset == archive.reader.manifest.offset
      {
        hasManifest = true
      } else {
        throw try wrong("\(member.printableName) is in the tar and not in the manifest", offset)
      }
    }
    guard hasManifest else { throw damaged("its manifest is not the last member") }
    if let member = superseded.values.first {
      throw damaged("\(member.path) is listed as stored twice, and is not")
    }
    guard vault == nil else { throw damaged("\(MemberNames.vault) is not where the manifest says") }
  }

  /// Whether a member is an earlier version of a file, whose last version, if there is one, follows.
  private func isSuperseded(_ member: ArchiveMember, _ offset: UInt64) throws -> Bool {
    guard let path = names.path(ofContent: member.name),
      superseded[offset] == SupersededMember(path: path, length: member.contentSize)
    else { return false }
    guard case .file = member.kind, follows(path) || (last?.path == path && last?.isSuperseded == true) else {
      throw try wrong("\(path) in the tar is not what the manifest says", offset)
    }
    superseded[offset] = nil
    last = (path, false, true)
    return true
  }

  /// Whether a path comes after the last one, and is not below a file or link.
  private func follows(_ path: ContainerPath) -> Bool {
    last.map { $0.path < path && ($0.isDirectory || !path.isInside($0.path)) } ?? true
  }

  /// The error about a member that the manifest does not have; when its name is unsafe beside those before it, that one.
  private func wrong(_ what: String, _ offset: UInt64) throws -> DrydockError {
    let repeated = Set(
      try archive.manifest.superseded().values.flatMap {
        [names.name(of: $0.path), names.pagesName(of: $0.path) ?? []]
      })
    let walk = try archive.reader.walk { repeated.contains($0) }
    while let (_, place) = try walk.next(), place < offset {}
    return damaged(what)
  }

  private func damaged(_ what: String) -> DrydockError {
    DrydockError(.damaged, what, path: archive.path)
  }
}
