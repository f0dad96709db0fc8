import AgeEncryption
import AppContainer
import DrydockErrors
import FileSystem
import Foundation
import GRDB

final class ManifestWriter {
  private let queue: DatabaseQueue
  private let path: String
  private let archive: Archive.ID
  private var snapshot = try? SnapshotID()

  /// Starts a manifest in a file that does not exist yet.
  init(path: String, archive: Archive.ID) throws {
    self.archive = archive
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
      for statement in ManifestSchema.statements + ManifestSchema.additions { try db.execute(sql: statement) }
    }
  }

  private func run(_ sql: String, _ arguments: StatementArguments) throws {
    try write { try $0.cachedStatement(sql: sql).execute(arguments: arguments) }
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

  /// Adds an entry that is as in the parent's manifest: to the snapshot id alone.
  func addUnchanged(_ entry: ManifestEntry) throws { try snapshot?.add(entry) }

  /// Records a path of the parent's manifest that the snapshot does not have.
  func addRemoved(_ path: ContainerPath) throws {
    try run("INSERT INTO removed VALUES (?)", [PathValue(path)])
  }

  /// Records what identifies the recipients of the archive.
  func add(recipients: SHA256.Digest) throws {
    try run("INSERT INTO property VALUES (?, ?)", [ManifestSchema.recipients, Data(recipients.bytes)])
  }

  /// Records that excluded and skipped paths are those of the parent's manifest.
  func inheritOmitted() throws {
    try run("INSERT INTO property VALUES (?, ?)", [ManifestSchema.inheritsOmitted, 1])
  }

  /// Records what identifies the content of a database's log and journal; see `Directory.sidecarState(of:isOld:)`.
  func add(_ state: SHA256.Digest, of path: ContainerPath) throws {
    try run("INSERT INTO sidecar_state VALUES (?, ?)", [PathValue(path), Data(state.bytes)])
  }

  func add(_ entry: ManifestEntry) throws {
    let path = PathValue(entry.path)
    let m = entry.metadata
    try run(
      "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      [
        path, entry.kind.rawValue, Int(m.mode), Int(m.user), Int(m.group), m.modified, Int64(entry.size),
        entry.digest.map { Data($0.bytes) }, entry.linkTarget.map { Data($0) },
        entry.hardLink.map(PathValue.init), m.isNoDump ? ManifestSchema.noDump : "",
        Int64(bitPattern: entry.identity.device), Int64(bitPattern: entry.identity.inode), entry.changed,
      ])
    for attribute in m.attributes {
      try run("INSERT INTO attribute VALUES (?, ?, ?)", [path, attribute.name, Data(attribute.value)])
    }
    if let offset = entry.offset, entry.size > 0 {
      try run(
        "INSERT INTO extent VALUES (?, 0, ?, ?, ?)",
        [path, (entry.archive ?? archive).description, Int64(offset), Int64(entry.size)])
    }
    try snapshot?.add(entry)
  }

  func hasEntry(_ path: ContainerPath) throws -> Bool {
    try write {
      try Bool.fetchOne($0, sql: "SELECT 1 FROM entry WHERE path = ?", arguments: [PathValue(path)]) ?? false
    }
  }

  func add(_ excluded: ExcludedPath) throws {
    let exclusion = excluded.exclusion
    try run(
      "INSERT INTO excluded VALUES (?, ?, ?, ?)",
      [PathValue(excluded.path), exclusion.rule.rawValue, PathValue(exclusion.origin), exclusion.detail])
  }

  func add(_ skipped: SkippedPath) throws {
    try run(
      "INSERT OR REPLACE INTO skipped VALUES (?, ?)", [PathValue(skipped.path), skipped.reason.rawValue])
  }

  func add(_ vault: VaultMember) throws {
    try run("INSERT INTO property VALUES (?, ?)", [ManifestSchema.vaultOffset, Int64(vault.offset)])
    try run("INSERT INTO property VALUES (?, ?)", [ManifestSchema.vaultLength, Int64(vault.length)])
    try run("INSERT INTO property VALUES (?, ?)", [ManifestSchema.vaultHash, Data(vault.digest.bytes)])
  }

  /// A member that was written once more because its file had changed.
  func addSuperseded(_ path: ContainerPath, offset: UInt64, length: UInt64) throws {
    try run("INSERT INTO superseded VALUES (?, ?, ?)", [Int64(offset), PathValue(path), Int64(length)])
  }

  /// Ends the manifest; gives the snapshot id.
  ///
  /// - Parameter storesExcluded: whether paths were stored although a rule excludes them.
  func finish(storesExcluded: Bool = false) throws -> SHA256.Digest {
    guard let id = try snapshot?.finish() else {
      throw DrydockError(.io, "the snapshot id cannot be computed: libcrypto has no SHA-256")
    }
    try run("INSERT INTO property VALUES (?, ?)", ["format", Archive.Header.currentFormat])
    try run("INSERT INTO property VALUES (?, ?)", ["archive", archive.description])
    try run("INSERT INTO property VALUES (?, ?)", ["snapshot", id.hex])
    if storesExcluded { try run("INSERT INTO property VALUES (?, ?)", [ManifestSchema.storesExcluded, 1]) }
    try write { try $0.execute(sql: "COMMIT") }
    try Self.translating(path) { try queue.close() }
    return id
  }
}
