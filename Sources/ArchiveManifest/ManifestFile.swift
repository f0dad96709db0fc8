import AppStores
import Cryptography
import DrydockErrors
import FileSystem
import Foundation
import GRDB
import SystemPackage

/// Before SQLite sees a manifest, the header of the file must be the one that the format prescribes. Then the schema
/// must equal ours, so that no view, trigger, virtual table or generated column can run anything; and SQLite's check of
/// the whole file must pass, which visits each page once: a tree with a cycle would otherwise be read without end.
/// Nothing is ever written, so that SQLite's defensive mode, which keeps SQL from writing to the schema, has nothing to
/// add (and cannot be switched on from Swift).
extension DatabaseQueue {
  /// The header of a database: bytes 0 to 99.
  private static let headerSize = 100
  private static let pageSize: UInt64 = 4096

  /// Opens a manifest in an unlinked file, whatever hostile content it has.
  ///
  /// - Parameters:
  ///   - path: the archive's, for messages.
  ///   - write: writes the manifest's bytes.
  /// - Throws: `DrydockError` with code `damaged`, `DatabaseError`, and what `write` throws.
  static func manifest(_ path: String, write: (FileDescriptor) throws -> Void) throws -> DatabaseQueue {
    // Opened, then removed with its directory: SQLite needs a name only to open it.
    let scratch = try ScratchDirectory.temporary()
    let name: ContainerPath = "manifest.sqlite"
    try DrydockError.translating(
      "cannot write a copy of an archive's manifest", scratch.directory.full(name)
    ) {
      let file = try scratch.directory.createFile(name)
      defer { try? file.close() }
      try write(file)
      guard try hasManifestHeader(file) else {
        throw DrydockError(
          .damaged, "its manifest is not a database with the format's header", path: path)
      }
    }
    let queue = try DatabaseQueue.untrusted(scratch.directory.full(name))
    try queue.read { try checkManifest($0, path) }
    return queue
  }

  /// A whole number of pages of 4,096 bytes, in rollback-journal mode and UTF-8, without free pages, vacuum, reserved bytes or an
  /// application's marks, and its schema in the first page alone.
  private static func hasManifestHeader(_ file: FileDescriptor) throws -> Bool {
    let size = UInt64(clamping: try file.seek(offset: 0, from: .end))
    let bytes = try file.bytes(headerSize + 1, at: 0)
    guard bytes.count == headerSize + 1 else { return false }
    func number(_ offset: Int, _ width: Int = 4) -> UInt64 {
      bytes[offset..<offset + width].reduce(0) { $0 << 8 | UInt64($1) }
    }
    let isTableLeaf = bytes[headerSize] == 0x0D
    let hasNoExtras = [32, 36, 48, 52, 60, 64, 68].allSatisfy { number($0) == 0 }
    return Array(bytes[..<16]) == Array("SQLite format 3\0".utf8) && number(16, 2) == pageSize
      && number(18, 2) == 0x0101 && number(20, 4) == 0x0040_2020 && number(28) * pageSize == size
      && number(44) == 4 && number(56) == 1 && hasNoExtras && bytes[72..<92].allSatisfy { $0 == 0 }
      && isTableLeaf
  }

  private static func checkManifest(_ db: Database, _ path: String) throws {
    let schema = try Row.fetchAll(
      db, sql: "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid LIMIT 100"
    ).map { ManifestRow($0).text("sql") }
    guard schema == ManifestSchema.statements else {
      throw DrydockError(.damaged, "its manifest does not have the format's tables", path: path)
    }
    let check = try String.fetchOne(db, sql: "PRAGMA integrity_check(1)") ?? "no answer"
    guard check == "ok" else {
      throw DrydockError(
        .damaged, "its manifest is a damaged database: \(check.split(separator: "\n").last ?? "")",
        path: path)
    }
  }
}

/// The columns of one row of a manifest; nil for one of another type. A STRICT table does not help here: SQLite has
/// never checked the values in a hostile file.
///
/// Text and bytes are at most 1 MiB: longer than any path, and than what a tar header can have.
struct ManifestRow {
  private static let longest = 1 << 20
  private let row: Row

  init(_ row: Row) { self.row = row }

  private func storage(_ column: String) -> DatabaseValue.Storage { (row[column] as DatabaseValue).storage }

  func isNull(_ column: String) -> Bool {
    if case .null = storage(column) { true } else { false }
  }

  func integer(_ column: String) -> Int64? {
    if case .int64(let value) = storage(column) { value } else { nil }
  }

  func integer(at column: Int) -> Int64? {
    if case .int64(let value) = (row[column] as DatabaseValue).storage { value } else { nil }
  }

