import AgeEncryption
import FileSystem

/// What a path was, or became.
struct NodeRecord: Codable, Sendable, Hashable {
  var type: FileType
  var metadata: FileMetadata
  var size: UInt64
  /// SHA-256 of a file's content; a database's with the header fields normalized that differ between captures.
  var digest: SHA256.Digest?
  /// Of a directory: what `chattr` had set; a file that comes back has its own.
  var flags: InodeFlags?
}

/// One path that a transaction changed: what an undo has to know.
struct ChangeRecord: Codable, Sendable {
  /// How a path is undone.
  enum Grain: String, Codable {
    /// Key by key.
    case settings
    /// Item by item, with the device key at hand.
    case vault
    /// As a whole, compared by captured content.
    case database
    /// A `-wal`, `-shm` or `-journal` that went with the database's old content.
    case sidecar
    /// As a whole.
    case file
    /// Only that it is there, and its metadata.
    case directory
  }

  var path: ContainerPath
  var grain: Grain
  var before: NodeRecord?
  var after: NodeRecord?
  /// The name of the retained inode under the undo's folder, when there was a file or link before.
  var kept: ContainerPath?
  /// The name of a copy of the new settings file or vault there, so that single keys or items can be told apart later.
  var settingsAfter: ContainerPath?
}

/// A transaction's undo: `undo/<transaction>/record.json` beside the retained inodes.
struct UndoRecord: Codable, Sendable {
  static let file: ContainerPath = "record.json"

  var transaction: TransactionID
  var kind: TransactionKind
  var summary: String
  var time: String
  /// Sorted by path, parents first.
  var changes: [ChangeRecord]
  /// What is kept sealed; nil when no setting was moved into the vault.
  var sealing: Sealing?
  /// Of a rollback: the transactions that it has undone, and those that it has undone in part.
  var undoes: [TransactionID] = []
  var partly: [TransactionID] = []
  /// What steps of migrations wrote down for their way back: files of this folder.
  var steps: [ContainerPath] = []
}

extension FileType {
  /// What stands for the content of something that has none: it equals itself, and no file.
  var digest: SHA256.Digest {
    get throws { try SHA256.hash(Array(rawValue.utf8)) }
  }
}
