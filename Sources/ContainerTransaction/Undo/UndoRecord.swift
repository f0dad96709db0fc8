import AppStores
import Cryptography
import AgeEncryption
import AppContainer
import FileSystem

/// The record of an undo entry: `undo/<transaction>/record.json` beside the kept inodes.
struct UndoRecord: Codable, Sendable {
  static let file: ContainerPath = "record.json"

  var transaction: TransactionID
  var kind: TransactionLogEntry.Kind
  var summary: String
  var time: String
  /// Sorted by path, parents first.
  var changes: ChangeRecords
  /// What is kept sealed; nil when no setting was moved into the vault.
  var sealing: Sealing?
  /// Of a rollback: the transactions that it has undone, and those that it has undone in part.
  var undoes: [TransactionID] = []
  var partly: [TransactionID] = []
  /// Files of this folder: what the steps of migrations wrote down for their down steps.
  var steps: [ContainerPath] = []
}

extension UndoRecord {
  init(in folder: Directory) throws {
    self = try folder.record(
      Self.file, damaged: "the record of a transaction is corrupt, so it cannot be undone")
  }

  /// Writes the file, a part of the changes at a time: encoding all of them takes two kilobytes of memory for each.
  func write(in folder: Directory) throws {
    var rest = self
    rest.changes = ChangeRecords()
    // The first key of all.
    let (start, end) = (Array(#"{"changes":["#.utf8), try rest.stateRecord())
    guard end.starts(with: start) else {
      return try folder.create(Self.file, stateRecord())
    }
    try folder.create(Self.file) { write in
      try write(start)
      for first in stride(from: 0, to: changes.count, by: 1000) {
        let part = try Array(changes[first...].prefix(1000)).stateRecord()
        try write((first == 0 ? [] : [UInt8(ascii: ",")]) + part.dropFirst().dropLast())
      }
      try write(Array(end.dropFirst(start.count)))
    }
  }

  /// The changes that the transaction itself made: a directory whose names changed is not among them. They are not put
  /// into a set: one of a million takes 600 MB.
  var own: some Sequence<ChangeRecord> { changes.lazy.filter(\.isOwn) }

  /// The paths of these, with a database's sidecars, also those that stay.
  var touched: some Sequence<ContainerPath> {
    own.lazy.flatMap { change in
      let suffixes = change.granularity == .database ? DatabaseFormat.sidecarSuffixes : []
      return [change.path] + suffixes.map(change.path.withSuffix)
    }
  }

  /// Whether a path is one of ``touched``.
  func touches(_ path: ContainerPath) -> Bool {
    if changes[path]?.isOwn == true { return true }
    return DatabaseUnit.main(ofSidecar: path).map { changes[$0]?.granularity == .database } ?? false
  }
}

/// Files of an undo entry with what the steps of one transaction wrote down for their down steps: `steps-<transaction>`. A rollback
/// hands on those of the transactions that it undoes, so that they are there again after a redo.
extension UndoRecord {
  private static let stepsPrefix = Array("steps-".utf8)

  static func stepsFile(of transaction: String) -> ContainerPath {
    ContainerPath(name: stepsPrefix + Array(transaction.utf8))
  }

  static func transaction(ofSteps name: ContainerPath) -> String {
    String(decoding: name.bytes.dropFirst(stepsPrefix.count), as: UTF8.self)
  }
}

struct ChangeRecord: Codable, Sendable {
  enum Granularity: String, Codable {
    /// Key by key.
    case settings
    /// Item by item, with the device key.
    case vault
    /// As a whole, compared by captured content.
    case database
    /// A `-wal`, `-shm` or `-journal` that went with the database's old content.
    case sidecar
    /// As a whole.
    case file
    /// Only its existence and metadata.
    case directory
  }

  var path: ContainerPath
  var granularity: Granularity
  var before: NodeRecord?
  var after: NodeRecord?
  /// The name of the kept inode in the entry's folder, when there was a file or link before.
  var kept: ContainerPath?
  /// The name of a copy of the new settings file or vault there, so that keys or items can be compared later.
  var settingsAfter: ContainerPath?

  fileprivate var isOwn: Bool { !(granularity == .directory && before != nil && after != nil) }

  /// The names of its files in the entry's folder.
  var files: [ContainerPath] { [kept, settingsAfter].compactMap { $0 } }

  private enum CodingKeys: String, CodingKey {
    case path, before, after, kept, settingsAfter
    case granularity = "grain"
  }
}

struct NodeRecord: Codable, Sendable, Hashable {
  var type: FileType
  var metadata: FileMetadata
  var size: UInt64
  /// SHA-256 of a file's content; a database's with the header fields normalized that differ between captures.
  var digest: SHA256.Digest?
  /// Of a directory: what `chattr` had set; a file that comes back has its own.
  var flags: InodeFlags?
}

extension FileType {
  /// The digest of something without content: it equals itself, and no file's.
  var digest: SHA256.Digest {
    get throws { try SHA256.hash(Array(rawValue.utf8)) }
  }
}