  func unsigned<T: FixedWidthInteger>(_ column: String, _ type: T.Type) -> T? {
    integer(column).flatMap { T(exactly: $0) }
  }

  func text(_ column: String) -> String? {
    if case .string(let value) = storage(column), value.utf8.count <= Self.longest { value } else { nil }
  }

  func bytes(_ column: String) -> [UInt8]? {
    if case .blob(let value) = storage(column), value.count <= Self.longest { [UInt8](value) } else { nil }
  }

  func digest(_ column: String) -> SHA256.Digest? { bytes(column).flatMap { SHA256.Digest(bytes: $0) } }

  /// The SQL of the column of a path or of an attribute's name, for ``path(_:)``. SQLite's text may be invalid
  /// UTF-8 and continue after a NUL, which a Swift string does not show: its bytes are read.
  static func path(_ column: String, as name: String) -> String {
    "CAST(\(column) AS BLOB) AS \(name), typeof(\(column)) AS \(name)_type"
  }

  /// A path: text where it is UTF-8, and a blob where it is not, so that no path has two forms.
  func path(_ column: String) -> ContainerPath? {
    guard let bytes = bytes(column),
      text(column + "_type") == (String(validating: bytes, as: UTF8.self) == nil ? "blob" : "text")
    else { return nil }
    return try? ContainerPath(bytes: bytes)
  }
}

/// The tables of `manifest.sqlite`. A reader compares them as text, so that no manifest that it opens has anything else
/// (a trigger, a view).
enum ManifestSchema {
  /// Paths are text where they are UTF-8, else blobs.
  static let statements = [
    """
    CREATE TABLE property (name TEXT PRIMARY KEY, value ANY) STRICT
    """,
    """
    CREATE TABLE entry (
      number INTEGER PRIMARY KEY, path ANY NOT NULL, kind TEXT NOT NULL, mode INTEGER NOT NULL, user INTEGER NOT NULL,
      "group" INTEGER NOT NULL, modified INTEGER NOT NULL, size INTEGER NOT NULL, sha256 BLOB, link_target BLOB,
      hard_link ANY, flags TEXT NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL, changed INTEGER NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE attribute (
      entry INTEGER NOT NULL, name TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (entry, name)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE extent (
      entry INTEGER NOT NULL, position INTEGER NOT NULL, archive INTEGER NOT NULL, offset INTEGER NOT NULL,
      length INTEGER NOT NULL, PRIMARY KEY (entry, position)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE block (offset INTEGER PRIMARY KEY, size INTEGER NOT NULL, hashes BLOB NOT NULL) STRICT
    """,
    """
    CREATE TABLE excluded (path ANY PRIMARY KEY, rule TEXT NOT NULL, origin ANY NOT NULL, detail TEXT NOT NULL) STRICT
    """,
    """
    CREATE TABLE skipped (path ANY PRIMARY KEY, reason TEXT NOT NULL) STRICT
    """,
    """
    CREATE TABLE superseded (offset INTEGER PRIMARY KEY, path ANY NOT NULL, length INTEGER NOT NULL) STRICT
    """,
    """
    CREATE TABLE required (number INTEGER PRIMARY KEY, archive TEXT NOT NULL UNIQUE) STRICT
    """,
    """
    CREATE TABLE capture (entry INTEGER PRIMARY KEY, sidecars BLOB, log BLOB) STRICT
    """,
    """
    CREATE TABLE removed (path ANY PRIMARY KEY) STRICT
    """,
  ]

  /// All properties that a manifest may have.
  static let properties = [
    "format", "archive", "snapshot", storesExcluded, inheritsOmitted, recipients, vaultOffset, vaultLength,
    vaultHash,
  ]

  /// The word in the column `flags` for the inode flag, else empty.
  static let noDump = "nodump"

  /// The property, with the value 1, of a manifest whose entries may also be excluded paths.
  static let storesExcluded = "stores-excluded"

  /// The property, with the value 1, of an incremental manifest whose excluded and skipped paths are its parent's.
  static let inheritsOmitted = "inherits-omitted"

  /// The property of an encrypted archive that identifies its recipients when it was written: SHA-256 of their sorted names.
  static let recipients = "recipients"

  /// The properties that say where in an encrypted archive the vault's items are, and their hash.
  static let vaultOffset = "vault-offset", vaultLength = "vault-length", vaultHash = "vault-sha256"
}

extension ContainerPath {
  /// A path in a manifest: text where it is UTF-8, readable with any SQLite, else a blob.
  var databaseValue: DatabaseValue {
    String(validating: bytes, as: UTF8.self)?.databaseValue ?? Data(bytes).databaseValue
  }
}
