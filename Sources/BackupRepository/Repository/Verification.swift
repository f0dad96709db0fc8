import ArchiveManifest
import ArchiveFile
import ArchiveSigning
import Cryptography
import DrydockErrors
import FileSystem

/// What a verification examined.
public struct VerificationReport: Sendable {
  /// The archive, and what it says of itself.
  public var path: String, header: Archive.Header
  /// Number of stored paths, and bytes of their content.
  public var entries: Int, contentBytes: UInt64
  /// Who signed it; nil unless it was opened with trusted keys.
  public var signer: Signer?
}

/// Verifies archives one after the other: a content that several snapshots share is read once.
package struct Verification {
  /// The archives, and the states of their files, that were verified with their data: all own entries of their
  /// manifests have the contents that they name, wherever these are stored.
  private var read: Set<String> = []

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
  /// every content that it needs of others, with the headers that a restore compares: tar and manifest must name the
  /// same paths with the same types, sizes, places and hashes. What other archives hold for it was read already if they
  /// were verified before.
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
      part.version.map { "\(part.header.archive) \($0)" }
    }
    let isRead = files.map { $0.map(read.contains) ?? false }
    let (own, parts) = (archive.parts[0], archive.parts)
    // A restore of this archive alone compares the headers in front of what it needs of the others.
    let isCompared = parts.indices.map { data && $0 > 0 && !isRead[$0] }
    let members = try zip(parts, isCompared).map { $1 ? try $0.allExpectedMembers() : nil }
    let checks = zip(parts, members).map { part, members in
      members.map { MemberCheck(part.reader.ranges, $0) }
    }
    var needed = members.map { $0.map(ReadContents.init) }
    let tar = data ? try MemberCheck(own.reader.ranges, own.expectedMembers()) : nil
    if let tar {
      own.reader.ranges.readsEverything = true
      try tar.start()
    }
    var (entries, bytes) = (0, UInt64(0))
    try archive.entries { entry, place in
      entries += 1
      progress?.add(files: 1)
      if entry.hardLink == nil { bytes &+= entry.size }
      guard data, !entry.extents.isEmpty, !entry.isWhole(in: archive.header.archive) else { return }
      for extent in entry.extents {
        if let part = parts.firstIndex(where: { $0.header.archive == extent.archive }) {
          needed[part]?.add(at: extent.offset)
        }
      }
      if !isRead[place.part] { try archive.content(of: entry, checking: checks) { _ in } }
    } own: { part, entry in
      guard part == 0, let tar else { return }
      try own.compare(tar) { try $0.expect(entry) }
      // Some blocks are checked with the whole content.
      if entry.isFile, entry.hardLink == nil, entry.isWhole(in: own.header.archive) {
        try archive.content(of: entry) { _ in }
      }
    }
    // A restore reads them too.
    _ = try archive.manifest.skipped()
    if let tar {
      try own.compare(tar) { try $0.expectEnd(own.reader.manifest) }
      try tar.requireReplacedMembers()
      for (part, check) in zip(parts.indices, checks) where needed[part]?.isComplete ?? false {
        try check?.checkRest(parts[part].reader.manifest)
      }
      _ = try archive.vaultExtract()
      try own.signature?.payload.requireAllBytes(own.reader)
    }
    if data, let file = files[0] { read.insert(file) }
    return VerificationReport(
      path: archive.path, header: archive.header, entries: entries, contentBytes: bytes,
      signer: archive.signer)
  }
}

extension ArchivePart {
  /// What its manifest says must be in its tar, with its entries: where they are needed before those of the chain are visited.
  func allExpectedMembers() throws -> ExpectedMembers {
    var members = try expectedMembers()
    try members.addAll()
    return members
  }

  /// Compares members. Where they disagree, and a name is unsafe beside those before it, the error is about that name.
  fileprivate func compare(_ tar: MemberCheck, _ body: (MemberCheck) throws -> Void) throws {
    do { try body(tar) } catch let error as DrydockError where error.code == .damaged {
      let names = header.memberNames
      let repeated = Set(
        try manifest.replacedMembers().values.flatMap {
          [names.name(of: $0.path), names.pagesName(of: $0.path) ?? []]
        })
      let walk = try reader.walk { repeated.contains($0) }
      while let (_, place) = try walk.next(), place < tar.offset {}
      throw error
    }
  }
}
