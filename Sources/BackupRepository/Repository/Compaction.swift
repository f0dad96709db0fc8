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
  /// Who can read encrypted archives: the new ones are encrypted to the same keys, which an archive does not name. The
  /// identities that open them need not be given here.
  public var recipients: [AgeRecipient] = []
  /// How large the content of an archive may be.
  public var limit = ExpansionLimit.standard
  /// The keys that sign the new archives of signed chains.
  package var signing = CopySigning()

  /// From a quarter of a chain on.
  public init() {}
}

/// A chain that was written again, or would be.
package struct CompactedChain: Sendable {
  package var app: String, instance: String
  /// The numbers of its archives that are kept, and of those that were only needed by them.
  package var kept: Int, removed: Int
  /// Bytes of the chain before and after; in a dry run an estimate.
  package var bytesBefore: UInt64, bytesAfter: UInt64

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

  /// Archives that need each other, oldest first.
  struct Chain {
    var kept: [StoredArchive] = []
    /// Those that no rule keeps.
    var needed: [StoredArchive] = []

    var all: [StoredArchive] { kept + needed }
    var bytes: UInt64 { all.reduce(0) { $0 + $1.size } }
  }

  /// The chains with an archive that is kept only because others need it.
  static func chains(_ archives: [StoredArchive], _ reasons: [[String]]) -> [Chain] {
    let parents = archives.parents
    var chains: [Int: Chain] = [:]
    for (index, archive) in archives.enumerated() where !reasons[index].isEmpty {
      let isNeeded = reasons[index].allSatisfy { $0.hasPrefix(Retention.needed) }
      let root = archives.root(of: index, parents)
      if isNeeded {
        chains[root, default: Chain()].needed.append(archive)
      } else {
        chains[root, default: Chain()].kept.append(archive)
      }
    }
    return chains.sorted { $0.key < $1.key }.map(\.value).filter { !$0.needed.isEmpty && !$0.kept.isEmpty }
  }

  /// Writes a chain again if that frees enough. What prevents it is in the report, and leaves the chain as it is.
  ///
  /// - Parameter isComplete: whether all archives of the instance, and those that they need, are there.
  func compact(
    _ chain: Chain, _ listing: Repository.Listing, isComplete: Bool, _ report: inout Repository.ForgetReport
  ) {
    do {
      guard isComplete else {
        throw DrydockError(
          .missingArchive,
          "an archive of this instance cannot be read, or needs one that is missing, so its chains are not compacted; put "
            + "the missing file back, or remove what cannot be read", path: chain.kept[0].path)
      }
      try check(chain, listing)
      let survey = try Survey(chain.kept, keys, options)
      var compacted = CompactedChain(
        app: chain.kept[0].app, instance: chain.kept[0].instance, kept: chain.kept.count,
        removed: chain.needed.count, bytesBefore: chain.bytes, bytesAfter: survey.neededBytes)
      guard Double(compacted.bytesFreed) > options.share * Double(compacted.bytesBefore) else { return }
      let encryption = try survey.encryption(keys, options.recipients)
      if let place {
        let written = try rewrite(chain, encryption, in: place)
        compacted.bytesAfter = written.reduce(0) { $0 + $1.size }
        try repository.remove(chain.all, in: place)
        report.replace(chain, by: written)
      }
      report.compacted.append(compacted)
    } catch {
      let path = (error as? DrydockError)?.path ?? chain.kept[0].path
      report.notCompacted.append(.init(path: path, error))
    }
  }

  /// Throws for what cannot be written again exactly.
  private func check(_ chain: Chain, _ listing: Repository.Listing) throws {
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
    _ chain: Chain, _ encryption: AgeTarget?, in place: any Place
  ) throws -> [StoredArchive] {
    let destination = ArchiveDestination(locked: place)
    var written: [StoredArchive] = []
    var newIDs: [Archive.ID: Archive.ID] = [:]
    do {
      for old in chain.kept {
        let source = try Archive(
          path: old.path, keys: keys, limit: options.limit, trusted: options.signing.sources)
        let former = try written.last.map { try Archive(path: $0.path, keys: keys, limit: options.limit) }
        let new = try SnapshotCopy.compact(
          source, since: former, tags: old.tags, newIDs,
          like: place.file(ContainerPath(old.fileName))?.status, encryption: encryption,
          signing: options.signing.keys, to: destination, progress)
        newIDs[source.header.archive] = new.header.archive
        var archive = StoredArchive(path: new.path, access: .open(new.header))
        (archive.size, archive.tags) = (new.archiveBytes, old.tags)
        written.append(archive)
      }
      let size = written.reduce(0) { $0 + $1.size }
      guard size < chain.bytes else {
        throw DrydockError(
          .unsupported, "its chain was not compacted, because that would not make it smaller",
          path: chain.kept[0].path)
      }
      for archive in written {
        _ = try Verification.run(
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

/// What kept snapshots need of the archives of their chain.
private struct Survey {
  private struct Part {
    var path: String
    var fileSize: UInt64, contentSize: UInt64
    var encryption: ArchiveEncryption?
    var recipients: SHA256.Digest?
    /// Ranges of the tar stream.
    var needed: Set<Range<UInt64>> = []
  }

  private var parts: [Archive.ID: Part] = [:]

  init(_ kept: [StoredArchive], _ keys: AgeKeys, _ options: CompactionOptions) throws {
    for archive in kept {
      let archive = try Archive(path: archive.path, keys: keys, limit: options.limit)
      for part in archive.parts where parts[part.header.archive] == nil {
        parts[part.header.archive] = Part(
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
  }

  /// The size of archives that have only what is needed, estimated by its share of each archive.
  var neededBytes: UInt64 {
    parts.values.reduce(0) { sum, part in
      var (end, bytes) = (UInt64(0), UInt64(0))
      for range in part.needed.sorted(by: { $0.lowerBound < $1.lowerBound }) where range.upperBound > end {
        bytes += range.upperBound - max(range.lowerBound, end)
        end = range.upperBound
      }
      let share = min(1, Double(bytes) / Double(max(part.contentSize, 1)))
      return sum + UInt64(Double(part.fileSize) * share)
    }
  }

  /// To whom the new archives are encrypted: to those who can read all old ones.
  func encryption(_ keys: AgeKeys, _ given: [AgeRecipient]) throws -> AgeTarget? {
    let path = parts.values.map(\.path).min()
    func refusal(_ why: String) -> DrydockError {
      DrydockError(.noIdentity, "its chain is not compacted, because \(why)", path: path)
    }
    let kinds = Set(parts.values.map { part in part.encryption.map(\.needsPassphrase) })
    guard kinds.count == 1, let kind = kinds.first else {
      throw refusal("its archives are not encrypted in the same way")
    }
    guard let needsPassphrase = kind else { return nil }
    if needsPassphrase {
      guard keys.passphrases.count == 1 else { throw refusal("not one passphrase opens all of it") }
      return .passphrase(keys.passphrases[0])
    }
    let digests = Set(parts.values.map(\.recipients))
    let identities = keys.identities.map(\.recipient)
    let found = try ([given, identities] + identities.map { [$0] }).first { recipients in
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
    for part in parts.values {
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

extension Repository.ForgetReport {
  /// Puts the new archives of a chain in the place of the old ones.
  fileprivate mutating func replace(_ chain: Compaction.Chain, by written: [StoredArchive]) {
    let needed = Set(chain.needed.map(\.id))
    let new = Dictionary(zip(chain.kept.map(\.id), written)) { first, _ in first }
    kept = kept.filter { !needed.contains($0.id) }.map { old in
      guard var archive = new[old.id] else { return old }
      archive.reasons = old.reasons
      return archive
    }
  }
}
