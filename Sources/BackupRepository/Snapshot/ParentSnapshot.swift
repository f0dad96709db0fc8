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

/// The newest snapshot of the same container in the repository, which an incremental one is the difference to. Used in the
/// order of the paths.
final class ParentSnapshot {
  let manifest: Manifest
  private let rows: [EntryRows<ManifestEntry>]
  var entries: EntriesInOrder
  private let capture: CaptureTime
  private var contents: ContentIndex?

  /// - Parameter capture: what the parent's capture proves; nothing for a comparison with another archive.
  init(_ manifest: Manifest, _ capture: CaptureTime = .none) throws {
    (self.manifest, self.capture) = (manifest, capture)
    rows = manifest.parts.map { $0.entries() }
    entries = try EntriesInOrder(manifest)
  }

  /// Whether a path is as it was at the parent's capture.
  func isUnchanged(_ entry: ManifestEntry, _ status: FileStatus) -> Bool {
    capture.isUnchanged(entry, status)
  }

  /// Whether a status shows that a path has not changed since the parent's capture.
  func isOld(_ status: FileStatus) -> Bool { capture.isOld(status) }

  /// Whether a database is as it was at the parent's capture, with its log and journal.
  func isUnchangedDatabase(_ entry: ManifestEntry, _ status: FileStatus, in root: Directory) throws -> Bool {
    try capture.isUnchangedDatabase(entry, status, in: root, manifest)
  }

  /// The hashes of the blocks of an earlier content, which a new one can be stored as the difference to; nil when it cannot.
  func blocks(
    of earlier: ManifestEntry, like entry: ManifestEntry, blockSize: Int
  ) throws -> BlockHashes? {
    guard earlier.kind == entry.kind, earlier.hardLink == nil,
      min(earlier.size, entry.size) >= ArchiveDraft.smallestChanged
    else { return nil }
    return try manifest.blocks(of: earlier, blockSize: blockSize)
  }

  /// Whether some file of that size is stored: only then its content is searched.
  func hasContent(ofSize size: UInt64) throws -> Bool { try index().hasSize(size) }

  /// The places of a content; nil when it is not stored.
  ///
  /// - Parameters:
  ///   - isDatabase: whether the hash is a database's, which takes some bytes as zero.
  ///   - earlier: the parent's entry of the path, which mostly has it: then nothing is searched.
  func places(
    of digest: SHA256.Digest, size: UInt64, isDatabase: Bool, earlier: ManifestEntry?
  ) throws -> Extents? {
    func hasContent(_ entry: ManifestEntry) -> Bool {
      entry.digest == digest && entry.size == size && (entry.kind == .database) == isDatabase
        && !entry.extents.isEmpty
    }
    if let earlier, hasContent(earlier) { return earlier.extents }
    for place in try index().places(of: digest) {
      if let entry = try rows[place.part].value(place.row), hasContent(entry) {
        return entry.extents
      }
    }
    return nil
  }

  private func index() throws -> ContentIndex {
    if let contents { return contents }
    let made = try ContentIndex(manifest)
    contents = made
    return made
  }
}

/// Where contents are in the archives of a chain, by their hashes: in sorted lists, which take 24 bytes for a file.
private struct ContentIndex {
  private var sizes: [UInt64] = []
  /// The start of a hash, and the number of the manifest and of the entry in it.
  private var entries: [(key: UInt64, place: UInt64)] = []

  init(_ manifest: Manifest) throws {
    for (number, part) in manifest.parts.enumerated() {
      try part.contents { row, size, digest in
        sizes.append(size)
        entries.append((digest.firstHalf.high, UInt64(number) << 40 | UInt64(row)))
      }
    }
    sizes.sort()
    entries.sort { $0.key < $1.key }
  }

  func hasSize(_ size: UInt64) -> Bool {
    let index = sizes.indices.first(since: { sizes[$0] >= size })
    return index < sizes.count && sizes[index] == size
  }

  /// The manifests and rows of the entries that may have a hash.
  func places(of digest: SHA256.Digest) -> some Sequence<(part: Int, row: Int64)> {
    let key = digest.firstHalf.high
    let start = entries.indices.first(since: { entries[$0].key >= key })
    return entries[start...].lazy.prefix { $0.key == key }.map {
      (Int($0.place >> 40), Int64($0.place & 0xff_ffff_ffff))
    }
  }
}

extension Directory {
  /// What identifies the state of a database's log and journal: their inodes, sizes and times. Nil when one of them is too
  /// young to be sure.
  func sidecarState(
    of main: ContainerPath, isOld: (FileStatus) -> Bool = { _ in true }
  ) throws -> SHA256.Digest? {
    var text = ""
    for suffix in ["-journal", "-wal"] {
      guard let status = try status(main.withSuffix(suffix)) else { continue }
      guard isOld(status) else { return nil }
      text +=
        "\(suffix) \(status.device) \(status.inode) \(status.size) \(status.modified) \(status.changed)\n"
    }
    return try SHA256.hash(Array(text.utf8))
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
    let listing = try Repository(repository).listUntagged(present, keys: keys) {
      $0.nameKey == label.nameKey
    }
    let newest = listing.archives.last { archive in
      // Of archives that anyone can read and others, no one needs one of the other kind.
      archive.isLocked
        ? isEncrypted && archive.nameKey == label.nameKey
        : archive.ownerKey == label.ownerKey && (archive.encryption != nil) == isEncrypted
    }
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
          path: newest.path, present.file(ContainerPath(name)), keys: keys, trusted: trusted, usesCache: true
        ).manifest
      }
      // Who is to read the new archive must be able to read those that it needs.
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
