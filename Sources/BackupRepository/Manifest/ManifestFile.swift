import AppContainer
import DrydockErrors
import FileSystem
import GRDB
import SystemPackage

/// A manifest's bytes as a database that nothing in it can do harm with.
///
/// Before SQLite sees the file, its header must be the one that the format prescribes. Then the schema must be ours to
/// the letter, so that there is no view, trigger, virtual table or generated column to run anything; and the check of
/// the whole file must pass, which visits each page once: a tree that holds itself, or a page that is many pages'
/// child, would otherwise be read without end. Nothing is ever written, so that SQLite's defensive mode, which keeps
/// SQL from writing to the schema, has nothing to add (and cannot be switched on from Swift).
enum ManifestFile {
  /// The header of a database: bytes 0 to 99.
  private static let headerSize = 100
  private static let pageSize: UInt64 = 4096

  /// Opens a manifest in a file that has no name any more.
  ///
  /// - Parameters:
  ///   - path: the archive's, for messages.
  ///   - write: writes the manifest's bytes.
  /// - Throws: ``DrydockError`` with code `damaged`, `DatabaseError`, and what `write` throws.
  static func open(_ path: String, write: (FileDescriptor) throws -> Void) throws -> DatabaseQueue {
    // Opened, then removed with its directory: SQLite needs a name only to open it.
    try ScratchDirectory.withTemporary { scratch in
      let name: ContainerPath = "manifest.sqlite"
      let file = try scratch.createFile(name)
      do {
        defer { try? file.close() }
        let isExpected: Bool
        do {
          try write(file)
          isExpected = try hasExpectedHeader(file)
        } catch let error as Errno {
          throw DrydockError.system(
            "cannot write a copy of an archive's manifest", scratch.full(name), error)
        }
        guard isExpected else {
          throw DrydockError(
            .damaged, "its manifest is not a database of the kind that the format says", path: path)
        }
      }
      return try open(file: scratch.full(name), path)
    }
  }

  /// A whole number of pages of 4,096 bytes, in rollback-journal mode and UTF-8, without free pages, vacuum, reserved bytes or an
  /// application's marks, and its schema in the first page alone.
  private static func hasExpectedHeader(_ file: FileDescriptor) throws -> Bool {
    let size = UInt64(clamping: try file.seek(offset: 0, from: .end))
    var bytes = [UInt8](repeating: 0, count: headerSize + 1)
    let count = try bytes.withUnsafeMutableBytes { try file.read(fromAbsoluteOffset: 0, into: $0) }
    guard count == bytes.count else { return false }
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

  private static func open(file: String, _ path: String) throws -> DatabaseQueue {
    var configuration = GRDB.Configuration()
    configuration.readonly = true
    configuration.prepareDatabase {
      try $0.execute(
        sql: """
          PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA query_only=ON; PRAGMA mmap_size=0;
          PRAGMA automatic_index=OFF
          """)
    }
    let queue = try DatabaseQueue(path: file, configuration: configuration)
    try queue.read { db in
      let schema = try Row.fetchAll(
        db, sql: "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid LIMIT 100"
      ).map { ManifestRow($0).text("sql") }
      guard schema == ManifestSchema.statements else {
        throw DrydockError(.damaged, "its manifest has other tables than the format says", path: path)
      }
      let check = try String.fetchOne(db, sql: "PRAGMA integrity_check(1)") ?? "no answer"
      guard check == "ok" else {
        throw DrydockError(
          .damaged, "its manifest is a damaged database: \(check.split(separator: "\n").last ?? "")",
          path: path)
      }
    }
    return queue
  }
}
