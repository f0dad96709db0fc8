import Cryptography
import AppStores
import AppContainer
import ArchiveFile
import FileSystem

package struct ManifestEntry: Sendable, Equatable {
  package enum Kind: String, Sendable {
    case file, directory
    case symbolicLink = "symbolic-link"
    /// One consistent database file, without sidecars.
    case database
    /// A database, or one of its sidecars, that SQLite could not open: bytes as they were.
    case rawDatabase = "raw-database"
  }

  package var path: ContainerPath
  package var kind: Kind
  package var metadata: FileMetadata
  package var size: UInt64 = 0
  /// The hash of the content (`ContentHash`); nil for directories and links.
  package var digest: SHA256.Digest?
  package var linkTarget: [UInt8]?
  /// The earlier path that this one is a hard link to, with its content and digest.
  package var hardLink: ContainerPath?
  /// Where the content is; empty for a hard link.
  package var extents = Extents()
  /// The archive that has a member of a hard link: the one that has the first name's whole content, if it is in one piece.
  /// Nil for the archive that is being written.
  package var linkArchive: ArchiveID?
  /// The inode and its change time at the capture: when both are equal, nothing has changed since.
  package var identity: FileIdentity, changed: Int64

  package init(
    path: ContainerPath, kind: Kind, metadata: FileMetadata, size: UInt64 = 0, digest: SHA256.Digest? = nil,
    linkTarget: [UInt8]? = nil, identity: FileIdentity, changed: Int64
  ) {
    (self.path, self.kind, self.metadata, self.size, self.digest) = (path, kind, metadata, size, digest)
    (self.linkTarget, self.identity, self.changed) = (linkTarget, identity, changed)
  }

  package var isFile: Bool { kind == .file || kind == .database || kind == .rawDatabase }
}

/// What a database's sidecars were when it was captured: the next snapshot then knows what has changed since.
package struct DatabaseCaptureState: Sendable, Equatable {
  /// What identified the status of its log and journal; nil when that is not known.
  package var sidecars: SHA256.Digest?
  /// Up to where its log was read; nil when not the files themselves were read.
  package var log: LogPosition?

  package init(sidecars: SHA256.Digest? = nil, log: LogPosition? = nil) {
    (self.sidecars, self.log) = (sidecars, log)
  }
}

/// A path that a rule excludes; for a directory, with everything below it.
package struct ExcludedPath: Sendable, Equatable, Codable {
  package var path: ContainerPath
  package var exclusion: Exclusion

  package init(path: ContainerPath, exclusion: Exclusion) { (self.path, self.exclusion) = (path, exclusion) }
}

/// A path that a snapshot could not store as it was.
public struct SkippedPath: Sendable, Equatable, Codable {
  /// Why a path was not stored.
  public enum Reason: String, Sendable, Codable {
    /// It could not be opened or read.
    case unreadable
    /// It changed each time it was read.
    case unstable
    /// A socket, FIFO or device.
    case special
    case mount
  }

  /// The path in the container.
  public var path: ContainerPath
  /// Why it was not stored.
  public var reason: Reason

  package init(path: ContainerPath, reason: Reason) { (self.path, self.reason) = (path, reason) }

  /// Whether a snapshot without it is incomplete; sockets and mounts do not count.
  public var isLoss: Bool { reason == .unreadable || reason == .unstable }

  /// The deepest directory whose names an archive can hold: a member's name begins with that of the root.
  package static let deepest = MemberName.maximumDepth - 2

  /// Whether it, or a path in it, is deeper or longer than a member's name may be.
  package var isBeyondLimits: Bool {
    reason == .unreadable
      && (path.components.count > Self.deepest
        || MemberNames(groups: []).name(of: path).count > MemberName.maximumLength)
  }
}

/// The snapshot id: SHA-256 over the canonical list of entries, in the order of their paths. The same container
/// has the same id, whenever and however it was captured.
///
/// Each entry is its path, kind, mode, size, content hash, link target, hard link and exclusion flags (the rules
/// that flags on the path itself mean, joined by commas), each field as its length (8 bytes,
/// big-endian) and its bytes.
package struct SnapshotID {
  private let hash: SHA256

  package init() throws { hash = try SHA256() }

  package func add(_ entry: ManifestEntry) {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(256)
    func field(_ field: some Collection<UInt8>) {
      withUnsafeBytes(of: UInt64(field.count).bigEndian) { bytes += $0 }
      bytes += field
    }
    field(entry.path.bytes)
    field(entry.kind.rawValue.utf8)
    field(String(entry.metadata.mode, radix: 8).utf8)
    field(String(entry.size).utf8)
    field(entry.digest?.bytes ?? [])
    field(entry.linkTarget ?? [])
    field(entry.hardLink?.bytes ?? [])
    field(entry.metadata.exclusionFlags.map(\.rawValue).joined(separator: ",").utf8)
    bytes.withUnsafeBytes { hash.update($0) }
  }

  package func finish() throws -> SHA256.Digest { try hash.finalize() }
}
