import Foundation
import GRDB
import GRDBSQLite

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
