import DrydockErrors
import Foundation
import GRDB
import GRDBSQLite

extension DatabaseQueue {
  /// Opens a private database, existing or new, with exclusive locking. Otherwise SQLite would map the index of its log from a
  /// file, and on a full file system touching a page without a block kills the process (SIGBUS).
  package static func alone(
    with path: String, _ configure: (inout GRDB.Configuration) -> Void = { _ in }
  ) throws -> DatabaseQueue {
    var configuration = GRDB.Configuration()
    // Exclusive locking takes the lock of a writer, even to read.
    let mayWrite = access(path, W_OK) == 0 || access(path, F_OK) != 0
    configuration.readonly = !mayWrite
    var status = stat()
    let size = stat(path, &status) == 0 ? Int(status.st_size) : 0
    configuration.prepareDatabase { db in
      if mayWrite { try db.execute(sql: "PRAGMA locking_mode=EXCLUSIVE") }
      // A hostile schema makes values of any size from a few bytes.
      if size > 0 {
        sqlite3_limit(db.sqliteConnection, SQLITE_LIMIT_LENGTH, Int32(clamping: max(1 << 20, 8 * size)))
      }
    }
    configure(&configuration)
    return try DatabaseQueue(path: path, configuration: configuration)
  }

  /// Opens a private copy of a database of unknown origin, for reading: its schema may call nothing, and damage is found
  /// before it is followed.
  package static func untrusted(_ path: String) throws -> DatabaseQueue {
    var configuration = GRDB.Configuration()
    configuration.readonly = true
    configuration.prepareDatabase {
      try $0.execute(
        sql: """
          PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA query_only=ON; PRAGMA mmap_size=0;
          PRAGMA automatic_index=OFF
          """)
    }
    return try DatabaseQueue(path: path, configuration: configuration)
  }
}

// MARK: Errors
extension DrydockError {
  package static func database(_ action: String, _ path: String, _ error: DatabaseError) -> Self {
    let code: Code =
      switch error.resultCode {
      case .SQLITE_BUSY, .SQLITE_LOCKED: .inUse
      case .SQLITE_FULL: .noSpace
      case .SQLITE_PERM, .SQLITE_READONLY, .SQLITE_CANTOPEN: .permission
      case .SQLITE_NOTADB, .SQLITE_CORRUPT: .malformed
      default: .io
      }
    return Self(code, "\(action): \(error.plainMessage)", path: path, cause: error)
  }
}

extension DatabaseError {
  /// SQLite's message without values, which may be user data.
  package var plainMessage: String {
    guard let message else { return "SQLite error \(resultCode.rawValue)" }
    if message.hasPrefix(Self.noFunction) {
      return Self.unknownFunction(String(message.dropFirst(Self.noFunction.count)))
    }
    return Self.quoting.first(where: message.hasPrefix) ?? message
  }

  private static let noFunction = "no such function: "

  /// The message about an unknown function, with what to do.
  package static func unknownFunction(_ name: String) -> String {
    noFunction + name
      + "; if the app defines it, map it in drydock.yaml: `functions: {\(name): WORD}`, where WORD is one of "
      + SQLFunction.names.joined(separator: ", ")
  }

  /// After these words SQLite quotes its input, which may be the value of a row.
  private static let quoting = [
    "bad JSON path", "JSON path error", "malformed MATCH expression", "fts5: syntax error",
  ]

  /// Whether the disk is full or failing, rather than the SQL wrong.
  package var isAboutTheDisk: Bool { resultCode == .SQLITE_FULL || resultCode == .SQLITE_IOERR }

  /// Whether SQLite cannot read the database: encrypted or corrupt.
  var meansUnreadable: Bool { resultCode == .SQLITE_NOTADB || resultCode == .SQLITE_CORRUPT }
}
