import ArchiveManifest
import AgeEncryption
import ArchiveFile
import Cryptography
import DrydockErrors
import FileSystem
import Storage

/// When and how ``Repository/forget(keeping:app:instance:keys:compacting:dryRun:lockTimeout:progress:)`` writes chains again.
public struct CompactionOptions: Sendable {
  /// A chain is written again if that frees more than this share of its bytes.
  public var share = 0.25
  /// The recipients of encrypted archives: the new ones are encrypted to the same keys, which an archive does not name.
  /// The identities that open them need not be given here.
  public var recipients: [AgeRecipient] = []
  /// How large the content of an archive may be.
  public var limit = ExpansionLimit.standard
  /// The keys that sign the new archives of signed chains.
  package var signing = CopySigning()

  /// From a quarter of a chain on.
  public init() {}
}

/// A chain that was written again, or would be: archives that need each other, oldest first.
package struct CompactedChain: Sendable {
  /// Those that a rule keeps, and those that only need them.
  package var kept: [StoredArchive] = [], needed: [StoredArchive] = []
  /// Bytes of the chain afterwards; in a dry run an estimate.
  package var bytesAfter: UInt64 = 0

  var all: [StoredArchive] { kept + needed }
  package var bytesBefore: UInt64 { all.reduce(0) { $0 + $1.size } }
  package var bytesFreed: UInt64 { bytesBefore - min(bytesBefore, bytesAfter) }
}

/// Writes chains of archives again, without the archives that are kept only because others need them.
///
/// All new archives of a chain are published, on disk and verified before the first old one is removed. Killed at any moment,
/// it leaves each snapshot in one of the two chains, or in both; the next ``Repository/forget(keeping:app:instance:keys:compacting:dryRun:lockTimeout:progress:)``
/// removes the one that is not complete, or the old one.
struct Compaction {
  let repository: Repository
  /// Locked; nil for a dry run.
  let place: (any Place)?
  let keys: AgeKeys
  let options: CompactionOptions
  var progress: WorkProgress?

  /// The chains with an archive that is kept only because others need it.
  static func chains(_ archives: [StoredArchive]) -> [CompactedChain] {
    let parents = archives.parents
    let present = archives.indices.filter { !archives[$0].reasons.isEmpty }
    let isNeeded = { (archive: StoredArchive) in
      archive.reasons.allSatisfy { $0.hasPrefix(RetentionPolicy.needed) }
    }
    return Dictionary(grouping: present) { archives.root(of: $0, parents) }.sorted { $0.key < $1.key }
      .map { _, chain in
        let chain = chain.map { archives[$0] }
        return CompactedChain(kept: chain.filter { !isNeeded($0) }, needed: chain.filter(isNeeded))
      }.filter { !$0.needed.isEmpty && !$0.kept.isEmpty }
  }

  /// Writes a chain again if that frees enough. What prevents it is in the report, and leaves the chain as it is.
  ///
  /// - Parameter isComplete: whether all archives of the instance, and those that they need, are there.
  func compact(
    _ chain: CompactedChain, _ listing: Repository.Listing, isComplete: Bool,
    _ report: inout Repository.ForgetReport
  ) {
    do {
      guard isComplete else {
        throw DrydockError(
          .missingArchive,
          "an archive of this instance cannot be read, or needs one that is missing, so its chains are not compacted; put "
            + "the missing file back, or remove what cannot be read", path: chain.kept[0].path)
      }
      try check(chain, listing)
      let parts = try parts(of: chain)
      var compacted = chain
      compacted.bytesAfter = parts.reduce(0) { $0 + $1.neededBytes }
      guard Double(compacted.bytesFreed) > options.share * Double(compacted.bytesBefore) else { return }
      let encryption = try encryption(of: parts)
      if let place {
        let written = try rewrite(chain, encryption, in: place)
        compacted.bytesAfter = written.reduce(0) { $0 + $1.size }
        try repository.remove(chain.all, in: place)
        let needed = Set(chain.needed.map(\.id))
        let new = Dictionary(zip(chain.kept.map(\.id), written)) { first, _ in first }
        report.kept = report.kept.filter { !needed.contains($0.id) }.map { new[$0.id] ?? $0 }
      }
      report.compacted.append(compacted)
    } catch {
      let path = (error as? DrydockError)?.path ?? chain.kept[0].path
      report.notCompacted.append(.init(path: path, error))
    }
  }

  /// Throws for what cannot be written again exactly.
  private func check(_ chain: CompactedChain, _ listing: Repository.Listing) throws {
    for archive in chain.all {
      let path = archive.path
      guard !archive.isLocked else {
        throw DrydockError(
          .noIdentity, "no key opens it, so its chain is not compacted; give its identity", path: path)
      }
      guard !archive.isUnreadable, !archive.hasUnknownTags else {
        throw DrydockError(
          .damaged, "it or its tags cannot be read, so its chain is not compacted", path: path)
      }
      guard archive.paths.count == 1 else {
        throw DrydockError(
          .overlap, "the repository has copies of it, so its chain is not compacted; remove all but one",
          path: path)
      }
    }
    let ids = Set(chain.all.map(\.id))
    if options.signing.keys.isEmpty,
      let item = listing.items.first(where: {
        $0.isSigned && ids.contains($0.id)
      })
    {
      throw DrydockError(
        .unsupported,
        "it is signed, and new archives would not be, so its chain is not compacted; give the signing key",
        path: item.path)
    }
    for item in listing.items where !ids.contains(item.id) {
      // What a compaction that was killed has made of an archive has its place.
      if let source = item.header?.compactedFrom, ids.contains(source.description) { continue }
      let isAfter = item.follows.contains { older in ids.contains { $0.hasPrefix(older) } }
      guard isAfter else { continue }
      throw DrydockError(
        .unsupported,
        "it says that it is newer than an archive of a chain, which is therefore not compacted: a clock was wrong, or "
          + "both were taken in the same second", path: item.path)
    }
  }

