import AgeEncryption
import AppContainer
import ArchiveFile

/// What a verification looked at.
public struct VerificationReport: Sendable {
  /// The archive and what it is.
  public var path: String, header: ArchiveHeader
  /// Number of stored paths, and bytes of their content.
  public var entries: Int, contentBytes: UInt64
  /// Whether every byte was compared with its hash, or only the structure was checked.
  public var readData: Bool
}

/// Checks an archive.
public enum Verification {
  /// Checks the structure: the seek table, the manifest against its hash, its schema and its entries, the header,
  /// the snapshot id. With `data`, reads every byte: the tar and the manifest must name the same paths with the same
  /// types, sizes, places and hashes.
  ///
  /// - Parameter keys: what opens it when it is encrypted.
  /// - Throws: `ArchiveError`, or ``RepositoryError`` with code `damaged`: what is wrong, and where.
  public static func run(
    path: String, keys: AgeKeys = AgeKeys(), data: Bool, limit: ExpansionLimit = .standard
  ) throws -> VerificationReport {
    let archive = try Archive(path: path, keys: keys, limit: limit)
    if data { try archive.checkExpansion() }
    var entries: [ContainerPath: ManifestEntry] = [:]
    let id = try SnapshotID()
    try archive.manifest.entries { entry in
      try id.add(entry)
      if data { entries[entry.path] = entry }
    }
    guard try id.finish().hex == archive.snapshot else {
      throw RepositoryError(.damaged, "the manifest's entries do not give its snapshot id", path: path)
    }
    if data { try compare(archive, entries) }
    let totals = try archive.manifest.totals()
    return VerificationReport(
      path: path, header: archive.header, entries: totals.entries, contentBytes: totals.bytes, readData: data)
  }

  private static func compare(_ archive: Archive, _ entries: [ContainerPath: ManifestEntry]) throws {
    var missing = entries
    var superseded = try archive.manifest.superseded()
    let names = archive.header.memberNames
    let repeated = Set(superseded.values.map { names.name(of: $0.path) })
    let damaged = { (what: String) in RepositoryError(.damaged, what, path: archive.path) }
    var vault = archive.vault
    var number = 0
    try archive.reader.members(mayRepeat: { repeated.contains($0) }) { member, offset, content in
      number += 1
      if number == 1 || member.name == Array(MemberNames.manifest.utf8) { return }
      if vault?.agrees(with: member, at: offset) ?? false {
        vault = nil
        return
      }
      guard let path = names.path(of: member.name) else {
        throw damaged("it has a member that the format does not know: \(member.printableName)")
      }
      if superseded[offset] == SupersededMember(path: path, length: member.contentSize) {
        superseded[offset] = nil
        return
      }
      guard let entry = missing.removeValue(forKey: path) else {
        throw damaged("\(path) is in the tar and not in the manifest")
      }
      guard try matches(entry, member, offset, content, names) else {
        throw damaged("\(path) in the tar is not what the manifest says")
      }
    }
    if let member = superseded.values.first {
      throw damaged("\(member.path) is said to be stored twice, and is not")
    }
    guard vault == nil else { throw damaged("\(MemberNames.vault) is not where the manifest says") }
    _ = try archive.vaultExtract()
    if let path = missing.keys.min() { throw damaged("\(path) is in the manifest and not in the tar") }
  }

  private static func matches(
    _ entry: ManifestEntry, _ member: ArchiveMember, _ offset: UInt64, _ content: MemberContent,
    _ names: MemberNames
  ) throws -> Bool {
    guard entry.agrees(with: member, at: offset, names) else { return false }
    guard case .file = member.kind else { return true }
    var hash = try ContentHash(isDatabase: entry.kind == .database)
    try content.read { hash.update($0) }
    return try hash.finalize() == entry.digest
  }
}
