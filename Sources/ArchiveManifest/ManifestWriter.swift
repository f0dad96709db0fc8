import AppStores
import ArchiveFile
import Cryptography
import DrydockErrors
import FileSystem
import Foundation
import GRDB

/// Writes the manifest of an archive; of an incremental one as the difference to its parent's.
package final class ManifestWriter {
  private let queue: DatabaseQueue
  private let path: String
  private let archive: ArchiveID
  private let snapshot: SnapshotID
  /// The number of the last entry, and the numbers of the archives that extents are in.
  private var number: Int64 = 0
  private var archives: [ArchiveID: Int64] = [:]
  private let parent: Manifest?
  private var parentEntries: MergedEntries?

  /// Starts a manifest in a file that does not exist yet.
  package init(path: String, archive: ArchiveID, since parent: Manifest? = nil) throws {
    (self.archive, self.parent) = (archive, parent)
    parentEntries = try parent.map(MergedEntries.init)
    snapshot = try SnapshotID()
    var configuration = GRDB.Configuration()
    // One transaction over many calls.
    configuration.allowsUnsafeTransactions = true
    configuration.prepareDatabase {
      try $0.execute(sql: "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA page_size=4096")
    }
    self.path = path
    queue = try Self.translating(path) { try DatabaseQueue(path: path, configuration: configuration) }
    try write { db in
      try db.execute(sql: "BEGIN")
      for statement in ManifestSchema.statements { try db.execute(sql: statement) }
    }
  }

  private func run(_ sql: String, _ arguments: StatementArguments) throws {
    try write { try $0.cachedStatement(sql: sql).execute(arguments: arguments) }
  }

  private func set(_ property: String, _ value: any DatabaseValueConvertible) throws {
    try run("INSERT INTO property VALUES (?, ?)", [property, value])
  }

  private func write<T>(_ body: (Database) throws -> T) throws -> T {
    try Self.translating(path) { try queue.writeWithoutTransaction(body) }
  }

  /// The usual error is a full disk.
  private static func translating<T>(_ path: String, _ body: () throws -> T) throws -> T {
    do {
      return try body()
    } catch let error as DatabaseError {
      let isFull = error.resultCode == .SQLITE_FULL
      throw DrydockError(
        .io,
        "writing the archive's manifest failed: "
          + (isFull
            ? "No space left on device; free some space"
            : error.message ?? "SQLite gives no reason; check the disk")
          + " and run it again", path: path, cause: error)
    }
  }

  /// Finds the parent's entry of a path that is about to be added; they come in their order. The paths before it that
  /// the parent has and that were not looked for are recorded as removed.
  package func earlier(at path: ContainerPath) throws -> ManifestEntry? {
    guard let (entry, gone) = try parentEntries?.entry(at: path) else { return nil }
    try gone.forEach(addRemoved)
    return entry
  }

  /// Records a path of the parent's manifest that the snapshot does not have.
  package func addRemoved(_ path: ContainerPath) throws {
    try run("INSERT INTO removed VALUES (?)", [path.databaseValue])
  }

  /// Records what identifies the recipients of the archive.
  package func add(recipients: SHA256.Digest) throws {
    try set(ManifestSchema.recipients, Data(recipients.bytes))
  }

  /// Records what is not stored; where the parent's manifest lists the same, only that.
  package func addOmitted(_ excluded: [ExcludedPath], _ skipped: [SkippedPath]) throws {
    if let parent, try parent.excluded() == excluded, try parent.skipped() == skipped {
      return try set(ManifestSchema.inheritsOmitted, 1)
    }
    for path in excluded { try add(path) }
    for path in skipped { try add(path) }
  }

  /// Adds an entry; one that is as in the parent's manifest to the snapshot id alone.
  ///
  /// - Parameters:
  ///   - earlier: the parent's entry of the path.
  ///   - capture: of a database, what its sidecars were, unless that is as it was at the parent's capture.
  package func add(
    _ entry: ManifestEntry, since earlier: ManifestEntry? = nil, capture: DatabaseCaptureState? = nil
  ) throws {
    snapshot.add(entry)
    if entry == earlier && capture == nil { return }
    let m = entry.metadata
    number += 1
    try run(
      "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      [
        number, entry.path.databaseValue, entry.kind.rawValue, Int(m.mode), Int(m.user), Int(m.group),
        m.modified, Int64(entry.size),
        entry.digest.map { Data($0.bytes) }, entry.linkTarget.map { Data($0) },
        entry.hardLink?.databaseValue, m.isNoDump ? ManifestSchema.noDump : "",
        Int64(bitPattern: entry.identity.device), Int64(bitPattern: entry.identity.inode), entry.changed,
      ])
    for attribute in m.attributes {
      try run("INSERT INTO attribute VALUES (?, ?, ?)", [number, attribute.name, Data(attribute.value)])
    }
    var position: UInt64 = 0
    for extent in entry.extents {
      try run(
        "INSERT INTO extent VALUES (?, ?, ?, ?, ?)",
        [number, Int64(position), source(extent.archive), Int64(extent.offset), Int64(extent.length)])
      position += extent.length
    }
    if let capture {
      try run(
        "INSERT INTO capture VALUES (?, ?, ?)",
        [number, capture.sidecars.map { Data($0.bytes) }, capture.log.map { Data($0.bytes) }])
    }
  }

  /// The number of an archive that has content; 0 for this one.
  private func source(_ id: ArchiveID?) throws -> Int64 {
    guard let id, id != archive else { return 0 }
    if let known = archives[id] { return known }
    let number = Int64(archives.count + 1)
    archives[id] = number
    try run("INSERT INTO required VALUES (?, ?)", [number, id.description])
    return number
  }

  /// Records the hashes of the blocks of a member's content.
  ///
  /// - Parameters:
  ///   - runs: the blocks that the member has, in this order.
  ///   - offset: of the content in the tar stream.
  package func add(_ blocks: BlockHashes, _ runs: [Range<Int>], at offset: UInt64) throws {
    var offset = offset
    var waiting: [UInt8] = []
    func write(_ bytes: [UInt8]) throws {
      try run("INSERT INTO block VALUES (?, ?, ?)", [Int64(offset), blocks.blockSize, Data(bytes)])
      offset += UInt64(bytes.count / BlockHashes.length * blocks.blockSize)
    }
    for run in runs {
      for start in stride(from: run.lowerBound, to: run.upperBound, by: Self.blocksInRow) {
        waiting += blocks.encoded(start..<min(start + Self.blocksInRow, run.upperBound))
        if waiting.count >= Self.blocksInRow * BlockHashes.length {
          try write(waiting)
          waiting = []
        }
      }
    }
    if !waiting.isEmpty { try write(waiting) }
  }

  private static let blocksInRow = 4096

  package func hasEntry(_ path: ContainerPath) throws -> Bool {
    try write {
      try Bool.fetchOne($0, sql: "SELECT 1 FROM entry WHERE path = ?", arguments: [path.databaseValue])
        ?? false
    }
  }

  package func add(_ excluded: ExcludedPath) throws {
    let exclusion = excluded.exclusion
    try run(
      "INSERT INTO excluded VALUES (?, ?, ?, ?)",
      [
        excluded.path.databaseValue, exclusion.rule.rawValue, exclusion.origin.databaseValue,
        exclusion.detail,
      ])
  }

  package func add(_ skipped: SkippedPath) throws {
    try run(
      "INSERT OR REPLACE INTO skipped VALUES (?, ?)", [skipped.path.databaseValue, skipped.reason.rawValue])
  }

  package func add(_ vault: MemberLocation) throws {
    try set(ManifestSchema.vaultOffset, Int64(vault.offset))
    try set(ManifestSchema.vaultLength, Int64(vault.length))
    try set(ManifestSchema.vaultHash, Data(vault.sha256.bytes))
  }

  /// A member that was written once more because its file had changed.
  package func addReplaced(_ path: ContainerPath, offset: UInt64, length: UInt64) throws {
    try run("INSERT INTO superseded VALUES (?, ?, ?)", [Int64(offset), path.databaseValue, Int64(length)])
  }

  /// Ends the manifest, after all entries; gives the snapshot id.
  ///
  /// - Parameter storesExcluded: whether paths were stored although a rule excludes them.
  package func finish(storesExcluded: Bool = false) throws -> SHA256.Digest {
    try parentEntries?.rest().forEach(addRemoved)
    let id = try snapshot.finish()
    try set("format", ArchiveHeader.currentFormat)
    try set("archive", archive.description)
    try set("snapshot", id.hex)
    if storesExcluded { try set(ManifestSchema.storesExcluded, 1) }
    try write { try $0.execute(sql: "COMMIT") }
    try Self.translating(path) { try queue.close() }
    return id
  }
}