  /// Writes the kept archives of a chain again, each as the difference to the one before.
  private func rewrite(
    _ chain: CompactedChain, _ encryption: AgeTarget?, in place: any Place
  ) throws -> [StoredArchive] {
    let destination = ArchiveDestination(locked: place, signing: options.signing.keys)
    var written: [StoredArchive] = []
    // Of those that were written, by their old ones.
    var newIDs: [Archive.ID: Archive.ID] = [:]
    do {
      for old in chain.kept {
        let source = try Archive(
          path: old.path, keys: keys, limit: options.limit, trusted: options.signing.sources)
        let former = try written.last.map { try Archive(path: $0.path, keys: keys, limit: options.limit) }
        var header = former == nil ? source.fullHeader() : source.header
        header.compactedFrom = source.header.archive
        (header.kind, header.parent) = (former == nil ? .full : .incremental, former?.header.archive)
        let renewed = { [newIDs] (id: String) in
          newIDs.first { $0.key.description.hasPrefix(id) }?.value.short ?? id
        }
        header.follows = header.follows?.map(renewed)
        header.followsOfSecond = header.followsOfSecond?.map(renewed)
        let new = try SnapshotCopy.write(
          source, as: header, since: former, tags: old.tags,
          like: place.file(ContainerPath(old.fileName))?.status, encryption: encryption, to: destination,
          progress)
        newIDs[source.header.archive] = new.header.archive
        var archive = StoredArchive(path: new.path, access: .open(new.header))
        (archive.size, archive.tags, archive.reasons) = (new.archiveBytes, old.tags, old.reasons)
        written.append(archive)
      }
      let size = written.reduce(0) { $0 + $1.size }
      guard size < chain.bytesBefore else {
        throw DrydockError(
          .unsupported, "its chain was not compacted, because that would not make it smaller",
          path: chain.kept[0].path)
      }
      // The oldest first: what the later ones need of it is not read again.
      var verification = Verification()
      for archive in written {
        _ = try verification.verify(
          Archive(path: archive.path, keys: keys, limit: options.limit), data: true, progress: progress)
      }
      try place.sync()
      return written
    } catch {
      // The old chain is complete.
      try? repository.remove(written, in: place)
      throw error
    }
  }
}

/// What kept snapshots need of an archive of their chain.
private struct NeededPart {
  var path: String
  var fileSize: UInt64, contentSize: UInt64
  var encryption: ArchiveEncryption?
  var recipients: SHA256.Digest?
  /// Ranges of the tar stream.
  var needed: Set<Range<UInt64>> = []

  /// The size of an archive that has only what is needed, estimated by its share of this one.
  var neededBytes: UInt64 {
    var (end, bytes) = (UInt64(0), UInt64(0))
    for range in needed.sorted(by: { $0.lowerBound < $1.lowerBound }) where range.upperBound > end {
      bytes += range.upperBound - max(range.lowerBound, end)
      end = range.upperBound
    }
    return UInt64(Double(fileSize) * min(1, Double(bytes) / Double(max(contentSize, 1))))
  }
}

extension Compaction {
  private func parts(of chain: CompactedChain) throws -> [NeededPart] {
    var parts: [Archive.ID: NeededPart] = [:]
    for archive in chain.kept {
      let archive = try Archive(path: archive.path, keys: keys, limit: options.limit)
      for part in archive.parts where parts[part.header.archive] == nil {
        parts[part.header.archive] = NeededPart(
          path: part.path, fileSize: part.reader.fileSize, contentSize: part.reader.manifest.offset,
          encryption: part.reader.encryption, recipients: try part.manifest.recipients())
      }
      try archive.manifest.entries { entry in
        for extent in entry.extents {
          if let id = extent.archive {
            parts[id]?.needed.insert(extent.offset..<extent.offset + extent.length)
          }
        }
      }
    }
    return parts.values.sorted { $0.path < $1.path }
  }

  /// To whom the new archives are encrypted: to those who can read all old ones.
  private func encryption(of parts: [NeededPart]) throws -> AgeTarget? {
    func refusal(_ why: String) -> DrydockError {
      DrydockError(.noIdentity, "its chain is not compacted, because \(why)", path: parts.first?.path)
    }
    let kinds = Set(parts.map { part in part.encryption.map(\.needsPassphrase) })
    guard kinds.count == 1, let kind = kinds.first else {
      throw refusal("its archives are not encrypted in the same way")
    }
    guard let needsPassphrase = kind else { return nil }
    if needsPassphrase {
      guard keys.passphrases.count == 1 else { throw refusal("not one passphrase opens all of it") }
      return .passphrase(keys.passphrases[0])
    }
    let digests = Set(parts.map(\.recipients))
    let identities = keys.identities.map(\.recipient)
    let found = try ([options.recipients, identities] + identities.map { [$0] }).first { recipients in
      try !recipients.isEmpty && digests == [AgeTarget.recipients(recipients).recipientsDigest()]
    }
    guard let found else {
      throw refusal(
        "the recipients that it was encrypted to are not the given ones, and the new archives must have the same"
      )
    }
    // An archive may have been encrypted to others since.
    let names = Set(found.map(\.description))
    let own = AgeKeys(identities: keys.identities.filter { names.contains($0.recipient.description) })
    for part in parts {
      do { _ = try ArchiveReader(Places.source(part.path), path: part.path, keys: own) } catch let error
        as DrydockError
        where error.code == .noIdentity
      {
        throw refusal("\(lastName(part.path)) was encrypted to other keys since it was written")
      }
    }
    return .recipients(found)
  }
}
