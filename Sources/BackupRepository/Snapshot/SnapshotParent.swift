import ArchiveManifest
import AgeEncryption
import AppContainer
import AppStores
import ArchiveSigning
import ContainerTransaction
import Cryptography
import DrydockErrors
import FileSystem
import Foundation
import Storage

extension Manifest {
  /// Throws unless a trusted key has signed each archive of the chain: one without a key to open them relies on the cache, and
  /// still must not add to a chain that cannot be restored.
  ///
  /// - Parameter newest: the file of the newest one, beside which the others are.
  func requireSigned(besides newest: String, _ trusted: TrustedKeys) throws {
    let place = try Places.ofFile(newest).place
    for part in parts {
      try SignaturePayload.trusted(of: place.full(ContainerPath(lastName(part.path))), trusted)
        .payload.requireOf(part.header)
    }
  }

  /// Whether the next archive is a full one by a rule: then it costs little, and a restore reads fewer archives.
  func needsFullArchive(by rule: FullArchiveRule) -> Bool {
    let sizes = parts.map { Double($0.fileSize) }
    let incremental = sizes.dropLast().reduce(0, +)
    return sizes.count > rule.after || incremental > (sizes.last ?? 0) * Double(rule.above) / 100
  }
}

extension Snapshot {
  /// The snapshot that the next one of a container is the difference to.
  ///
  /// - Parameters:
  ///   - present: what is in the repository.
  ///   - rule: when a full archive is written all the same.
  /// - Returns: nil when a full archive is to be written, with the reason if one could not be read.
  static func parent(
    of header: Archive.Header, in repository: String?, _ present: PlaceListing?, _ options: SnapshotOptions,
    _ rule: FullArchiveRule
  ) throws -> (parent: Manifest?, problem: String?) {
    guard let repository, let present else { return (nil, nil) }
    // Whether a passphrase is that of earlier archives is not known.
    if case .passphrase? = options.encryption { return (nil, nil) }
    let (keys, isEncrypted) = (options.keys, options.encryption != nil)
    let label = ArchiveLabel(header)
    let names = present.archives.compactMap(\.label).filter { $0.nameKey == label.nameKey }
    let latest = names.map(\.time).max() ?? ""
    func list(_ isWanted: (ArchiveLabel) -> Bool) throws -> (
      listing: Repository.Listing, newest: StoredArchive?
    ) {
      let listing = try Repository(repository).listUntagged(present, keys: keys) {
        $0.nameKey == label.nameKey && isWanted($0)
      }
      let newest = listing.archives.last { archive in
        // Of archives that anyone can read and others, no one needs one of the other kind.
        archive.isLocked
          ? isEncrypted && archive.nameKey == label.nameKey
          : archive.ownerKey == label.ownerKey && (archive.encryption != nil) == isEncrypted
      }
      return (listing, newest)
    }
    // Names have the times: the headers of all are read only where a clock was wrong, or a name was given by hand. A file that was
    // renamed as if it were older is not noticed: the parent is then another archive of the same container.
    var (listing, newest): (Repository.Listing, StoredArchive?)
    let isDoubtful = latest > header.time || names.contains(where: \.followsLater)
    (listing, newest) = try list { isDoubtful || $0.time == latest }
    let isContradicted = listing.archives.contains {
      $0.nameKey == label.nameKey && ($0.time != latest || $0.published != nil)
    }
    if !isDoubtful, newest == nil || isContradicted { (listing, newest) = try list { _ in true } }
    if let unread = listing.newestUnreadable(of: newest?.label ?? label, after: newest?.effectiveTime ?? "") {
      return (nil, "\(unread.fileName) cannot be read: \(unread.reason)")
    }
    guard let newest else { return (nil, nil) }
    let name = newest.fileName
    do {
      let found: Manifest
      let trusted = options.sources
      if isEncrypted,
        let kept = try? options.cache.map(ManifestCache.init)?.snapshot(
          of: newest.path, app: header.app, instance: header.instance, present)
      {
        // The manifest is this machine's own. What is in the repository is verified by who can open it.
        if let trusted { try kept.requireSigned(besides: newest.path, trusted) }
        found = kept
      } else if newest.isLocked {
        if keys.isEmpty, options.cache == nil { return (nil, nil) }
        let reason = "no key opens the newest archive, \(name)"
        return (nil, options.cache == nil ? reason : "\(reason), and the cache does not have its manifest")
      } else {
        found = try Archive(
          path: newest.path, among: present, keys: keys, trusted: trusted, usesCache: true
        ).manifest
      }
      // The readers of the new archive must be able to read those that it needs.
      guard try found.parts[0].recipients() == options.encryption?.recipientsDigest() else {
        return (nil, "\(name) is encrypted to other keys")
      }
      return (found.needsFullArchive(by: rule) ? nil : found, nil)
    } catch let error as DrydockError {
      return (nil, "\(name) cannot be read: \(error.message)")
    }
  }
}

extension AgeTarget {
  /// Identifies the recipients; nil for a passphrase, which must not be guessed from a hash.
  func recipientsDigest() throws -> SHA256.Digest? {
    guard case .recipients(let recipients) = self else { return nil }
    let names = Set(recipients.map(\.description)).sorted().joined(separator: "\n")
    return try SHA256.hash(Array(names.utf8))
  }
}
