import DrydockErrors
import FileSystem
import Foundation
import GRDB
import SystemPackage

/// The index of a device backup, `Manifest.db`: a hostile database. SQLite opens a private copy of it, and runs one query,
/// which reads one table from end to end.
struct BackupIndex {
  struct Row {
    var id: String, domain: String
    var path: [UInt8]
    var flags: Int64
    var record: [UInt8]

    /// For messages.
    var place: String { ContainerPath.printable(Array((domain + "/").utf8) + path) }
  }

  static let name: ContainerPath = "Manifest.db"
  /// The domain of the keychain, and what those of apps, groups and extensions begin with.
  static let keychainDomain = "KeychainDomain", appDomains = "AppDomain"
  private let queue: DatabaseQueue
  /// More rows than fit into the file come of pages that are referenced twice.
  private let mostRows: UInt64
  private let path: String

  /// - Parameters:
  ///   - path: the backup's index, for messages.
  ///   - write: writes the index, decrypted.
  init(_ path: String, write: (FileDescriptor) throws -> Void) throws {
    self.path = path
    // Opened, then removed with its directory: SQLite needs a name only to open it.
    let scratch = try ScratchDirectory.temporary()
    let name: ContainerPath = "index.sqlite"
    do {
      let file = try scratch.directory.createFile(name)
      defer { try? file.close() }
      try write(file)
      let size = UInt64(clamping: try file.seek(offset: 0, from: .end))
      mostRows = size / 40
      let start = try file.bytes(20, at: 0)
      guard start.count == 20, start.starts(with: "SQLite format 3\0".utf8) else {
        throw Self.damaged("it is not a database", path)
      }
      // Without its log, a database in WAL mode is one in rollback mode.
      _ = try file.writeAll(toAbsoluteOffset: 18, [1, 1])
    } catch let error as Errno {
      throw DrydockError.system(
        "cannot write a copy of the backup's index", scratch.directory.full(name), error)
    }
    do {
      queue = try .untrusted(scratch.directory.full(name))
      try queue.read { try Self.checkTable($0, path) }
    } catch let error as DatabaseError {
      throw Self.damaged(error.message ?? "SQLite cannot open it", path)
    }
  }

  /// A view, a virtual table or a generated column could run anything.
  private static func checkTable(_ db: Database, _ path: String) throws {
    let tables = try GRDB.Row.fetchAll(
      db,
      sql:
        "SELECT type, substr(sql, 1, 200) AS sql FROM sqlite_schema WHERE name = 'Files' COLLATE NOCASE LIMIT 2"
    )
    guard tables.count == 1, (tables[0]["type"] as String?) == "table",
      let sql = tables[0]["sql"] as String?, sql.uppercased().hasPrefix("CREATE TABLE")
    else { throw damaged("it has no table `Files`", path) }
    let columns = try GRDB.Row.fetchAll(db, sql: "PRAGMA table_xinfo(Files)")
    guard columns.count <= 100, columns.allSatisfy({ ($0["hidden"] as Int64?) == 0 }) else {
      throw damaged("its table `Files` has computed columns", path)
    }
    let names = Set(columns.compactMap { $0["name"] as String? })
    guard names.isSuperset(of: ["fileID", "domain", "relativePath", "flags", "file"]) else {
      throw damaged("its table `Files` lacks a column", path)
    }
  }

  /// The longest path, and the longest record.
  private static let longest = 1 << 20

  /// Calls the body with every row of an app, a group or the keychain.
  ///
  /// - Returns: how many rows have no domain, and so are nobody's.
  /// - Throws: `DrydockError` with code `damaged`, and what the body throws.
  @discardableResult
  func rows(_ body: (Row) throws -> Void) throws -> Int {
    // What is longer than any path or record is not read: its length is known without that.
    let sql = """
      SELECT fileID, CAST(domain AS BLOB) AS domain, CAST(path AS BLOB) AS path, flags, record
      FROM (
        SELECT CASE WHEN length(fileID) = 40 THEN fileID END AS fileID,
          CASE WHEN length(domain) <= 1024 THEN domain END AS domain,
          CASE WHEN length(relativePath) <= \(Self.longest) THEN coalesce(relativePath, '') END AS path, flags,
          CASE WHEN length(file) <= \(Self.longest) AND (domain LIKE 'AppDomain%' OR domain = 'KeychainDomain') THEN file END
            AS record
        FROM Files)
      """
    do {
      return try queue.read { db in
        var count: UInt64 = 0
        var withoutDomain = 0
        let cursor = try GRDB.Row.fetchCursor(db, sql: sql)
        while let row = try cursor.next() {
          count += 1
          guard count <= mostRows else { throw Self.damaged("its tree has a cycle", path) }
          guard case .blob(let name) = (row["domain"] as DatabaseValue).storage,
            let domain = String(validating: name, as: UTF8.self)
          else {
            withoutDomain += 1
            continue
          }
          if let row = try self.row(row, domain) { try body(row) }
        }
        return withoutDomain
      }
    } catch let error as DatabaseError {
      throw Self.damaged(error.message ?? "SQLite cannot read it", path)
    }
  }

  private func row(_ row: GRDB.Row, _ domain: String) throws -> Row? {
    guard domain.hasPrefix(Self.appDomains) || domain == Self.keychainDomain else { return nil }
    guard case .string(let id) = (row["fileID"] as DatabaseValue).storage,
      id.utf8.count == 40, id.utf8.allSatisfy(\.isLowercaseHexDigit)
    else { throw Self.damaged("the name of a content is not 40 hexadecimal digits", path) }
    guard case .blob(let path) = (row["path"] as DatabaseValue).storage,
      case .int64(let flags) = (row["flags"] as DatabaseValue).storage,
      case .blob(let record) = (row["record"] as DatabaseValue).storage
    else {
      throw Self.damaged(
        "a row of \(ContainerPath.printable(Array(domain.utf8))) has invalid columns", self.path)
    }
    return Row(id: id, domain: domain, path: [UInt8](path), flags: flags, record: [UInt8](record))
  }

  static func damaged(_ what: String, _ path: String) -> DrydockError {
    DrydockError(
      .damaged, "the backup's index is damaged: \(what); use another copy of the backup", path: path)
  }
}
