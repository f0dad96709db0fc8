import AgeEncryption
import AppContainer
import ArchiveFile
import FileSystem

/// One stored path of a snapshot.
package struct ManifestEntry: Sendable, Equatable {
  /// What it is.
  package enum Kind: String, Sendable {
    case file, directory
    case symbolicLink = "symbolic-link"
    /// One consistent database file, without sidecars.
    case database
    /// A database, or one of its sidecars, that SQLite could not open: bytes as they were.
    case rawDatabase = "raw-database"
  }

  /// Its path in the container.
  package var path: ContainerPath
  /// What it is.
  package var kind: Kind
  /// Mode, owner, modification time, attributes.
  package var metadata: FileMetadata
  /// Bytes of content.
  package var size: UInt64 = 0
  /// SHA-256 of the content; a database's with normalized header fields. Nil for directories and links.
  package var digest: SHA256.Digest?
  /// What a symbolic link points to.
  package var linkTarget: [UInt8]?
  /// The earlier path that this one is a further name of; content and digest are that one's.
  package var hardLink: ContainerPath?
  /// Where the content starts in the tar stream of the archive.
  package var offset: UInt64?
  /// The inode and its change time at the capture: equal ones mean that nothing has changed since.
  package var identity: FileIdentity, changed: Int64

  /// Whether it has content of its own.
  package var isFile: Bool { kind == .file || kind == .database || kind == .rawDatabase }
}

/// A member that a later one of the same name replaces, as its file changed while it was stored.
struct SupersededMember: Equatable {
  var path: ContainerPath
  /// Bytes of its content.
  var length: UInt64
}

/// A path that a rule kept out; for a directory, all that is below it too.
package struct ExcludedPath: Sendable, Equatable, Codable {
  /// The path.
  package var path: ContainerPath
  /// Its rule.
  package var exclusion: Exclusion
}

/// A path that could not be stored.
package struct SkippedPath: Sendable, Equatable, Codable {
  /// Why not.
  package enum Reason: String, Sendable, Codable {
    /// It could not be opened or read.
    case unreadable
    /// It changed each time it was read.
    case unstable
    /// A socket, FIFO or device.
    case special
    /// Another file system is mounted there.
    case mount
  }

  /// The path.
  package var path: ContainerPath
  /// Why not.
  package var reason: Reason

  /// Whether a snapshot without it is incomplete: a socket or a mount is not missed.
  package var isLoss: Bool { reason == .unreadable || reason == .unstable }

  /// The deepest directory whose names an archive can hold: a member's name begins with that of the root.
  static let deepest = MemberName.maximumDepth - 2

  /// Whether it, or what is in it, lies deeper or has a longer path than an archive can name.
  package var isBeyondLimits: Bool {
    reason == .unreadable
      && (path.components.count > Self.deepest
        || MemberNames(groups: []).name(of: path).count > MemberName.maximumLength)
  }
}
