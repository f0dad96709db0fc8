import AgeEncryption
import AppContainer
import DrydockErrors
import FileSystem
import Foundation

/// The newest snapshot of the same container in the repository, which an incremental one is the difference to. Used in the
/// order of the paths.
final class ParentSnapshot {
  let archive: Archive
  private var entries: MergedEntries
  private var next: ManifestEntry?
  private let capture: CaptureTime
  private var contents: ContentIndex?

  /// - Parameters:
  ///   - settling: seconds that must have passed between the last change of a path and the parent's capture.
  ///   - root: the container's.
  init(_ archive: Archive, of root: Directory, settling: Double) throws {
    self.archive = archive
    capture = try CaptureTime(archive.header, of: root, settling: settling)
    entries = MergedEntries(archive.manifest)
    next = try entries.next()
  }

  /// The entry at a path, and the paths before it that were not asked for: the container does not have them.
  func entry(at path: ContainerPath) throws -> (entry: ManifestEntry?, gone: [ContainerPath]) {
    let gone = try remaining { $0 < path }
    guard let found = next, found.path == path else { return (nil, gone) }
    next = try entries.next()
    return (found, gone)
  }

  /// The paths that were not asked for, after the last one that was.
  func rest() throws -> [ContainerPath] { try remaining { _ in true } }

  private func remaining(_ isBefore: (ContainerPath) -> Bool) throws -> [ContainerPath] {
    var paths: [ContainerPath] = []
    while let entry = next, isBefore(entry.path) {
      paths.append(entry.path)
      next = try entries.next()
    }
    return paths
  }

  /// Whether a path is as it was at the parent's capture.
  func isUnchanged(_ entry: ManifestEntry, _ status: FileStatus) -> Bool {
    capture.isUnchanged(entry, status)
  }

  /// Whether a status is older than the parent's capture by so much that it shows each later write.
  func isOld(_ status: FileStatus) -> Bool { capture.isOld(status) }

  /// Whether some file of that size is stored: only then its content is searched.
  func hasContent(ofSize size: UInt64) throws -> Bool { try index().sizes.contains(size) }

  /// The places of a content; nil when it is not stored.
  ///
  /// - Parameter isDatabase: whether the hash is a database's, which takes some bytes as zero.
  func places(of digest: SHA256.Digest, size: UInt64, isDatabase: Bool) throws -> Extents? {
    guard let found = try index().rows[ContentIndex.key(digest)],
      let entry = try archive.manifest.parts[found.part].entry(row: found.row), entry.digest == digest,
      entry.size == size, (entry.kind == .database) == isDatabase, !entry.extents.isEmpty
    else { return nil }
    return entry.extents
  }

  private func index() throws -> ContentIndex {
    if let contents { return contents }
    let made = try ContentIndex(archive.manifest)
    contents = made
    return made
  }
}

/// Where contents are in the archives of a chain, by their hashes: 16 bytes a file.
private struct ContentIndex {
  private(set) var sizes: Set<UInt64> = []
  private(set) var rows: [UInt64: (part: Int, row: Int64)] = [:]

  init(_ manifest: Manifest) throws {
    for (number, part) in manifest.parts.enumerated() {
      try part.contents { row, size, digest in
        sizes.insert(size)
        rows[Self.key(digest)] = (number, row)
      }
    }
  }

  static func key(_ digest: SHA256.Digest) -> UInt64 {
    digest.bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
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
  /// A new full archive is started after this many incremental ones, or when they are together larger than the full one:
  /// then it costs little, and a restore reads fewer archives.
  package static let longestChain = 30

  /// The snapshot that the next one of a container is the difference to.
  ///
  /// - Returns: nil when a full archive is to be written, with the reason if one could not be read.
  static func parent(
    of header: Archive.Header, in repository: String?, keys: AgeKeys, encryption: AgeTarget?
  ) throws -> (archive: Archive?, problem: String?) {
    guard let repository else { return (nil, nil) }
    let isEncrypted = encryption != nil
    // Whether a passphrase is that of earlier archives is not known.
    if case .passphrase? = encryption { return (nil, nil) }
    let owner = [header.app, header.instance].map { ArchiveName.plain($0, 90) }
    let listing = try Repository(repository).list(keys: keys) { [$0.app, $0.instance] == owner }
    // Of archives that anyone can read and others, no one needs one of the other kind.
    let own = listing.items.filter {
      $0.header.app == header.app && $0.header.instance == header.instance
        && ($0.encryption != nil) == isEncrypted
    }
    let sealed = listing.sealed.last { isEncrypted && $0.label.map { [$0.app, $0.instance] } == owner }
    if let sealed, !keys.identities.isEmpty || !keys.passphrases.isEmpty,
      sealed.label.map(\.time) ?? "" >= own.last?.header.time ?? ""
    {
      return (nil, "no key opens the newest archive, \(sealed.fileName)")
    }
    guard let newest = own.last else { return (nil, nil) }
    do {
      let archive = try Archive(path: newest.path, keys: keys)
      // Who is to read the new archive must be able to read those that it needs.
      guard try archive.manifest.parts[0].recipients() == encryption?.recipientsDigest() else {
        return (nil, "\(newest.fileName) is encrypted to other keys")
      }
      let (full, incremental) = (archive.parts.last, archive.parts.dropLast())
      let isCostly = incremental.reduce(0) { $0 + $1.reader.fileSize } > full?.reader.fileSize ?? 0
      return (incremental.count >= longestChain || isCostly ? nil : archive, nil)
    } catch let error as DrydockError {
      return (nil, "\(newest.fileName) cannot be read: \(error.message)")
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
