import DrydockErrors
import Foundation
import GRDB
import GRDBSQLite
import SystemPackage

/// The name of a table or column in SQL. GRDB's `quotedDatabaseIdentifier` leaves quotes in the name as they are, and names of
/// an app's database may be hostile.
package func quotedIdentifier(_ name: String) -> String { "\"\(name.replacing("\"", with: "\"\""))\"" }

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
    return try DatabaseError.namingObject(in: path) {
      try DatabaseQueue(path: path, configuration: configuration)
    }
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
    return try DatabaseError.namingObject(in: path) {
      try DatabaseQueue(path: path, configuration: configuration)
    }
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
  /// Opens the database at a path. An object of its schema that this SQLite cannot parse is named, with the version of
  /// SQLite that wrote the file: a newer one knows more.
  package static func namingObject<T>(in path: String, _ open: () throws -> T) throws -> T {
    do { return try open() } catch let error as DatabaseError {
      guard let match = error.message?.wholeMatch(of: #/malformed database schema \((.*)\) - (.*)/#),
        let writer = try? version(in: path)
      else { throw error }
      let (own, name) = (Int(sqlite3_libversion_number()), String(cString: sqlite3_libversion()))
      let advice = writer > own ? "which is newer: use a Drydock with it" : "so that the schema is corrupt"
      throw DatabaseError(
        resultCode: error.resultCode,
        message:
          "SQLite \(name) cannot read `\(match.1)` of the schema (\(match.2)); the file was last written by SQLite "
          + "\(writer / 1_000_000).\(writer / 1000 % 1000).\(writer % 1000), \(advice)")
    }
  }

  /// The version of SQLite that wrote a file last, as 3,045,001: a number in its header.
  private static func version(in path: String) throws -> Int {
    let file = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
    return try file.closeAfter {
      var bytes = [UInt8](repeating: 0, count: 4)
      _ = try bytes.withUnsafeMutableBytes { try file.read(fromAbsoluteOffset: 96, into: $0) }
      return bytes.reduce(0) { $0 << 8 | Int($1) }
    }
  }

  /// SQLite's message without values, which may be user data.
  package var plainMessage: String {
    guard let message else { return "SQLite error \(resultCode.rawValue)" }
    // In statements, and in the schema.
    if let match = message.wholeMatch(of: #/no such function: (.*)|unknown function: (.*)\(\)/#) {
      return Self.unknownFunction(String(match.1 ?? match.2 ?? ""))
    }
    if let match = message.wholeMatch(of: #/no such collation sequence: (.*)/#) {
      return
        "\(message); if the app defines it, declare its order in drydock.yaml: `collations: {\(match.1): WORD}`, where WORD is "
        + "one of " + SQLCollation.allCases.map(\.rawValue).joined(separator: ", ")
    }
    return Self.quoting.first(where: message.hasPrefix) ?? message
  }

  /// The message about an unknown function, with what to do.
  package static func unknownFunction(_ name: String) -> String {
    "no such function: \(name); if the app defines it, map it in drydock.yaml: `functions: {\(name): WORD}`, where WORD is "
      + "one of "
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

/// What statements write, as SQLite says while it compiles them.
package final class CompiledWrites {
  /// The columns, each with the trigger that writes it; nil where the statement names it.
  package var columns: [(table: String, column: String, trigger: String?)] = []

  package init() {}

  /// Notes what is compiled on a connection from now on, in place of what GRDB wants to know of it.
  package func watch(_ db: Database) {
    sqlite3_set_authorizer(
      db.sqliteConnection,
      { context, action, table, column, _, trigger in
        if action == SQLITE_UPDATE, let context, let table, let column {
          Unmanaged<CompiledWrites>.fromOpaque(context).takeUnretainedValue().columns.append(
            (String(cString: table), String(cString: column), trigger.map { String(cString: $0) }))
        }
        return SQLITE_OK
      }, Unmanaged.passUnretained(self).toOpaque())
  }
}
