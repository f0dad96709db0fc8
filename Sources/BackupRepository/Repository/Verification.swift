import AgeEncryption
import AppContainer
import ArchiveFile
import DrydockErrors
import FileSystem

public struct VerificationReport: Sendable {
  public var path: String, header: Archive.Header
  /// Number of stored paths, and bytes of their content.
  public var entries: Int, contentBytes: UInt64
  /// Whether every byte was compared with its hash, or only the structure was checked.
  public var readData: Bool
}

package enum Verification {
  /// Checks the structure: the seek table, the manifest against its hash, its schema and its entries, the header,
  /// the snapshot id; of an incremental archive also of those that it needs. With `data`, reads every byte of the archive, and
  /// every content that it needs of others: tar and manifest must name the same paths with the same types, sizes, places and
  /// hashes.
  ///
  /// - Throws: `DrydockError` with code `damaged`, and what reading the archive throws.
  package static func run(
    _ archive: Archive, data: Bool, progress: WorkProgress? = nil
  ) throws -> VerificationReport {
    if data { progress?.begin(.verify, reading: archive) } else { progress?.begin(.verify) }
    if data { try archive.checkExpansion() }
    let id = try SnapshotID()
    let tar = data ? try TarVerification(archive.parts[0]) : nil
    var (entries, bytes) = (0, UInt64(0))
    try archive.manifest.entries {
      try id.add($0)
      entries += 1
      progress?.add(files: 1)
      if $0.hardLink == nil { bytes &+= $0.size }
      if data, !$0.extents.isEmpty, !$0.isWhole(in: archive.header.archive) {
        try archive.content(of: $0) { _ in }
      }
    } own: {
      if $0 == 0 { try tar?.expect($1) }
    }
    try archive.expectSnapshot(id.finish().hex)
    // A restore reads them too.
    _ = try archive.manifest.skipped()
    try tar?.expectEnd()
    if data { _ = try archive.vaultExtract() }
    return VerificationReport(
      path: archive.path, header: archive.header, entries: entries, contentBytes: bytes, readData: data)
  }
}

/// Compares all members of the tar, with their content, with the manifest's entries: the same ones in the same order.
private final class TarVerification {
  private let archive: ArchivePart
  private let names: MemberNames
  private let walk: MemberWalk
  private var superseded: [UInt64: SupersededMember]

  init(_ archive: ArchivePart) throws {
    self.archive = archive
    names = archive.header.memberNames
    superseded = try archive.manifest.superseded()
    let repeated = Set(
      superseded.values.flatMap { [names] in [names.name(of: $0.path), names.pagesName(of: $0.path) ?? []] })
    walk = try archive.reader.walk { repeated.contains($0) }
    // The header, which was read when the archive was opened.
    _ = try walk.next()
  }

  func expect(_ entry: ManifestEntry) throws {
    guard entry.hasMember(in: archive.header.archive) else { return }
    while let (member, offset) = try walk.next() {
      if isSuperseded(member, offset) { continue }
      guard let path = names.path(ofContent: member.name), path == entry.path else {
        throw damaged("\(member.printableName) is in the tar where the manifest has \(entry.path)")
      }
      guard entry.agrees(with: member, at: offset, in: archive.header.archive, names),
        try hasDigest(of: entry, member, offset)
      else {
        throw damaged("\(path) in the tar is not what the manifest says")
      }
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
      if !hasManifest, isSuperseded(member, offset) { continue }
      if !hasManifest, vault?.agrees(with: member, at: offset) ?? false {
        vault = nil
      } else if !hasManifest, member.name == Array(MemberNames.manifest.utf8),
        offset == archive.reader.manifest.offset
      {
        hasManifest = true
      } else {
        throw damaged("\(member.printableName) is in the tar and not in the manifest")
      }
    }
    guard hasManifest else { throw damaged("its manifest is not the last member") }
    if let member = superseded.values.first {
      throw damaged("\(member.path) is listed as stored twice, and is not")
    }
    guard vault == nil else { throw damaged("\(MemberNames.vault) is not where the manifest says") }
  }

  private func isSuperseded(_ member: ArchiveMember, _ offset: UInt64) -> Bool {
    guard let path = names.path(ofContent: member.name),
      superseded[offset] == SupersededMember(path: path, length: member.contentSize)
    else { return false }
    superseded[offset] = nil
    return true
  }

  private func damaged(_ what: String) -> DrydockError {
    DrydockError(.damaged, what, path: archive.path)
  }
}
